"""What every feature set can do: membership, support, reduction to a plain problem, serialisation,
description.

Evidence names points in the set's own *coordinates* z: x itself, except u for an ellipsoid. In them
a layer has effective rows ``w'`` and biases ``b'`` with ``w'.z + b' = w.x + b``, and the region of
z is a box or a ball (or, for unbounded features, a cone). Each question is answered twice: in
float64 with rigorous bounds, and in fractions.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from softgeom.arrays import Array, Bools, Floats
from softgeom.plugins import plugin


@dataclass(frozen=True, eq=False)
class Region:
    """The region of z (D,): the box ``low`` to ``high``, or the ball of ``radius``."""

    low: Floats | None = None
    high: Floats | None = None
    radius: float | None = None


class FeatureSet(ABC):
    """A set of features x; subclasses are known by their ``kind`` and equal by their numbers."""

    kind: ClassVar[str]
    kinds: ClassVar[dict[str, type[FeatureSet]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__:  # not yet, where a worker rebuilds the class of a notebook
            cls._register()

    @classmethod
    def _register(cls) -> None:
        """Let ``from_json`` know the kind. ValueError for one inherited or taken by another set."""
        if "kind" not in cls.__dict__:
            raise ValueError(
                f"the feature set {cls.__name__} has no kind of its own: give the class a line "
                "such as kind = 'my set'."
            )
        known = FeatureSet.kinds.setdefault(cls.kind, cls)
        # a notebook's cell may define its class again
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(
                f"the kind {cls.kind!r} belongs to the feature set {known.__name__}: give "
                f"{cls.__name__} another one."
            )
        FeatureSet.kinds[cls.kind] = cls

    # ---- Description and serialisation

    @abstractmethod
    def describe(self) -> str:
        """A short name for tables and terminals; no two sets have the same."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """The numbers that make the set, as ``float.hex`` writes them: none is rounded."""

    @classmethod
    @abstractmethod
    def from_fields(cls, fields: dict[str, Any]) -> FeatureSet:
        """The set with these ``fields``."""

    def to_json(self) -> dict[str, Any]:
        """The set as plain JSON, exactly."""
        self._register()
        return {"set": self.kind, **self.fields()}

    @staticmethod
    def from_json(stored: dict[str, Any]) -> FeatureSet:
        """What ``to_json`` gave; ValueError for bad fields, and for a kind that neither this
        process nor an installed package defines.
        """
        kind = stored.get("set") if isinstance(stored, dict) else None
        if isinstance(kind, str) and kind not in FeatureSet.kinds:
            plugin("features", kind)  # its class registers itself
        if not isinstance(kind, str) or kind not in FeatureSet.kinds:
            raise ValueError(
                f"{kind!r} is not a feature set; known are {', '.join(sorted(FeatureSet.kinds))}."
            )
        try:
            return FeatureSet.kinds[kind].from_fields(
                {k: v for k, v in stored.items() if k != "set"}
            )
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(
                f"The stored feature set {kind!r} is incomplete or no set of numbers ({error})."
            ) from None

    def condition(self) -> str:
        """What a proof over this set supposes, in the words of a table."""
        return f"over {self.describe()}"

    def digest(self) -> str:
        """The SHA-256 of ``to_json``: twelve digits of it name a long set, and can be forged in a
        day; ``softgeom verify`` prints all.
        """
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureSet) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.digest())

    # ---- Membership and coordinates

    def check(self, dimension: int) -> None:  # noqa: B027 - most sets live in every dimension
        """Raise ValueError unless the set lives in R^dimension."""

    @abstractmethod
    def contains(self, Z: Floats) -> Bools:
        """Which finite points Z (n, d) certainly lie in the set (n,)."""

    @abstractmethod
    def contains_exactly(self, z: Sequence[Fraction]) -> bool:
        """Whether the point z (d,) lies in the set."""

    def features_at(self, Z: Array) -> tuple[Array, Floats]:
        """x of points Z (n, d), and how far (2-norm) rounding may have moved each: (n, d), (n,)."""
        return Z, np.zeros(len(Z))

    def feature(self, point: Array) -> Floats:
        """x (d,) of one point z (d,), in float64."""
        x: Floats = self.features_at(np.asarray(point, dtype=np.float64)[None])[0][0]
        return x

    def features_exactly(self, z: Sequence[Fraction]) -> list[Fraction]:
        """x of a point z (d,)."""
        return list(z)

    def bounds(self, dimension: int) -> tuple[Floats, Floats]:
        """The corners (d,) of a box; ValueError if the set is none, or of another dimension."""
        raise ValueError(f"This is stated for a box; {self.describe()} is another set.")

    @property
    def own_coordinates(self) -> bool:
        """Whether z is something else than x."""
        return False

    # ---- Support

    @abstractmethod
    def support_bound(self, v: Floats, error: Floats) -> tuple[float, float]:
        """Upper bound on ``max of v.x`` for every v within ``error``, and the sum of sizes that
        went into it (the caller adds ``gamma(d + 8)`` times it for the rounding of sums).
        """

    @abstractmethod
    def support_nonpositive(self, v: Sequence[Fraction], c: Fraction) -> bool:
        """Whether ``max of v.z + c <= 0`` over z, for effective v (d,), exactly."""

    def equalities(self, D: Floats, c: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """What must vanish for v to have no support: columns E (k, m) of differences D (k, d), with
        their rounding errors; and what is then left of the right side: constants (k,) for c (k,),
        with theirs.
        """
        return D, np.zeros((1, D.shape[1])), c, np.zeros(1)

    # ---- Reduction to a plain problem

    @abstractmethod
    def region(self, dimension: int, has_bias: bool) -> Region:
        """The region of the search's z."""

    def is_homogeneous(self, has_bias: bool) -> bool:
        """Whether the search gets the bias as one more column of W'."""
        return False

    def effective_rows(self, rows: Array, dtype: Any) -> Array:
        """Rows w' (..., d) of rows w (..., d); the rows themselves where nothing has to change."""
        return rows.astype(dtype, copy=False)

    def effective_bias(self, W: Array, b: Floats) -> Floats:
        """b' (C,), rounded."""
        return b

    def reduce_exactly(self, w: Sequence[Fraction], b: Fraction) -> tuple[list[Fraction], Fraction]:
        """w' (d,) and b' of one class."""
        return list(w), b

    # ---- Scale

    @property
    @abstractmethod
    def extent(self) -> float:
        """The largest coordinate of any z; 0 where there is none."""

    @abstractmethod
    def scaled(self, power: int) -> FeatureSet:
        """The set in units of ``2^power``: ``x = 2^power x'``, and ``z = 2^q z'`` with q =
        ``coordinate_power(power)``. ValueError if a number of the set would underflow or overflow.
        """

    def coordinate_power(self, power: int) -> int:
        """The unit of z in ``scaled(power)``, as a power of two."""
        return power


def scale_exactly(values: Floats | float, power: int) -> Floats:
    """``values / 2^power``. ValueError if a value would underflow or overflow."""
    with np.errstate(over="ignore", under="ignore"):
        result = np.ldexp(np.asarray(values, dtype=np.float64), -power)
        if not np.array_equal(np.ldexp(result, power), values):
            raise ValueError(f"Some entry cannot be divided by 2^{power} exactly.")
    return result


def hexed(values: Floats | float) -> Any:
    """Floats as ``float.hex`` writes them: a string, or a list of strings."""
    array = np.asarray(values, dtype=np.float64)
    return float(array).hex() if array.ndim == 0 else [value.hex() for value in array.tolist()]


def unhexed(stored: Any) -> Any:
    """What ``hexed`` wrote: a float or a tuple of floats."""
    one = float.fromhex
    return one(stored) if isinstance(stored, str) else tuple(one(value) for value in stored)


def plain_number(value: float) -> str:
    """The shortest text that is this float and no other: 100, 100.0001, 1e-05."""
    return repr(float(value)).removesuffix(".0")
