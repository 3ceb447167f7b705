"""Lesson 4, leaders: tokens that step towards the token they score highest, and where they all end
(004, equations 1a and 1b).

Tokens are counted from 1 here, as in the explorer: token 1 is row 0. A is the identity throughout.
"""

from __future__ import annotations

import numpy as np

from classroom import reading, recorded
from classroom.exercise import Exercise, Prediction
from softgeom.hardmax.cases import constructed_cases
from softgeom.hardmax.dynamics import attention, hardmax_step, trajectory
from softgeom.hardmax.hypotheses import violated_hypotheses
from softgeom.hardmax.leaders import TheoremCheck, check_theorem, leader_history

START = np.array(
    [
        [2.0, 0.5],
        [-1.5, 1.5],
        [-0.5, -2.0],
        [0.75, 0.5],
        [-0.5, 0.75],
        [0.25, -0.75],
        [-0.75, -0.25],
        [1.0, -0.5],
    ]
)
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


def layers_needed(alpha: float) -> int:
    """How many layers leave a follower less than `PERCENT` of its distance to the leader."""
    states = trajectory(np.array([[1.0, 0.0], [0.5, 0.0]]), IDENTITY, alpha, 1000, check=False)
    distance = np.linalg.norm(states[:, 1] - states[:, 0], axis=1)
    return int(np.argmax(distance < PERCENT * distance[0]))


def late_leaders(Z: np.ndarray, layers: int = 12) -> frozenset[int]:
    """The tokens, counted from 1, that lead at some layer but not at the start (alpha = 1)."""
    history = leader_history(trajectory(Z, IDENTITY, 1.0, layers, check=False), IDENTITY)
    return frozenset((np.flatnonzero(history.any(axis=0) & ~history[0]) + 1).tolist())


def _compare_places(guess: int) -> str:
    found = check_theorem(START, IDENTITY, ALPHA)
    return (
        f"You predicted {guess}; the {len(START)} tokens end in **{len(found.sites)}** places, "
        f"and {int(found.leaders.sum())} tokens lead."
    )


def _compare_slower(guess: bool) -> str:
    usual, slow = check_theorem(START, IDENTITY, ALPHA), check_theorem(START, IDENTITY, ALPHA / 8)
    same = bool(np.array_equal(usual.leaders, slow.leaders))
    layers = f"{usual.limit.layers} layers become {slow.limit.layers}"
    return (
        f"You predicted {guess}. The leaders are {'**the same**' if same else '**others**'}; "
        f"what changes is the pace: {layers}."
    )


def _answer_places(guess: int) -> str:
    found = check_theorem(START, IDENTITY, ALPHA)
    right, own = len(found.sites), len({nearest_other(i) for i in range(len(START))})
    if guess == right:
        return (
            "You saw it: those that lie outermost have nobody beyond them, and each of the "
            "others looks at one of these."
        )
    if guess == len(START):
        return (
            "That is a place for each token; but a token stays only if nobody lies farther in "
            "its own direction."
        )
    if guess == 1:
        return (
            "That is one common meeting place, as when everybody averages over all; here a token "
            "looks at one other only."
        )
    if guess == 2:
        return (
            "Two camps would need all of them nearly on one line; look round the origin, there "
            "are outermost tokens on more sides."
        )
    if guess == own:
        return (
            "Perhaps you grouped each with its nearest neighbour; what counts is the largest dot "
            "product, not the distance."
        )
    return (
        f"Too {'few' if guess < right else 'many'}: ask of each token whether some other has a "
        f"larger dot product with it than it has with itself."
    )


def nearest_other(i: int) -> frozenset[int]:
    """Token i (from 0) with its nearest neighbour: the groups that a reader makes who thinks of
    distances.
    """
    distance = np.linalg.norm(START - START[i], axis=1)
    return frozenset((i, int(np.argsort(distance)[1])))


def _answer_slower(guess: bool) -> str:
    usual, slow = check_theorem(START, IDENTITY, ALPHA), check_theorem(START, IDENTITY, ALPHA / 8)
    if guess == bool(np.array_equal(usual.leaders, slow.leaders)):
        return (
            "You saw it: a leader is never displaced, and these followers look at the same "
            "leader all the way."
        )
    return (
        "The thought is that slower tokens give others the time to take the lead; but followers "
        "run towards the leaders, and here none changes its mind on the way."
    )


def _kept() -> float:
    """Percent of a trained classifier's decisions that stay when all leaders are deleted from the
    reviews.
    """
    return 100 * recorded.value("43_leader_explanations", "deleting_leaders_keeps")


def _compare_real(guess: int) -> str:
    return (
        f"You predicted {guess}%; with all leaders deleted **{_kept():.0f}%** of the decisions "
        f"stay."
    )


def _answer_real(guess: int) -> str:
    counted = 100 * recorded.value("43_leader_explanations", "head_count_predicts")
    decides = (
        f"what decides is how many words gather on each side: that count alone gives "
        f"{counted:.0f}% of the decisions"
    )
    if abs(guess - _kept()) <= 4:
        return f"You saw it: {decides}, and without a leader the words find another one near by."
    if guess <= 60:
        return f"The thought is that whoever leads decides; but {decides}."
    return f"Too {'few' if guess < _kept() else 'many'}: {decides}."


PREDICTIONS = {
    "guess_real": Prediction(reading.whole_number(0, 100), _compare_real, _answer_real),
    "guess": Prediction(reading.whole_number(1, len(START)), _compare_places, _answer_places),
    "guess_slower": Prediction(reading.truth(), _compare_slower, _answer_slower),
}


def _attended_fault(answer: frozenset[int]) -> str | None:
    right = attended(START, ASKED)
    if answer == right:
        return None
    if not answer:
        return "The set is never empty: some token has the largest score."
    if ASKED in answer:
        return "The token itself is a candidate too, but others score more here."
    scores = START @ START[ASKED - 1]
    nearest = int(np.argsort(np.linalg.norm(START - START[ASKED - 1], axis=1))[1]) + 1
    if answer == frozenset({nearest}):
        return (
            "That is the nearest token. What counts is the largest dot product, not the distance."
        )
    best = max(scores[i - 1] for i in answer)
    return (
        (
            f"The best score among those you name is {best:.4g}; compute all eight, a larger one is "
            f"there."
        )
        if not right <= answer
        else "Those include the right one, but only the largest score counts."
    )


def _step_fault(z: np.ndarray) -> str | None:
    before, after = START[ASKED - 1], hardmax_step(START, IDENTITY, ALPHA)[ASKED - 1]
    goal = before + (after - before) * (1 + ALPHA) / ALPHA
    if np.abs(z - after).max() <= CLOSE:
        return None
    if np.abs(z - goal).max() <= CLOSE:
        return "That is the leader's own place: a layer goes only a part of the way."
    if np.abs(z - (before + ALPHA * (goal - before))).max() <= CLOSE:
        return (
            "You went the fraction $\\alpha$ of the way; the formula says $\\alpha / (1 + "
            "\\alpha)$."
        )
    if np.abs(z - before).max() <= CLOSE:
        return "That is where it stands now; in one layer it moves."
    return (
        "That is not where it lands: take its place, and add a fraction of the way to the token "
        "it attends to."
    )


def _layers_fault(answer: int) -> str | None:
    right = layers_needed(1.0)
    if answer == right:
        return None
    if answer > right:
        return "That is enough, but fewer layers do."
    return (
        f"After {answer} layer{'s' * (answer != 1)} it still keeps {0.5**answer:.2%} of its "
        f"distance."
    )


def _two_fault(Z: np.ndarray) -> str | None:
    found = _run(Z)
    if isinstance(found, str):
        return found
    count = int(found.leaders.sum())
    if count == 2:
        return None
    advice = (
        "let more tokens find another that lies farther out in their direction"
        if count > 2
        else "give some token nobody to follow"
    )
    return f"Your tokens have {count} leader{'s' * (count > 1)}: {advice}."


def _edge_fault(z: np.ndarray) -> str | None:
    found = _run(np.vstack([RECTANGLE, z]))
    if isinstance(found, str):
        return found
    if found.leaders[4]:
        return (
            "There the fifth token is a leader itself, a vertex of its own: put it inside the "
            "rectangle."
        )
    if found.is_vertex[found.labels[4]]:
        leader = int(np.flatnonzero(found.leaders & (found.labels == found.labels[4]))[0]) + 1
        return (
            f"From there it runs to leader {leader}, a vertex. It has to look at two leaders at "
            f"once, all the time."
        )
    return None


def _late_fault(answer: frozenset[int]) -> str | None:
    late = late_leaders(EMERGING)
    history = leader_history(trajectory(EMERGING, IDENTITY, 1.0, 12, check=False), IDENTITY)
    if answer == late:
        return None
    if any(history[0][i - 1] for i in answer):
        return (
            "You name a token that leads from the start: the question is who becomes a leader "
            "later."
        )
    if any(not history[:, i - 1].any() for i in answer):
        return "You name a token that never leads."
    return "Somebody does: step through the layers."


def _run(Z: np.ndarray) -> TheoremCheck | str:
    """What becomes of the tokens with alpha = 1, or a sentence on why the theorem does not speak of
    them.
    """
    problems = violated_hypotheses(Z)
    if problems:
        return f"The theorem does not speak of these tokens: {problems[0]}"
    found = check_theorem(Z, IDENTITY, 1.0)
    return (
        found
        if found.limit.converged
        else "These tokens do not settle: choose simpler coordinates."
    )


EXERCISES = {
    "1": Exercise(
        reading.members(range(1, len(START) + 1)),
        _attended_fault,
        lambda _: (
            "A token looks for the one that lies farthest *in its own direction*, near or not."
        ),
        (
            "Compute the dot products of token 7 with all tokens: `leaders.START @ "
            "leaders.START[6]`.",
        ),
    ),
    "2": Exercise(
        reading.array((2,), "the new place"),
        _step_fault,
        lambda _: (
            "It has moved a third of the way; the rest shrinks by the factor $1 / (1 + "
            "\\alpha)$ with each layer."
        ),
        (
            "$z + \\frac{\\alpha}{1 + \\alpha} (z_j - z)$ with $\\alpha = 1/2$, and $j$ from "
            "exercise 1.",
        ),
    ),
    "3": Exercise(
        reading.whole_number(0, 10**4),
        _layers_fault,
        lambda n: (
            f"$(1 + \\alpha)^{{-{n}}}$ is the first power below 1%; with $\\alpha = 0.1$ it "
            f"takes {layers_needed(0.1)} layers."
        ),
        ("With $\\alpha = 1$ half of the distance remains after a layer.",),
    ),
    "4": Exercise(
        reading.array(((4, 8), 2), "the tokens"),
        _two_fault,
        lambda _: "Two leaders, so the polytope is a segment, and every other token ends on it.",
        (
            "A token leads when nobody, itself excepted, lies as far in its own direction.",
            "Put two tokens far out on opposite sides of the origin and the others near the "
            "line between them.",
        ),
    ),
    "5": Exercise(
        reading.array((2,), "z"),
        _edge_fault,
        lambda _: (
            "It ends on an edge, at the projection of the origin: the limit that the theorem "
            "allows beside the vertices."
        ),
        ("When does a token score two corners alike? Use the symmetry of the rectangle.",),
    ),
    "6": Exercise(
        reading.members(range(1, len(EMERGING) + 1)),
        _late_fault,
        lambda _: (
            "Its own leader left, and it was alone in front. Leaders, however, never lose "
            "their place."
        ),
        (
            "`HardmaxExplorer(leaders.EMERGING, alpha=1.0)` shows them; move the layer "
            "slider and watch the stars.",
        ),
    ),
}
