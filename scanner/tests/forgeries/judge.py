"""What is true about a claim, by its definition and in fractions: slow, and nothing but this file
and the format page is needed to believe it.
"""

import itertools
import math
from fractions import Fraction
from typing import Any

from evidence import ODDS, POINTS, PROOFS, TWIN, Evidence

from softgeom.layer import SoftmaxLayer

Row = tuple[list[Fraction], Fraction]  # v.z + c


class Judge:
    """Of claims about one layer over one feature set, as the head of a file states it."""

    def __init__(self, layer: SoftmaxLayer, features: dict[str, Any]) -> None:
        self.d, self.kind = layer.dimension, features["set"]
        self.rows = [[Fraction(v) for v in row] for row in layer.W.astype(float).tolist()]
        self.b = [Fraction(v) for v in layer.bias.astype(float).tolist()]
        self.numbers = {
            name: [Fraction(float.fromhex(v)) for v in ([held] if type(held) is str else held)]
            for name, held in features.items()
            if name not in ("set", "centred")
        }
        for name in ("low", "high"):
            if len(self.numbers.get(name, [])) == 1:
                self.numbers[name] *= self.d
        self.centred = bool(features.get("centred"))
        self.effective = [self._effective(w, b) for w, b in zip(self.rows, self.b, strict=True)]

    def _effective(self, w: list[Fraction], b: Fraction) -> Row:
        """Row and bias in the coordinates of stored points."""
        if self.kind != "ellipsoid":
            return w, b
        b += sum((p * q for p, q in zip(self.numbers["bias"], w, strict=True)), Fraction(0))
        w = [p * q for p, q in zip(self.numbers["gain"], w, strict=True)]
        mean = sum(w) / self.d if self.centred else 0
        return [v - mean for v in w], b

    def demanded(self, claim: dict[str, Any]) -> list[tuple[int, int]]:
        """Every comparison that the order asks for."""
        blocks = [list(block) for block in claim["order"]]
        named = {i for block in blocks for i in block}
        blocks += [[i for i in range(len(self.rows)) if i not in named]] * bool(claim["rest"])
        return [pair for a, b in itertools.pairwise(blocks) for pair in itertools.product(a, b)]

    def _difference(self, a: int, b: int) -> Row:
        (v, c), (w, d) = self.effective[a], self.effective[b]
        return [p - q for p, q in zip(v, w, strict=True)], c - d

    def _at(self, z: list[Fraction], a: int, b: int) -> Fraction:
        v, c = self._difference(a, b)
        return sum((p * q for p, q in zip(v, z, strict=True)), c)

    def point(self, claim: dict[str, Any]) -> list[Fraction]:
        """The stored point."""
        return [self._number(v) for v in claim["point"]]

    def contains(self, z: list[Fraction]) -> bool:
        """Whether a point lies in the set."""
        n = self.numbers
        if self.kind == "box":
            return all(a <= v <= b for a, v, b in zip(n["low"], z, n["high"], strict=True))
        return self.kind == "unbounded" or sum(v * v for v in z) <= n["radius"][0] ** 2

    def margin(self, claim: dict[str, Any]) -> Fraction | float:
        """The smallest difference at the point; infinite where nothing is compared."""
        z = self.point(claim)
        return min((self._at(z, a, b) for a, b in self.demanded(claim)), default=math.inf)

    def is_true(self, claim: dict[str, Any]) -> bool:
        """Whether what a claim says holds."""
        if claim["kinds"] in POINTS:
            return self._wins(claim)
        if claim["kinds"] in PROOFS:
            return claim["margins"] <= 0 and self._loses(claim)
        if claim["kinds"] == TWIN:
            (t, twin, _), *more = claim["proof"]
            own = [[t]] == claim["order"] and t != twin and not more
            return own and claim["margins"] == 0 and self._equal(t, twin)
        return True

    def _equal(self, a: int, b: int) -> bool:
        v, c = self._difference(a, b)
        return not any(v) and not c

    def _wins(self, claim: dict[str, Any]) -> bool:
        z, margin = self.point(claim), self.margin(claim)
        small = claim["margins"] == 5e-324  # says only that it is positive
        if not self.contains(z) or not (margin > 0 if small else 0 < claim["margins"] <= margin):
            return False
        radius = claim.get("radii", 0.0)
        radius = 0.0 if math.isnan(radius) else radius
        lengths = {
            (a, b): sum((p - q) ** 2 for p, q in zip(self.rows[a], self.rows[b], strict=True))
            for a, b in self.demanded(claim)
        }
        if math.isinf(radius):
            return not any(lengths.values())
        return all(
            Fraction(radius) ** 2 * square <= self._at(z, a, b) ** 2
            for (a, b), square in lengths.items()
        )

    def _loses(self, claim: dict[str, Any]) -> bool:
        """Whether weights prove it: the stored ones, or some for which every row vanishes."""
        demanded, bound = self.demanded(claim), Fraction(claim["margins"])
        weights = {(a, b): self._number(w) for a, b, w in claim["proof"]}
        if not set(weights) <= set(demanded) or min(weights.values()) <= 0:
            return False
        rows = [(self._difference(*pair), weight) for pair, weight in weights.items()]
        v = [sum((w * row[0][k] for row, w in rows), Fraction(0)) for k in range(self.d)]
        if self._reaches_at_most(v, sum(w * (row[1] - bound) for row, w in rows)):
            return True
        for size in range(1, self.d + 2):
            for some in itertools.combinations(demanded, size):
                found = _vanishing([self._difference(*pair) for pair in some])
                if found is not None and found <= bound:
                    return True
        return False

    def _number(self, stored: float | str) -> Fraction:
        """A float, or a fraction as the format has it."""
        if type(stored) is str:
            return Fraction(*(int(part, 16) for part in stored.split("/")))
        return Fraction(stored)

    def _reaches_at_most(self, v: list[Fraction], c: Fraction) -> bool:
        """Whether v.z + c <= 0 for every z of the set."""
        if self.kind == "box":
            ends = zip(self.numbers["low"], self.numbers["high"], v, strict=True)
            return sum((max(a * x, b * x) for a, b, x in ends), c) <= 0
        if self.kind == "unbounded":
            return not any(v) and c <= 0
        return c <= 0 and self.numbers["radius"][0] ** 2 * sum(x * x for x in v) <= c * c


def _vanishing(rows: list[Row]) -> Fraction | None:
    """sum l c for the one l >= 0 with sum l v = 0 and sum l = 1; None without, or with many."""
    n, d = len(rows), len(rows[0][0])
    A = [[row[0][k] for row in rows] + [Fraction(0)] for k in range(d)]
    A.append([Fraction(1)] * (n + 1))
    for k in range(n):
        pivot = next((i for i in range(k, d + 1) if A[i][k]), None)
        if pivot is None:
            return None
        A[k], A[pivot] = A[pivot], A[k]
        A[k] = [value / A[k][k] for value in A[k]]
        A = [
            row
            if i == k or not row[k]
            else [p - row[k] * q for p, q in zip(row, A[k], strict=True)]
            for i, row in enumerate(A)
        ]
    weights = [row[-1] for row in A[:n]]
    if any(row[-1] for row in A[n:]) or min(weights) < 0:
        return None
    return sum((w * row[1] for w, row in zip(weights, rows, strict=True)), Fraction(0))


def falsehoods(evidence: Evidence, layer: SoftmaxLayer, honest: Evidence) -> list[str]:
    """What a file says and is not so."""
    claims = evidence.claims()
    if evidence.holds == "ceilings":
        return _false_ceilings(claims, honest)
    judges = [Judge(layer, features) for features in evidence.sets]
    wrong = [str(claim)[:200] for claim in claims if not judges[claim["sets"]].is_true(claim)]
    if evidence.holds == "scan":
        names = [(claim["sets"], *claim["order"]) for claim in claims]
        wrong += [f"classes {names}"] * (sorted(names) != names)
        wrong += ["not a class"] * any(len(c["order"]) != 1 or c["rest"] != 1 for c in claims)
    if evidence.holds == "experts":
        k = int(evidence.texts["k"])
        for expert, some in itertools.groupby(claims, key=lambda claim: claim["order"][0][0]):
            blank = evidence.texts.get("blank")
            if not _follows(judges[0], k, expert, list(some), blank):
                wrong.append(f"expert {expert}")
    return wrong


def _false_ceilings(claims: list[dict[str, Any]], honest: Evidence) -> list[str]:
    """Ceilings below what a class certainly reaches, or more reached than its ceiling; each is
    within three per cent of the truth in the honest file over the same set.
    """
    known = {claim["order"][0][0]: claim for claim in honest.claims()}
    return [
        str(claim)
        for claim in claims
        if claim["kinds"] != ODDS
        or claim["ceilings"] < known[claim["order"][0][0]]["reached"] * (1 - 1e-9)
        or claim["reached"] > known[claim["order"][0][0]]["ceilings"] * (1 + 1e-9)
    ]


def _follows(
    judge: Judge, k: int, expert: int, group: list[dict[str, Any]], blank: str | None
) -> bool:
    apart = {expert} if blank is None else {expert, int(blank)}
    others, kinds = [*{*range(len(judge.rows))} - apart], [c["kinds"] for c in group]
    if 4 in kinds:
        return not {*kinds} & {*POINTS}
    if {*kinds} & {*POINTS}:
        z = judge.point(group[0])
        ahead = sum(judge._at(z, i, expert) >= 0 for i in others)
        return len(group) == 1 and judge.contains(z) and ahead < k
    blocking = [set(claim["order"][1]) for claim in group if claim["order"][0] == [expert]]
    choices = itertools.combinations(others, min(k - 1, len(others)))
    held = all(any(p.isdisjoint(ahead) for p in blocking) for ahead in choices)
    return held and blank != str(expert)
