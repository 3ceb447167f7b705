"""The llama2.c format: seven int32, then float32 arrays in a fixed order, little-endian, without
names.

A positive vocab_size means that the unembedding is the embedding, a negative one that W (C, d)
follows at the end. The header is checked for impossible numbers and against the size of the file.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from itertools import accumulate
from pathlib import Path

import numpy as np

from softgeom.checkpoints.choosing import Choice
from softgeom.checkpoints.opened import Asked, Opened, Shown
from softgeom.checkpoints.tensors import ArrayStore
from softgeom.layer import Ellipsoid

_HEADER_BYTES = 28
_LARGEST = 2**24  # no size of a model in this format comes near; a header beyond it is not a header


@dataclass(frozen=True)
class Llama2cConfig:
    """Sizes of the model, under the names of the format."""

    dim: int
    hidden_dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int
    seq_len: int
    tied: bool

    @property
    def head_dim(self) -> int:
        return self.dim // self.n_heads


def read_llama2c(path: str | Path) -> tuple[Llama2cConfig, dict[str, np.ndarray]]:
    """Sizes and weights of a model, mapped from the disk (read-only, float32): `tok_embeddings` (C,
    d), `attention_norm` (L, d), `wq` (L, d, d), `wk` and `wv` (L, kv, d), `wo` (L, d, d),
    `ffn_norm` (L, d), `w1` (L, hidden, d), `w2` (L, d, hidden), `w3` (L, hidden, d), `norm` (d,),
    `output` (C, d); applied as `x @ W.T`. ValueError if the header has impossible numbers or does
    not fit the file's size.
    """
    path = Path(path)
    with path.open("rb") as file:
        config = _config(file.read(_HEADER_BYTES), path)
    shapes = _shapes(config)
    ends = list(accumulate(math.prod(shape) for shape in shapes.values()))
    size, expected = path.stat().st_size, _HEADER_BYTES + 4 * ends[-1]
    if size != expected:
        state = f"{size - expected} bytes too long"
        if size < expected:
            state = f"truncated: {expected - size} bytes are missing"
        raise ValueError(
            f"{path} is {state}; a llama2.c file with the sizes in its header has {expected} "
            f"bytes, not {size}."
        )
    data = np.memmap(path, dtype="<f4", mode="r", offset=_HEADER_BYTES)
    parts = np.split(np.asarray(data), ends[:-1])
    weights = {
        name: part.reshape(shape) for part, (name, shape) in zip(parts, shapes.items(), strict=True)
    }
    weights.setdefault("output", weights["tok_embeddings"])
    return config, {name: array for name, array in weights.items() if not name.startswith("rotary")}


def read_llama2c_tokenizer(path: str | Path, vocab_size: int) -> tuple[list[bytes], np.ndarray]:
    """The tokens (bytes) and their merge scores (vocab_size,), from a file of an int32 (longest
    token), then for each token a float32 score, an int32 length and the bytes. ValueError if the
    file ends before the last token, has an impossible length in it, or has bytes left over.
    """
    data, position = Path(path).read_bytes(), 4
    tokens, scores = [], np.empty(vocab_size, dtype=np.float32)
    for index in range(vocab_size):
        length = int.from_bytes(data[position + 4 : position + 8], "little", signed=True)
        if position + 8 > len(data) or length < 0 or position + 8 + length > len(data):
            raise ValueError(
                f"{path} ends in token {index} of {vocab_size}: it is truncated or no "
                "llama2.c tokenizer."
            )
        scores[index] = np.frombuffer(data, "<f4", count=1, offset=position)[0]
        tokens.append(data[position + 8 : position + 8 + length])
        position += 8 + length
    if position != len(data):
        raise ValueError(
            f"{path} holds more than the {vocab_size} tokens of the model: it belongs to "
            "another one."
        )
    return tokens, scores


def open_llama2c(path: Path) -> Opened:
    """The last matrix of a llama2.c file, behind its last normalisation."""
    config, weights = read_llama2c(path)
    store = ArrayStore(weights, str(path), {"format": "llama2.c"})
    weight = "tok_embeddings" if config.tied else "output"

    def show(asked: Asked) -> Shown:
        if asked.weight is not None or asked.bias is not None:
            raise ValueError(f"{path} is a llama2.c file, whose tensors have no names to choose.")
        choice = Choice(weight, None, False, ())
        return Shown(store, choice, features=Ellipsoid.rms_norm(weights["norm"], rounded=True))

    return Opened(store, show=show)


def looks_like_llama2c(path: Path) -> bool:
    """Whether the first 28 bytes are a plausible header: `.bin` is also PyTorch's suffix."""
    with path.open("rb") as file:
        try:
            _config(file.read(_HEADER_BYTES), path)
        except ValueError:
            return False
    return True


def _config(header: bytes, path: Path) -> Llama2cConfig:
    if len(header) < _HEADER_BYTES:
        raise ValueError(
            f"{path} is truncated: a llama2.c header has {_HEADER_BYTES} bytes, the file has "
            f"{len(header)}."
        )
    names = [field.name for field in fields(Llama2cConfig)][:-1]
    values = dict(zip(names, np.frombuffer(header, "<i4").tolist(), strict=True))
    tied = values["vocab_size"] > 0
    values["vocab_size"] = abs(values["vocab_size"])
    impossible = (
        any(not 0 < value < _LARGEST for value in values.values())
        or values["dim"] % values["n_heads"]
        or (values["dim"] // values["n_heads"]) % 2
        or values["n_heads"] % values["n_kv_heads"]
    )
    if impossible:
        listed = ", ".join(f"{name}={value}" for name, value in values.items())
        raise ValueError(
            f"{path} is not a llama2.c model: its header has impossible numbers ({listed})."
        )
    return Llama2cConfig(**values, tied=tied)


def _shapes(config: Llama2cConfig) -> dict[str, tuple[int, ...]]:
    d, hidden, layers = config.dim, config.hidden_dim, config.n_layers
    kv = config.head_dim * config.n_kv_heads
    shapes: dict[str, tuple[int, ...]] = {
        "tok_embeddings": (config.vocab_size, d),
        "attention_norm": (layers, d),
        "wq": (layers, d, d),
        "wk": (layers, kv, d),
        "wv": (layers, kv, d),
        "wo": (layers, d, d),
        "ffn_norm": (layers, d),
        "w1": (layers, hidden, d),
        "w2": (layers, d, hidden),
        "w3": (layers, hidden, d),
        "norm": (d,),
        "rotary_cosine": (config.seq_len, config.head_dim // 2),
        "rotary_sine": (config.seq_len, config.head_dim // 2),
    }
    return shapes if config.tied else {**shapes, "output": (config.vocab_size, d)}
