"""Leaders, clusters and the clustering theorem as a list of numerical checks.

Source 004, "Theoretical contribution". Token i is a leader when C_i = {i} at some layer. The
theorem: for nonzero distinct tokens and A symmetric positive definite there is a leader; every
token converges to a point of a finite set S on the boundary of a polytope K whose vertices are the
limits of the leaders; the leaders reach distinct vertices after finitely many layers; a point of S
that is no vertex is the projection of the origin onto a face of K in the norm |x|_A = <A x,
x>^(1/2).

In floating point a follower lands on its leader after some tens of layers, and then C_i = {i} is
lost to a token at rounding distance. So leaders are recorded over layers, and limits are compared
as clusters, not by index.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import nnls
from scipy.spatial import cKDTree

from papers.arrays import Array, floating
from papers.hardmax.dynamics import Limit, limit, present, ties

# relative distance under which two limits are one cluster: far above rounding, far below the gaps
# that random input shows
MERGED = 1e-9
# relative distance beyond which two tokens are different places when near-ties are counted
APART = 1e-4
# relative tolerance of the geometry of limits, which iteration reaches to about 1e-12
TOUCHING = 1e-6


def leaders(Z: Array, A: Array, *, counts: Array | None = None, tol: float | None = None) -> Array:
    """Mark the tokens (..., n) with C_i = {i} in the state Z (..., n, d) under A (d, d); ``counts``
    (..., n) and the tie tolerance are as in `hardmax_step`. Padding never leads; a repeated word is
    one token and can.
    """
    Z, A = floating(Z), floating(A)
    keys, key_counts = present(Z, counts)
    tied = ties(Z, A, keys, key_counts, tol) > 0  # (..., n, n)
    return (tied.sum(-1) == 1) & tied.diagonal(0, -2, -1)


def leader_history(
    states: Array, A: Array, *, counts: Array | None = None, tol: float | None = None
) -> np.ndarray:
    """Leaders of each state of a `trajectory`: (layers + 1, ..., n); `.any(0)` has them all."""
    return np.stack([np.asarray(leaders(Z, A, counts=counts, tol=tol)) for Z in states])


def clusters(Z: np.ndarray, within: float = MERGED) -> np.ndarray:
    """Labels (n,) of the groups linked by distances up to `within` times the largest norm."""
    radius = within * (np.linalg.norm(Z, axis=1).max() or 1.0)
    parent = np.arange(len(Z))
    for i, j in sorted(cKDTree(Z).query_pairs(radius)):
        low, high = sorted((parent[i], parent[j]))
        parent[parent == high] = low
    return np.unique(parent, return_inverse=True)[1]


@dataclass(frozen=True)
class TheoremCheck:
    """The clustering theorem's statements on one input, as measured; `holds` is the verdict."""

    leaders: np.ndarray  # (n,) booleans, over all layers watched
    first_layer: np.ndarray  # (n,) layer at which each leader became one, -1 for the others
    labels: np.ndarray  # (n,) cluster of each token in the limit
    sites: np.ndarray  # (m, d) the limit points S
    is_vertex: np.ndarray  # (m,) whether a leader ends there
    limit: Limit
    leader_drift: float  # how far leaders moved after becoming one, relative
    outside: float  # how far S lies from the polytope spanned by the leaders' limits, relative
    # how far points of S that are no vertex lie from being projections of the origin onto a face,
    # relative
    projection: float
    # smallest relative gap between the scores of two places in all layers watched: small means a
    # near-tie
    gap: float

    @cached_property
    def extremeness(self) -> np.ndarray:
        """(m,) relative distance of each site from the hull of the others: 0 inside it."""
        scale = np.linalg.norm(self.sites, axis=1).max() or 1.0
        if len(self.sites) == 1:
            return np.array([np.inf])
        others = (np.delete(self.sites, i, axis=0) for i in range(len(self.sites)))
        hulls = [distance_to_hull(s, rest) for s, rest in zip(self.sites, others, strict=True)]
        return np.array(hulls) / scale

    @property
    def leaders_are_apart(self) -> bool:
        """No two leaders end at one point."""
        at_vertices = self.labels[self.leaders]
        return len(np.unique(at_vertices)) == len(at_vertices)

    @property
    def leaders_are_extreme(self) -> bool:
        """Every leader ends outside the hull of all other limits."""
        return bool((self.extremeness[self.is_vertex] > TOUCHING).all())

    @property
    def polytope_has_a_vertex_per_leader(self) -> bool:
        """The hull of all limits has as many extreme points as there are leaders."""
        return int((self.extremeness > TOUCHING).sum()) == int(self.leaders.sum())

    @property
    def holds(self) -> bool:
        """Every statement, within `TOUCHING`."""
        return bool(
            self.limit.converged
            and self.leaders.any()
            and self.leaders_are_apart
            and self.leaders_are_extreme
            and self.polytope_has_a_vertex_per_leader
            and max(self.leader_drift, self.outside, self.projection) <= TOUCHING
        )


def check_theorem(
    Z: np.ndarray, A: np.ndarray, alpha: float, *, tol: float | None = None
) -> TheoremCheck:
    """Run tokens (n, d) to their limit; measure every statement of the clustering theorem."""
    return check_theorem_on_batch(Z[None], A, alpha, tol=tol)[0]


def check_theorem_on_batch(
    Z: np.ndarray, A: np.ndarray, alpha: float, *, tol: float | None = None
) -> list[TheoremCheck]:
    """`check_theorem` for m sets of n tokens at once, Z (m, n, d): the same checks, one per set."""
    Z = floating(Z)
    first = np.full(Z.shape[:-1], -1)  # (m, n)
    position = np.zeros_like(Z)  # of each leader when it became one
    gap = np.full(len(Z), np.inf)

    def watch(layer: int, state: np.ndarray, counts: np.ndarray) -> None:
        new = leaders(state, A, counts=counts, tol=tol) & (first < 0)
        first[new], position[new] = layer, state[new]
        np.minimum(gap, _gap(state, A, counts), out=gap)

    end = limit(Z, A, alpha, tol=tol, check=False, watch=watch)
    return [
        _judge(replace(end, points=end.points[i]), first[i], position[i], float(gap[i]), A)
        for i in range(len(Z))
    ]


def _judge(
    end: Limit, first: np.ndarray, position: np.ndarray, gap: float, A: np.ndarray
) -> TheoremCheck:
    """Measure the statements on one set, with its limit and its leaders' first layers (n,)."""
    led = first >= 0
    labels = clusters(end.points)
    sites = np.stack([end.points[labels == c].mean(0) for c in range(labels.max() + 1)])
    is_vertex = np.isin(np.arange(len(sites)), labels[led])
    scale = np.linalg.norm(end.points, axis=1).max() or 1.0
    drift = np.linalg.norm(end.points[led] - position[led], axis=1).max(initial=0.0) / scale
    outside, projection = _faces(sites, is_vertex, A) if led.any() else (np.inf, np.inf)
    return TheoremCheck(led, first, labels, sites, is_vertex, end, drift, outside, projection, gap)


def _gap(Z: np.ndarray, A: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """How clearly each argmax is decided, (m,) for Z (m, n, d): the smallest difference, over
    |A z_i| max |z_l|, between a token's largest score and that at a place further than `APART`. A
    follower close to its leader competes with it, but either choice leads to the same limit.
    """
    looks_for = Z @ A.T
    scores = np.where(counts[:, None, :] > 0, looks_for @ Z.swapaxes(-1, -2), -np.inf)  # (m, n, n)
    size = np.linalg.norm(Z, axis=-1).max(-1)  # (m,)
    distance = np.linalg.norm(Z[:, :, None] - Z[:, None], axis=-1)  # (m, n, n)
    from_first = np.take_along_axis(distance, scores.argmax(-1)[..., None], 1)
    elsewhere = from_first > APART * size[:, None, None]
    second = np.where(elsewhere, scores, -np.inf).max(-1)  # (m, n)
    scale = np.linalg.norm(looks_for, axis=-1) * size[:, None]
    return ((scores.max(-1) - second) / np.maximum(scale, np.finfo(float).tiny)).min(-1)


def _faces(sites: np.ndarray, is_vertex: np.ndarray, A: np.ndarray) -> tuple[float, float]:
    """How far the sites (m, d) are from the polytope K of the vertices, and from being projections
    of the origin onto faces of K.

    s is the A-projection of the origin onto a face F exactly when s lies in F and <A s, v - s> = 0
    for all v in F. Then <A s, .> is largest on F: it is the face that A s exposes. So F is read off
    as the vertices that tie for the largest <A s, v>, and two residuals are left: the distance of s
    from the convex hull of F, and the largest |<A s, v - s>| there.
    """
    vertices = sites[is_vertex]
    scale = np.linalg.norm(sites, axis=1).max()
    outside = projection = 0.0
    for s in sites[~is_vertex]:
        heights = vertices @ (A @ s)
        face = vertices[heights >= heights.max() - TOUCHING * np.linalg.norm(A @ s) * scale]
        outside = max(outside, distance_to_hull(s, vertices) / scale)
        slope = np.abs((face - s) @ (A @ s)).max() / (np.linalg.norm(A @ s) * scale)
        projection = max(projection, slope, distance_to_hull(s, face) / scale)
    return outside, projection


def distance_to_hull(s: np.ndarray, vertices: np.ndarray) -> float:
    """Distance of s (d,) from the hull of V (m, d)."""
    return float(np.linalg.norm(convex_weights(s, vertices, 1e3) @ vertices - s))


def convex_weights(s: np.ndarray, vertices: np.ndarray, heavy: float) -> np.ndarray:
    """Weights (m,) >= 0 for which V (m, d) comes nearest s (d,); `heavy` makes their sum one."""
    heavy = heavy * max(np.abs(vertices).max(), 1e-300)
    system = np.vstack([vertices.T, np.full(len(vertices), heavy)])
    return nnls(system, np.append(s, heavy))[0]
