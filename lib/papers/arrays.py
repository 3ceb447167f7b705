"""The few places where NumPy and PyTorch are spelt differently; PyTorch is never imported here."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray or torch.Tensor


def namespace(Z: Array) -> Any:
    """numpy or torch, whichever the array belongs to."""
    return np if isinstance(Z, np.ndarray) else sys.modules["torch"]


def is_tensor(Z: Any) -> bool:
    """Whether it is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(Z, torch.Tensor)


def alike(*operands: Array | None) -> tuple[Any, ...]:
    """The operands as floats of one library: tensors where any is a tensor, of its device and of
    the finest type of all, else float64 arrays. None stays None; lists are arrays.
    """
    tensors: list[Any] = [Z for Z in operands if is_tensor(Z)]
    if not tensors:
        return tuple(None if Z is None else np.asarray(Z, dtype=np.float64) for Z in operands)
    torch, device = sys.modules["torch"], tensors[0].device
    some = [Z if Z is None else torch.as_tensor(Z, device=device) for Z in operands]
    kinds = (Z.dtype for Z in some if Z is not None)
    finest = functools.reduce(torch.promote_types, kinds, torch.float32)
    return tuple(None if Z is None else Z.to(finest) for Z in some)


def to_numpy(Z: Array) -> np.ndarray:
    """The array on the host, without its gradient history."""
    return Z.detach().cpu().numpy() if is_tensor(Z) else np.asarray(Z)


def identity(d: int, like: Array) -> Array:
    """I (d, d) of the library, type and device of another array."""
    if isinstance(like, np.ndarray):
        return np.eye(d, dtype=like.dtype)
    return sys.modules["torch"].eye(d, dtype=like.dtype, device=like.device)


def constant(Z: Array) -> Array:
    """The array without its gradient history."""
    return Z if isinstance(Z, np.ndarray) else Z.detach()


def floating(Z: Array) -> Array:
    """Whole numbers as floats of the library's usual width; floats as they are."""
    if isinstance(Z, np.ndarray):
        return Z if Z.dtype.kind == "f" else Z.astype(np.float64)
    return Z if Z.is_floating_point() else Z.to(sys.modules["torch"].get_default_dtype())


def take(Z: Array, indices: Array) -> Array:
    """Rows of Z (..., n, d) by indices (..., m): (..., m, d)."""
    if isinstance(Z, np.ndarray):
        return np.take_along_axis(Z, indices[..., None], -2)
    return Z.gather(-2, indices[..., None].expand(*indices.shape, Z.shape[-1]))


def shares(counts: Array) -> Array:
    """Logarithms of counts (..., n); minus infinity for padding, whose count is 0."""
    if not isinstance(counts, np.ndarray):
        return counts.log()
    with np.errstate(divide="ignore"):
        return np.log(counts)


def softmax(scores: Array) -> Array:
    """Softmax over the last axis; PyTorch's is fused: its gradient needs only the result."""
    if not isinstance(scores, np.ndarray):
        return scores.softmax(-1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)
