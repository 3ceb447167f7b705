"""Lesson 5, trust but verify: a proof that a class never wins, checked by hand in exact fractions
(001, Section 3.3; scanner/docs/certificates.md).

A class t never wins on the box |x| <= L when convex weights l of other classes have

    max over the box of (w_t - sum l_j w_j) . x = L |w_t - sum l_j w_j|_1  <=  sum l_j b_j - b_t :

its score is then never above a mean of theirs. Without a bias and without a box the left side must
vanish: the weights reproduce the row exactly. Everything here is computed in `fractions.Fraction`;
rows and biases are exact in floating point, so nothing is rounded on the way in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache

from classroom import reading, recorded
from classroom.exercise import Prediction
from classroom.words import Words
from softgeom.layer import SoftmaxLayer

ROWS = {"A": (4, 1), "B": (-3, 3), "C": (-1, -4), "D": (1, 0), "E": (3, 3)}
LAYER = SoftmaxLayer([ROWS[name] for name in "ABCD"], tokens="ABCD")
DECIMALS = ("0.49", "0.22", "0.29")  # of A, B, C: what a report prints
BIASES = {"A": Fraction(1, 2), "B": Fraction(0), "C": Fraction(1)}  # of exercise 3
GAP = Fraction(1, 2)  # of exercise 4: by how much the biases of A, B, C exceed that of D
FEATURES = 120  # of the text recogniser

Weights = Mapping[str, Fraction]

SAY = Words("""
flaw negative: The weight of {name} is negative, so this is no mean: a large score of {name} would
  pull it down.
flaw sum: The weights sum to {total}, not to 1: what they make is no mean of the scores.
flaw miss: The mean of the rows misses {target}'s by ({u}, {v}), and features that point there are
  as large as they like.
decimals found: You predicted {guess}; checked in fractions, it {verdict}. {found}
decimals: You saw it: what the report *claims* is true all the same; its printed weights only do not
  show it. Exact ones do, and a box with a bias leaves room for rounding: both come below.
decimals wrong: The thought is that two digits are close enough; but a proof is for *every* feature,
  and along the part that is missing features can be as large as they like.
captors found: You predicted {guess:,}; the longest of the {proofs} proofs names **{most} captors**.
captors: You saw it: with {features} features, {most} points are enough for any mean (Carathéodory's
  theorem), as three were in the plane.
captors few: One for each feature is one too few: in the plane, with two features, it took a
  triangle.
captors all: A mean over all the others would do as well, but it can always be thinned out: among
  more points than features plus one there is a dependence that removes one.
captors three: Three are enough in the plane; each further feature asks for one more point to
  surround with.
captors less: Few captors would have to surround the row in every direction; with that many features
  a simplex has more corners.
weights decimal: A decimal such as {given:.6g} is stored as {stored}..., which is not what you mean:
  write fractions. {found}
certificates wrong: {name} is no proof. {found}
certificates more: There is another: {proofs} of them are proofs. A proof need not name the captors
  that you found.
bias near: That is close, but it is {off} too {large}: give the fraction itself.
bias mean: That is the plain mean of the three biases; D is nearer to some captors than to others.
bias more: With that bias D's score can exceed the mean of its captors' by {off}: these weights then
  prove nothing.
bias less: Those weights would still do: the mean of the captors' biases is larger by {off}.
box larger: You took the larger of the two misses; a corner of the box collects both.
box more: On that box the misses can add up to {answer} · {miss} = {sum}, which is more than the gap
  {gap}.
box less: It is proven there, and on larger boxes too: {answer} · {miss} = {sum} is below the gap
  {gap}.
right 1: {shares} = 1 and the rows meet exactly: no rounding is left, and nobody has to trust a
  solver.
hint 1: Two coordinates and the sum: three equations for three unknowns.
hint 1b: Eliminate the weight of C by the sum first. The common denominator is 45.
right 2: A checker needs no idea where the weights came from: signs, sum and rows are all that it
  looks at. And a proof is not unique.
hint 2: Three questions to each: is a weight negative, is the sum 1, do the rows give (1, 0)?
right 3: Up to there the same weights prove it; with more bias D may win, and a proof needs other
  weights.
hint 3: With a bias, D's score minus the weighted mean of the others is b_D minus the weighted mean
  of their biases.
right 4: On |x| ≤ {answer} the rounded weights are a proof after all: real certificates are made so,
  with a box of 100 and misses near 1e-15.
hint 4: `trusting.residual(trusting.printed_weights())` is what they miss.
hint 4b: A corner of the box has |x₁| = |x₂| = L: there both misses count in full.
""")


def exact_weights(target: str = "D", captors: str = "ABC") -> dict[str, Fraction]:
    """The weights of three classes that reproduce a row and sum to one, by Cramer's rule."""
    columns = [(*map(Fraction, ROWS[name]), Fraction(1)) for name in captors]
    goal = (*map(Fraction, ROWS[target]), Fraction(1))
    whole = _determinant(columns)
    return {
        name: _determinant(
            [
                goal if other == name else column
                for other, column in zip(captors, columns, strict=True)
            ]
        )
        / whole
        for name in captors
    }


def _determinant(c: Sequence[Sequence[Fraction]]) -> Fraction:
    (a, d, g), (b, e, h), (u, f, i) = c
    return a * (e * i - f * h) - b * (d * i - f * g) + u * (d * h - e * g)


def residual(weights: Weights, target: str = "D") -> tuple[Fraction, Fraction]:
    """What the weighted mean of rows leaves of the target's row, exactly."""
    u, v = map(Fraction, ROWS[target])
    for name, share in weights.items():
        u, v = u - share * ROWS[name][0], v - share * ROWS[name][1]
    return u, v


def flaw(weights: Weights, target: str = "D") -> str | None:
    """Why the weights do not prove, for features of any size and no bias, that the target never
    wins; None where they do.
    """
    if negative := [name for name, share in weights.items() if share < 0]:
        return SAY("flaw negative", name=negative[0])
    if (total := sum(weights.values(), Fraction(0))) != 1:
        return SAY("flaw sum", total=total)
    u, v = residual(weights, target)
    return SAY("flaw miss", target=target, u=u, v=v) if (u, v) != (0, 0) else None


def certificates() -> dict[str, dict[str, Fraction]]:
    """Four texts that claim to prove that D never wins among A, B, C, E; two of them do."""
    return {
        "P": exact_weights(),
        "Q": {"A": Fraction(1, 2), "B": Fraction(1, 4), "C": Fraction(1, 4)},
        # D lies outside the triangle A, E, C: a weight is negative
        "R": exact_weights(captors="AEC"),
        "S": exact_weights(captors="EBC"),
    }


def largest_bias() -> Fraction:
    """The largest bias of D with which the weights of exercise 1 still prove that it never wins."""
    return sum((share * BIASES[name] for name, share in exact_weights().items()), Fraction(0))


def printed_weights() -> dict[str, Fraction]:
    """The report's decimals, as the fractions that they are on paper."""
    return {name: Fraction(text) for name, text in zip("ABC", DECIMALS, strict=True)}


def largest_box() -> int:
    """The largest whole L for which the printed decimals prove that D never wins on |x| <= L, given
    the gap of the biases.
    """
    return int(GAP / sum(abs(r) for r in residual(printed_weights())))


def _compare_decimals(guess: bool) -> str:
    found = flaw(printed_weights())
    verdict = "**is no proof**" if found else "**is a proof**"
    return SAY("decimals found", guess=guess, verdict=verdict, found=found or "").strip()


def _answer_decimals(guess: bool) -> str:
    right = guess == (flaw(printed_weights()) is None)
    return SAY("decimals" if right else "decimals wrong")


@cache
def captors_of_a_character() -> int:
    """The most captors in the recorded proofs of the text recogniser."""
    return int(recorded.table("15_unreadable_characters", "unargmaxable")["captors"].max())


def _compare_captors(guess: int) -> str:
    proofs = len(recorded.table("15_unreadable_characters", "unargmaxable"))
    return SAY("captors found", guess=guess, proofs=proofs, most=captors_of_a_character())


def _answer_captors(guess: int) -> str:
    right = captors_of_a_character()
    if guess == right:
        return SAY("captors", features=FEATURES, most=FEATURES + 1)
    if guess == FEATURES:
        return SAY("captors few")
    if guess > right:
        return SAY("captors all")
    return SAY("captors three" if guess == 3 else "captors less")


PREDICTIONS = {
    "guess": Prediction(reading.truth(), _compare_decimals, _answer_decimals),
    "guess_captors": Prediction(reading.whole_number(1, 6625), _compare_captors, _answer_captors),
}


def _weights_fault(answer: tuple[Fraction, ...]) -> str | None:
    found = flaw(dict(zip("ABC", answer, strict=True)))
    if found and any(share.denominator > 10**6 for share in answer):
        first = answer[0]
        return SAY("weights decimal", given=float(first), stored=str(first)[:24], found=found)
    return found


def _certificates_fault(answer: frozenset[str]) -> str | None:
    flaws = {name: flaw(weights) for name, weights in certificates().items()}
    for name, found in flaws.items():
        if name in answer and found:
            return SAY("certificates wrong", name=name, found=found)
    proofs = {name for name, found in flaws.items() if found is None}
    return SAY("certificates more", proofs=len(proofs)) if proofs - answer else None


def _bias_fault(answer: tuple[Fraction, ...]) -> str | None:
    (bias,), right = answer, largest_bias()
    off, large = abs(bias - right), bias > right
    if bias == right:
        return None
    if off < Fraction(1, 100):
        return SAY("bias near", off=off, large="large" if large else "small")
    if bias == sum(BIASES.values(), Fraction(0)) / 3:
        return SAY("bias mean")
    return SAY("bias more" if large else "bias less", off=off)


def _box_fault(answer: int) -> str | None:
    right, miss = largest_box(), sum(abs(r) for r in residual(printed_weights()))
    if answer == right:
        return None
    if answer == 2 * right:
        return SAY("box larger")
    name = "box more" if answer > right else "box less"
    return SAY(name, answer=answer, miss=miss, sum=answer * miss, gap=GAP)


EXERCISES = {
    "1": SAY.exercise(
        1,
        reading.fractions(3, "the weights of A, B and C"),
        _weights_fault,
        lambda shares: SAY("right 1", shares=" + ".join(map(str, shares))),
    ),
    "2": SAY.exercise(2, reading.members(("P", "Q", "R", "S")), _certificates_fault),
    "3": SAY.exercise(3, reading.fractions(1, "the bias of D"), _bias_fault),
    "4": SAY.exercise(4, reading.whole_number(0), _box_fault),
}
