"""A local Hugging Face model folder: configuration, weights in one file or shards, vocabulary."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.checkpoints.head_table import PART
from softgeom.checkpoints.label_files import TOKEN_FILES
from softgeom.checkpoints.safetensors_file import open_safetensors
from softgeom.checkpoints.state_dict import open_state_dict
from softgeom.checkpoints.tensors import TensorStore, plain

# One file, then the index of shards; safetensors before pickles, since reading them needs neither
# PyTorch nor trust.
SINGLE = ("model.safetensors", "pytorch_model.bin")
INDEXED = ("model.safetensors.index.json", "pytorch_model.bin.index.json")


def open_folder(folder: Path) -> tuple[TensorStore, dict[str, Any]]:
    """The tensors of a model folder as `save_pretrained` writes it, and its configuration (empty
    where there is none). ValueError if it holds no weights, or a shard that its index names is
    missing.
    """
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    for name in SINGLE:
        if (folder / name).is_file():
            return _open(folder / name), config
    for name in INDEXED:
        if (folder / name).is_file():
            shards = weight_map(read_json(folder / name), str(folder / name))
            return MergedStore(shards, lambda shard: _open(folder / shard), str(folder)), config
    raise ValueError(f"{folder} holds no model: looked for {', '.join(SINGLE + INDEXED)}.")


def open_beside(path: Path) -> tuple[TensorStore, dict[str, Any]] | None:
    """The whole model of which a file of weights is a part or the whole, with the `config.json` in
    its folder; None where nothing there describes it. ValueError for a part whose whole is not
    there.
    """
    folder = path.parent
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    for name in INDEXED:
        if (folder / name).is_file():
            shards = weight_map(read_json(folder / name), str(folder / name))
            if path.name in shards.values():
                return MergedStore(shards, lambda shard: _open(folder / shard), str(folder)), config
    part = PART.search(path.stem)
    if part and int(part[2]) > 1:
        raise ValueError(
            f"{path} is part {int(part[1])} of {int(part[2])}, and the index that names the parts "
            "is not beside it: pass the folder of the whole model."
        )
    return (_open(path), config) if config else None


def holds_model(folder: Path) -> bool:
    """Whether `open_folder` would find weights in a folder."""
    return any((folder / name).is_file() for name in SINGLE + INDEXED)


def find_token_file(folder: Path) -> Path | None:
    """The folder's vocabulary, or None."""
    return next((folder / name for name in TOKEN_FILES if (folder / name).is_file()), None)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; ValueError when it is none."""
    content = parse_json(path.read_bytes(), str(path))
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no JSON object.")
    return content


def parse_json(content: bytes | str, label: str) -> Any:
    """Parse a JSON text that nobody vouches for; ValueError names the file by `label`."""
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError(f"{label} is not a usable JSON file: it is nested too deeply.") from None
    except ValueError as error:
        raise ValueError(f"{label} is not a valid JSON file ({error}).") from error


def weight_map(index: dict[str, Any], label: str) -> dict[str, str]:
    """Tensor name to the file name of its shard, checked to be a bare file name."""
    shards = index.get("weight_map")
    if not isinstance(shards, dict) or not all(isinstance(shard, str) for shard in shards.values()):
        raise ValueError(f"{label} has no weight_map from tensor names to shards.")
    for shard in set(shards.values()):
        if Path(shard).name != shard:
            raise ValueError(
                f"{label} points outside its folder ({shard!r}): the index was tampered with."
            )
    return shards


def _open(path: Path) -> TensorStore:
    if not path.is_file():
        raise ValueError(
            f"{path} is missing, although the index of its folder names it; fetch it again."
        )
    return open_safetensors(path) if path.suffix == ".safetensors" else open_state_dict(path)


class MergedStore:
    """One model in shards, tensor name to shard; each is opened when needed, and once."""

    def __init__(
        self,
        shards: dict[str, str],
        open_shard: Callable[[str], TensorStore],
        label: str,
        provenance: dict[str, str] | None = None,
    ):
        self._shards, self._open = shards, functools.cache(open_shard)
        self.label, self.provenance = label, provenance or {}

    def names(self) -> list[str]:
        return list(self._shards)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._member(name).shape(name)

    def read(self, name: str) -> np.ndarray:
        return self._member(name).read(name)

    def _member(self, name: str) -> TensorStore:
        store = self._open(self._shards[name])
        if name not in store.names():
            raise ValueError(
                f"{store.label} lacks the tensor {plain(name)!r}, although the index of its "
                "folder names it."
            )
        return store
