"""Matrices that a file stores in parts, under the name that the running model gives them.

* weight norm: W = g v / |v|, row by row, stored as `weight_g` and `weight_v` or as
  `parametrizations.weight.original0` and `original1`; computed by PyTorch itself, so that it is
  rounded as in the model;
* pruning: W = `weight_orig` * `weight_mask`;
* MobileBERT: W = [embedding, `cls.predictions.dense.weight` transposed], (C, e) beside (C, d - e).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from softgeom.checkpoints.tensors import TensorStore

_G, _V, _ORIGINAL, _MASK = ".weight_g", ".weight_v", ".weight_orig", ".weight_mask"
_G_NEW, _V_NEW = ".parametrizations.weight.original0", ".parametrizations.weight.original1"
_DENSE = re.compile(r"(.*\b)?cls\.predictions\.dense\.weight$")


class Composed:
    """A store in which each such matrix has its one name, and its parts have none."""

    def __init__(self, store: TensorStore):
        self._store = store
        self.label, self.provenance = store.label, store.provenance
        # name: the parts, the shape, and how the parts make the matrix
        self._made: dict[str, tuple[tuple[str, ...], tuple[int, ...], Callable[..., Any]]] = {}
        names = store.names()
        present = set(names)
        for name in names:
            for first, second, how in (
                (_G, _V, _weight_norm), (_G_NEW, _V_NEW, _weight_norm), (_ORIGINAL, _MASK, _masked),
            ):  # fmt: skip
                stem = name.removesuffix(first)
                if stem != name and stem + second in present:
                    self._add(f"{stem}.weight", (name, stem + second), how)
            found = _DENSE.match(name)
            if found and (embedding := _mobilebert(present, found[1] or "")):
                shapes = store.shape(embedding), store.shape(name)
                if shapes[0][0] == shapes[1][1]:
                    shape = (shapes[0][0], shapes[0][1] + shapes[1][0])
                    whole = f"{found[1] or ''}cls.predictions.decoder.weight"
                    self._made[whole] = ((embedding, name), shape, _beside)
        parts = {part for made, _, _ in self._made.values() for part in made}
        kept = [name for name in names if name not in parts or name in self._made]
        self._names = [*kept, *(name for name in self._made if name not in present)]

    def _add(self, name: str, parts: tuple[str, str], how: Callable[..., Any]) -> None:
        one, two = (self._store.shape(part) for part in parts)
        rows = (*two[:1], *(1 for _ in two[1:]))  # a norm for each row of v
        if one == (rows if how is _weight_norm else two):
            self._made[name] = (parts, two, how)

    def names(self) -> list[str]:
        return self._names

    def shape(self, name: str) -> tuple[int, ...]:
        return self._made[name][1] if name in self._made else self._store.shape(name)

    def read(self, name: str) -> np.ndarray:
        if name not in self._made:
            return self._store.read(name)
        parts, _, how = self._made[name]
        try:
            return np.asarray(how(*(self._store.read(part) for part in parts)))
        except ImportError as error:
            raise ValueError(
                f"{self.label}: {name!r} is stored under weight norm, which needs PyTorch to be "
                "read: pip install torch."
            ) from error


def _mobilebert(present: set[str], prefix: str) -> str | None:
    """The first part of the head: stored, or the embedding that it is tied to."""
    stored = f"{prefix}cls.predictions.decoder.weight"
    ends = "embeddings.word_embeddings.weight"
    tied = [name for name in present if name.endswith(ends)]
    return stored if stored in present else tied[0] if len(tied) == 1 else None


def _weight_norm(g: np.ndarray, v: np.ndarray) -> np.ndarray:
    import torch

    made = torch._weight_norm(torch.from_numpy(v.copy()), torch.from_numpy(g.copy()), 0)
    return np.asarray(made.numpy())


def _masked(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return values * mask.astype(values.dtype)


def _beside(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.concatenate([first, second.T], axis=1)
