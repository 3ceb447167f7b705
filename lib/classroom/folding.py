"""Lesson 3, where attention folds: residuals e = x - mu(x), and the tokens at which this change of
variables is singular (003, Section 3).

One strict-causal head with values v = x. On the line the slope is e'(x) = 1 - c Var(x); in the
plane the block is I - S M. NumPy only.
"""

import numpy as np
from scipy.optimize import brentq

from classroom import reading, recorded
from classroom.lesson import Lesson
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
    """The coupling at which the slope at x = 0 of two symmetric tokens is zero; above it, the line folds."""
    return float(brentq(lambda c: float(margin(0.0, past, c)), 1e-9, 1e6))


def largest_distance(c: float) -> float:
    """The largest distance of two past tokens with which coupling c folds nowhere."""
    return float(brentq(lambda s: float(margin(0.0, np.array([-s / 2, s / 2]), c)), 1e-9, 1e6))


LESSON = Lesson("folding")
say = LESSON.say


def _close(answer: float, right: float) -> bool:
    return abs(answer - right) <= CLOSE * abs(right)


def _nearest(answer: float, thoughts: dict[str, float], otherwise: str) -> str:
    """The name of the thought that leads to the answer."""
    return next((name for name, value in thoughts.items() if _close(answer, value)), otherwise)


@LESSON.prediction("guess", reading.number("the coupling"))
def _compare_fold(guess: float) -> str:
    right, width = first_folding_coupling(PAIR), float(np.ptp(PAIR))
    thoughts = {
        "fold": right,
        "fold distance": 1 / width**2,
        "fold corrected": 1 / float(np.var(PAIR, ddof=1)),
        "fold width": width,
        "fold squared": width**2,
    }
    if guess <= 0:
        thought = "fold negative" if guess < 0 else "fold zero"
    else:
        thought = _nearest(guess, thoughts, "fold small" if guess < right else "fold large")
    return f"{say('fold found', guess=guess, right=right)} {say(thought)}"


@LESSON.prediction("guess_mass", reading.choice("less", "equal", "more"))
def _compare_mass(guess: str) -> str:
    total = mass(PAIR, PAIR_COUPLING, 1.0)
    right = "more" if total > 1 else "less"
    thought = "mass" if guess == right else "mass equal" if guess == "equal" else "mass less"
    found = say("mass found", guess=guess, total=total)
    return f"{found} {say(thought, folds=say('mass folds'))}"


@LESSON.prediction("guess_real", reading.choice("none", "some", "most"))
def _compare_real(guess: str) -> str:
    gpt = recorded.penalised_gpt()
    share = gpt["share"]
    right = "none" if share < 0.005 else "some" if share < 0.5 else "most"
    thought = "real wrong" if guess != right else "real none" if right == "none" else "real"
    found = say("real found", guess=guess, share=share, score=gpt["score"])
    return f"{found} {say(thought, flees=say('real flees'))}"


@LESSON.exercise("1", reading.number("the variance"))
def _variance_fault(answer: float) -> str | None:
    mean, variance = map(float, attention_moments(0.0, THREE, 1.0))
    if _close(answer, variance):
        return None
    thoughts = {
        "variance corrected": float(np.var(THREE, ddof=1)),
        "variance mean": mean,
        "variance root": variance**0.5,
        "variance square": variance + mean**2,
    }
    return say(_nearest(answer, thoughts, "variance"))


@LESSON.exercise("2", reading.number("the distance"))
def _distance_fault(answer: float) -> str | None:
    if _close(answer, largest_distance(STRONG)):
        return None
    if answer <= 0:
        return say("distance")
    slope = float(margin(0.0, np.array([-answer / 2, answer / 2]), STRONG))
    return say("distance more" if slope > 0 else "distance less", slope=slope)


@LESSON.exercise(
    "3", reading.whole_number(0, 100), right=lambda: len(preimages(0.0, PAIR, PAIR_COUPLING))
)
def _preimages_fault(answer: int, _: int) -> str:
    return say("preimages" if answer % 2 else "preimages even")


@LESSON.exercise("4", reading.array((2,), "x"))
def _place_fault(x: np.ndarray) -> str | None:
    value = float(determinants(np.vstack([PAST, x]), PLANE_COUPLING)[-1])
    return None if value < 0 else say("place", value=value)


@LESSON.exercise("5", reading.number("the determinant"))
def _smallest_fault(answer: float) -> str | None:
    # equal tokens: S = 0, the least covariance there is
    at_rest = float(determinants(np.zeros((3, 2)), -1.0)[-1])
    if _close(answer, at_rest):
        return None
    return say("smallest more" if answer > at_rest else "smallest less")


@LESSON.exercise("6", reading.whole_number(1, len(SEQUENCE)))
def _support_fault(answer: int) -> str | None:
    values = determinants(SEQUENCE, SEQUENCE_COUPLING)
    if answer == int(np.argmin(values)) + 1:
        return None
    return say("support first" if answer <= 2 else "support", value=values[answer - 1])
