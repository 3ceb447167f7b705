"""Lesson 4, leaders: tokens that step towards the token they score highest, and where they all end
(004, equations 1a and 1b).

Tokens are counted from 1 here, as in the explorer: token 1 is row 0. A is the identity throughout.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from classroom import reading, recorded
from classroom.exercise import Prediction
from classroom.words import Words
from papers.hardmax.cases import constructed_cases
from papers.hardmax.dynamics import attention, hardmax_step, trajectory
from papers.hardmax.hypotheses import violated_hypotheses
from papers.hardmax.leaders import TheoremCheck, check_theorem, leader_history

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


@cache
def layers_needed(alpha: float) -> int:
    """How many layers leave a follower less than `PERCENT` of its distance to the leader."""
    states = trajectory(np.array([[1.0, 0.0], [0.5, 0.0]]), IDENTITY, alpha, 1000, check=False)
    distance = np.linalg.norm(states[:, 1] - states[:, 0], axis=1)
    return int(np.argmax(distance < PERCENT * distance[0]))


def late_leaders(Z: np.ndarray, layers: int = 12) -> frozenset[int]:
    """The tokens, counted from 1, that lead at some layer but not at the start (alpha = 1)."""
    history = leader_history(trajectory(Z, IDENTITY, 1.0, layers, check=False), IDENTITY)
    return frozenset((np.flatnonzero(history.any(axis=0) & ~history[0]) + 1).tolist())


SAY = Words(r"""
places found: You predicted {guess}; the {tokens} tokens end in **{places}** places, and {leaders}
  tokens lead.
places: You saw it: those that lie outermost have nobody beyond them, and each of the others looks
  at one of these.
places each: That is a place for each token; but a token stays only if nobody lies farther in its
  own direction.
places one: That is one common meeting place, as when everybody averages over all; here a token
  looks at one other only.
places two: Two camps would need all of them nearly on one line; look round the origin, there are
  outermost tokens on more sides.
places near: Perhaps you grouped each with its nearest neighbour; what counts is the largest dot
  product, not the distance.
places too: Too {few}: ask of each token whether some other has a larger dot product with it than it
  has with itself.
slower found: You predicted {guess}. The leaders are {same}; what changes is the pace: {usual}
  layers become {slow}.
slower: You saw it: a leader is never displaced, and these followers look at the same leader all the
  way.
slower wrong: The thought is that slower tokens give others the time to take the lead; but followers
  run towards the leaders, and here none changes its mind on the way.
real found: You predicted {guess}%; with all leaders deleted **{kept:.0f}%** of the decisions stay.
real: You saw it: {decides}, and without a leader the words find another one near by.
real leads: The thought is that whoever leads decides; but {decides}.
real too: Too {few}: {decides}.
real decides: what decides is how many words gather on each side: that count alone gives
  {counted:.0f}% of the decisions
attended empty: The set is never empty: some token has the largest score.
attended self: The token itself is a candidate too, but others score more here.
attended near: That is the nearest token. What counts is the largest dot product, not the distance.
attended best: The best score among those you name is {best:.4g}; compute all eight, a larger one is
  there.
attended more: Those include the right one, but only the largest score counts.
step goal: That is the leader's own place: a layer goes only a part of the way.
step fraction: You went the fraction $\alpha$ of the way; the formula says $\alpha / (1 + \alpha)$.
step none: That is where it stands now; in one layer it moves.
step: That is not where it lands: take its place, and add a fraction of the way to the token it
  attends to.
layers more: That is enough, but fewer layers do.
layers: After {layers} layer{s} it still keeps {kept:.2%} of its distance.
two more: let more tokens find another that lies farther out in their direction
two fewer: give some token nobody to follow
two: Your tokens have {count} leader{s}: {advice}.
edge leader: There the fifth token is a leader itself, a vertex of its own: put it inside the
  rectangle.
edge vertex: From there it runs to leader {leader}, a vertex. It has to look at two leaders at once,
  all the time.
late start: You name a token that leads from the start: the question is who becomes a leader later.
late never: You name a token that never leads.
late: Somebody does: step through the layers.
silent: The theorem does not speak of these tokens: {problem}
unsettled: These tokens do not settle: choose simpler coordinates.
right 1: A token looks for the one that lies farthest *in its own direction*, near or not.
hint 1: Compute the dot products of token 7 with all tokens: `leaders.START @ leaders.START[6]`.
right 2: It has moved a third of the way; the rest shrinks by the factor $1 / (1 + \alpha)$ with
  each layer.
hint 2: $z + \frac{{\alpha}}{{1 + \alpha}} (z_j - z)$ with $\alpha = 1/2$, and $j$ from exercise 1.
right 3: $(1 + \alpha)^{{-{answer}}}$ is the first power below 1%; with $\alpha = 0.1$ it takes
  {slowly} layers.
hint 3: With $\alpha = 1$ half of the distance remains after a layer.
right 4: Two leaders, so the polytope is a segment, and every other token ends on it.
hint 4: A token leads when nobody, itself excepted, lies as far in its own direction.
hint 4b: Put two tokens far out on opposite sides of the origin and the others near the line between
  them.
right 5: It ends on an edge, at the projection of the origin: the limit that the theorem allows
  beside the vertices.
hint 5: When does a token score two corners alike? Use the symmetry of the rectangle.
right 6: Its own leader left, and it was alone in front. Leaders, however, never lose their place.
hint 6: `HardmaxExplorer(leaders.EMERGING, alpha=1.0)` shows them; move the layer slider and watch
  the stars.
""")


def _compare_places(guess: int) -> str:
    found = check_theorem(START, IDENTITY, ALPHA)
    leaders = int(found.leaders.sum())
    counts = {"tokens": len(START), "places": len(found.sites), "leaders": leaders}
    return SAY("places found", guess=guess, **counts)


def _answer_places(guess: int) -> str:
    right = len(check_theorem(START, IDENTITY, ALPHA).sites)
    own = len({nearest_other(i) for i in range(len(START))})
    thoughts = {own: "near", 2: "two", 1: "one", len(START): "each"}
    if guess == right:
        return SAY("places")
    few = "few" if guess < right else "many"
    return SAY(f"places {thoughts.get(guess, 'too')}", few=few)


def _paces() -> tuple[TheoremCheck, TheoremCheck, bool]:
    usual, slow = (check_theorem(START, IDENTITY, alpha) for alpha in (ALPHA, ALPHA / 8))
    return usual, slow, bool(np.array_equal(usual.leaders, slow.leaders))


def _compare_slower(guess: bool) -> str:
    usual, slow, same = _paces()
    told = "**the same**" if same else "**others**"
    layers = {"usual": usual.limit.layers, "slow": slow.limit.layers}
    return SAY("slower found", guess=guess, same=told, **layers)


def _answer_slower(guess: bool) -> str:
    return SAY("slower" if guess == _paces()[2] else "slower wrong")


def nearest_other(i: int) -> frozenset[int]:
    """Token i (from 0) with its nearest neighbour: the groups that a reader makes who thinks of
    distances.
    """
    distance = np.linalg.norm(START - START[i], axis=1)
    return frozenset((i, int(np.argsort(distance)[1])))


def _kept() -> float:
    """Percent of a trained classifier's decisions that stay when all leaders are deleted from the
    reviews.
    """
    return 100 * recorded.value("43_leader_explanations", "deleting_leaders_keeps")


def _compare_real(guess: int) -> str:
    return SAY("real found", guess=guess, kept=_kept())


def _answer_real(guess: int) -> str:
    counted = 100 * recorded.value("43_leader_explanations", "head_count_predicts")
    name = "real" if abs(guess - _kept()) <= 4 else "real leads" if guess <= 60 else "real too"
    few = "few" if guess < _kept() else "many"
    return SAY(name, decides=SAY("real decides", counted=counted), few=few)


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
        return SAY("attended empty")
    if ASKED in answer:
        return SAY("attended self")
    scores = START @ START[ASKED - 1]
    nearest = int(np.argsort(np.linalg.norm(START - START[ASKED - 1], axis=1))[1]) + 1
    if answer == frozenset({nearest}):
        return SAY("attended near")
    best = max(scores[i - 1] for i in answer)
    return SAY("attended more" if right <= answer else "attended best", best=best)


def _step_fault(z: np.ndarray) -> str | None:
    before, after = START[ASKED - 1], hardmax_step(START, IDENTITY, ALPHA)[ASKED - 1]
    goal = before + (after - before) * (1 + ALPHA) / ALPHA
    if np.abs(z - after).max() <= CLOSE:
        return None
    thoughts = {"goal": goal, "fraction": before + ALPHA * (goal - before), "none": before}
    near = (name for name, place in thoughts.items() if np.abs(z - place).max() <= CLOSE)
    return SAY(f"step {next(near, '')}".strip())


def _layers_fault(answer: int) -> str | None:
    right = layers_needed(1.0)
    if answer == right:
        return None
    if answer > right:
        return SAY("layers more")
    return SAY("layers", layers=answer, s="s" * (answer != 1), kept=0.5**answer)


def _two_fault(Z: np.ndarray) -> str | None:
    found = _run(Z)
    if isinstance(found, str):
        return found
    count = int(found.leaders.sum())
    if count == 2:
        return None
    advice = SAY("two more" if count > 2 else "two fewer")
    return SAY("two", count=count, s="s" * (count > 1), advice=advice)


def _edge_fault(z: np.ndarray) -> str | None:
    found = _run(np.vstack([RECTANGLE, z]))
    if isinstance(found, str):
        return found
    if found.leaders[4]:
        return SAY("edge leader")
    if found.is_vertex[found.labels[4]]:
        leader = int(np.flatnonzero(found.leaders & (found.labels == found.labels[4]))[0]) + 1
        return SAY("edge vertex", leader=leader)
    return None


def _late_fault(answer: frozenset[int]) -> str | None:
    history = leader_history(trajectory(EMERGING, IDENTITY, 1.0, 12, check=False), IDENTITY)
    if answer == late_leaders(EMERGING):
        return None
    if any(history[0][i - 1] for i in answer):
        return SAY("late start")
    return SAY("late never" if any(not history[:, i - 1].any() for i in answer) else "late")


def _run(Z: np.ndarray) -> TheoremCheck | str:
    """What becomes of the tokens with alpha = 1, or a sentence on why the theorem does not speak of
    them.
    """
    if problems := violated_hypotheses(Z):
        return SAY("silent", problem=problems[0])
    found = check_theorem(Z, IDENTITY, 1.0)
    return found if found.limit.converged else SAY("unsettled")


EXERCISES = {
    "1": SAY.exercise(1, reading.members(range(1, len(START) + 1)), _attended_fault),
    "2": SAY.exercise(2, reading.array((2,), "the new place"), _step_fault),
    "3": SAY.exercise(
        3,
        reading.whole_number(0, 10**4),
        _layers_fault,
        lambda n: SAY("right 3", answer=n, slowly=layers_needed(0.1)),
    ),
    "4": SAY.exercise(4, reading.array(((4, 8), 2), "the tokens"), _two_fault),
    "5": SAY.exercise(5, reading.array((2,), "z"), _edge_fault),
    "6": SAY.exercise(6, reading.members(range(1, len(EMERGING) + 1)), _late_fault),
}
