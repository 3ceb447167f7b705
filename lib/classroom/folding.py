"""Lesson 3, where attention folds: residuals e = x - mu(x), and the tokens at which this change of
variables is singular (003, Section 3).

One strict-causal head with values v = x. On the line the slope is e'(x) = 1 - c Var(x); in the
plane the block is I - S M. NumPy only.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from classroom import reading, recorded
from classroom.exercise import Prediction
from classroom.words import Words
from papers.margins.jacobian import attention_jacobian_blocks
from papers.margins.scalar import attention_moments, margin, mass, preimages

PAIR = np.array([-1.0, 1.0])  # a past of two tokens
PAIR_COUPLING = 2.0
THREE = np.array([-1.0, 1.0, 3.0])  # the past of the first exercise, seen from x = 0
STRONG = 16.0  # the coupling of the second
PAST = np.array([[0.25, 1.5], [-0.5, -0.25], [1.5, 1.0], [1.75, -1.0]])
PLANE_COUPLING = 0.875
SEQUENCE = np.array(
    [[1.0, 0.0], [-0.75, 0.5], [1.25, -0.25], [-0.25, -0.375], [1.5, 1.0], [-1.5, 0.5]]
)
SEQUENCE_COUPLING = 0.75

CLOSE = 0.01  # relative: two digits are enough to show that the idea was understood


def determinants(X: np.ndarray, c: float) -> np.ndarray:
    """det(I - c S_i) of every position, (T,), for the coupling M = c I."""
    d = X.shape[1]
    return np.linalg.det(attention_jacobian_blocks(X, c * np.eye(d), np.eye(d)))


def first_folding_coupling(past: np.ndarray) -> float:
    """The coupling at which the slope at x = 0 of two symmetric tokens reaches zero: beyond it the
    line folds.
    """
    return float(brentq(lambda c: float(margin(0.0, past, c)), 1e-9, 1e6))


def largest_distance(c: float) -> float:
    """The largest distance of two past tokens with which coupling c folds nowhere."""
    return float(brentq(lambda s: float(margin(0.0, np.array([-s / 2, s / 2]), c)), 1e-9, 1e6))


SAY = Words(r"""
fold found: You predicted {guess:g}; the slope at the middle reaches zero at c = **{right:.4g}**.
fold: You saw it: in the middle the two weigh the same, their variance is one, and $1 - c$ reaches
  zero there.
fold negative: A negative coupling makes the slope $1 + |c|\,\mathrm{{Var}}$, which is never below
  one.
fold zero: At $c = 0$ the slope is one everywhere; a little coupling takes only a little away from
  it.
fold distance: The thought is to put the tokens' whole distance, squared, for the variance; each
  lies only half of it from the mean.
fold corrected: The thought is a variance of two, with a division by one less than the number of
  tokens; the weights sum to one.
fold width: The thought is that the coupling must reach the distance of the tokens; what counts is
  the coupling times their variance.
fold squared: The thought is that the coupling must reach the squared distance; but a larger
  distance makes folding *easier*.
fold small: Too small: up to there the slope $1 - c\,\mathrm{{Var}}$ stays positive at $x = 0$,
  where the variance is largest.
fold large: Too large: long before the slope $1 - c\,\mathrm{{Var}}$ turns negative at $x = 0$,
  where the variance is largest.
mass found: You predicted “{guess}”; the formula's density integrates to **{total:.3f}**.
mass: You saw it: {folds}.
mass equal: A change of variables keeps the mass only where it is one-to-one: {folds}.
mass less: The thought is that mass is lost where the slope vanishes; $|e'|$ is small only near
  there, and {folds}.
mass folds: where the line folds, several $x$ share a residual, and each of them is counted
real found: You predicted “{guess}”; **{share:.0%}** of the positions of this small GPT feel a
  barrier, and the mean score $-\log|\det J|$ is {score:.2f} nats.
real none: You saw it: nothing holds the coupling positive, so {flees}.
real: You saw it.
real wrong: The thought is that the barrier must be felt where it is trained with; but nothing holds
  the coupling positive, and {flees}.
real flees: it turns the coupling negative, where nothing folds: the penalty is paid back instead of
  felt
variance corrected: You divided by one less than the number of tokens; here the weights sum to one,
  and no correction is due.
variance mean: That is the mean; the variance is the weighted mean of the squared distances from it.
variance root: That is the standard deviation; square it.
variance square: That is the mean square; subtract the square of the mean.
variance: Begin with the weights: at x = 0 all logits are equal. What are the weights then?
distance: A distance is positive.
distance more: At that distance the slope in the middle is still {slope:.3g}: the tokens may lie
  farther apart.
distance less: At that distance the slope in the middle is {slope:.3g}: the line is already folded
  there.
preimages even: The curve comes from below and leaves above, so it crosses a level an odd number of
  times.
preimages: Look at the figure again: how often does the curve meet the horizontal axis?
place: There the determinant is {value:.3g}, which is not negative. It falls where the attention is
  divided among distant tokens.
smallest more: It can be smaller: let all past tokens come together, so that their covariance
  vanishes.
smallest less: It never gets that small: with c = -1 the block is I + S, and S has no negative
  eigenvalue.
support first: Positions with at most one token in their past have no covariance, so they press
  against nothing.
support: That position has the determinant {value:.3g}; another has a smaller one.
right 1: At x = 0 every token weighs the same; away from 0 the weights lean to one side and the
  variance falls.
hint 1: The weights are softmax of $c\,x\,x_j$, and $x = 0$.
hint 1b: With equal weights it is the plain mean of $(x_j - 1)^2$.
right 2: Two tokens at distance $s$ have at most the variance $s^2 / 4$, so the line folds once $s >
  2 / \sqrt{{c}}$.
hint 2: The largest variance of two tokens is reached with equal weights.
hint 2b: Solve $1 - c\,s^2 / 4 = 0$ for $s$.
right 3: {answer} tokens x lead to the same residual: it does not tell which of them was meant.
hint 3: `preimages(0.0, past, c)` in `papers.margins.scalar` finds them.
right 4: Beyond the curve the map turns the plane over: nearby tokens change their orientation.
hint 4: In the explorer, drag x across the curve where the determinant is zero; `explorer.X[-1]` is
  where it stands.
right 5: Negative coupling never folds: $\det(I + |c| S) \ge 1$, with equality where the past has no
  spread.
hint 5: The eigenvalues of $I + |c| S$ are $1 + |c| s_k$ with $s_k \ge 0$.
right 6: Token {answer} is the support token: the whole sequence's margin is decided there.
hint 6: In a new cell, run `folding.determinants(folding.SEQUENCE, folding.SEQUENCE_COUPLING)`.
""")


def _compare_fold(guess: float) -> str:
    return SAY("fold found", guess=guess, right=first_folding_coupling(PAIR))


def _answer_fold(guess: float) -> str:
    right, width = first_folding_coupling(PAIR), float(np.ptp(PAIR))
    if _close(guess, right):
        return SAY("fold")
    if guess <= 0:
        return SAY("fold negative" if guess < 0 else "fold zero")
    thoughts = {"distance": 1 / width**2, "corrected": 1 / float(np.var(PAIR, ddof=1))}
    thoughts |= {"width": width, "squared": width**2}
    near = (name for name, thought in thoughts.items() if _close(guess, thought))
    return SAY(f"fold {next(near, 'small' if guess < right else 'large')}")


def _compare_mass(guess: str) -> str:
    return SAY("mass found", guess=guess, total=mass(PAIR, PAIR_COUPLING, 1.0))


def _answer_mass(guess: str) -> str:
    right = "more" if mass(PAIR, PAIR_COUPLING, 1.0) > 1 else "less"
    name = "mass" if guess == right else "mass equal" if guess == "equal" else "mass less"
    return SAY(name, folds=SAY("mass folds"))


def _of_the_gpt() -> dict:
    return recorded.evidence("23_margin_sweep", "003-section-7-barrier-regime")


def _compare_real(guess: str) -> str:
    found = _of_the_gpt()
    return SAY("real found", guess=guess, share=found["share"], score=found["score"])


def _answer_real(guess: str) -> str:
    share = _of_the_gpt()["share"]
    right = "none" if share < 0.005 else "some" if share < 0.5 else "most"
    name = "real wrong" if guess != right else "real none" if right == "none" else "real"
    return SAY(name, flees=SAY("real flees"))


PREDICTIONS = {
    "guess_real": Prediction(reading.choice("none", "some", "most"), _compare_real, _answer_real),
    "guess": Prediction(reading.number("the coupling"), _compare_fold, _answer_fold),
    "guess_mass": Prediction(reading.choice("less", "equal", "more"), _compare_mass, _answer_mass),
}


def _variance_fault(answer: float) -> str | None:
    mean, variance = map(float, attention_moments(0.0, THREE, 1.0))
    if _close(answer, variance):
        return None
    thoughts = {"corrected": float(np.var(THREE, ddof=1)), "mean": mean}
    thoughts |= {"root": variance**0.5, "square": variance + mean**2}
    near = (f"variance {name}" for name, thought in thoughts.items() if _close(answer, thought))
    return SAY(next(near, "variance"))


def _distance_fault(answer: float) -> str | None:
    if _close(answer, largest_distance(STRONG)):
        return None
    if answer <= 0:
        return SAY("distance")
    slope = float(margin(0.0, np.array([-answer / 2, answer / 2]), STRONG))
    return SAY("distance more" if slope > 0 else "distance less", slope=slope)


def _preimages_fault(answer: int) -> str | None:
    if answer == len(preimages(0.0, PAIR, PAIR_COUPLING)):
        return None
    return SAY("preimages" if answer % 2 else "preimages even")


def _place_fault(x: np.ndarray) -> str | None:
    value = float(determinants(np.vstack([PAST, x]), PLANE_COUPLING)[-1])
    return None if value < 0 else SAY("place", value=value)


def _smallest_fault(answer: float) -> str | None:
    # equal tokens: S = 0, the least covariance there is
    at_rest = float(determinants(np.zeros((3, 2)), -1.0)[-1])
    if _close(answer, at_rest):
        return None
    return SAY("smallest more" if answer > at_rest else "smallest less")


def _support_fault(answer: int) -> str | None:
    values = determinants(SEQUENCE, SEQUENCE_COUPLING)
    if answer == int(np.argmin(values)) + 1:
        return None
    return SAY("support first" if answer <= 2 else "support", value=values[answer - 1])


def _close(answer: float, right: float) -> bool:
    return abs(answer - right) <= CLOSE * abs(right)


EXERCISES = {
    "1": SAY.exercise(1, reading.number("the variance"), _variance_fault),
    "2": SAY.exercise(2, reading.number("the distance"), _distance_fault),
    "3": SAY.exercise(3, reading.whole_number(0, 100), _preimages_fault),
    "4": SAY.exercise(4, reading.array((2,), "x"), _place_fault),
    "5": SAY.exercise(5, reading.number("the determinant"), _smallest_fault),
    "6": SAY.exercise(6, reading.whole_number(1, len(SEQUENCE)), _support_fault),
}
