"""Lesson 3, where attention tears: residuals e = x - mu(x), and the tokens at which this change of
variables is singular (003, Section 3).

One strict-causal head with values v = x. On the line the slope is e'(x) = 1 - c Var(x); in the
plane the block is I - S M. NumPy only.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from classroom import reading, recorded
from classroom.exercise import Exercise, Prediction
from softgeom.margins.jacobian import attention_jacobian_blocks
from softgeom.margins.scalar import attention_moments, margin, mass, preimages

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


def _compare_fold(guess: float) -> str:
    return (
        f"You predicted {guess:g}; the slope at the middle reaches zero at c = "
        f"**{first_folding_coupling(PAIR):.4g}**."
    )


def _compare_mass(guess: str) -> str:
    total = mass(PAIR, PAIR_COUPLING, 1.0)
    return f"You predicted “{guess}”; the formula's density integrates to **{total:.3f}**."


def _answer_fold(guess: float) -> str:
    right, width = first_folding_coupling(PAIR), float(np.ptp(PAIR))
    if _close(guess, right):
        return (
            "You saw it: in the middle the two weigh the same, their variance is one, and $1 - "
            "c$ reaches zero there."
        )
    if guess < 0:
        return (
            "A negative coupling makes the slope $1 + |c|\\,\\mathrm{Var}$, which is never below "
            "one."
        )
    if guess == 0:
        return (
            "At $c = 0$ the slope is one everywhere; a little coupling takes only a little away "
            "from it."
        )
    for thought, says in (
        (1 / width**2, ("The thought is to put the tokens' whole distance, squared, for the variance; each " "lies only half of it from the mean.")),
        (1 / float(np.var(PAIR, ddof=1)),
        ("The thought is a variance of two, with a division by one less than the number of " "tokens; the weights sum to one.")),
        (width, ("The thought is that the coupling must reach the distance of the tokens; what counts " "is the coupling times their variance.")),
        (width**2, ("The thought is that the coupling must reach the squared distance; but a larger " "distance makes folding *easier*.")),
    ):  # fmt: skip
        if _close(guess, thought):
            return says
    return (
        f"Too {'small: up to there' if guess < right else 'large: long before'} the slope $1 - "
        f"c\\,\\mathrm{{Var}}$ {'stays positive' if guess < right else 'turns negative'} at $x = "
        f"0$, where the variance is largest."
    )


def _answer_mass(guess: str) -> str:
    total = mass(PAIR, PAIR_COUPLING, 1.0)
    folds = "where the line folds, several $x$ share a residual, and each of them is counted"
    if guess == ("more" if total > 1 else "less"):
        return f"You saw it: {folds}."
    if guess == "equal":
        return f"A change of variables keeps the mass only where it is one-to-one: {folds}."
    return (
        f"The thought is that mass is lost where the slope vanishes; $|e'|$ is small only near "
        f"there, and {folds}."
    )


def _compare_real(guess: str) -> str:
    found = _of_the_gpt()
    return (
        f"You predicted “{guess}”; **{found['share']:.0%}** of the positions of this small "
        f"GPT feel a barrier, and the mean score "
        f"$-\\log|\\det J|$ is {found['score']:.2f} nats."
    )


def _answer_real(guess: str) -> str:
    share = _of_the_gpt()["share"]
    right = "none" if share < 0.005 else "some" if share < 0.5 else "most"
    flees = (
        "it turns the coupling negative, where nothing tears: the penalty is paid back instead "
        "of felt"
    )
    if guess == right:
        return (
            f"You saw it: nothing holds the coupling positive, so {flees}."
            if right == "none"
            else "You saw it."
        )
    return (
        f"The thought is that the barrier must be felt where it is trained with; but nothing "
        f"holds the coupling positive, and {flees}."
    )


def _of_the_gpt() -> dict:
    return recorded.evidence("23_margin_sweep", "003-section-7-barrier-regime")


PREDICTIONS = {
    "guess_real": Prediction(reading.choice("none", "some", "most"), _compare_real, _answer_real),
    "guess": Prediction(reading.number("the coupling"), _compare_fold, _answer_fold),
    "guess_mass": Prediction(reading.choice("less", "equal", "more"), _compare_mass, _answer_mass),
}


def _variance_fault(answer: float) -> str | None:
    mean, variance = attention_moments(0.0, THREE, 1.0)
    if _close(answer, float(variance)):
        return None
    if _close(answer, float(np.var(THREE, ddof=1))):
        return (
            "You divided by one less than the number of tokens; here the weights sum to one, and "
            "no correction is due."
        )
    if _close(answer, float(mean)):
        return (
            "That is the mean; the variance is the weighted mean of the squared distances from it."
        )
    if _close(answer, float(np.sqrt(variance))):
        return "That is the standard deviation; square it."
    if _close(answer, float(variance + mean**2)):
        return "That is the mean square; subtract the square of the mean."
    return "Begin with the weights: at x = 0 all logits are equal. What are the weights then?"


def _distance_fault(answer: float) -> str | None:
    right = largest_distance(STRONG)
    if _close(answer, right):
        return None
    if answer <= 0:
        return "A distance is positive."
    slope = float(margin(0.0, np.array([-answer / 2, answer / 2]), STRONG))
    if slope > 0:
        return (
            f"At that distance the slope in the middle is still {slope:.3g}: the tokens may lie "
            f"farther apart."
        )
    return (
        f"At that distance the slope in the middle is {slope:.3g}: the line is already folded "
        f"there."
    )


def _preimages_fault(answer: int) -> str | None:
    count = len(preimages(0.0, PAIR, PAIR_COUPLING))
    if answer == count:
        return None
    if answer % 2 == 0:
        return (
            "The curve comes from below and leaves above, so it crosses a level an odd number of "
            "times."
        )
    return "Look at the figure again: how often does the curve meet the horizontal axis?"


def _place_fault(x: np.ndarray) -> str | None:
    value = float(determinants(np.vstack([PAST, x]), PLANE_COUPLING)[-1])
    if value < 0:
        return None
    return (
        f"There the determinant is {value:.3g}, which is not negative. It falls where the "
        f"attention is divided among distant tokens."
    )


def _smallest_fault(answer: float) -> str | None:
    # equal tokens: S = 0, the least covariance there is
    at_rest = float(determinants(np.zeros((3, 2)), -1.0)[-1])
    if _close(answer, at_rest):
        return None
    if answer > at_rest:
        return (
            "It can be smaller: let all past tokens come together, so that their covariance "
            "vanishes."
        )
    return (
        "It never gets that small: with c = -1 the block is I + S, and S has no negative "
        "eigenvalue."
    )


def _support_fault(answer: int) -> str | None:
    values = determinants(SEQUENCE, SEQUENCE_COUPLING)
    if answer == int(np.argmin(values)) + 1:
        return None
    if answer <= 2:
        return (
            "Positions with at most one token in their past have no covariance, so they press "
            "against nothing."
        )
    return f"That position has the determinant {values[answer - 1]:.3g}; another has a smaller one."


def _close(answer: float, right: float) -> bool:
    return abs(answer - right) <= CLOSE * abs(right)


EXERCISES = {
    "1": Exercise(
        reading.number("the variance"),
        _variance_fault,
        lambda _: (
            "At x = 0 every token weighs the same; away from 0 the weights lean to one side "
            "and the variance falls."
        ),
        (
            "The weights are softmax of $c\\,x\\,x_j$, and $x = 0$.",
            "With equal weights it is the plain mean of $(x_j - 1)^2$.",
        ),
    ),
    "2": Exercise(
        reading.number("the distance"),
        _distance_fault,
        lambda _: (
            "Two tokens at distance $s$ have at most the variance $s^2 / 4$, so the line "
            "folds once $s > 2 / \\sqrt{c}$."
        ),
        (
            "The largest variance of two tokens is reached with equal weights.",
            "Solve $1 - c\\,s^2 / 4 = 0$ for $s$.",
        ),
    ),
    "3": Exercise(
        reading.whole_number(0, 100),
        _preimages_fault,
        lambda n: (
            f"{n} tokens x lead to the same residual: it does not tell which of them was meant."
        ),
        ("`preimages(0.0, past, c)` in `softgeom.margins.scalar` finds them.",),
    ),
    "4": Exercise(
        reading.array((2,), "x"),
        _place_fault,
        lambda _: (
            "Beyond the curve the map turns the plane over: nearby tokens change their orientation."
        ),
        (
            "In the explorer, drag x across the curve where the determinant is zero; "
            "`explorer.X[-1]` is where it stands.",
        ),
    ),
    "5": Exercise(
        reading.number("the determinant"),
        _smallest_fault,
        lambda _: (
            "Negative coupling never tears: $\\det(I + |c| S) \\ge 1$, with equality where "
            "the past has no spread."
        ),
        ("The eigenvalues of $I + |c| S$ are $1 + |c| s_k$ with $s_k \\ge 0$.",),
    ),
    "6": Exercise(
        reading.whole_number(1, len(SEQUENCE)),
        _support_fault,
        lambda n: f"Token {n} is the support token: the whole sequence's margin is decided there.",
        (
            "In a new cell, run `tearing.determinants(tearing.SEQUENCE, "
            "tearing.SEQUENCE_COUPLING)`.",
        ),
    ),
}
