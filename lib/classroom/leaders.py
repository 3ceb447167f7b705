"""Lesson 4, leaders: tokens that step towards the token they score highest, and where they all end
(004, equations 1a and 1b).

Tokens are counted from 1 here, as in the explorer: token 1 is row 0. A is the identity throughout.
"""

from functools import cache

import numpy as np

from classroom import reading, recorded
from classroom.lesson import Lesson, few_or_many
from papers.hardmax.cases import constructed_cases
from papers.hardmax.dynamics import attention, hardmax_step, trajectory
from papers.hardmax.hypotheses import violated_hypotheses
from papers.hardmax.leaders import TheoremCheck, check_theorem, leader_history

START = np.array([
    [2.0, 0.5], [-1.5, 1.5], [-0.5, -2.0], [0.75, 0.5], [-0.5, 0.75],
    [0.25, -0.75], [-0.75, -0.25], [1.0, -0.5],
])  # fmt: skip
ALPHA = 0.5
ASKED = 7  # the token that exercises 1 and 2 ask about
RECTANGLE = np.array([[2.0, 1.0], [-2.0, 1.0], [-2.0, -1.0], [2.0, -1.0]])
EMERGING = next(case.tokens for case in constructed_cases() if case.name == "emerging leader")
PERCENT = 0.01  # of its distance to the leader, which a follower may keep in exercise 3

IDENTITY = np.eye(2)
CLOSE = 1e-3


def attended(Z: np.ndarray, token: int) -> frozenset[int]:
    """The tokens, counted from 1, that `token` is attracted by: its set C_i."""
    return frozenset((np.flatnonzero(attention(Z, IDENTITY)[token - 1]) + 1).tolist())


@cache
def layers_needed(alpha: float) -> int:
    """How many layers leave a follower less than `PERCENT` of its distance to the leader."""
    states = trajectory(np.array([[1.0, 0.0], [0.5, 0.0]]), IDENTITY, alpha, 1000, check=False)
    distance = np.linalg.norm(states[:, 1] - states[:, 0], axis=1)
    return int(np.argmax(distance < PERCENT * distance[0]))


def _history(Z: np.ndarray) -> np.ndarray:
    """Who leads at each of twelve layers (alpha = 1)."""
    return leader_history(trajectory(Z, IDENTITY, 1.0, 12, check=False), IDENTITY)


def late_leaders(Z: np.ndarray) -> frozenset[int]:
    """The tokens, counted from 1, that lead at some layer but not at the start (alpha = 1)."""
    history = _history(Z)
    return frozenset((np.flatnonzero(history.any(axis=0) & ~history[0]) + 1).tolist())


LESSON = Lesson("leaders")
say = LESSON.say


@LESSON.prediction("guess", reading.whole_number(1, len(START)))
def _compare_places(guess: int) -> str:
    found, tokens = check_theorem(START, IDENTITY, ALPHA), len(START)
    right, leaders = len(found.sites), int(found.leaders.sum())
    by_distance = len({nearest_other(i) for i in range(tokens)})
    thoughts = {
        by_distance: "places near",
        2: "places two",
        1: "places one",
        tokens: "places each",
        right: "places",
    }
    known = {"guess": guess, "tokens": tokens, "places": right, "leaders": leaders}
    thought = say(thoughts.get(guess, "places too"), few=few_or_many(guess, right))
    return f"{say('places found', **known)} {thought}"


@LESSON.prediction("guess_slower", reading.truth())
def _compare_slower(guess: bool) -> str:
    usual, slow = (check_theorem(START, IDENTITY, alpha) for alpha in (ALPHA, ALPHA / 8))
    same = bool(np.array_equal(usual.leaders, slow.leaders))
    layers = {"usual": usual.limit.layers, "slow": slow.limit.layers}
    found = say(
        "slower found", guess=guess, same="**the same**" if same else "**others**", **layers
    )
    return f"{found} {say('slower' if guess == same else 'slower wrong')}"


def nearest_other(i: int) -> frozenset[int]:
    """Token i (from 0) with its nearest neighbour: the group if distances decided."""
    distance = np.linalg.norm(START - START[i], axis=1)
    return frozenset((i, int(np.argsort(distance)[1])))


@LESSON.prediction("guess_real", reading.whole_number(0, 100))
def _compare_real(guess: int) -> str:
    """On a trained classifier, whose leaders were all deleted from the reviews."""
    kept, counted = (
        100 * recorded.value("43_leader_explanations", name)
        for name in ("deleting_leaders_keeps", "head_count_predicts")
    )
    thought = "real" if abs(guess - kept) <= 4 else "real leads" if guess <= 60 else "real too"
    known = {"decides": say("real decides", counted=counted), "few": few_or_many(guess, kept)}
    return f"{say('real found', guess=guess, kept=kept)} {say(thought, **known)}"


@LESSON.exercise(
    "1", reading.members(range(1, len(START) + 1)), right=lambda: attended(START, ASKED)
)
def _attended_fault(answer: frozenset[int], right: frozenset[int]) -> str:
    if not answer:
        return say("attended empty")
    if ASKED in answer:
        return say("attended self")
    scores = START @ START[ASKED - 1]
    nearest = int(np.argsort(np.linalg.norm(START - START[ASKED - 1], axis=1))[1]) + 1
    if answer == frozenset({nearest}):
        return say("attended near")
    best = max(scores[i - 1] for i in answer)
    return say("attended more" if right <= answer else "attended best", best=best)


@LESSON.exercise("2", reading.array((2,), "the new place"))
def _step_fault(z: np.ndarray) -> str | None:
    before, after = START[ASKED - 1], hardmax_step(START, IDENTITY, ALPHA)[ASKED - 1]
    goal = before + (after - before) * (1 + ALPHA) / ALPHA
    if np.abs(z - after).max() <= CLOSE:
        return None
    thoughts = {"goal": goal, "fraction": before + ALPHA * (goal - before), "none": before}
    near = (name for name, place in thoughts.items() if np.abs(z - place).max() <= CLOSE)
    return say(f"step {next(near, '')}".strip())


@LESSON.exercise(
    "3",
    reading.whole_number(0, 10**4),
    lambda _: {"slowly": layers_needed(0.1)},
    right=lambda: layers_needed(1.0),
)
def _layers_fault(answer: int, right: int) -> str:
    if answer > right:
        return say("layers more")
    return say("layers", layers=answer, s="s" * (answer != 1), kept=0.5**answer)


@LESSON.exercise("4", reading.array(((4, 8), 2), "the tokens"))
def _two_fault(Z: np.ndarray) -> str | None:
    found = _run(Z)
    if isinstance(found, str):
        return found
    count = int(found.leaders.sum())
    if count == 2:
        return None
    advice = say("two more" if count > 2 else "two fewer")
    return say("two", count=count, s="s" * (count > 1), advice=advice)


@LESSON.exercise("5", reading.array((2,), "z"))
def _edge_fault(z: np.ndarray) -> str | None:
    found = _run(np.vstack([RECTANGLE, z]))
    if isinstance(found, str):
        return found
    if found.leaders[4]:
        return say("edge leader")
    if found.is_vertex[found.labels[4]]:
        leader = int(np.flatnonzero(found.leaders & (found.labels == found.labels[4]))[0]) + 1
        return say("edge vertex", leader=leader)
    return None


@LESSON.exercise(
    "6", reading.members(range(1, len(EMERGING) + 1)), right=lambda: late_leaders(EMERGING)
)
def _late_fault(answer: frozenset[int], _: frozenset[int]) -> str:
    history = _history(EMERGING)
    if any(history[0][i - 1] for i in answer):
        return say("late start")
    return say("late never" if any(not history[:, i - 1].any() for i in answer) else "late")


def _run(Z: np.ndarray) -> TheoremCheck | str:
    """What becomes of the tokens with alpha = 1, or a sentence on why the theorem does not apply."""
    if problems := violated_hypotheses(Z):
        return say("silent", problem=problems[0])
    found = check_theorem(Z, IDENTITY, 1.0)
    return found if found.limit.converged else say("unsettled")
