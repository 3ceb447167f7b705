"""Small layers made to deceive, each beside the same problem in integers, whose verdicts
enumeration knows.

Rows and biases are small integers, with exact midpoints and copies among them, in every feature
set; then what rounding gets wrong: units in the last place on rows or biases, biases down to the
smallest float and up to the largest, every dtype, scales from one end of float64 to the other.
Nothing is rounded on the way: with ``W = 2^p W'``, ``x = 2^q z`` and ``b = 2^r b'`` the logits are
``2^(p + q) (W' z + b' / unit)``, ``unit = 2^(p + q - r)``.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from enumeration import Integers, Region, Truth, enumerate_verdicts

from softgeom.layer import Ball, Box, Ellipsoid, FeatureSet, SoftmaxLayer, Unbounded

FEATURE_SETS = ("box", "lopsided box", "ball", "unbounded", "RMSNorm", "LayerNorm")
FAMILIES = ("integers", "biases by ulps", "rows by ulps", "tiny biases", "huge biases")
BITS = {"float16": 10, "float32": 23, "float64": 52}
ROW_SCALES = {
    "float16": (10, -24),
    "float32": (100, -149),
    "float64": (-60, 70, -500, 480, 900, -996, 996, -1074),
}
POINT_SCALES = (0, 0, -50, 90, 121, -400, 400, -996, 900)
SMALL, LARGE = (60, 150, 600, 1022, 1060, 1074), (60, 200, 600, 1000)


@dataclass(frozen=True, eq=False)
class TinyLayer:
    """A layer over a feature set, and the same in integers."""

    layer: SoftmaxLayer
    features: FeatureSet
    rows: Integers  # (C, d) effective: after a normalisation gain and mean are in
    bias: Integers  # (C,)
    unit: int
    region: Region
    margins: int  # p + q
    dtype: str  # as given: int64 becomes float64
    scale: str  # "order one" or "far"

    def truths(self) -> list[Truth]:
        """The verdict on each class, by enumeration."""
        return enumerate_verdicts(self.rows, self.bias, self.region, unit=self.unit)


def tiny_layer(
    rng: np.random.Generator,
    feature_set: str,
    family: str,
    *,
    classes: int | None = None,
    dimension: int | None = None,
) -> TinyLayer:
    """Draw a layer of one of ``FAMILIES`` over one of ``FEATURE_SETS``, by default of 2 to 12
    classes and 1 to 4 features.
    """
    by_rows = family == "rows by ulps"  # its minors are long integers
    C = classes or int(
        rng.integers(2, 7 if by_rows else 13) if by_rows or rng.random() < 0.2 else 12
    )
    d = dimension or int(rng.choice([1, 2, 2] if by_rows else [1, 2, 2, 3, 3, 3, 4]))
    W, b = _integers(rng, C, d)
    biased = family not in ("integers", "rows by ulps") or rng.random() < 0.6
    b = b if biased else 0 * b
    dtype = str(rng.choice([*BITS, "int64"] if family == "integers" else list(BITS)))
    p = q = r = 0
    if family == "integers" and dtype != "int64" and rng.random() < 0.5:
        p, q = _scales(rng, dtype, biased=biased)
        r = p + q
    elif by_rows:
        p = r = -BITS[dtype]
        W, b = _by_ulps(rng, W, BITS[dtype]), b * 2 ** BITS[dtype]
    elif family == "biases by ulps":
        r = -BITS[dtype]
        b = _by_ulps(rng, b, BITS[dtype])
    elif family == "tiny biases":
        dtype, r = "float64", -int(rng.choice(SMALL))
    elif family == "huge biases":
        dtype, b = "float64", b.astype(object) * 2 ** int(rng.choice(LARGE))
    unit = 2 ** (p + q - r)
    features, rows, bias, region = _features(rng, feature_set, W, b, unit)
    layer = SoftmaxLayer(_stored(W, p, dtype), _stored(b, r, dtype) if biased else None)
    scale = "far" if family == "integers" and (p or q) else "order one"
    return TinyLayer(layer, features.scaled(-q), rows, bias, unit, region, p + q, dtype, scale)


def _integers(rng: np.random.Generator, C: int, d: int) -> tuple[Integers, Integers]:
    """Rows (C, d) and biases (C,) between -4 and 4: often with an exact midpoint or a copy, where
    equalities decide.
    """
    W, b = rng.integers(-2, 3, (C, d)), rng.integers(-2, 3, C)
    if C > 3 and rng.random() < 0.5:
        W[0], W[1], W[2] = 2 * W[0], 2 * W[1], W[0] + W[1]
        b[0] += (b[0] + b[1]) % 2
        b[2] = (b[0] + b[1]) // 2 - (rng.random() < 0.2)
    if C > 3 and rng.random() < 0.15:
        W[-1], b[-1] = W[-2], b[-2] - (rng.random() < 0.5)
    return W, b


def _by_ulps(rng: np.random.Generator, values: Integers, bits: int) -> Integers:
    """``2^bits values``, about half of them moved by a unit in the last place or two."""
    moved = rng.integers(-1, 2, values.shape) * rng.integers(0, 2, values.shape)
    # an ulp grows with the number
    steps = np.where(np.abs(values) < 2, 1, np.where(np.abs(values) < 4, 2, 4))
    return np.asarray(values * 2**bits + moved * steps)


def _scales(rng: np.random.Generator, dtype: str, *, biased: bool) -> tuple[int, int]:
    """Powers of two for rows and points whose product float64 holds, where a bias needs it."""
    while True:
        p = int(rng.choice(ROW_SCALES[dtype]))
        q = int(rng.choice(POINT_SCALES)) if dtype == "float64" else 0
        if not biased or -1074 <= p + q <= 1021:
            return p, q


def _stored(values: Integers, power: int, dtype: str) -> np.ndarray:
    exact = np.ldexp(values.astype(np.float64), power)
    stored = exact.astype(dtype)
    assert np.array_equal(stored, exact), f"{dtype} does not hold the layer"
    return stored


def _features(
    rng: np.random.Generator, feature_set: str, W: Integers, b: Integers, unit: int
) -> tuple[FeatureSet, Integers, Integers, Region]:
    """A feature set of z, and rows, biases and region as enumeration takes them."""
    d = W.shape[1]
    if feature_set == "unbounded":
        return Unbounded(), W, b, ("unbounded",)
    if feature_set == "box":
        return Box(1.0), W, b, ("box", -np.ones(d, np.int64), np.ones(d, np.int64))
    if feature_set == "lopsided box":
        low: Integers = np.asarray(-rng.integers(0, 2, d))
        high: Integers = np.asarray(rng.integers(1, 3, d))
        return Box(tuple(map(float, high)), low=tuple(map(float, low))), W, b, ("box", low, high)
    radius = int(rng.integers(1, 4))
    ball: Region = ("ball", Fraction(radius**2))
    if feature_set == "ball":
        return Ball(radius), W, b, ball
    centred = feature_set == "LayerNorm"
    gain, shift = rng.integers(0, 3, d), rng.integers(-1, 2, d)
    rows, along = W * gain, W @ shift
    if centred:  # logits times d: verdicts stay
        rows, along, b = rows * d - rows.sum(axis=1, keepdims=True), along * d, b * d
    shifted = b + (along if unit == 1 else along.astype(object) * unit)
    return Ellipsoid(gain, shift, radius=radius, centred=centred), rows, shifted, ball
