"""Film reviews with a sentiment label: IMDb (Maas et al. 2011), or generated ones; and words with
the sentiment that people gave them.
"""

import importlib.util
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from compendium import paths
from compendium.corpora import checksums
from softgeom.source import Source, announce, fetched, read_origin, sha256_of, write_origin

HUB_ID = "stanfordnlp/imdb"
# what is fetched stays the same whatever is published later
REVISION = "e6281661ce1c48d982bc483cf8a173c1bbeb5d31"
PARTS = ("train", "test", "unsupervised")

PLANTED_WORDS: dict[str, tuple[str, ...]] = {
    "positive": ("wonderful", "excellent", "delightful", "moving", "masterpiece", "brilliant"),
    "negative": ("awful", "boring", "waste", "dreadful", "clumsy", "torture"),
}
_NEUTRAL_WORDS = """
film movie story scene actor character plot camera director script music role part time people world life man woman
child house city year night day hand voice face eye door street car train letter table window summer winter river
mountain village school family friend doctor soldier king queen sister brother mother father island forest garden
morning evening minute hour series episode theatre stage costume colour light shadow silence sound picture frame
""".split()
_GENERATED = {"train": 2000, "test": 2000, "unsupervised": 2000}  # reviews per part of the stand-in
_SIDES = ("negative", "positive")
_SENTIMENT_SHARE = 0.10  # of a generated review's words carry sentiment ...
_AGREEMENT = 0.80  # ... and this share of them agrees with the label: easy, but not trivial

_APOSTROPHES = str.maketrans("", "", "'’`´")  # the reviews' words are spelt without them
NO_LEXICON = Source("no sentiment lexicon", "embedded", "vaderSentiment is not installed")


@dataclass(frozen=True)
class Reviews:
    """Reviews by part, and where they came from: columns `text` and `label` (0 negative, 1
    positive, -1 unlabelled); `rating` and `source_file` where the source has them. `planted` are
    the words that carry the sentiment by construction; None for real reviews.
    """

    train: pd.DataFrame
    test: pd.DataFrame
    unsupervised: pd.DataFrame
    source: Source
    planted: dict[str, tuple[str, ...]] | None = None


def load_reviews() -> Reviews:
    """IMDb from the data folder (`imdb/{train,test,unsupervised}.parquet`), else from the hub, else
    generated. ValueError when local files lack a column, are empty, or hold other labels.
    """
    folder = find_imdb()
    if folder is None:
        return generated_reviews()
    train, test, unsupervised = (
        _read(folder / f"{part}.parquet", labelled=part != "unsupervised") for part in PARTS
    )
    return Reviews(train, test, unsupervised, announce(imdb_source(folder, "imdb/*.parquet")))


def find_imdb() -> Path | None:
    """Folder with IMDb as parquet, fetched when it is not here; None when it cannot be had."""
    folder = paths.find_data("imdb")
    if folder is None and fetched("IMDb", lambda: _fetch_from_hub(paths.downloads_dir() / "imdb")):
        folder = paths.downloads_dir() / "imdb"
    return folder


def imdb_source(folder: Path, detail: str) -> Source:
    """The source of files in an IMDb folder, with the hub's commit when they were fetched."""
    origin = read_origin(folder)
    return Source(
        "IMDb reviews", "hub" if origin else "local", detail, revision=origin.get("commit", "")
    )


def generated_reviews() -> Reviews:
    """Reviews of 20 to 120 film words, and sentiment words of which most agree with the label."""
    rng = np.random.default_rng(0)
    frames = {}
    for part, count in _GENERATED.items():
        labels = rng.permutation(np.arange(count) % 2)
        texts = [_generate(rng, bool(label)) for label in labels]
        label = labels if part != "unsupervised" else -1
        frames[part] = pd.DataFrame({"text": texts, "label": label})
    text = "\n".join(frames["train"]["text"])
    why = "film words around planted sentiment words, because neither the data folder nor the hub "
    why += "has IMDb"
    source = Source("generated reviews", "embedded", why, sha256=sha256_of(text.encode()))
    return Reviews(**frames, source=announce(source), planted=PLANTED_WORDS)


def load_valences(vocabulary: list[str] | np.ndarray) -> tuple[np.ndarray | None, Source]:
    """The valence of each word (W,) in VADER (Hutto and Gilbert 2014; ten raters a word, from -4 to
    4), read as text from the package vaderSentiment; NaN where it is not listed; None, and why,
    when the lexicon is not there. It knows nothing of the reviews' labels. ValueError at a line
    without a word and a number.
    """
    spec = importlib.util.find_spec("vaderSentiment")
    file = Path(spec.origin or "").with_name("vader_lexicon.txt") if spec else None
    if file is None or not file.is_file():
        return None, announce(NO_LEXICON)
    text = file.read_text(encoding="utf-8")
    valence: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        word, *columns = line.split("\t")
        try:
            valence.setdefault(word.lower().translate(_APOSTROPHES), float(columns[0]))
        except (IndexError, ValueError):
            told = f"not a word and its valence: {line[:60]!r}"
            raise ValueError(f"{file.name}, line {number}: {told}") from None
    named, digest = ("VADER sentiment lexicon", "package", "vaderSentiment"), text.encode()
    source = Source(*named, sha256=sha256_of(digest))
    return np.array([valence.get(str(word), np.nan) for word in vocabulary]), announce(source)


def _generate(rng: np.random.Generator, positive: bool) -> str:
    length = int(rng.integers(20, 121))
    ranks = np.arange(1, len(_NEUTRAL_WORDS) + 1)
    # Zipf's law
    words = rng.choice(_NEUTRAL_WORDS, size=length, p=(1 / ranks) / (1 / ranks).sum()).tolist()
    for position in np.flatnonzero(rng.random(length) < _SENTIMENT_SHARE):
        agrees = rng.random() < _AGREEMENT
        words[position] = str(rng.choice(PLANTED_WORDS[_SIDES[positive == agrees]]))
    return " ".join(words) + "."


def _read(path: Path, *, labelled: bool) -> pd.DataFrame:
    where = f"{path.parent.name}/{path.name}"
    if not path.is_file():
        raise ValueError(f"{where} is missing: the folder holds {', '.join(PARTS)} as .parquet")
    frame = pd.read_parquet(checksums.check(path))
    if missing := sorted({"text", "label"} - set(frame.columns)):
        known = ", ".join(frame.columns)
        raise ValueError(f"{where} has no column {' nor '.join(missing)}; it has {known}")
    if frame.empty:
        raise ValueError(f"{where} holds no review")
    if labelled and (odd := sorted(set(frame["label"].unique()) - {0, 1})):
        raise ValueError(f"{where}: labels must be 0 or 1, found {', '.join(map(str, odd[:5]))}")
    return frame


def _fetch_from_hub(folder: Path) -> None:
    """Download the three parts into the layout of the data folder; complete or not at all."""
    from datasets import load_dataset

    parts = load_dataset(HUB_ID, revision=REVISION)
    incomplete = folder.with_name(f"{folder.name}.incomplete")
    incomplete.mkdir(parents=True, exist_ok=True)
    try:
        for part in PARTS:
            parts[part].to_pandas().to_parquet(incomplete / f"{part}.parquet")
        write_origin(incomplete, repository=HUB_ID, commit=REVISION, **checksums.facts(incomplete))
        incomplete.rename(folder)
    finally:
        shutil.rmtree(incomplete, ignore_errors=True)
