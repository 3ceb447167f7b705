"""Models that others released: which of those with a name can be had, and small ones of Llama's
type, from the data folder, else from the hub, else none.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from compendium import paths
from compendium.corpora import checksums
from softgeom.checkpoints.released import RELEASED
from softgeom.source import Source, announce, fetched, read_origin, sha256_of, write_origin

if TYPE_CHECKING:
    from papers.language_model.llama import Llama

# Both have the llama2.c format, 0.23 and 0.26 million parameters, and share their 512 pieces.
_LOCAL = ("AI Dreams 260K", "models/aidreams260K.bin", "models/tok512.bin")
_HUB = ("TinyStories 260K", "models/stories260K/stories260K.bin", "models/stories260K/tok512.bin")
_REPOSITORY = "karpathy/tinyllamas"

ABSENT = Source(
    "no Llama-type model",
    "embedded",
    "none in the data folder, and the hub does not answer: the trained GPT alone",
)


def load_released_llama() -> tuple[Llama | None, Source]:
    """The first Llama-type model that can be had, and where it came from; `None` and `ABSENT`,
    which counts as a stand-in, when there is none. ValueError if a file is damaged.
    """
    from papers.language_model.llama2c import load_llama2c

    if _find(_LOCAL) is None and _find(_HUB) is None:
        fetched("stories260K", _fetch_from_hub)
    for title, model, tokenizer in (_LOCAL, _HUB):
        if found := _find((title, model, tokenizer)):
            origin = read_origin(found[0].parent)
            kind = "hub" if origin else "local"
            source = Source(
                title, kind, model, origin.get("commit", ""), sha256_of(found[0].read_bytes())
            )
            return load_llama2c(*map(checksums.check, found)), announce(source)
    return None, announce(ABSENT)


def available(names: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Which released models can be had, and of the others why not; fetches missing files once."""
    found, absent = [], {}
    for name in names:
        try:
            RELEASED[name].fetch()
            if RELEASED[name].model.path.endswith(".gguf"):
                import gguf  # noqa: F401 - its reader is in the extra `models`
            found.append(name)
        except (ValueError, ImportError) as error:
            absent[name] = str(error)
    return found, absent


def _find(files: tuple[str, str, str]) -> tuple[Path, Path] | None:
    model, tokenizer = (paths.find_data(relative) for relative in files[1:])
    return (model, tokenizer) if model and tokenizer else None


def _fetch_from_hub() -> None:
    from huggingface_hub import HfApi, hf_hub_download

    commit = HfApi().model_info(_REPOSITORY).sha or "main"
    folder = paths.downloads_dir() / "models"
    for relative in _HUB[1:]:
        hf_hub_download(
            _REPOSITORY, relative.removeprefix("models/"), revision=commit, local_dir=folder
        )
    write_origin(folder / "stories260K", repository=_REPOSITORY, commit=commit)
