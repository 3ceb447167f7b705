"""Lesson 5, trust but verify: a proof that a class never wins, checked by hand in exact fractions
(001, Section 3.3; scanner/docs/certificates.md).

A class t never wins on the box |x| <= L when convex weights l of other classes have

    max over the box of (w_t - sum l_j w_j) . x = L |w_t - sum l_j w_j|_1  <=  sum l_j b_j - b_t :

its score is then never above a mean of theirs. Without a bias and without a box the left side must
vanish: the weights reproduce the row. Everything here is computed in fractions, without rounding.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache

from sympy import Matrix

from classroom import reading, recorded
from classroom.lesson import Lesson
from softgeom.layer import SoftmaxLayer

ROWS = {"A": (4, 1), "B": (-3, 3), "C": (-1, -4), "D": (1, 0), "E": (3, 3)}
LAYER = SoftmaxLayer([ROWS[name] for name in "ABCD"], tokens="ABCD")
DECIMALS = ("0.49", "0.22", "0.29")  # of A, B, C: what a report prints
BIASES = {"A": Fraction(1, 2), "B": Fraction(0), "C": Fraction(1)}  # of exercise 3
GAP = Fraction(1, 2)  # of exercise 4: by how much the biases of A, B, C exceed that of D
FEATURES = 120  # of the text recogniser

Weights = Mapping[str, Fraction]

LESSON = Lesson("trusting")
say = LESSON.say


def exact_weights(blocking: str = "ABC") -> dict[str, Fraction]:
    """The weights of three classes that reproduce the row of D and sum to one."""
    rows = Matrix([[*ROWS[name], 1] for name in blocking])
    solution = rows.T.LUsolve(Matrix([*ROWS["D"], 1]))
    return {name: Fraction(str(weight)) for name, weight in zip(blocking, solution, strict=True)}


def residual(weights: Weights) -> tuple[Fraction, Fraction]:
    """What the weighted mean of rows leaves of the row of D, exactly."""
    u, v = map(Fraction, ROWS["D"])
    for name, share in weights.items():
        u, v = u - share * ROWS[name][0], v - share * ROWS[name][1]
    return u, v


def flaw(weights: Weights) -> str | None:
    """Why the weights do not prove, with no bound or bias, that the target never wins, or None."""
    if negative := [name for name, share in weights.items() if share < 0]:
        return say("flaw negative", name=negative[0])
    if (total := sum(weights.values(), Fraction(0))) != 1:
        return say("flaw sum", total=total)
    u, v = residual(weights)
    return say("flaw miss", target="D", u=u, v=v) if (u, v) != (0, 0) else None


def certificates() -> dict[str, dict[str, Fraction]]:
    """Four texts that claim to prove that D never wins among A, B, C, E; two of them do."""
    return {
        "P": exact_weights(),
        "Q": {"A": Fraction(1, 2), "B": Fraction(1, 4), "C": Fraction(1, 4)},
        # D lies outside the triangle A, E, C: a weight is negative
        "R": exact_weights(blocking="AEC"),
        "S": exact_weights(blocking="EBC"),
    }


def largest_bias() -> Fraction:
    """The largest bias of D with which the weights of exercise 1 still prove that it never wins."""
    return sum((share * BIASES[name] for name, share in exact_weights().items()), Fraction(0))


def printed_weights() -> dict[str, Fraction]:
    """The report's decimals, as the fractions that they are on paper."""
    return {name: Fraction(text) for name, text in zip("ABC", DECIMALS, strict=True)}


def largest_box() -> int:
    """The largest whole L on whose box |x| <= L the printed decimals prove that D never wins."""
    return int(GAP / sum(abs(r) for r in residual(printed_weights())))


@LESSON.prediction("guess", reading.truth())
def _compare_decimals(guess: bool) -> str:
    flawed = flaw(printed_weights())
    verdict = "**is no proof**" if flawed else "**is a proof**"
    found = say("decimals found", guess=guess, verdict=verdict, found=flawed or "").strip()
    return f"{found} {say('decimals' if guess == (flawed is None) else 'decimals wrong')}"


@cache
def blocking_classes_of_a_character() -> int:
    """The most blocking classes in the recorded proofs of the text recogniser."""
    return int(recorded.table("15_unreadable_characters", "unargmaxable")["blocking_classes"].max())


@LESSON.prediction("guess_blocking", reading.whole_number(1, 6625))
def _compare_blocking(guess: int) -> str:
    right = blocking_classes_of_a_character()
    proofs = len(recorded.table("15_unreadable_characters", "unargmaxable"))
    found = say("blocking classes found", guess=guess, proofs=proofs, most=right)
    if guess > right:
        thought = "blocking classes all"
    else:
        thoughts = {
            right: "blocking classes",
            FEATURES: "blocking classes few",
            3: "blocking classes three",
        }
        thought = thoughts.get(guess, "blocking classes less")
    return f"{found} {say(thought, features=FEATURES, most=FEATURES + 1)}"


@LESSON.exercise(
    "1",
    reading.fractions(3, "the weights of A, B and C"),
    lambda shares: {"shares": " + ".join(map(str, shares))},
)
def _weights_fault(answer: tuple[Fraction, ...]) -> str | None:
    found = flaw(dict(zip("ABC", answer, strict=True)))
    if found and any(share.denominator > 10**6 for share in answer):
        first = answer[0]
        return say("weights decimal", given=float(first), stored=str(first)[:24], found=found)
    return found


@LESSON.exercise("2", reading.members(("P", "Q", "R", "S")))
def _certificates_fault(answer: frozenset[str]) -> str | None:
    flaws = {name: flaw(weights) for name, weights in certificates().items()}
    for name, found in flaws.items():
        if name in answer and found:
            return say("certificates wrong", name=name, found=found)
    proofs = {name for name, found in flaws.items() if found is None}
    return say("certificates more", proofs=len(proofs)) if proofs - answer else None


@LESSON.exercise("3", reading.fractions(1, "the bias of D"))
def _bias_fault(answer: tuple[Fraction, ...]) -> str | None:
    (bias,), right = answer, largest_bias()
    off, large = abs(bias - right), bias > right
    if bias == right:
        return None
    if off < Fraction(1, 100):
        return say("bias near", off=off, large="large" if large else "small")
    if bias == sum(BIASES.values(), Fraction(0)) / 3:
        return say("bias mean")
    return say("bias more" if large else "bias less", off=off)


@LESSON.exercise("4", reading.whole_number(0), right=largest_box)
def _box_fault(answer: int, right: int) -> str:
    miss = sum(abs(r) for r in residual(printed_weights()))
    if answer == 2 * right:
        return say("box larger")
    name = "box more" if answer > right else "box less"
    return say(name, answer=answer, miss=miss, sum=answer * miss, gap=GAP)
