"""PyTorch state dicts, read with `weights_only=True`: tensors come out, code never runs.

A training script often wraps the state dict in a dictionary (`{"state_dict": ..., "epoch": ...}`):
the wrapper is taken off.
"""

from __future__ import annotations

import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.checkpoints.tensors import ArrayStore, plain, unwrapped
from softgeom.checkpoints.unread import what_it_is


def open_state_dict(path: Path) -> ArrayStore:
    """The tensors of one `.pt`, `.pth`, `.bin` or `.ckpt` file, mapped from the disk. ValueError if
    PyTorch is not installed, the file is not PyTorch's, or it holds more than tensors (nothing of
    it was executed).
    """
    try:
        import torch
    except ImportError as error:
        raise ValueError(f"{path} needs PyTorch to be read: pip install torch.") from error
    try:
        with warnings.catch_warnings():
            # what is wrong with the file is said below, in one sentence
            warnings.simplefilter("ignore")
            # files older than PyTorch 1.6 are no zip archives and cannot be mapped
            mapped = zipfile.is_zipfile(path)
            loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} holds more than tensors, so it was not loaded and nothing of it was executed; "
            "save model.state_dict() alone."
        ) from error
    # a damaged programme can fail in any instruction, and PyTorch adds advice of its own
    except Exception as error:
        if "TorchScript" in str(error) and (known := what_it_is(path)):
            raise ValueError(f"{path} is {known}.") from None
        reason = plain(str(error).split(". ")[0].split("\n")[0]) or type(error).__name__
        raise ValueError(
            f"{path} is not a whole PyTorch file ({reason}): fetch or save it again."
        ) from error
    state = unwrapped(loaded)
    store = named_tensors(state if isinstance(state, dict) else {}, str(path))
    if not store.names():
        raise ValueError(f"{path} holds no named tensors: save model.state_dict().")
    return store


def named_tensors(state: dict[str, Any], label: str) -> ArrayStore:
    """The tensors of a state dict; what else stands in it is left aside."""
    import torch

    tensors = {str(name): value for name, value in state.items() if torch.is_tensor(value)}
    return _TorchStore(tensors, label, {"format": "pytorch"})


class _TorchStore(ArrayStore):
    """Tensors that become arrays one at a time."""

    def read(self, name: str) -> np.ndarray:
        return tensor_array(self._arrays[name], f"{self.label}: {plain(name)!r}")


def tensor_array(tensor: Any, label: str) -> np.ndarray:
    """A PyTorch tensor as an array on the host; bfloat16 becomes float32, which holds it exactly.
    ValueError for what is no dense matrix of real numbers: sparse, quantised, 8-bit floats, on the
    meta device, or a view that repeats fewer numbers than its shape says.
    """
    import torch

    tensor = tensor.detach()
    if tensor.is_meta:
        raise ValueError(f"{label} is on the meta device: it has a shape and no numbers.")
    if tensor.layout != torch.strided:
        raise ValueError(f"{label} is stored as {tensor.layout}: save tensor.to_dense().")
    if tensor.is_quantized or (tensor.dtype.itemsize == 1 and tensor.dtype.is_floating_point):
        raise ValueError(f"{label} holds {tensor.dtype} codes, not weights: dequantise it first.")
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise ValueError(
            f"{label} repeats {tensor.untyped_storage().nbytes()} bytes in the shape "
            f"{tuple(tensor.shape)}."
        )
    tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    return tensor.cpu().resolve_neg().numpy()
