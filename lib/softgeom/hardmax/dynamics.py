"""Pure-attention hardmax transformers: one layer, many layers, the soft version, the limit state.

Source 004, equations (1a) and (1b). Tokens z_1, ..., z_n in R^d are the rows of Z, shape (..., n, d): leading axes are a batch. With
A (d, d) symmetric positive definite and alpha > 0, one layer is

    z_i  <-  z_i + alpha / (1 + alpha) * mean over j in C_i of (z_j - z_i),
    C_i  =   { j : <A z_i, z_j> = max_l <A z_i, z_l> }.

Three things the formula leaves open are settled here, once. Ties are part of the definition, so they are decided with an explicit relative
tolerance. A token that occurs m times is one row with counts_j = m. A row with counts_j = 0 attracts nobody: that is how padding is
expressed, and how a passive tracer is.

The step is written for NumPy arrays and for PyTorch tensors alike (PyTorch is never imported here). Under autograd the sets C_i come from
comparisons, so the gradient holds the argmax fixed; that is the exact derivative away from ties.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray or torch.Tensor: both spell the few operations used here in the same way

TIE_TOLERANCE = (
    1e-12  # some 5000 units of rounding: above the error of a d-term dot product, below any gap that random input shows
)
HULL_PAYS_FROM = 24  # tokens; below this the n x n scores cost less than finding the hull
ARRIVED = 1e-9  # relative distance to its goal at which a follower counts as arrived, in `limit`
DIRECTIONS = (16, 64, 256)  # of the polygons that sieve out the tokens inside the hull, coarse to fine


class HypothesisWarning(UserWarning):
    """The input breaks a hypothesis of the clustering theorem; the dynamics is computed all the same."""


def hardmax_step(
    Z: Array,
    A: Array,
    alpha: float | Array,
    *,
    counts: Array | None = None,
    tol: float = TIE_TOLERANCE,
    check: bool = True,
    method: str = "auto",
) -> Array:
    """One hardmax attention layer (source 004, equation 1).

    Parameters
    ----------
    Z : (..., n, d)
        Tokens, the rows.
    A : (d, d)
        Symmetric positive definite unless `check` is off; <A z_i, z_j> is what token i looks for in token j.
    alpha : float
        Step size, positive: the weight of the attracting mean is alpha / (1 + alpha).
    counts : (..., n), optional
        Multiplicities; 0 marks padding, which attracts nobody. Every set needs one positive count.
    tol : float
        j belongs to C_i when its score is within tol * |A z_i| * max_l |z_l| of the largest: a relative tolerance, so that the sets C_i do not
        change when all tokens are scaled or rotated.
    check : bool
        Test the arguments first. Off: the caller vouches for them, and A may be any matrix.
    method : {"auto", "general", "hull"}
        "hull" (d = 2 only) scores only the tokens near the boundary of the convex hull, which holds every C_i; same result.

    Returns
    -------
    (..., n, d)
        The next state; `Z` is left alone.

    Raises
    ------
    ValueError
        Wrong shapes, NaN or infinite tokens, A not symmetric or not definite, alpha <= 0, or counts that leave a set empty.
    """
    if check:
        check_arguments(Z, A, alpha, counts)
    keys, key_counts = _keys(Z, counts, tol, method)
    weights = _ties(Z, A, keys, key_counts, tol)  # (..., n, m)
    if key_counts is not None:
        weights = weights * key_counts[..., None, :]
    mean = weights @ keys / weights.sum(-1)[..., None]  # (..., n, d)
    if keys is not Z:
        mean = _with_aimless(mean, Z, A, counts)
    return Z + alpha / (1 + alpha) * (mean - Z)


def softmax_step(Z: Array, A: Array, alpha: float | Array, temperature: float, *, counts: Array | None = None) -> Array:
    """The layer that hardmax is the limit of: weights counts_j exp(<A z_i, z_j> / T), normalised over j.

    As T -> 0 it tends to `hardmax_step` wherever the largest score is unique: the error is at most the diameter of the tokens times
    n exp(-gap / T), gap being the distance of the two largest scores. `Z` (..., n, d), `counts` (..., n); returns (..., n, d).
    """
    xp = _namespace(Z)
    if temperature <= 0:
        raise ValueError(f"The temperature must be positive, got {temperature}; for its limit 0 call hardmax_step.")
    scores = (Z @ A.T) @ xp.swapaxes(Z, -1, -2) / temperature
    if counts is not None:
        scores = xp.where(counts[..., None, :] > 0, scores, -xp.inf)
    weights = xp.exp(scores - xp.amax(scores, -1)[..., None])
    if counts is not None:
        weights = weights * counts[..., None, :]
    return Z + alpha / (1 + alpha) * (weights @ Z / weights.sum(-1)[..., None] - Z)


def trajectory(
    Z: Array,
    A: Array,
    alpha: float | Array,
    layers: int,
    *,
    counts: Array | None = None,
    tol: float = TIE_TOLERANCE,
    check: bool = True,
    method: str = "auto",
) -> Array:
    """All states of `layers` hardmax layers: shape (layers + 1, ..., n, d), the first being `Z`.

    With `check` the arguments are tested once, and a `HypothesisWarning` names each hypothesis of the clustering theorem that fails
    (zero tokens, duplicate tokens). Other parameters as in `hardmax_step`.
    """
    if check:
        check_arguments(Z, A, alpha, counts)
        for violation in violated_hypotheses(Z, counts):
            warnings.warn(violation, HypothesisWarning, stacklevel=2)
    states = [Z]
    for _ in range(layers):
        states.append(hardmax_step(states[-1], A, alpha, counts=counts, tol=tol, check=False, method=method))
    return _namespace(Z).stack(states)


@dataclass(frozen=True)
class Limit:
    """Where the tokens end: the state that further layers move by less than the tolerance asked for."""

    points: Array  # (..., n, d)
    layers: int  # layers run
    movement: float  # largest displacement in the last layer, relative to the largest token
    converged: bool


def limit(
    Z: Array,
    A: Array,
    alpha: float | Array,
    *,
    counts: Array | None = None,
    tol: float = TIE_TOLERANCE,
    settled: float = 1e-13,
    max_layers: int = 5000,
    check: bool = True,
    watch: Callable[[int, Array, Array], None] | None = None,
) -> Limit:
    """Iterate until no token moves by more than `settled` times the largest token in a layer.

    In exact arithmetic a follower never reaches its leader. In floating point it would, and then tie with it, double its weight and pull
    tokens that stand between two leaders to one side. So a token that is still under way and has less than `ARRIVED` times the largest token
    left to go stops attracting (its count becomes 0) and only finishes its way. Leaders and duplicates, which do not move, keep their counts.

    Parameters
    ----------
    Z, A, alpha, counts, tol, check
        As in `hardmax_step`; any batch shape.
    settled : float
        Relative movement in a layer at which to stop.
    max_layers : int
        Give up then, with `converged` false. A follower keeps 1 / (1 + alpha) of its distance in a layer, so about
        log(1 / settled) / log(1 + alpha) layers are needed after the last change of a set C_i.
    watch : callable, optional
        Called as watch(layer, state, counts) before each layer.
    """
    if check:
        check_arguments(Z, A, alpha, counts)
    xp = _namespace(Z)
    counts = xp.ones_like(Z[..., 0]) if counts is None else counts
    scale = float(xp.abs(Z).max()) or 1.0
    rounding = 16 * float(xp.finfo(Z.dtype).eps)
    movement = np.inf
    for layer in range(max_layers):
        if watch is not None:
            watch(layer, Z, counts)
        following = hardmax_step(Z, A, alpha, counts=counts, tol=tol, check=False)
        moved = ((following - Z) ** 2).sum(-1) ** 0.5 / scale  # (..., n)
        movement = float(moved.max())
        Z = following
        if movement <= settled:
            return Limit(Z, layer + 1, movement, True)
        to_go = moved * (1 + alpha) / alpha
        counts = xp.where((to_go > rounding) & (to_go < ARRIVED), 0.0, counts)
    return Limit(Z, max_layers, movement, False)


def attention(
    Z: Array,
    A: Array,
    *,
    counts: Array | None = None,
    tol: float = TIE_TOLERANCE,
) -> Array:
    """The row-stochastic matrix P (..., n, n) of a layer, Z' = Z + alpha/(1+alpha) (P Z - Z): P_ij = counts_j / (total count of C_i) on C_i."""
    weights = _ties(Z, A, Z, counts, tol) * 1.0
    if counts is not None:
        weights = weights * counts[..., None, :]
    return weights / weights.sum(-1)[..., None]


def check_arguments(Z: Array, A: Array, alpha: float | Array, counts: Array | None = None) -> None:
    """Raise a ValueError that says what is wrong with the arguments of a layer and where."""
    xp = _namespace(Z)
    if Z.ndim < 2 or Z.shape[-2] == 0 or Z.shape[-1] == 0:
        raise ValueError(
            f"Z must have shape (..., n, d) with at least one token and one dimension, got {tuple(Z.shape)}."
        )
    if not bool(xp.isfinite(Z).all()):
        raise ValueError("Z holds NaN or infinite tokens: the sets C_i are not defined for them.")
    if float(alpha) <= 0 or not np.isfinite(float(alpha)):
        raise ValueError(
            f"alpha must be positive and finite, got {float(alpha)}: at 0 nothing moves, below 0 tokens are repelled."
        )
    check_matrix(A, Z.shape[-1])
    if counts is None:
        return
    if tuple(counts.shape) != tuple(Z.shape[:-1]):
        raise ValueError(
            f"counts must have the shape {tuple(Z.shape[:-1])} of Z without its last axis, got {tuple(counts.shape)}."
        )
    if bool((counts < 0).any()):
        raise ValueError("counts are multiplicities: they must not be negative.")
    if not bool((counts > 0).any(-1).all()):
        raise ValueError("A set of tokens has no positive count: an empty review has no dynamics; leave it out.")


def check_matrix(A: Array, d: int) -> None:
    """Raise a ValueError unless A (d, d) is symmetric positive definite; the message names the entry or the eigenvalue that offends."""
    A = np.asarray(A, dtype=float) if isinstance(A, np.ndarray | list | tuple) else A.detach().cpu().double().numpy()
    if A.shape != (d, d):
        raise ValueError(f"A must have shape ({d}, {d}) to act on tokens of dimension {d}, got {A.shape}.")
    if not np.isfinite(A).all():
        raise ValueError("A holds NaN or infinite entries.")
    difference = np.abs(A - A.T)
    if difference.max() > 1e-10 * np.abs(A).max():
        i, j = np.unravel_index(difference.argmax(), A.shape)
        raise ValueError(
            f"A is not symmetric: A[{i}, {j}] = {A[i, j]:.6g} but A[{j}, {i}] = {A[j, i]:.6g}; pass check=False to compute outside the theorem."
        )
    smallest = float(np.linalg.eigvalsh(A)[0])
    if smallest <= 0:
        raise ValueError(
            f"A is not positive definite: its smallest eigenvalue is {smallest:.6g}; pass check=False to compute outside the theorem."
        )


def violated_hypotheses(Z: Array, counts: Array | None = None) -> list[str]:
    """Which hypotheses of the clustering theorem the initial tokens break, in words; empty when all hold (A and alpha are checked elsewhere)."""
    Z = np.asarray(Z) if isinstance(Z, np.ndarray) else Z.detach().cpu().numpy()
    sets = Z.reshape(-1, *Z.shape[-2:])
    present = np.ones(sets.shape[:2], bool) if counts is None else np.asarray(counts).reshape(sets.shape[:2]) > 0
    found = []
    zeros = int(((sets == 0).all(-1) & present).sum())
    if zeros:
        found.append(
            f"The clustering theorem asks for nonzero tokens; {zeros} of them are zero, and a zero token is drawn to all tokens at once."
        )
    repeated = sum(int(p.sum()) - len(np.unique(s[p], axis=0)) for s, p in zip(sets, present, strict=True))
    if repeated:
        found.append(
            f"The clustering theorem asks for distinct tokens; {repeated} repeat another one: give distinct rows with counts instead."
        )
    return found


def near_hull(Z: Array, counts: Array | None = None, tol: float = TIE_TOLERANCE) -> Array:
    """Mark the tokens that can lie in some C_i: those on the convex hull's boundary or within the tie tolerance of it, and few others.

    Z (..., n, 2); returns booleans (..., n). If j is within tol * R of the farthest token in a unit direction u (R the largest norm), then walking
    from z_j along u leaves the hull within tol * R: z_j is no deeper than that. So a token that lies deeper inside the polygon of any tokens can
    be ruled out; here of those farthest in 16 directions, then, among the tokens left over, in 64 and 256.
    """
    xp = _namespace(Z)
    kept = xp.ones_like(Z[..., 0], dtype=bool) if counts is None else counts > 0  # (..., n)
    radius = xp.amax(xp.where(kept, (Z * Z).sum(-1), 0.0), -1) ** 0.5  # (...)
    depth = (2 * tol + 8 * float(xp.finfo(Z.dtype).eps)) * radius[..., None]
    for m in DIRECTIONS:
        if int(kept.sum(-1).max()) <= m:
            break
        kept = kept & ~_inside(Z, kept, m, depth)
    return kept


def _inside(Z: Array, kept: Array, m: int, depth: Array) -> Array:
    """Whether each token lies deeper than `depth` inside the polygon of the kept tokens farthest in m directions, (..., n)."""
    xp = _namespace(Z)
    angles = np.arange(m) * (2 * np.pi / m)
    directions = _like(np.stack([np.cos(angles), np.sin(angles)], -1), Z)  # (m, 2)
    across = xp.swapaxes(
        Z, -1, -2
    )  # (..., 2, n): with the tokens last, every reduction below runs along contiguous memory
    farthest = xp.argmax(xp.where(kept[..., None, :], directions @ across, -xp.inf), -1)  # (..., m)
    corners = _take(Z, farthest)  # (..., m, 2), counter-clockwise
    edges = xp.roll(corners, -1, -2) - corners
    lengths = (edges * edges).sum(-1) ** 0.5  # (..., m)
    # The distance of z to the left of an edge is the cross product edge x (z - corner) / length, linear in z. A corner that is farthest in
    # two directions gives an edge of length 0, which bounds nothing.
    normals = xp.stack([-edges[..., 1], edges[..., 0]], -1)  # (..., m, 2)
    least = (normals * corners).sum(-1) + xp.where(lengths > 0, depth * lengths, -xp.inf)  # (..., m)
    inside = xp.amin(normals @ across - least[..., None], -2) > 0  # (..., n)
    return inside & (xp.amax(lengths, -1) > 0)[..., None]


def _keys(Z: Array, counts: Array | None, tol: float, method: str) -> tuple[Array, Array | None]:
    """The tokens among which all C_i lie, (..., m, d), and their counts (..., m): all of them, or those near the hull."""
    if method not in ("auto", "general", "hull"):
        raise ValueError(f"Unknown method {method!r}: choose auto, general or hull.")
    if method == "hull" and Z.shape[-1] != 2:
        raise ValueError(
            f"The hull path is for tokens in the plane, these have dimension {Z.shape[-1]}: use method='general'."
        )
    if method == "general" or Z.shape[-1] != 2 or (method == "auto" and Z.shape[-2] < HULL_PAYS_FROM):
        return Z, counts
    xp = _namespace(Z)
    kept = near_hull(_constant(Z), counts, tol)
    m = int(kept.sum(-1).max())
    first = xp.argsort(~kept * 1, -1)[..., :m]  # (..., m) indices of the kept tokens, then fillers
    weights = kept * 1.0 if counts is None else kept * counts
    return _take(Z, first), xp.take_along_axis(weights, first, -1) if xp is np else weights.gather(-1, first)


def _with_aimless(mean: Array, Z: Array, A: Array, counts: Array | None) -> Array:
    """Let tokens with A z_i = 0 look to the mean of all tokens, which tie for them: those inside the hull too, which the hull path leaves out."""
    xp = _namespace(Z)
    aimless = (Z @ A.T == 0).all(-1)  # (..., n)
    if not bool(aimless.any()):
        return mean
    weights = xp.ones_like(Z[..., 0]) if counts is None else counts
    whole = (weights[..., None] * Z).sum(-2) / weights.sum(-1)[..., None]  # (..., d)
    return xp.where(aimless[..., None], whole[..., None, :], mean)


def _ties(Z: Array, A: Array, keys: Array, key_counts: Array | None, tol: float) -> Array:
    """Equation (1b): for each token the indicator of C_i among the keys, (..., n, m), as numbers of Z's type."""
    xp = _namespace(Z)
    Z, keys = _constant(Z), _constant(keys)
    looks_for = Z @ A.T  # (..., n, d), the vectors A z_i
    scores = looks_for @ xp.swapaxes(keys, -1, -2)  # (..., n, m)
    norms = (keys * keys).sum(-1)  # (..., m)
    if key_counts is not None:
        scores = scores + xp.where(key_counts > 0, 0.0, -xp.inf)[..., None, :]
        norms = xp.where(key_counts > 0, norms, 0.0)
    slack = tol * ((looks_for * looks_for).sum(-1) * xp.amax(norms, -1)[..., None]) ** 0.5  # (..., n)
    return (scores >= (xp.amax(scores, -1) - slack)[..., None]) * _like(np.ones(()), Z)


def _namespace(Z: Array) -> Any:
    """numpy or torch, whichever the array belongs to."""
    return np if isinstance(Z, np.ndarray) else sys.modules["torch"]


def _constant(Z: Array) -> Array:
    return Z if isinstance(Z, np.ndarray) else Z.detach()


def _like(values: np.ndarray, Z: Array) -> Array:
    """`values` as an array of Z's kind, type and device."""
    return values.astype(Z.dtype) if isinstance(Z, np.ndarray) else Z.new_tensor(values)


def _take(Z: Array, indices: Array) -> Array:
    """Rows of Z (..., n, d) by indices (..., m): (..., m, d)."""
    if isinstance(Z, np.ndarray):
        return np.take_along_axis(Z, indices[..., None], -2)
    return Z.gather(-2, indices[..., None].expand(*indices.shape, Z.shape[-1]))
