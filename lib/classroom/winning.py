"""Lesson 2, who can win: which classes can come first for some features, and the proof when one
cannot (001, Sections 3.1 to 3.3).

`TRIANGLE` is a triangle with a class inside; `SEVEN` has five corners and two inner classes; in
`OWN_ROW` class D wins, but not at its own row.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from classroom import reading, recorded
from classroom.exercise import Prediction
from classroom.words import Words
from softgeom.certifying.kernel import certify_evidence
from softgeom.certifying.verdict import Captors, EvidenceError
from softgeom.layer import Box, FeatureSet, SoftmaxLayer, Unbounded
from softgeom.scanner import scan

TRIANGLE = SoftmaxLayer([[0.0, 2.0], [-2.0, -2.0], [2.0, -2.0], [0.5, 0.0]], tokens="ABCD")
TRIANGLE_BIAS = (1.0, 0.0, 0.5)  # of A, B, C, when the bias of D is asked for
SEVEN = SoftmaxLayer(
    [
        [2.0, 0.5],
        [1.0, 1.125],
        [0.25, 2.0],
        [-1.75, 0.75],
        [-0.75, -0.5],
        [-0.75, -1.75],
        [1.25, -1.25],
    ],
    tokens="ABCDEFG",
)
OWN_ROW = SoftmaxLayer([[-3.0, -1.5], [0.0, 2.0], [2.5, -1.0], [-1.5, 0.875]], tokens="ABCD")
# one feature; C wins for large x only
LATE = SoftmaxLayer([[1.0], [-1.0], [1.25]], [0, 0, -2], tokens="ABC")
CROWD = SoftmaxLayer(np.random.default_rng(0).normal(size=(100, 2)))

ROUGHLY = 1e-3  # how well a convex combination, worked out by hand, must reproduce a row


def winners(layer: SoftmaxLayer, features: FeatureSet | None = None) -> frozenset[str]:
    """The names of the classes that are proven to win somewhere; all of R^d is searched unless
    `features` says otherwise.
    """
    table = scan(layer, features=features or Unbounded()).table
    return frozenset(table.loc[table["verdict"] == "argmaxable", "token"])


@cache
def _crowd() -> int:
    return len(winners(CROWD))


@cache
def _never() -> frozenset[str]:
    return frozenset(SEVEN.tokens or ()) - winners(SEVEN)


@cache
def captor_weights() -> np.ndarray:
    """The convex weights (3,) of A, B, C that make up the row of D in `TRIANGLE`, from the scan's
    evidence.
    """
    evidence = scan(TRIANGLE, features=Unbounded()).evidence(3)
    assert isinstance(evidence, Captors)
    weights = np.zeros(3)
    weights[evidence.rivals] = evidence.weights / evidence.weights.sum()
    return weights


@cache
def smallest_half_width() -> int:
    """The smallest whole L for which class C of `LATE` wins in the box |x| <= L."""
    return next(L for L in range(1, 1000) if "C" in winners(LATE, Box(float(L))))


SAY = Words(r"""
inner found: You predicted {guess}; the scan proves that {verdict}.
inner: You saw it: whichever way $x$ points, a corner of the triangle lies farther that way than
  D. The proof comes below.
inner wrong: The thought is that $x$ only has to point at D; but the logit in that direction asks
  who lies *farthest*, and beyond D there is always a corner. Read on.
crowd found: You predicted {guess} of {classes}; the scan finds **{count}**: only the corners of the
  crowd.
crowd: You saw it: the corners of such a crowd grow only like the square root of $\log n$.
crowd all: That is right for a circle, where everybody is a corner; in a crowd most have somebody
  farther out on every side.
crowd one: No class leads for every $x$: turn $x$ round, and the logits change their signs, so that
  the first becomes the last.
crowd four: That many corners a triangle or a square has; a crowd's hull is rounder.
crowd half: Half of them would be an even chance for each class; but only those on the outside can
  win, and a crowd has little outside.
crowd too: Too {few}: draw a dozen points, put a rubber band round them, and see how slowly its
  corners grow with more.
real found: You predicted {guess:,}; of {scanned:,} outputs **{lost:,}** can never win, each with a
  proof.
real: You saw it: few, but not none. Most of them are signs that training hardly ever showed,
  whose rows stayed together.
real none: The thought is right for random rows: with that many features nearly all are corners. But
  rows that training never moved stay together, and among copies at most one can win.
real most: That is the crowd in the plane; with {features} features nearly every row is a corner, as
  the table above says.
real too: Too {few}: think of the signs that training hardly ever showed.
never wrong: You name {named} that can win somewhere: look for the corners again.
never more: What you name is right, but somebody is still missing.
never some: Somebody here can never win.
witness tie: There D ties with another class for the first place: move x a little.
witness: There {first} wins, and D is {behind:.3g} behind.
right 2: D is a corner of the hull, so some direction favours it. It need not be its own row: at $x
  = w_D$ it is {first} that wins.
weights negative: A weight is negative: what lies between the captors has none.
weights sum: The weights sum to {total:.4g}; those of a mean sum to one.
weights miss: With these weights the mixture of A, B and C is ({u:.4g}, {v:.4g}), which is not the
  row of D.
weights near: Nearly: the mixture is close to the row of D, but rounding spoils the proof. Use the
  exact fractions.
bias best: That is more than enough: D need not beat the best bias of its captors, only their
  weighted mean.
bias mean: That is the plain mean of the biases; the captors do not weigh the same.
bias more: With that bias D wins somewhere, but a smaller one would do.
bias less: With that bias D still never wins.
all: With this bias {stuck} cannot win.
box more: C wins in that box, but also in a smaller one.
box tie: At the border of that box C only ties for the first place, and a tie is no win.
box less: In that box C never wins: compare its logit with A's at the border.
right 1: Without a bias a class can win if and only if its vector is a corner of the convex hull of
  all of them.
hint 1: Imagine a rubber band round all seven points. Which of them does it touch?
hint 2: Draw the line through A and B. On which side of it is D?
hint 2b: Take x perpendicular to $w_A - w_B$: then A and B tie, and D decides.
right 3: This is a proof: whatever $x$ is, the logit of D is the mean of three others with these
  weights, so it never exceeds the largest of them. It takes no solver to check it.
hint 3: Three unknowns, three equations: two for the coordinates, and the weights sum to one.
hint 3b: `np.linalg.solve` solves them; stack a row of ones under the transposed rows of A, B and C.
right 4: It is the same weighted mean as in your proof, now of the biases: D must rise above the
  roof that they span.
hint 4: Your proof says $y_D = \sum_i l_i y_i$ without biases. What do the biases add on each side?
hint 4b: Compute $l_A b_A + l_B b_B + l_C b_C$.
right 5: Every class wins somewhere. The recipe $b_i = -\|w_i\|^2 / 2$ always works: then the
  nearest row wins.
hint 5: Which classes need help, the inner ones or the outer ones?
hint 5b: Make $y_i$ a falling function of the distance: expand $-\|x - w_i\|^2 / 2$ and see which
  part is linear in x.
right 6: With a bias the verdict depends on which features can occur, so every scan has to say its
  feature set.
hint 6: C has the steepest logit and a negative bias: from which x on is $1.25 x - 2$ larger than
  $x$?
""")


def _compare_inner(guess: bool) -> str:
    can = "D" in winners(TRIANGLE)
    verdict = "D wins somewhere" if can else "**no features let D win**"
    return SAY("inner found", guess=guess, verdict=verdict)


def _answer_inner(guess: bool) -> str:
    return SAY("inner" if guess == ("D" in winners(TRIANGLE)) else "inner wrong")


def _compare_crowd(guess: int) -> str:
    return SAY("crowd found", guess=guess, classes=CROWD.classes, count=_crowd())


def _answer_crowd(guess: int) -> str:
    count, n = _crowd(), CROWD.classes
    if abs(guess - count) <= 2:
        return SAY("crowd")
    if guess == n:
        return SAY("crowd all")
    if guess <= 1:
        return SAY("crowd one")
    if guess <= 4:
        return SAY("crowd four")
    if 2 * guess == n:
        return SAY("crowd half")
    return SAY("crowd too", few="few" if guess < count else "many")


OUTPUTS, FEATURES = 6625, 120  # of the recogniser PP-OCRv4


def _ppocr(name: str) -> int:
    return int(recorded.value("12_first_scan", f"ppocr_{name}"))


def _compare_real(guess: int) -> str:
    return SAY("real found", guess=guess, scanned=_ppocr("scanned"), lost=_ppocr("unargmaxable"))


def _answer_real(guess: int) -> str:
    lost = _ppocr("unargmaxable")
    if abs(guess - lost) <= lost // 5:
        return SAY("real")
    if guess == 0:
        return SAY("real none")
    if guess > OUTPUTS // 2:
        return SAY("real most", features=FEATURES)
    return SAY("real too", few="few" if guess < lost else "many")


PREDICTIONS = {
    "guess_real": Prediction(reading.whole_number(0, OUTPUTS), _compare_real, _answer_real),
    "guess": Prediction(reading.truth(), _compare_inner, _answer_inner),
    "guess_crowd": Prediction(
        reading.whole_number(0, CROWD.classes), _compare_crowd, _answer_crowd
    ),
}


def _never_fault(answer: frozenset[str]) -> str | None:
    never = _never()
    if wrong := answer - never:
        return SAY("never wrong", named=f"{len(wrong)} class{'es' * (len(wrong) > 1)}")
    if never - answer:
        return SAY("never more" if answer else "never some")
    return None


def _witness_fault(x: np.ndarray) -> str | None:
    logits = OWN_ROW.logits(x)
    best = logits.max()
    if logits[3] < best:
        first = OWN_ROW.token(int(np.argmax(logits)))
        return SAY("witness", first=first, behind=best - logits[3])
    return SAY("witness tie") if np.sum(logits == best) > 1 else None


def _witness_remark(x: np.ndarray) -> str:
    return SAY("right 2", first=OWN_ROW.token(int(np.argmax(OWN_ROW.logits(OWN_ROW.W[3])))))


def _weights_fault(weights: np.ndarray) -> str | None:
    if weights.min() < 0:
        return SAY("weights negative")
    if abs(weights.sum() - 1) > ROUGHLY:
        return SAY("weights sum", total=weights.sum())
    u, v = mixture = weights @ TRIANGLE.W[:3]
    if np.abs(mixture - TRIANGLE.W[3]).max() > ROUGHLY:
        return SAY("weights miss", u=u, v=v)
    try:
        certify_evidence(TRIANGLE, Unbounded(), 3, Captors(np.arange(3), weights))
    except EvidenceError:
        return SAY("weights near")
    return None


def _threshold_fault(answer: float) -> str | None:
    if abs(answer - float(captor_weights() @ TRIANGLE_BIAS)) <= ROUGHLY:
        return None
    if abs(answer - max(TRIANGLE_BIAS)) <= ROUGHLY:
        return SAY("bias best")
    if abs(answer - np.mean(TRIANGLE_BIAS)) <= ROUGHLY:
        return SAY("bias mean")
    can = "D" in winners(SoftmaxLayer(TRIANGLE.W, [*TRIANGLE_BIAS, answer], TRIANGLE.tokens))
    return SAY("bias more" if can else "bias less")


def _all_fault(b: np.ndarray) -> str | None:
    stuck = sorted(frozenset(SEVEN.tokens or ()) - winners(SoftmaxLayer(SEVEN.W, b, SEVEN.tokens)))
    return SAY("all", stuck=", ".join(stuck)) if stuck else None


def _box_fault(answer: int) -> str | None:
    if answer == smallest_half_width():
        return None
    if answer > smallest_half_width():
        return SAY("box more")
    ties = any(row[2] == row.max() for row in LATE.logits([[-answer], [answer]]))
    return SAY("box tie" if ties else "box less")


EXERCISES = {
    "1": SAY.exercise(1, reading.members("ABCDEFG"), _never_fault),
    "2": SAY.exercise(2, reading.array((2,), "x"), _witness_fault, _witness_remark),
    "3": SAY.exercise(3, reading.array((3,), "the weights"), _weights_fault),
    "4": SAY.exercise(4, reading.number("the bias"), _threshold_fault),
    "5": SAY.exercise(5, reading.array((7,), "b"), _all_fault),
    "6": SAY.exercise(6, reading.whole_number(1, 10**6), _box_fault),
}
