"""What leaves a final normalisation: ``x = bias + gain * u`` with ``||u||_2 <= radius``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softgeom.arrays import Array, Floats
from softgeom.features.ball import Round, positive_radius
from softgeom.features.feature_set import FeatureSet, hexed, scale_exactly, unhexed
from softgeom.rounding import LEAST, as_floats, exponent, gamma, norm_up, underflow

ORDER_ONE = 20  # a radius between 2^-20 and 2^20 stays as it is
BLOCK_BYTES = 64 * 2**20  # rows converted to float64 at a time
# formats that models compute in, coarsest first: half the distance from 1 to the next number
ROUNDOFF = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}


@dataclass(frozen=True, eq=False)
class Ellipsoid(Round, FeatureSet):
    """``x = bias + gain * u`` with ``||u||_2 <= radius``: what leaves a final normalisation.

    Parameters
    ----------
    gain, bias : (d,) arrays
        Of the normalisation; its layer's effective bias is ``W bias + b``, so GPT-2 has one
        although it stores none.
    radius : float, optional
        sqrt(d) for LayerNorm and RMSNorm, the default.
    centred : bool
        LayerNorm also subtracts the mean: ``u - mean(u)`` takes the place of u.

    Raises
    ------
    ValueError
        If shapes differ, a number is not finite, float64 would change it, or the radius is not
        positive.
    """

    kind = "ellipsoid"
    gain: Floats
    bias: Floats
    radius: float
    centred: bool

    def __init__(
        self, gain: ArrayLike, bias: ArrayLike | None = None,
        *, radius: float | None = None, centred: bool = False,
    ) -> None:  # fmt: skip
        gain = as_floats(gain, "gain")
        if gain.ndim != 1 or not len(gain):
            raise ValueError(
                f"gain must be a vector with one entry per feature, not shape {gain.shape}."
            )
        bias = np.zeros_like(gain) if bias is None else as_floats(bias, "bias")
        if bias.shape != gain.shape:
            raise ValueError(
                f"gain and bias of the normalisation differ in shape: {gain.shape} and "
                f"{bias.shape}."
            )
        for name, values in (("gain", gain), ("bias", bias)):
            if not np.isfinite(values).all():
                first = int(np.flatnonzero(~np.isfinite(values))[0])
                raise ValueError(
                    f"{name} has a NaN or infinite entry, the first at [{first}]: repair it first."
                )
        radius = (
            float(np.sqrt(len(gain))) if radius is None else positive_radius(radius, "an Ellipsoid")
        )
        vars(self).update(gain=gain, bias=bias, radius=radius, centred=bool(centred))

    @classmethod
    def layer_norm(
        cls, gain: ArrayLike, bias: ArrayLike | None = None, *, rounded: bool = False
    ) -> Ellipsoid:
        """The outputs of ``LayerNorm``: centred, ``||u|| <= sqrt(d)``; or, rounded, the radius of
        `rounded_radius`.
        """
        exact = cls(gain, bias, centred=True)
        if not rounded:
            return exact
        return cls(gain, bias, radius=rounded_radius(exact.gain, exact.bias), centred=True)

    @classmethod
    def rms_norm(cls, gain: ArrayLike, *, rounded: bool = False) -> Ellipsoid:
        """The outputs of ``RMSNorm``: ``||u|| <= sqrt(d)``; or, rounded, the radius of
        `rounded_radius`.
        """
        exact = cls(gain)
        return cls(gain, radius=rounded_radius(exact.gain, exact.bias)) if rounded else exact

    def times(self, scale: float) -> Ellipsoid:
        """What leaves the normalisation, multiplied by a number and rounded."""
        if scale == 1:
            return self
        how: Any = {"radius": self.radius, "centred": self.centred}
        return Ellipsoid(self.gain * scale, self.bias * scale, **how)

    @property
    def holds_a_ball(self) -> bool:
        """Whether a ball around zero lies inside: without a bias, a class that wins anywhere in R^d
        then wins here, too, since a shorter x in the same direction changes no order.
        """
        return not self.centred and not self.bias.any() and bool(self.gain.all())

    def check(self, dimension: int) -> None:
        if len(self.gain) != dimension:
            raise ValueError(
                f"The normalisation has {len(self.gain)} gains; W has {dimension} columns."
            )

    def describe(self) -> str:
        """Which normalisation, its features, and the digest of its numbers."""
        name = "LayerNorm" if self.centred else "RMSNorm"
        return f"{name} ellipsoid of {len(self.gain)} features ({self.digest()[:12]})"

    def fields(self) -> dict[str, Any]:
        vectors = {"gain": hexed(self.gain), "bias": hexed(self.bias)}
        return {**vectors, "radius": hexed(self.radius), "centred": self.centred}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Ellipsoid:
        if not isinstance(fields["centred"], bool):
            raise TypeError("centred is neither true nor false")
        named = {"radius": unhexed(fields["radius"]), "centred": fields["centred"]}
        return cls(unhexed(fields["gain"]), unhexed(fields["bias"]), **named)

    @property
    def own_coordinates(self) -> bool:
        return True

    def features_at(self, Z: Array) -> tuple[Array, Floats]:
        """``bias + gain * (u - mean(u))`` and a bound on its rounding."""
        u = Z.astype(np.float64)
        centre = u.mean(axis=1, keepdims=True) if self.centred else 0.0
        x = self.bias + self.gain * (u - centre)
        # Mean and difference are each off by at most gamma times the mean of |u| and |u|; sqrt(d)
        # mean|u| <= ||u||.
        size = norm_up(self.bias) + 2 * np.abs(self.gain).max() * norm_up(u)
        # below the normal range, then times the gain
        lost = underflow(u.shape[1]) * (2 + np.abs(self.gain).max())
        return x, gamma(u.shape[1] + 4) * size + lost

    def features_exactly(self, z: Sequence[Fraction]) -> list[Fraction]:
        """``bias + gain * (u - mean(u))``."""
        centre = sum(z, Fraction(0)) / len(z) if self.centred else Fraction(0)
        gain, bias = self.gain.tolist(), self.bias.tolist()
        return [
            Fraction(c) + Fraction(g) * (v - centre) for c, g, v in zip(bias, gain, z, strict=True)
        ]

    def support_bound(self, v: Floats, error: Floats) -> tuple[float, float]:
        """``bias.v + radius ||gain * v||`` (the product centred), every term rounded up."""
        gain, d = np.abs(self.gain), len(v)
        scaled = self.gain * v
        # not by the products, which may vanish where their factors do not
        lost = underflow(3) if np.any((gain > 0) & (np.abs(v) + error > 0)) else 0.0
        with np.errstate(over="ignore"):  # infinity is an upper bound, too
            sizes = np.abs(scaled) + np.abs(scaled).mean()
            slip = gain * error + gamma(d + 4) * sizes + lost  # rounded up in `norm_up`
        centred = scaled - scaled.mean() if self.centred else scaled
        norms = float(norm_up(np.abs(centred))) + float(norm_up(slip))
        reach = self.radius * norms + (underflow(1) if norms else 0.0)
        size = float(np.abs(self.bias) @ (np.abs(v) + error)) + reach
        most = float(self.bias @ v + np.abs(self.bias) @ error) + reach
        return most + (underflow(2 * d) if self.bias.any() else 0.0), size

    def equalities(self, D: Floats, c: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """``gain * D`` vanishes, or is constant when centred; ``bias.D`` joins the constants."""
        E = D * self.gain
        moves = D.any(axis=0) & (self.gain != 0)
        # of the product, and of D before it
        lost = np.where(moves, underflow(1) * (1 + np.abs(self.gain)), 0.0)
        error = gamma(1) * np.abs(E) + lost
        if self.centred:
            error = gamma(2) * (np.abs(E[:, :-1]) + np.abs(E[:, -1:])) + lost[:-1] + lost[-1]
            E = E[:, :-1] - E[:, -1:]
        d, size = len(self.gain), np.abs(self.bias)
        shift = np.abs(D) @ size
        constants_error = np.where(shift > 0, gamma(d + 2) * (shift + np.abs(c)), 0.0)
        if np.any(D.any(axis=0) & (size > 0)):  # not by the products, which may vanish
            constants_error += underflow(d) * (1 + size.max())
        return E, error, c + D @ self.bias, constants_error

    def effective_rows(self, rows: Array, dtype: Any) -> Array:
        """``w * gain``, centred."""
        effective = rows.astype(np.float64) * self.gain
        if self.centred:
            effective -= effective.mean(axis=-1, keepdims=True)
        return effective.astype(dtype, copy=False)

    def effective_bias(self, W: Array, b: Floats) -> Floats:
        """``b + W bias``, by blocks of rows."""
        size = max(1, BLOCK_BYTES // (8 * W.shape[1]))
        blocks = [W[i : i + size].astype(np.float64) @ self.bias for i in range(0, len(W), size)]
        return b + np.concatenate(blocks)

    def reduce_exactly(self, w: Sequence[Fraction], b: Fraction) -> tuple[list[Fraction], Fraction]:
        """``w * gain``, centred, and ``b + w.bias``."""
        row = [value * Fraction(g) for value, g in zip(w, self.gain.tolist(), strict=True)]
        mean = sum(row, Fraction(0)) / len(row) if self.centred else Fraction(0)
        shift = sum(
            (value * Fraction(c) for value, c in zip(w, self.bias.tolist(), strict=True) if c), b
        )
        return [value - mean for value in row] if self.centred else row, shift

    @property
    def extent(self) -> float:
        """The largest coordinate of any x, so that the rows keep their size; about, for a scale.
        Never 0, which would say that there is no bound.
        """
        with np.errstate(over="ignore", under="ignore"):
            largest = float(np.abs(self.bias).max() + np.abs(self.gain).max() * self.radius)
        return max(largest, LEAST)

    def scaled(self, power: int) -> Ellipsoid:
        """bias, gain, radius with x in units of ``2^power`` and a radius of order one."""
        bias, inner = scale_exactly(self.bias, power), self.coordinate_power(power)
        gain, radius = scale_exactly(self.gain, power - inner), scale_exactly(self.radius, inner)
        return Ellipsoid(gain, bias, radius=float(radius), centred=self.centred)

    def coordinate_power(self, power: int) -> int:
        """That of the radius, 0 where it is of order one as it is."""
        inner = exponent(self.radius)
        return inner if abs(inner) > ORDER_ONE else 0


def format_of(*vectors: Floats) -> str:
    """The coarsest of the formats that holds every number exactly: a model whose gains all are
    bfloat16 may well compute in bfloat16, whatever its file says.
    """
    values = np.concatenate(vectors)
    with np.errstate(over="ignore", invalid="ignore"):
        single = values.astype(np.float32)
        if not np.array_equal(single, values):
            return "float64"
        if not (single.view(np.uint32) & 0xFFFF).any():  # bfloat16 is the upper half of a float32
            return "bfloat16"
        return "float16" if np.array_equal(single.astype(np.float16), values) else "float32"


def rounded_radius(gain: Floats, bias: Floats) -> float:
    """The radius that holds what a normalisation leaves when its numbers are rounded.

    Let rho be the roundoff of the format that holds gain and bias (`format_of`). The sums of a norm
    are taken in float32 or finer, with roundoff sigma, so that ``||u|| <= sqrt(d) (1 + (d + 8)
    sigma)``. The quotient, the product with the gain and the sum with the bias are rounded once
    each:

        x_k = (g_k u_k (1 + e_1) (1 + e_2) + s_k) (1 + e_3),    |e_i| <= rho.

    Divided by g_k this is a point of the set with ``u'_k = u_k (1 + e_1) (1 + e_2) (1 + e_3) +
    e_3 s_k / g_k``; where g_k = 0, x_k = s_k exactly. Hence

        ||u'|| <= sqrt(d) (1 + (d + 8) sigma) (1 + rho)^3 + rho ||s / g||.

    Not covered: a LayerNorm whose input has a mean far larger than its spread, of which float32
    keeps few digits; and the mean that rounding leaves, of size rho, which a centred set lacks.
    """
    d, rho = len(gain), ROUNDOFF[format_of(gain, bias)]
    sigma = min(rho, ROUNDOFF["float32"])
    moves = gain != 0
    with np.errstate(over="ignore"):
        shift = float(np.linalg.norm(bias[moves] / gain[moves]))
    return float(np.sqrt(d)) * (1 + (d + 8) * sigma) * (1 + rho) ** 3 + rho * shift
