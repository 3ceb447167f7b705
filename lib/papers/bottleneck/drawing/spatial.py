"""The braid arrangement in three dimensions, cut into pieces that can be painted back to front
(001, Figures 3 and 7).

Logits that differ by a multiple of the all-ones vector rank the classes alike, so the arrangement
of C classes lives in C - 1 dimensions: of four classes, six planes {y_i = y_j} through the origin
of space. The features of a layer with d = 2 fill a plane there, u -> B (W x + b), with B (C - 1, C)
an orthonormal basis of the complement of the all-ones vector.

Planes that pass through each other have no back-to-front order. Once each is cut along all the
others they do: seen from far away, what lies beyond a plane comes first, then what lies on it, then
what lies before it, and so on within each half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from softgeom.arrays import Floats

Vector = Floats

ON_PLANE = 1e-9  # relative to drawings of size one, far below a pixel


@dataclass(frozen=True)
class Plane:
    """The plane {p : normal . p = offset} of space."""

    normal: Vector
    offset: float = 0.0

    def heights(self, points: Vector) -> Vector:
        """Signed distances (n,) of points (n, 3), in units of the length of the normal."""
        return points @ self.normal - self.offset


@dataclass(frozen=True)
class Piece:
    """A convex polygon of space, corners (n, 3) in order, and what it shows."""

    corners: Vector
    label: Any = None


def ranking_basis(classes: int) -> Vector:
    """Helmert's matrix B (C - 1, C): orthonormal rows, orthogonal to the all-ones vector."""
    B = np.zeros((classes - 1, classes))
    for k in range(1, classes):
        B[k - 1, :k], B[k - 1, k] = 1.0, -k
    return B / np.linalg.norm(B, axis=1, keepdims=True)


def braid_normals(basis: Vector) -> dict[tuple[int, int], Vector]:
    """The normals B (e_i - e_j) of y_i = y_j, i < j, in the coordinates of B (3, C)."""
    return {(i, j): basis[:, i] - basis[:, j] for i, j in combinations(range(basis.shape[1]), 2)}


def feature_plane(
    basis: Vector, W: Vector, b: Vector | None = None
) -> tuple[Plane, Vector, Vector]:
    """Return the plane {B (W x + b)}, ``basis`` B (3, C) and W (C, 2) of rank two in it, and an
    isometric chart x = F u + g of the features, F (2, 2), g (2,), u = 0 being nearest the origin: a
    circle in u is a circle in space around the foot of the perpendicular from the origin.
    """
    M = basis @ W  # (3, 2)
    if np.linalg.matrix_rank(M) < 2:
        raise ValueError("W has no rank two besides the all-ones vector: it fills no plane.")
    shift = np.zeros(len(M)) if b is None else basis @ b
    Q, R = np.linalg.qr(M)
    normal = np.cross(Q[:, 0], Q[:, 1])
    return Plane(normal, float(normal @ shift)), np.linalg.inv(R), -np.linalg.solve(R, Q.T @ shift)


def disc(plane: Plane, radius: float, corners: int = 96) -> Vector:
    """Return the polygon (corners, 3) that a ball around the origin cuts out of a plane."""
    length = float(np.linalg.norm(plane.normal))
    distance = plane.offset / length
    if abs(distance) >= radius:
        away = f"{abs(distance):.3g} from the origin: it misses the ball of radius {radius:.3g}"
        raise ValueError(f"the plane is {away}.")
    axes = np.linalg.svd(plane.normal[None])[2][1:]  # (2, 3), orthonormal, in the plane
    angles = 2 * np.pi * np.arange(corners) / corners
    circle = np.column_stack([np.cos(angles), np.sin(angles)]) * np.sqrt(radius**2 - distance**2)
    return circle @ axes + plane.normal * distance / length


def cut_pieces(pieces: Sequence[Piece], planes: Sequence[Plane]) -> list[Piece]:
    """The pieces after cutting each along every plane that has corners of it on both sides."""
    for plane in planes:
        pieces = [part for piece in pieces for part in _cut(piece, plane)]
    return list(pieces)


def paint_order(
    pieces: Sequence[Piece], planes: Sequence[Plane], towards_eye: Vector
) -> list[Piece]:
    """Return pieces that no plane cuts any more from back to front, for an eye far away in the
    given direction; each lies in one of the planes, or in front of or behind each.
    """
    if not planes or len(pieces) < 2:
        return list(pieces)
    plane, *others = planes
    facing = 1.0 if plane.normal @ towards_eye >= 0 else -1.0
    heights = [facing * float(plane.heights(piece.corners).mean()) for piece in pieces]
    facts = list(zip(pieces, heights, strict=True))
    behind = [piece for piece, h in facts if h < -ON_PLANE]
    on = [piece for piece, h in facts if abs(h) <= ON_PLANE]
    before = [piece for piece, h in facts if h > ON_PLANE]
    far, near = (paint_order(part, others, towards_eye) for part in (behind, before))
    return [*far, *on, *near]


def _cut(piece: Piece, plane: Plane) -> list[Piece]:
    heights = plane.heights(piece.corners)
    if heights.max() <= ON_PLANE or heights.min() >= -ON_PLANE:
        return [piece]
    return [replace(piece, corners=_half(piece.corners, side * heights)) for side in (1, -1)]


def _half(corners: Vector, heights: Vector) -> Vector:
    """The part of a convex polygon with non-negative heights."""
    kept = []
    for k, (p, u) in enumerate(zip(corners, heights, strict=True)):
        q, v = corners[(k + 1) % len(corners)], heights[(k + 1) % len(corners)]
        if u >= 0:
            kept.append(p)
        if u * v < 0:
            kept.append(p + u / (u - v) * (q - p))
    return np.array(kept)
