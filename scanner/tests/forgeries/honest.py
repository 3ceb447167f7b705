"""Honest evidence of every kind: each feature set, each verdict, floats and fractions, with and
without a bias, parts of a layer, answers about orders, and verdicts on experts.
"""

import functools
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from evidence import Evidence

from softgeom.asking import ask, ask_experts, ask_texts
from softgeom.ceiling import ceilings
from softgeom.certifying.order import Order
from softgeom.layer import Ball, Box, Ellipsoid, FeatureSet, SoftmaxLayer, Unbounded
from softgeom.scanner import scan
from softgeom.widening import widen

RING = np.array([[1, 0], [0.25, 1], [-0.75, 0.75], [-1, -0.5], [0.5, -1]])
SETS: dict[str, FeatureSet] = {
    "box": Box(5.0, low=-1.0),
    "intervals": Box((3.0, 1.0, 2.0), low=(-1.0, -4.0, 0.5)),
    "ball": Ball(2.0),
    "unbounded": Unbounded(),
    "layernorm": Ellipsoid.layer_norm([1.0, 0.5, 2.0], [0.0, 0.25, -1.0]),
    "rmsnorm": Ellipsoid.rms_norm([1.0, 0.5, 0.0]),
}


@dataclass(frozen=True)
class Honest:
    """A file and the layer that it is about."""

    layer: SoftmaxLayer
    content: bytes

    @property
    def holds(self) -> str:
        """A scan, answers, experts or ceilings."""
        return self.evidence.holds

    @property
    def evidence(self) -> Evidence:
        """To be edited."""
        return Evidence.read(self.content)


def layer(*, bias: bool, dtype: str = "f4") -> SoftmaxLayer:
    """Five classes around, three inside of which one needs its bias, a twin, and a lesser copy of
    another.
    """
    rows = np.vstack([RING, RING.mean(axis=0), RING[:2] / 2, RING[2], RING[3]]).astype(dtype)
    W = np.column_stack([rows, rows @ [0.5, -0.25]]).astype(dtype)
    b = np.array([0, 0.5, 0, 0.25, -0.5, -1, -0.25, 0.25, 0, -2], dtype)
    return SoftmaxLayer(W, b if bias else None)


def saved(found: object) -> bytes:
    """The file of a scan, of answers, or of ceilings."""
    with tempfile.TemporaryDirectory() as folder:
        found.save(Path(folder) / "proofs")  # type: ignore[attr-defined]
        return (Path(folder) / "proofs").read_bytes()


def as_fractions(evidence: Evidence) -> None:
    """Points and, where no equality has to hold, weights as fractions; one point in float64."""
    claims = evidence.claims()
    claims[0]["kinds"] = 1
    for claim in claims:
        if claim["kinds"] == 0:
            claim |= {"kinds": 5, "point": [text(value) for value in claim["point"]]}
        elif claim["kinds"] == 2 and claim["margins"] < 0:
            proof = [[a, b, text(weight)] for a, b, weight in claim["proof"]]
            claim |= {"kinds": 6, "proof": proof}
    evidence.put(claims)


def text(value: float | Fraction) -> str:
    """A rational as the format has it."""
    value = Fraction(value)
    return f"{value.numerator:x}/{value.denominator:x}"


@functools.cache
def files() -> dict[str, Honest]:
    """Every honest file by its name."""
    found = {}
    for name, features in SETS.items():
        for bias in (True, False):
            one = layer(bias=bias, dtype="f4" if bias else "f8")
            content = saved(scan(one, features=features))
            found[name if bias else f"{name}, no bias"] = Honest(one, content)
    box = found["box"]
    exact = box.evidence
    as_fractions(exact)
    found["fractions"] = Honest(box.layer, exact.bytes())
    given_up = box.evidence
    claims = given_up.claims()
    for claim in claims[4:6]:
        claim |= {"kinds": 4, "margins": 0.5, "radii": float("nan"), "reason": "out of time"}
    given_up.put(claims)
    found["undecided"] = Honest(box.layer, given_up.bytes())
    sets = Box(0.125), Ball(0.0625), Unbounded()
    lost = scan(box.layer, features=Box(0.0625))
    found["wider"] = Honest(box.layer, saved(widen(lost, sets)))
    found["part"] = Honest(box.layer, saved(scan(box.layer, [1, 5, 8], features=SETS["box"])))
    rng = np.random.default_rng(0)
    wide = SoftmaxLayer(rng.normal(size=(80, 3)).astype("f4"), rng.normal(size=80).astype("f4"))
    found["wide"] = Honest(wide, saved(scan(wide, features=Box(2.0))))
    tiny = SoftmaxLayer([[-1e160], [0.0]], [1e-300, 0.0])
    found["tiny"] = Honest(tiny, saved(scan(tiny, features=Unbounded())))
    large = SoftmaxLayer([[1.0], [0.0]])  # in whose units the smallest points are 0
    found["large"] = Honest(large, saved(scan(large, features=Ball(2.0**1000))))
    # class 0 wins where float64 cannot see it: by a product of shift and row below its range, and
    # by entries that the unit of the largest takes
    shifted = SoftmaxLayer([[0, 0], [-1e-200, -1], [-1e-200, 1]])
    where = Ellipsoid([0.0, 1.0], [1e-200, 0.0], radius=1.0)
    found["vanishing shift"] = Honest(shifted, saved(scan(shifted, features=where)))
    a, b, c, d = 2.0**-1023, 2.0**-1026, 2.0**50, 2.0**41
    apart = SoftmaxLayer([[0, 0], [-a, -c], [-b, d], [a, -c]])
    where = Ellipsoid([2.0**1000, 2.0**-200], radius=1.0)
    found["far apart"] = Honest(apart, saved(scan(apart, features=where)))
    short, where = SoftmaxLayer([[0], [-1e160]], [0, 1e-200]), Ellipsoid([2.0**-500], radius=1e-200)
    found["vanishing radius"] = Honest(short, saved(scan(short, features=where)))
    # sums of class 1 leave float32 on their way, where a bias that no unit holds lets it be used
    rows = np.outer([-0.42, 1, -0.5], np.ones(5))
    rows[1, :2] = -2.5
    wide = SoftmaxLayer((1e38 * rows).astype("f4"), np.array([0, 0, 1e-45], "f4"))
    found["overflow"] = Honest(wide, saved(scan(wide, features=Box(1e300))))
    one = SoftmaxLayer([[1.0, 2.0]])
    found["one class"] = Honest(one, saved(scan(one)))
    ends = ([[0]], True), ([[1], [2]], False), ([[3], [2], [4, 6]], True), ([[5, 0], [8]], False)
    orders = [Order(blocks, rest) for blocks, rest in (*ends, ([[0, 1, 2]], False))]
    found["answers"] = Honest(box.layer, saved(ask(box.layer, orders, features=SETS["box"])))
    router = SoftmaxLayer(np.vstack([[[0, 0]], RING, RING * 0.875]))
    found["experts"] = Honest(router, saved(ask_experts(router, 2, features=Box(1.0))))
    found["experts, one"] = Honest(router, saved(ask_experts(router, 1, features=Ball(1.0))))
    rings = np.vstack([[[2, 0], [0, 0]], *(RING * size for size in (1, 0.875, 0.75))])
    ctc = SoftmaxLayer(rings)
    found["texts"] = Honest(ctc, saved(ask_texts(ctc, [1, 2, 12], features=Box(1.0))))
    with np.errstate(all="ignore"):
        for name, features in SETS.items():
            content = saved(ceilings(box.layer, features=features))
            found[f"ceilings, {name}"] = Honest(box.layer, content)
        # each class is as probable as the others; sums over biases overflow; logits far apart
        for name, one in (
            ("level", SoftmaxLayer(np.ones((3, 2)))),
            ("beyond", SoftmaxLayer(np.zeros((100, 2)), np.full(100, 0.8e308))),
            ("least", SoftmaxLayer([[1.0], [-1.0], [0.5]], [0.0, -600.0, -1000.0])),
        ):
            found[f"ceilings, {name}"] = Honest(one, saved(ceilings(one, features=Box(1.0))))
    return found
