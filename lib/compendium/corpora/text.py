"""Running text for language models: WikiText-103, SimpleBooks-92, IMDb reviews, or Python's own
language reference.
"""

import platform
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from compendium import paths
from compendium.corpora import checksums
from compendium.corpora.reviews import find_imdb, imdb_source
from softgeom.source import Source, announce, fetched, read_origin, sha256_of, write_origin
from softgeom.writing import write_text

PARTS = ("train", "validation", "test")
# validation and test each take this share from the end of a text that has no split of its own
_HELD_OUT = 0.05

# name -> reader's name; the files of `wikitext-103` lie in the folder `wikitext`
_SPLIT_CORPORA = {"wikitext-103": "WikiText-103", "simplebooks-92": "SimpleBooks-92"}
_COMMIT = "b08601e04326c79dfdd32d625aee71d232d685c3"
# hub repository, configuration, commit there; no copy of SimpleBooks on the hub is known to us
_ON_HUB = {"wikitext-103": ("Salesforce/wikitext", "wikitext-103-v1", _COMMIT)}
NAMES = ("imdb", *_SPLIT_CORPORA, "python-reference")


@dataclass(frozen=True)
class Text:
    """A text in three parts (empty where the source lacks one), and where it came from."""

    train: str
    validation: str
    test: str
    source: Source


def load_text(name: str, parts: tuple[str, ...] = PARTS) -> Text:
    """Text by name, from the data folder, else from the hub, else the embedded stand-in:
    `"wikitext-103"`, `"simplebooks-92"`, `"imdb"` (the unlabelled reviews), or `"python-reference"`
    (the stand-in). A folder that lacks one of `parts` does not serve. ValueError when the name is
    unknown, or a local file is empty.
    """
    if name not in NAMES:
        raise ValueError(f"no corpus is called {name!r}: choose one of {', '.join(NAMES)}")
    if name == "imdb":
        return _imdb() or python_reference(instead_of="IMDb reviews")
    if name == "python-reference":
        return python_reference()
    title, stem = _SPLIT_CORPORA[name], f"{name.partition('-')[0]}/{name}"
    for folder in (paths.data_dir(), paths.downloads_dir()):
        if text := _local(title, folder / stem, parts):
            return text
    downloads = paths.downloads_dir() / stem
    if name in _ON_HUB and fetched(title, lambda: _fetch_from_hub(downloads, *_ON_HUB[name])):
        return _local(title, downloads, parts) or python_reference(instead_of=title)
    return python_reference(instead_of=title)


def python_reference(instead_of: str = "") -> Text:
    """The language reference that ships with this CPython, about 460,000 characters."""
    from pydoc_data.topics import topics

    text = "\n\n".join(topics[key] for key in sorted(topics))
    detail = f"pydoc_data.topics of Python {platform.python_version()}"
    detail += f", instead of {instead_of}" if instead_of else ""
    digest = sha256_of(text.encode())
    source = announce(Source("Python language reference", "embedded", detail, sha256=digest))
    first, second = (int(len(text) * (1 - k * _HELD_OUT)) for k in (2, 1))
    return Text(text[:first], text[first:second], text[second:], source)


def _imdb() -> Text | None:
    folder = find_imdb()
    path = folder / "unsupervised.parquet" if folder else None
    if folder is None or path is None or not path.is_file():
        return None
    frame = pd.read_parquet(checksums.check(path), columns=["text"])
    # consecutive reviews are of one film: the held-out parts are whole blocks from the end
    texts = frame["text"].str.replace(r"(?:<br\s*/?>\s*)+", "\n", regex=True)
    first, second = (int(len(texts) * (1 - k * _HELD_OUT)) for k in (2, 1))
    parts = (texts[:first], texts[first:second], texts[second:])
    train, validation, test = map("\n\n".join, parts)
    return Text(train, validation, test, announce(imdb_source(folder, "imdb/unsupervised.parquet")))


def _local(title: str, stem: Path, parts: tuple[str, ...]) -> Text | None:
    """Text from `stem.{train,valid,test}.txt`, or None when a needed part is not there."""
    files = {"train": "train", "validation": "valid", "test": "test"}
    found: dict[str, str] = {}
    for part, suffix in files.items():
        path = stem.with_name(f"{stem.name}.{suffix}.txt")
        if path.is_file():
            found[part] = checksums.check(path).read_text(encoding="utf-8")
            if not found[part].strip():
                raise ValueError(f"{path.parent.name}/{path.name} is empty")
        elif part in parts:
            return None
    origin, where = read_origin(stem.parent), f"{stem.parent.name}/{stem.name}.*.txt"
    source = Source(title, "hub" if origin else "local", where, origin.get("commit", ""))
    train, validation, test = (found.get(part, "") for part in files)
    return Text(train, validation, test, announce(source))


def _fetch_from_hub(stem: Path, repository: str, configuration: str, commit: str) -> None:
    from datasets import load_dataset

    corpus = load_dataset(repository, configuration, revision=commit)
    for part, suffix in (("train", "train"), ("validation", "valid"), ("test", "test")):
        write_text(stem.with_name(f"{stem.name}.{suffix}.txt"), "".join(corpus[part]["text"]))
    origin = {"repository": repository, "configuration": configuration, "commit": commit}
    write_origin(stem.parent, **origin, **checksums.facts(stem.parent))
