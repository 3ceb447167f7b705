"""Leaders, clusters and the clustering theorem as a list of numerical checks.

Source 004, "Theoretical contribution". Token i is a leader when C_i = {i} at some layer. The theorem: for nonzero distinct tokens and A
symmetric positive definite there is a leader; every token converges to a point of a finite set S on the boundary of a polytope K whose
vertices are the limits of the leaders; the leaders reach distinct vertices after finitely many layers; a point of S that is no vertex is the
projection of the origin onto a face of K in the norm |x|_A = <A x, x>^(1/2).

In floating point a follower lands on its leader after some tens of layers, and then C_i = {i} is lost to a token at rounding distance. So
leaders are recorded over layers, and limits are compared as clusters, not by index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from scipy.spatial import cKDTree

from softgeom.hardmax.dynamics import TIE_TOLERANCE, Array, Limit, _ties, limit

MERGED = 1e-9  # relative distance under which two limits are one cluster: far above rounding, far below the gaps that random input shows
TOUCHING = 1e-6  # relative tolerance of the geometry of limits, which iteration reaches to about 1e-12


def leaders(Z: Array, A: Array, *, counts: Array | None = None, tol: float = TIE_TOLERANCE) -> Array:
    """Mark the tokens with C_i = {i} in the state Z.

    Parameters
    ----------
    Z : (..., n, d)
        Tokens; NumPy array or PyTorch tensor.
    A : (d, d)
        The matrix of the scores <A z_i, z_j>.
    counts : (..., n), optional
        Multiplicities; padding (0) never leads. A repeated word is one token and can lead.
    tol : float
        Relative tie tolerance, as in `hardmax_step`.

    Returns
    -------
    (..., n) booleans.
    """
    tied = _ties(Z, A, Z, counts, tol) > 0  # (..., n, n)
    alone = tied.sum(-1) == 1
    found = alone & tied.diagonal(0, -2, -1)
    return found if counts is None else found & (counts > 0)


def leader_history(states: Array, A: Array, *, counts: Array | None = None, tol: float = TIE_TOLERANCE) -> np.ndarray:
    """Leaders layer by layer: (layers + 1, ..., n) booleans for the states of `trajectory`; `.any(0)` marks the leaders of the definition."""
    return np.stack([np.asarray(leaders(Z, A, counts=counts, tol=tol)) for Z in states])


def clusters(Z: np.ndarray, within: float = MERGED) -> np.ndarray:
    """Label the groups of tokens (n, d) linked by distances up to `within` times the largest norm: (n,) labels 0, 1, ... in order of appearance."""
    radius = within * (np.linalg.norm(Z, axis=1).max() or 1.0)
    parent = np.arange(len(Z))
    for i, j in sorted(cKDTree(Z).query_pairs(radius)):
        low, high = sorted((parent[i], parent[j]))
        parent[parent == high] = low
    return np.unique(parent, return_inverse=True)[1]


@dataclass(frozen=True)
class TheoremCheck:
    """The statements of the clustering theorem on one input; each field is what was measured, `holds` the verdict."""

    leaders: np.ndarray  # (n,) booleans, over all layers watched
    first_layer: np.ndarray  # (n,) layer at which each leader became one, -1 for the others
    labels: np.ndarray  # (n,) cluster of each token in the limit
    sites: np.ndarray  # (m, d) the limit points S
    is_vertex: np.ndarray  # (m,) whether a leader ends there
    limit: Limit
    leader_drift: float  # how far leaders moved after becoming one, relative
    outside: float  # how far S lies from the polytope spanned by the leaders' limits, relative
    projection: (
        float  # how far points of S that are no vertex lie from being projections of the origin onto a face, relative
    )
    gap: float  # smallest relative gap between largest and second largest score in all layers watched: small means a near-tie

    @property
    def holds(self) -> bool:
        """Every statement, within `TOUCHING`."""
        at_vertices = self.labels[self.leaders]
        return bool(
            self.limit.converged
            and self.leaders.any()
            and len(np.unique(at_vertices)) == len(at_vertices)  # distinct vertices
            and max(self.leader_drift, self.outside, self.projection) <= TOUCHING
        )


def check_theorem(Z: np.ndarray, A: np.ndarray, alpha: float, *, tol: float = TIE_TOLERANCE) -> TheoremCheck:
    """Run tokens (n, d) to their limit and measure every statement of the clustering theorem on the way."""
    first = np.full(len(Z), -1)
    position = np.zeros_like(Z)  # of each leader when it became one
    gaps = [np.inf]

    def watch(layer: int, state: np.ndarray, counts: np.ndarray) -> None:
        new = leaders(state, A, counts=counts, tol=tol) & (first < 0)
        first[new], position[new] = layer, state[new]
        gaps.append(_gap(state, A, counts > 0))

    end = limit(Z, A, alpha, tol=tol, check=False, watch=watch)
    led = first >= 0
    labels = clusters(end.points)
    sites = np.stack([end.points[labels == c].mean(0) for c in range(labels.max() + 1)])
    is_vertex = np.isin(np.arange(len(sites)), labels[led])
    scale = np.linalg.norm(Z, axis=1).max() or 1.0
    drift = np.linalg.norm(end.points[led] - position[led], axis=1).max(initial=0.0) / scale
    outside, projection = _faces(sites, is_vertex, A) if led.any() else (np.inf, np.inf)
    return TheoremCheck(led, first, labels, sites, is_vertex, end, drift, outside, projection, min(gaps))


def _gap(Z: np.ndarray, A: np.ndarray, present: np.ndarray) -> float:
    """Smallest difference between the two largest scores of a token, over |A z_i| max |z_l|; among the tokens that still attract."""
    if present.sum() < 2:
        return np.inf
    looks_for = Z @ A.T
    top = np.partition(looks_for @ Z[present].T, -2, axis=1)[:, -2:]
    scale = np.linalg.norm(looks_for, axis=1) * np.linalg.norm(Z, axis=1).max()
    return float(((top[:, 1] - top[:, 0]) / np.maximum(scale, np.finfo(float).tiny)).min())


def _faces(sites: np.ndarray, is_vertex: np.ndarray, A: np.ndarray) -> tuple[float, float]:
    """How far the sites (m, d) are from the polytope K of the vertices, and from being projections of the origin onto faces of K.

    s is the A-projection of the origin onto a face F exactly when s lies in F and <A s, v - s> = 0 for all v in F. Then <A s, .> is largest on F: it
    is the face that A s exposes. So F is read off as the vertices that tie for the largest <A s, v>, and two residuals are left: the distance of s
    from the convex hull of F, and the largest |<A s, v - s>| there.
    """
    vertices = sites[is_vertex]
    scale = np.linalg.norm(sites, axis=1).max()
    outside = projection = 0.0
    for s in sites[~is_vertex]:
        heights = vertices @ (A @ s)
        face = vertices[heights >= heights.max() - TOUCHING * np.linalg.norm(A @ s) * scale]
        outside = max(outside, _distance_to_hull(s, vertices) / scale)
        slope = np.abs((face - s) @ (A @ s)).max() / (np.linalg.norm(A @ s) * scale)
        projection = max(projection, slope, _distance_to_hull(s, face) / scale)
    return outside, projection


def _distance_to_hull(s: np.ndarray, vertices: np.ndarray) -> float:
    """Distance of s (d,) from the convex hull of the vertices (m, d): least squares over convex weights, their sum held by a heavy row."""
    heavy = 1e3 * max(np.abs(vertices).max(), 1e-300)
    system = np.vstack([vertices.T, np.full(len(vertices), heavy)])
    weights = nnls(system, np.append(s, heavy))[0]
    return float(np.linalg.norm(weights @ vertices - s))
