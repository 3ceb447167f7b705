"""The braid arrangement in three dimensions: a ball of logits, whole or cut open along the plane
that a layer reaches (001, Figures 3 and 7).

Logits that differ by a multiple of the all-ones vector rank the classes alike, so the arrangement
of C classes lives in C - 1 dimensions: of four classes, six planes {y_i = y_j} through the origin
of space. The features of a layer with d = 2 fill a plane there, u -> B (W x + b), with B (C - 1, C)
an orthonormal basis of the complement of the all-ones vector.

A picture has one ray for each pixel. What the eye sees is the first point of the solid on it, and
the ranking of a point p is the order of the logits B^T p.
"""

from dataclasses import dataclass

import numpy as np

from softgeom.arrays import Bools, Floats

Vector = Floats


@dataclass(frozen=True)
class Plane:
    """The plane {p : normal . p = offset} of space."""

    normal: Vector
    offset: float = 0.0

    def heights(self, points: Vector) -> Vector:
        """Signed distances (...) of points (..., 3), in units of the length of the normal."""
        return points @ self.normal - self.offset


def ranking_basis(classes: int) -> Vector:
    """Helmert's matrix B (C - 1, C): orthonormal rows, orthogonal to the all-ones vector."""
    B = np.zeros((classes - 1, classes))
    for k in range(1, classes):
        B[k - 1, :k], B[k - 1, k] = 1.0, -k
    return B / np.linalg.norm(B, axis=1, keepdims=True)


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


def view(plane: Plane, tilt: float = 0.9, turn: float = 0.5) -> tuple[Vector, Vector]:
    """Return a direction towards an eye that looks down on the plane's positive side, ``tilt``
    radians away from its normal and turned around it, and the screen's axes (3, 2) for this eye.
    """
    normal = plane.normal / np.linalg.norm(plane.normal)
    across = np.linalg.svd(normal[None])[2][1:]  # (2, 3), orthonormal, in the plane
    sideways = np.cos(turn) * across[0] + np.sin(turn) * across[1]
    eye = np.cos(tilt) * normal + np.sin(tilt) * sideways
    right = np.cross(normal, eye) / np.sin(tilt)
    return eye, np.column_stack([right, np.cross(eye, right)])


def look_at_ball(
    eye: Vector, screen: Vector, radius: float, plane: Plane | None = None, pixels: int = 600
) -> tuple[Vector, Bools]:
    """Return the points (pixels, pixels, 3) of a ball around the origin that an eye far away sees
    through a square window of that half-width, NaN where it sees past the ball; and which of them
    lie on the cut, if the part above a plane is taken away. ``eye`` is a unit vector towards the
    eye, orthogonal to the axes of ``screen`` (3, 2). ValueError for a plane that it cannot see the
    upper side of.
    """
    places = np.linspace(-radius, radius, pixels)
    window = np.stack(np.meshgrid(places, places), axis=-1) @ screen.T
    room = radius**2 - (window**2).sum(axis=-1)
    front = np.sqrt(np.where(room >= 0, room, np.nan))  # how far towards the eye the ball reaches
    if plane is None:
        return window + front[..., None] * eye, np.zeros(front.shape, dtype=bool)
    slope = float(plane.normal @ eye)
    if slope <= 0:
        raise ValueError("the eye sees only the lower side of the plane: turn its normal round.")
    cut = -plane.heights(window) / slope  # below here on the ray nothing was taken away
    depth = np.where(cut >= -front, np.minimum(cut, front), np.nan)
    return window + depth[..., None] * eye, (cut >= -front) & (cut <= front)
