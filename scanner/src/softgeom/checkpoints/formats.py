"""From what a model is called to its tensors: the file, folder, released model or hub model behind
a name, opened by the table of formats.

A new format is one row of `FORMATS`: a suffix, and a callable from the path to a `TensorStore`, or
to an `Opened` where the format says more than names and shapes. An installed package adds one by an
entry point (`plugins`): a function from the path to anything that `open_object` takes.
"""

from __future__ import annotations

import errno
import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from softgeom.checkpoints.activation import named_activation
from softgeom.checkpoints.folder import find_token_file, holds_model, open_beside, open_folder
from softgeom.checkpoints.gguf_file import open_gguf
from softgeom.checkpoints.hub import HubModel, cached_snapshot
from softgeom.checkpoints.labels import read_labels, read_tokens
from softgeom.checkpoints.live import open_object
from softgeom.checkpoints.llama2c import looks_like_llama2c, open_llama2c
from softgeom.checkpoints.npz import open_npy, open_npz
from softgeom.checkpoints.onnx_head import open_onnx
from softgeom.checkpoints.opened import NamesOf, Opened
from softgeom.checkpoints.paddle_file import SUFFIX as PADDLE
from softgeom.checkpoints.paddle_file import open_paddle
from softgeom.checkpoints.plain_pickle import open_plain_pickle
from softgeom.checkpoints.released import RELEASED
from softgeom.checkpoints.safetensors_file import open_safetensors
from softgeom.checkpoints.state_dict import open_state_dict
from softgeom.checkpoints.tensors import TensorStore, plain
from softgeom.checkpoints.tflite_file import open_tflite
from softgeom.checkpoints.unread import what_it_is
from softgeom.errors import is_refusal
from softgeom.plugins import plugin
from softgeom.source import Source, hub_reachable

_LISTED = 5  # models of a folder that are named
_HUB_ID = re.compile(r"[\w][\w.-]*(?:/[\w.-]+)?")


# how a file of PyTorch begins: a ZIP archive, a pickle, a tar archive of the first versions
_PYTORCH = (b"PK", b"\x80")
_TAR = slice(257, 262)


def _open_bin(path: Path) -> Opened | TensorStore:
    """What ends in .bin is named by what it holds."""
    if looks_like_llama2c(path):
        return open_llama2c(path)
    with path.open("rb") as file:
        start = file.read(_TAR.stop)
    if not start.startswith(_PYTORCH) and start[_TAR] != b"ustar":
        if known := what_it_is(path):
            raise ValueError(f"{path} is {known}.")
        raise ValueError(
            f"{path} is neither a PyTorch nor a llama2.c file, the two kinds of .bin that are read."
        )
    return open_state_dict(path)


FORMATS: dict[str, Callable[[Path], TensorStore | Opened]] = {
    ".npz": open_npz, ".npy": open_npy, ".onnx": open_onnx, ".safetensors": open_safetensors,
    ".gguf": open_gguf, ".tflite": open_tflite, ".pkl": open_plain_pickle, ".bin": _open_bin,
    PADDLE: open_paddle,
    ".ckpt": open_state_dict, ".pt": open_state_dict, ".pth": open_state_dict,
}  # fmt: skip
# a file of these is read with the config.json, the index and the vocabulary beside it
_WITH_CONFIG = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")


@contextmanager
def damage_in_a_sentence(model: str) -> Iterator[None]:
    """Libraries fail on damaged files in many ways: each becomes a ValueError that names the file.
    A full memory, a missing file and the refusals of the readers themselves pass through.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        # EINVAL: the file sends its reader to a place that no file has
        missing = isinstance(error, OSError) and error.errno != errno.EINVAL
        if missing or is_refusal(error):
            raise
        reason = plain(f"{type(error).__name__}: {error}")
        raise ValueError(
            f"{plain(model)} cannot be read ({reason}): it may be damaged, fetch or write it again."
        ) from error


def open_model(model: str, revision: str | None = None) -> Opened:
    """The model of this name: a file or folder here before a released model before one on the hub
    (a folder of results may be called as the released model is).
    ValueError when there is none, its format is unknown, or a revision has no meaning with it.
    """
    path = Path(model)
    if path.exists() or model in RELEASED:
        refuse_revision(revision, f"{plain(model)}, which is not read from the hub")
    if path.is_dir() and not (model in RELEASED and not (holds_model(path) or _paddle(path))):
        return _open_folder(path)
    if path.is_file():
        return open_file(path)
    if model in RELEASED:
        return _open_released(model)
    if not _HUB_ID.fullmatch(model) or _reader(path) is not None:
        raise ValueError(
            f"there is no file or folder {plain(model)!r}; a model on the hub is called "
            f"owner/name, released ones {', '.join(RELEASED)}."
        )
    if not hub_reachable() and (folder := cached_snapshot(model, revision)) is not None:
        opened = _open_folder(folder)
        return replace(opened, source=Source(model, "hub", opened.source.detail, folder.name))
    return _open_on_hub(HubModel(model, revision))


def open_file(path: Path) -> Opened:
    """A local file, by its suffix."""
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty: fetch or write the file again.")
    reader = _reader(path)
    if reader is None:
        if known := what_it_is(path):
            raise ValueError(f"{path} is {known}.")
        raise ValueError(
            f"{path} has no known format: {', '.join(FORMATS)}, a model folder, or a hub id."
        )
    beside = open_beside(path) if path.suffix in _WITH_CONFIG else None
    if beside is not None:
        opened = _described(*beside, path.parent)
    else:
        content = reader(path)
        opened = content if isinstance(content, Opened) else Opened(content)
    return replace(opened, source=_here(path, opened.store), beside=path)


def _reader(path: Path) -> Callable[[Path], TensorStore | Opened] | None:
    """What opens files of this ending: our own reader, or that of an installed package, under the
    ending without its point.
    """
    if path.suffix in FORMATS:
        return FORMATS[path.suffix]
    read = plugin("readers", path.suffix[1:]) if path.suffix else None
    return None if read is None else lambda path: open_object(read(path))


def _here(path: Path, store: TensorStore) -> Source:
    return Source(path.name, "local", store.provenance.get("format", "model folder"))


def refuse_revision(revision: str | None, what: str) -> None:
    """ValueError when a revision is given."""
    if revision is not None:
        raise ValueError(f"a revision ({plain(revision)}) has no meaning for {what}.")


def _open_folder(folder: Path) -> Opened:
    if not holds_model(folder):
        if known := what_it_is(folder):
            raise ValueError(f"{folder} is {known}.")
        within = [path for path in sorted(folder.iterdir()) if path.is_dir()]
        files = model_files(folder) or [file for path in within for file in model_files(path)]
        if len(files) > 1:
            some = ", ".join(str(file.relative_to(folder)) for file in files[:_LISTED])
            more = f" and {len(files) - _LISTED} more" if len(files) > _LISTED else ""
            raise ValueError(
                f"{folder} holds several models ({some}{more}): name one, or several to "
                "softgeom survey."
            )
        if files:
            return open_file(files[0])
    store, config = open_folder(folder)
    return replace(_described(store, config, folder), source=_here(folder, store))


def _described(store: TensorStore, config: dict[str, Any], folder: Path) -> Opened:
    """A model with its configuration, and the vocabulary in its folder."""
    vocabulary = find_token_file(folder)
    names = None if vocabulary is None else functools.partial(_vocabulary, vocabulary)
    return Opened(store, config=config, names=names)


def model_files(folder: Path) -> list[Path]:
    """The files in a folder that are read, by their endings; any array may end in .npy."""
    read = FORMATS.keys() - {".npy"}
    return sorted(path for path in folder.iterdir() if path.suffix in read and path.is_file())


def _paddle(folder: Path) -> list[Path]:
    return list(folder.glob(f"*{PADDLE}"))


def _vocabulary(file: Path, classes: int, blank: str | None) -> tuple[tuple[str, ...], str]:
    return read_tokens(file, classes, blank), f"names from {file.name}"


def _open_released(name: str) -> Opened:
    released = RELEASED[name]
    path, labels = released.fetch()
    opened = open_file(path)
    names: NamesOf | None = opened.names
    if labels is not None:
        names = lambda C, blank: read_labels(labels, C, blank or released.blank)  # noqa: E731
    step = named_activation(released.activation) if released.activation else None
    opened = replace(opened, names=names, activation=step, readout=released.readout)
    return replace(opened, source=released.source)


def _open_on_hub(model: HubModel) -> Opened:
    store, config = model.open()
    kind = store.provenance.get("format", "safetensors")

    def names(classes: int, blank: str | None) -> tuple[tuple[str, ...] | None, str | None]:
        file = model.token_file()
        return (None, None) if file is None else _vocabulary(file, classes, blank)

    source = Source(model.repo_id, "hub", kind, revision=model.commit)
    return Opened(store, source, config, names=names)
