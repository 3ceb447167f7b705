"""Pure-attention hardmax transformers: one layer, many layers, the soft version, the limit state.

Source 004, equations (1a) and (1b). Tokens z_1, ..., z_n in R^d are the rows of Z, shape (..., n,
d): leading axes are a batch. With A (d, d) symmetric positive definite and alpha > 0, one layer is

    z_i  <-  z_i + alpha / (1 + alpha) * mean over j in C_i of (z_j - z_i),
    C_i  =   { j : <A z_i, z_j> = max_l <A z_i, z_l> }.

Three things the formula leaves open are settled here, once. Ties are decided with an explicit
tolerance, which the default derives from the precision of the numbers (`ties`). A token that occurs
m times is one row with counts_j = m. A row with counts_j = 0 attracts nobody: padding, or a passive
tracer. The step takes NumPy arrays and PyTorch tensors alike. Under autograd the gradient holds the
sets C_i fixed, which is the exact derivative away from ties.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from papers.arrays import Array, constant, floating, namespace, shares, softmax, take
from papers.hardmax.hypotheses import HypothesisWarning, check_arguments, violated_hypotheses

# some 5000 units of rounding in float64: followers that meet after many layers tie, and no gap of
# random input is so small
TIE_TOLERANCE = 1e-12
ARRIVED = 1e-7  # relative distance to its goal at which a follower counts as arrived, in `limit`


def hardmax_step(
    Z: Array,
    A: Array,
    alpha: float | Array,
    *,
    counts: Array | None = None,
    tol: float | None = None,
    check: bool = True,
) -> Array:
    """One hardmax attention layer (source 004, equation 1): the next state (..., n, d).

    Parameters
    ----------
    Z : (..., n, d)
        Tokens, the rows.
    A : (d, d)
        Symmetric positive definite unless `check` is off; <A z_i, z_j> is what token i looks for in
        token j.
    alpha : float
        Step size, positive: the weight of the attracting mean is alpha / (1 + alpha).
    counts : (..., n), optional
        Multiplicities; 0 marks padding, which attracts nobody. Every set needs one positive count.
    tol : float, optional
        j belongs to C_i when its score is within tol * |A z_i| * max_l |z_l| of the largest, so
        that the sets C_i do not change when all tokens are scaled or rotated. The default is
        `TIE_TOLERANCE` and what rounding in the tokens' precision adds (see `ties`).
    check : bool
        Raise a ValueError for wrong shapes, NaN or infinite tokens, A not symmetric or not
        definite, alpha <= 0, or counts that leave a set empty. Off: A may be any matrix.
    """
    if check:
        check_arguments(Z, A, alpha, counts)
    Z, A = floating(Z), floating(A)
    keys, key_counts = present(Z, counts)
    xp = namespace(Z)
    # (..., n, d + 1)
    weighted = xp.concatenate([key_counts[..., None] * keys, key_counts[..., None]], -1)
    # (..., d + 1, n)
    totals = xp.swapaxes(weighted, -1, -2) @ _tied(Z, A, keys, key_counts, tol)
    mean = xp.swapaxes(totals[..., :-1, :] / totals[..., -1:, :], -1, -2)  # (..., n, d)
    return Z + alpha / (1 + alpha) * (mean - Z)


def softmax_step(
    Z: Array, A: Array, alpha: float | Array, temperature: float, *, counts: Array | None = None
) -> Array:
    """The layer that hardmax is the limit of: weights counts_j exp(<A z_i, z_j> / T), normalised
    over j, for Z (..., n, d) and counts (..., n).

    As T -> 0 it tends to `hardmax_step` wherever the largest score is unique: the error is at most
    the diameter of the tokens times n exp(-gap / T), gap being the distance of the two largest
    scores.
    """
    xp = namespace(Z)
    if temperature <= 0:
        given = f"The temperature must be positive, got {temperature}"
        raise ValueError(f"{given}; for its limit 0 call hardmax_step.")
    # The small factor (n, d) is divided, not the large one (n, n); and a count is a shift of its
    # scores: exp(s + log c) = c exp(s).
    scores = (Z @ A.T / temperature) @ xp.swapaxes(Z, -1, -2)
    if counts is not None:
        scores = scores + shares(counts)[..., None, :]
    return Z + alpha / (1 + alpha) * (softmax(scores) @ Z - Z)


def trajectory(
    Z: Array,
    A: Array,
    alpha: float | Array,
    layers: int,
    *,
    counts: Array | None = None,
    tol: float | None = None,
    check: bool = True,
) -> Array:
    """All states of `layers` hardmax layers: shape (layers + 1, ..., n, d), the first being `Z`.

    With `check` the arguments are tested once, and a `HypothesisWarning` names each hypothesis of
    the clustering theorem that fails (zero tokens, duplicate tokens). Other parameters as in
    `hardmax_step`.
    """
    if check:
        check_arguments(Z, A, alpha, counts)
        for violation in violated_hypotheses(Z, counts):
            warnings.warn(violation, HypothesisWarning, stacklevel=2)
    states = [floating(Z)]
    for _ in range(layers):
        states.append(hardmax_step(states[-1], A, alpha, counts=counts, tol=tol, check=False))
    return namespace(Z).stack(states)


@dataclass(frozen=True)
class Limit:
    """Where the tokens end: further layers move the state by less than the tolerance."""

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
    tol: float | None = None,
    settled: float = 1e-13,
    max_layers: int = 5000,
    check: bool = True,
    watch: Callable[[int, Array, Array], None] | None = None,
) -> Limit:
    """Iterate until no token moves by more than `settled` times the largest token in a layer.

    In exact arithmetic a follower never reaches its leader. In floating point it would, and then
    tie with it, double its weight and pull tokens that stand between two leaders to one side. So a
    token that is still under way and has less than `ARRIVED` times the largest token left to go
    stops attracting (its count becomes 0) and only finishes its way. Leaders and duplicates, which
    do not move, keep their counts.

    After `max_layers` it gives up, with `converged` false: a follower keeps 1 / (1 + alpha) of its
    distance in a layer, so about log(1 / settled) / log(1 + alpha) layers are needed after the last
    change of a set C_i. `watch(layer, state, counts)` is called before each layer. The other
    parameters are those of `hardmax_step`.
    """
    if check:
        check_arguments(Z, A, alpha, counts)
    Z, xp = floating(Z), namespace(Z)
    counts = xp.ones_like(Z[..., 0]) if counts is None else counts
    scale = float(xp.abs(Z).max()) or 1.0
    rounding = 16 * float(xp.finfo(Z.dtype).eps)
    movement = np.inf
    for layer in range(max_layers):
        if watch is not None:
            watch(layer, Z, counts)
        following = hardmax_step(Z, A, alpha, counts=counts, tol=tol, check=False)
        moved = _norms((following - Z) / scale)  # (..., n)
        movement = float(moved.max())
        Z = following
        if movement <= settled:
            return Limit(Z, layer + 1, movement, True)
        to_go = moved * (1 + alpha) / alpha
        counts = xp.where((to_go > rounding) & (to_go < ARRIVED), 0.0, counts)
    return Limit(Z, max_layers, movement, False)


def attention(
    Z: Array, A: Array, *, counts: Array | None = None, tol: float | None = None
) -> Array:
    """The matrix P (..., n, n) of a layer: P_ij = counts_j / (total count of C_i) on C_i."""
    Z, A = floating(Z), floating(A)
    keys, key_counts = present(Z, counts)
    weights = ties(Z, A, keys, key_counts, tol) * key_counts[..., None, :]
    return weights / weights.sum(-1)[..., None]


def ties(Z: Array, A: Array, keys: Array, key_counts: Array, tol: float | None = None) -> Array:
    """Equation (1b): each token's C_i among the keys that are there, as numbers (..., n, m).

    By default every tie that is exact is found, in every precision. With v = A z_i, computed as v',
    and eps the distance of 1 to the next number, Higham (2002, Section 3.1) bounds both roundings:
    |v' - v| <= g |A| |z_i|, and a computed score is off from <v', z_j> by at most g |v'| |z_j|,
    where g = d eps / 2 to first order. So a score is off by at most 2 g r, with
    r = | |A| |z_i| | max_l |z_l|, and two equal scores by 4 g r < 2 (d + 1) eps r. That, and
    `TIE_TOLERANCE` |v| max_l |z_l|, is the slack.
    """
    return namespace(Z).swapaxes(_tied(Z, A, keys, key_counts, tol), -1, -2)


def _tied(Z: Array, A: Array, keys: Array, key_counts: Array, tol: float | None) -> Array:
    """`ties` transposed, (..., m, n): along contiguous memory, three times faster."""
    xp = namespace(Z)
    # powers of two change no comparison of one token's scores, and no product leaves the range
    Z, keys = _in_units(constant(Z), -1), _in_units(constant(keys), (-2, -1))
    A = _in_units(constant(A), (-2, -1))
    looks_for = Z @ A.T  # (..., n, d), the vectors A z_i
    # (..., m, n); what is not there is barred, since the score of a copy may be larger by rounding
    scores = xp.where(key_counts[..., None] > 0, keys @ xp.swapaxes(looks_for, -1, -2), -xp.inf)
    slack = (TIE_TOLERANCE if tol is None else tol) * _norms(looks_for)  # (..., n)
    if tol is None:
        rounding = 2 * (Z.shape[-1] + 1) * float(xp.finfo(Z.dtype).eps)
        slack = slack + rounding * _norms(xp.abs(Z) @ xp.abs(A).T)
    slack = slack * xp.amax(_norms(keys), -1)[..., None]
    tied = scores >= (xp.amax(scores, -2) - slack)[..., None, :]
    return tied.astype(Z.dtype) if xp is np else tied.to(Z.dtype)


def _norms(V: Array) -> Array:
    return (V * V).sum(-1) ** 0.5


def _in_units(V: Array, axes: int | tuple[int, ...]) -> Array:
    """V over the power of two that brings its largest number along the axes to 1/2 or above."""
    xp = namespace(V)
    largest = xp.amax(xp.abs(V), axes, keepdims=True)
    power = xp.frexp(largest)[1]
    half = xp.ones_like(largest) / 2
    # two factors: for the smallest numbers one alone would overflow
    return V * half ** (power // 2) * half ** (power - power // 2)


def present(Z: Array, counts: Array | None) -> tuple[Array, Array]:
    """The tokens as keys (..., n, d) with counts (..., n); one with count 0 weighs nothing."""
    xp = namespace(Z)
    if counts is None:
        return Z, xp.ones_like(constant(Z[..., 0]))
    # What is not there stands where a token does that is: no number in it matters.
    first = take(Z, xp.argmax((counts > 0) * 1, -1)[..., None])
    return xp.where((counts > 0)[..., None], Z, first), counts
