"""What the layers ask of their arguments, and which hypotheses of the clustering theorem an input
breaks.

Source 004, Theorem: nonzero distinct tokens, A symmetric positive definite, alpha > 0. Arguments
for which no layer is defined raise a ValueError; other tokens are named and computed.
"""

import numpy as np

from papers.arrays import Array, is_tensor, namespace, to_numpy


class HypothesisWarning(UserWarning):
    """A hypothesis of the clustering theorem is broken; the dynamics is computed all the same."""


def check_arguments(Z: Array, A: Array, alpha: float | Array, counts: Array | None = None) -> None:
    """Raise a ValueError that says what is wrong with the arguments of a layer and where."""
    xp = namespace(Z)
    if Z.ndim < 2 or Z.shape[-2] == 0 or Z.shape[-1] == 0:
        raise ValueError(
            "Z must have shape (..., n, d) with at least one token and one dimension, got "
            f"{tuple(Z.shape)}."
        )
    if not bool(xp.isfinite(Z).all()):
        raise ValueError("Z holds NaN or infinite tokens: the sets C_i are not defined for them.")
    if float(alpha) <= 0 or not np.isfinite(float(alpha)):
        raise ValueError(
            f"alpha must be positive and finite, got {float(alpha)}: at 0 nothing moves, "
            "below 0 tokens are repelled."
        )
    check_matrix(A, Z.shape[-1])
    mixed = is_tensor(Z) and is_tensor(A) and A.dtype != Z.dtype
    if mixed and A.is_floating_point() and Z.is_floating_point():
        raise ValueError(f"Z is {Z.dtype} and A is {A.dtype}: give both in one type.")
    if counts is None:
        return
    if tuple(counts.shape) != tuple(Z.shape[:-1]):
        raise ValueError(
            f"counts must have the shape {tuple(Z.shape[:-1])} of Z without its last axis, "
            f"got {tuple(counts.shape)}."
        )
    if bool((counts < 0).any()):
        raise ValueError("counts are multiplicities: they must not be negative.")
    if not bool((counts > 0).any(-1).all()):
        raise ValueError(
            "A set of tokens has no positive count: an empty review has no dynamics; leave it out."
        )


def check_matrix(A: Array, d: int) -> None:
    """Raise a ValueError, which names the fault, unless A (d, d) is symmetric positive definite."""
    A = to_numpy(A).astype(float)
    if A.shape != (d, d):
        raise ValueError(
            f"A must have shape ({d}, {d}) to act on tokens of dimension {d}, got {A.shape}."
        )
    if not np.isfinite(A).all():
        raise ValueError("A holds NaN or infinite entries.")
    difference = np.abs(A - A.T)
    if difference.max() > 1e-10 * np.abs(A).max():
        i, j = np.unravel_index(difference.argmax(), A.shape)
        raise ValueError(
            f"A is not symmetric: A[{i}, {j}] = {A[i, j]:.6g} but A[{j}, {i}] = "
            f"{A[j, i]:.6g}; pass check=False to compute outside the theorem."
        )
    smallest = float(np.linalg.eigvalsh(A)[0])
    if smallest <= 0:
        raise ValueError(
            f"A is not positive definite: its smallest eigenvalue is {smallest:.6g}; pass "
            "check=False to compute outside the theorem."
        )


def violated_hypotheses(Z: Array, counts: Array | None = None) -> list[str]:
    """Which hypotheses of the clustering theorem the tokens break, in words; A is not asked."""
    Z = to_numpy(Z)
    sets = Z.reshape(-1, *Z.shape[-2:])
    present = (
        np.ones(sets.shape[:2], bool)
        if counts is None
        else np.asarray(counts).reshape(sets.shape[:2]) > 0
    )
    found = []
    zeros = int(((sets == 0).all(-1) & present).sum())
    if zeros:
        found.append(
            f"The clustering theorem asks for nonzero tokens; {zeros} of them are zero, and "
            "a zero token is drawn to all tokens at once."
        )
    repeated = sum(
        int(p.sum()) - len(np.unique(s[p], axis=0)) for s, p in zip(sets, present, strict=True)
    )
    if repeated:
        found.append(
            f"The clustering theorem asks for distinct tokens; {repeated} repeat another "
            "one: give distinct rows with counts instead."
        )
    return found
