"""The sieve behind the fast path in the plane: which tokens can be the farthest in some direction.

In d = 2 every C_i = argmax_j <A z_i, z_j> lies on the boundary of the convex hull of the tokens, so
scores against the few tokens there suffice. The sieve works on whole batches with array operations
alone. Z (..., n, 2).
"""

from __future__ import annotations

import numpy as np

from softgeom.hardmax.arrays import Array, like, namespace, take

# of the polygons that sieve out the tokens inside the hull, coarse to fine
DIRECTIONS = (16, 64, 256)


def near_hull(Z: Array, counts: Array | None = None, tol: float = 1e-12) -> Array:
    """Mark the tokens that can lie in some C_i: those on the hull's boundary or within the tie
    tolerance of it, and few others.

    If j is within tol * R of the farthest token in a unit direction u (R the largest norm), then
    walking from z_j along u leaves the hull within tol * R: z_j is no deeper than that. So a token
    that lies deeper inside the polygon of any tokens can be ruled out; here of those farthest in 16
    directions, then, among the tokens left over, in 64 and 256. Returns booleans (..., n); tokens
    with count 0 are never marked.
    """
    xp = namespace(Z)
    kept = xp.ones_like(Z[..., 0], dtype=bool) if counts is None else counts > 0  # (..., n)
    # (..., 2, n): with the tokens last, every reduction runs along contiguous memory
    across = xp.swapaxes(Z, -1, -2)
    radius = xp.amax(xp.where(kept, (Z * Z).sum(-1), 0.0), -1) ** 0.5  # (...)
    depth = (2 * tol + 8 * float(xp.finfo(Z.dtype).eps)) * radius[..., None]
    for m in DIRECTIONS:
        if int(kept.sum(-1).max()) <= m:
            break
        kept = kept & ~_inside(Z, across, kept, m, depth)
    return kept


def _inside(Z: Array, across: Array, kept: Array, m: int, depth: Array) -> Array:
    """Whether tokens lie deeper than `depth` in the polygon of the farthest in m directions, (...,
    n).
    """
    xp = namespace(Z)
    angles = np.arange(m) * (2 * np.pi / m)
    directions = like(np.stack([np.cos(angles), np.sin(angles)], -1), Z)  # (m, 2)
    barred = xp.where(kept, 0.0, -xp.inf)[..., None, :]
    farthest = xp.argmax(directions @ across + barred, -1)  # (..., m)
    corners = take(Z, farthest)  # (..., m, 2), counter-clockwise
    edges = xp.roll(corners, -1, -2) - corners
    lengths = (edges * edges).sum(-1) ** 0.5  # (..., m)
    # The distance of z to the left of an edge is the cross product edge x (z - corner) / length,
    # linear in z. A corner that is farthest in
    # two directions gives an edge of length 0, which bounds nothing.
    normals = xp.stack([-edges[..., 1], edges[..., 0]], -1)  # (..., m, 2)
    # (..., m)
    least = (normals * corners).sum(-1) + xp.where(lengths > 0, depth * lengths, -xp.inf)
    inside = xp.amin(normals @ across - least[..., None], -2) > 0  # (..., n)
    return inside & (xp.amax(lengths, -1) > 0)[..., None]
