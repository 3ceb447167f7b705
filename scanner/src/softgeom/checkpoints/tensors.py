"""A file of named tensors, whatever its format: `TensorStore`.

Finding the softmax layer of a model needs three things of a file: the names in it, the shape of one
name and the numbers of one name. Each format (`npz`, `safetensors_file`, `state_dict`, `hub`) gives
exactly these and reads nothing else, so that the layer of a model of many gigabytes costs the bytes
of that layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from softgeom.rounding import as_floats

LISTED_CANDIDATES = 20  # more names than this do not help anybody to choose one
_WRAPPERS = ("state_dict", "model_state_dict", "model", "module", "params")
_KINDS = {
    "b": "booleans", "c": "complex numbers", "M": "dates", "m": "durations", "U": "text",
    "S": "text", "O": "objects", "V": "records",
}  # fmt: skip


class TensorStore(Protocol):
    """Named tensors that can be looked at before they are read: `label` is the file as messages
    name it, `provenance` what gives the same numbers again (format, the hub's commit).
    """

    label: str
    provenance: dict[str, str]

    def names(self) -> list[str]: ...

    def shape(self, name: str) -> tuple[int, ...]: ...

    def read(self, name: str) -> np.ndarray: ...


class ArrayStore:
    """A `TensorStore` over arrays in memory, such as a state dict's; converted only when read."""

    def __init__(
        self, arrays: Mapping[str, Any], label: str, provenance: Mapping[str, str] | None = None
    ):
        self._arrays = arrays
        self.label = label
        self.provenance = dict(provenance or {})

    def names(self) -> list[str]:
        return list(self._arrays)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(int(n) for n in self._arrays[name].shape)

    def read(self, name: str) -> np.ndarray:
        return np.asanyarray(self._arrays[name])  # a masked array stays one: its mask is refused


def plain(text: object, limit: int = 200) -> str:
    """A name out of a file as a message may show it: one short line without control characters."""
    escaped = (c.encode("unicode_escape", "replace").decode() for c in str(text)[:limit])
    shown = (c if c.isprintable() else e for c, e in zip(str(text), escaped, strict=False))
    return "".join(shown) + ("..." if len(str(text)) > limit else "")


def weights_of(array: np.ndarray, label: str, name: str) -> np.ndarray:
    """The array, if it holds real numbers that a layer multiplies with. ValueError for codes of a
    quantised matrix, whose scales stand elsewhere, booleans, complex numbers, dates and text.
    """
    kind = array.dtype.kind
    if kind == "f":
        return array
    if kind in "iu":
        if array.dtype.itemsize == 1:
            raise ValueError(
                f"{label}: {plain(name)!r} holds {array.dtype} codes, not weights: the "
                "scales of a quantised matrix stand elsewhere; "
                "dequantise it first, or use the model's float file."
            )
        return as_floats(array, f"{label}: {plain(name)!r}")
    what = _KINDS.get(kind, str(array.dtype))
    raise ValueError(f"{label}: {plain(name)!r} holds {what}, not real weights.")


def unwrapped(content: Any) -> Any:
    """A state dict without the one or two dictionaries that trainers put around it. Tensors that
    stand in a dictionary beside it (OpenNMT's `generator`) belong to it, under that name; a copy
    of all of them (an average over steps) does not.
    """
    for _ in range(2):  # Lightning in DeepSpeed wraps twice; nobody wraps three times
        if not isinstance(content, Mapping):
            break
        parts = {key: value for key, value in content.items() if isinstance(value, Mapping)}
        main = next((key for key in _WRAPPERS if key in parts), None)
        beside = {key: part for key, part in parts.items() if key != main and _all_tensors(part)}
        if main is None and (len(beside) < len(parts) or len(parts) < len(content) or not parts):
            break
        whole = dict(parts.get(main, {}))
        for key, part in beside.items():
            if set(part) != set(whole):
                alone = main is None and len(beside) == 1
                whole |= part if alone else {f"{key}.{name}": part[name] for name in part}
        content = whole
    return content


def _all_tensors(part: Mapping[Any, Any]) -> bool:
    return bool(part) and all(hasattr(value, "shape") for value in part.values())


def describe(store: TensorStore, names: Iterable[str]) -> str:
    """`name (C, d), name (C, d), ...` for an error message, shortened where the list is long."""
    names = list(names)
    listed = [
        f"{plain(name)} ({', '.join(map(str, store.shape(name)))})"
        for name in names[:LISTED_CANDIDATES]
    ]
    hidden = len(names) - LISTED_CANDIDATES
    return ", ".join(listed) + (f" and {hidden} more" if hidden > 0 else "")
