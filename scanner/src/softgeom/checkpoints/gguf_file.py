"""GGUF files (llama.cpp), read through the package `gguf`: dequantised numbers, token strings.

A quantised matrix is stored in blocks of codes with a scale each; `gguf.dequantize` gives the real
numbers that the runtime's products approximate: the runtime also rounds the features to 8 bits,
which a feature set does not show. Output and input embedding are one matrix where `output.weight`
is absent.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.checkpoints.head_table import EMBEDDERS
from softgeom.checkpoints.label_files import decode_bytes
from softgeom.checkpoints.opened import Asked, Opened, Shown, shown
from softgeom.checkpoints.tensors import describe

_FLOATS = {"F64", "F32", "F16", "BF16"}


def open_gguf(path: Path) -> Opened:
    """One file, with the vocabulary that it carries. ValueError for a part of a model, an adapter
    or a model that ends with no layer over its vocabulary.
    """
    store = GgufStore(path)
    if int(store.fact("split.count", 1) or 1) > 1:
        raise ValueError(
            f"{path} is one of {store.fact('split.count')} parts of a model: merge them first "
            "(llama-gguf-split --merge)."
        )

    def names(classes: int, blank: str | None) -> tuple[tuple[str, ...] | None, str | None]:
        if store.tokens is None or len(store.tokens) != classes:
            return None, None
        return store.tokens, "names from the file's own vocabulary"

    config = header(store)
    show = functools.partial(_show, store, config)
    return Opened(store, config=config, show=show, names=names, notes=store.notes)


def header(store: GgufStore) -> dict[str, Any]:
    """What the header says, under the names of `config.json`: `model_type` is the architecture."""
    kind = str(store.fact("general.architecture", ""))
    shortened = ((key, key.removeprefix(f"{kind}.")) for key in store.entries())
    facts = {short: store.fact(key) for key, short in shortened if short != key}
    config = {key: value for key, value in facts.items() if isinstance(value, int | float | str)}
    if "embedding_length" in config:
        config["hidden_size"] = config["d_model"] = config["embedding_length"]
    tied = "output.weight" not in store.names()
    return config | {"model_type": kind, "tie_word_embeddings": tied}


def _show(store: GgufStore, config: Mapping[str, Any], asked: Asked) -> Shown:
    """The output matrix, or the token embedding of an architecture that llama.cpp ties to it."""
    if asked.weight is not None:
        return shown(store, asked)
    kind, there = config["model_type"], store.names()
    pooled = config.get("pooling_type") or any(n.startswith(("cls.", "cls_")) for n in there)
    adapter = store.fact("general.type") == "adapter"
    if adapter or pooled or kind in EMBEDDERS or not kind:
        what = "an adapter" if adapter else f"a model of embeddings or ranks ({kind or 'unnamed'})"
        raise ValueError(
            f"{store.label} is {what}, which has no output layer over its vocabulary; matrices "
            f"that --weight can name: {describe(store, _matrices(store))}."
        )
    if "output.weight" in there:
        own = "output.weight", "the output matrix of the file"
    elif "token_embd.weight" in there:
        own = "token_embd.weight", f"the embedding, to which the output of {kind} is tied"
    else:
        raise ValueError(
            f"{store.label} has neither output.weight nor token_embd.weight; matrices that "
            f"--weight can name: {describe(store, _matrices(store))}."
        )
    name, why = own
    bias = "output.bias" if "output.bias" in there else None
    return shown(store, asked, (name, bias, f"{name}, {why}"))


def _matrices(store: GgufStore) -> list[str]:
    return [name for name in store.names() if len(store.shape(name)) == 2]


class GgufStore:
    """The tensors of one GGUF file, its vocabulary, and what was done to the tensors."""

    def __init__(self, path: Path):
        try:
            import gguf
        except ImportError as error:
            raise ValueError(
                f"{path} needs the package gguf to be read: pip install 'softgeom[models]'."
            ) from error
        self.label = str(path)
        self.provenance = {"format": "gguf"}
        self.notes: list[str] = []
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ValueError(f"{path} is not a GGUF file: it does not begin with GGUF.")
        self._reader: Any = _bounded(gguf.GGUFReader, path)(path)
        self._tensors = {str(tensor.name): tensor for tensor in self._reader.tensors}
        pieces = self.pieces()
        # byte-level pieces stand for bytes, others for themselves
        decode = decode_bytes if self.fact("tokenizer.ggml.model") == "gpt2" else str
        self.tokens = None if pieces is None else tuple(map(decode, pieces))

    def fact(self, key: str, default: Any = None) -> Any:
        """One entry of the header: a number, a text, or a list; `default` where there is none."""
        field = self._reader.get_field(key)
        return default if field is None else field.contents()

    def entries(self) -> list[str]:
        """The entries of the header."""
        return [str(key) for key in self._reader.fields]

    def names(self) -> list[str]:
        return list(self._tensors)

    def shape(self, name: str) -> tuple[int, ...]:
        """Rows first: the file lists the fastest axis first."""
        return tuple(int(n) for n in reversed(self._tensors[name].shape))

    def read(self, name: str) -> np.ndarray:
        import gguf

        tensor = self._tensors[name]
        kind = tensor.tensor_type.name
        try:
            values = gguf.dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError as error:
            raise ValueError(
                f"{self.label}: {name!r} is stored as {kind}, which gguf does not dequantise."
            ) from error
        if kind not in _FLOATS:
            self.notes.append(
                f"{name} dequantised from {kind}; the runtime also rounds features to 8 "
                "bits, the scan does not"
            )
        return np.asarray(values).reshape(self.shape(name))

    def pieces(self) -> list[str] | None:
        """The vocabulary as the file spells it: byte-level pieces are not decoded into text."""
        field = self._reader.get_field("tokenizer.ggml.tokens")
        if field is None:
            return None
        return [bytes(field.parts[n]).decode("utf-8", "replace") for n in field.data]


def _bounded(reader: Any, path: Path) -> Any:
    """The package's reader, ended where the file does: a claim of 2^60 entries fills the memory."""

    class Bounded(reader):
        def _get(self, offset: int, dtype: Any, count: int = 1, *more: Any, **other: Any) -> Any:
            if int(offset) + int(count) * np.dtype(dtype).itemsize > len(self.data):
                raise ValueError(f"{path} ends inside its header: fetch it again.")
            return super()._get(offset, dtype, count, *more, **other)

    return Bounded
