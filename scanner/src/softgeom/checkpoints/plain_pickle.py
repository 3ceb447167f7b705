"""Pickles of plain data, read by an allow-list: containers, strings, numbers, NumPy arrays.

A pickle is a programme for a small stack machine. Two of its instructions are dangerous: "call this
global" and "set the state of this object". The few globals that arrays need stand for objects of
this file, which check what they are given and refuse another state. Every other global is refused
by its name before anything is called. Lengths that the file declares are compared with the file
first.
"""

from __future__ import annotations

import collections
import io
import math
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.checkpoints.tensors import ArrayStore, plain, unwrapped

_NUMBER_KINDS = "biufc"


def read_plain_pickle(path: Path) -> Any:
    """The content of a pickle file. ValueError when it is none, is cut short, or asks for anything
    but plain data; the global that it asks for is named and was not called.
    """
    data = path.read_bytes()
    try:
        _check_lengths(data)
        return _PlainUnpickler(io.BytesIO(data)).load()
    except _ForbiddenError as error:
        raise ValueError(
            f"{path} asks for {error}, which is not plain data; nothing of it was executed. "
            "Save the weights as .npz or safetensors."
        ) from None
    except Exception as error:  # each instruction of a damaged programme fails in its own way
        raise ValueError(
            f"{path} is not a whole pickle of plain data ({type(error).__name__}: "
            f"{plain(error)}); fetch it again."
        ) from error


def open_plain_pickle(path: Path) -> ArrayStore:
    """The arrays of a pickled dictionary, a wrapper such as ``{"state_dict": ...}`` taken off.
    ValueError as `read_plain_pickle`, and without named arrays.
    """
    content = unwrapped(read_plain_pickle(path))
    items = content.items() if isinstance(content, dict) else ()
    arrays = {str(n): value.view(np.ndarray) for n, value in items if isinstance(value, np.ndarray)}
    if not arrays:
        raise ValueError(f"{path} holds no dictionary of named arrays.")
    return ArrayStore(arrays, str(path), {"format": "pickle, allow-list"})


class _ForbiddenError(Exception):
    """A global that plain data do not need."""


class _Dtype:
    """A dtype as a pickle describes it: its code and byte order."""

    def __init__(self, code: Any = None, *_: Any):
        self.code, self.order = str(code), "="

    def __setstate__(self, state: Any) -> None:
        self.order = str(state[1])
        if any(part not in (None, -1, 0) for part in state[2:]):
            raise ValueError("records are not plain numbers")

    @property
    def dtype(self) -> np.dtype[Any]:
        big, little = self.order == ">", self.order == "<"
        dtype = np.dtype(self.code).newbyteorder(">" if big else "<" if little else "=")
        if dtype.kind not in _NUMBER_KINDS:
            raise ValueError(f"an array of {dtype}, not of numbers")
        return dtype


class _Array(np.ndarray):
    """An array that takes its shape, dtype and bytes from a pickle, and checks them."""

    def __new__(cls, *_: Any) -> _Array:
        return super().__new__(cls, (0,), np.uint8)

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, fortran, content = state
        dtype = kind.dtype
        size = -1 if min(shape, default=0) < 0 else math.prod(shape) * dtype.itemsize
        if not isinstance(content, bytes) or size != len(content):
            raise ValueError(f"an array of shape {shape} and {dtype} does not fit its bytes")
        checked: Any = (1, shape, dtype, bool(fortran), content)
        super().__setstate__(checked)


class _Function:
    """A function that a pickle may call; a plain function would let it set the defaults."""

    def __init__(self, call: Callable[..., Any]):
        self._call = call

    def __call__(self, *given: Any) -> Any:
        return self._call(*given)

    def __setstate__(self, state: Any) -> None:
        raise ValueError("a function has no state to set")


def _scalar(kind: _Dtype, content: bytes = b"") -> Any:
    return np.frombuffer(content, kind.dtype, count=1)[0].item()


def _from_buffer(content: Any, kind: _Dtype, shape: Any, order: Any) -> np.ndarray:
    """How protocol 5 writes arrays."""
    return np.frombuffer(bytes(content), kind.dtype).reshape(shape, order=order)


def _encode(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise ValueError(f"bytes stored in {encoding!r}")
    return text.encode("latin1")  # how protocol 2 writes bytes


_ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("_codecs", "encode"): _Function(_encode),
    ("numpy", "dtype"): _Dtype,
    ("numpy", "ndarray"): _Array,  # handed to `_reconstruct`, and never called
}
for _core in ("core", "_core"):
    _ALLOWED[f"numpy.{_core}.multiarray", "_reconstruct"] = _Array
    _ALLOWED[f"numpy.{_core}.multiarray", "scalar"] = _Function(_scalar)
    _ALLOWED[f"numpy.{_core}.numeric", "_frombuffer"] = _Function(_from_buffer)


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise _ForbiddenError(f"the global {plain(module)}.{plain(name)}")
        return _ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise _ForbiddenError("objects stored outside the file")


def _check_lengths(data: bytes) -> None:
    """Each declared length lies inside the file, and memory slots are numbered as they are used."""
    slots = 0
    # raises where an argument is longer than what is left
    for instruction, argument, _ in pickletools.genops(data):
        if instruction.name in ("PUT", "BINPUT", "LONG_BINPUT"):
            slots += 1
            if not isinstance(argument, int) or argument > 2 * slots + 256:
                raise ValueError(f"memory slot {argument} after {slots}")
