"""A local Hugging Face model folder: configuration, weights in one file or shards, vocabulary."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from softgeom.checkpoints.safetensors_file import open_safetensors
from softgeom.checkpoints.state_dict import open_state_dict
from softgeom.checkpoints.tensors import MergedStore, TensorStore
from softgeom.checkpoints.token_strings import TOKEN_FILES

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
            members = shard_openers(shards, lambda shard: _open(folder / shard))
            return MergedStore(members, str(folder)), config
    raise ValueError(f"{folder} holds no model: looked for {', '.join(SINGLE + INDEXED)}.")


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


def shard_openers(
    shards: dict[str, str], open_shard: Callable[[str], TensorStore]
) -> dict[str, Callable[[], TensorStore]]:
    """Tensor name to a callable that opens its shard, each shard at most once."""
    open_once = functools.cache(open_shard)
    return {name: functools.partial(open_once, shard) for name, shard in shards.items()}


def _open(path: Path) -> TensorStore:
    if not path.is_file():
        raise ValueError(
            f"{path} is missing, although the index of its folder names it; fetch it again."
        )
    return open_safetensors(path) if path.suffix == ".safetensors" else open_state_dict(path)
