"""The language models of the book: a corpus as a model reads it, and the GPTs that are trained once
for each profile and found again by their names.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compendium import corpora, paths, profiles
from compendium.cache import Cache
from compendium.run import with_maker
from papers.language_model.configuration import TrainingConfig, configuration_hash
from papers.language_model.gpt import GPT, GPTConfig
from papers.language_model.tokens import BytePairTokenizer, Tokens, encode_parts
from papers.language_model.training import train
from softgeom.source import Source

_MAKER = "01_language_models"


@dataclass(frozen=True)
class EncodedText:
    """Tokens of the three parts of a corpus."""

    train: Tokens
    validation: Tokens
    test: Tokens
    tokenizer: BytePairTokenizer
    source: Source
    key: str  # hash of text and vocabulary size: names the corpus in tables


@dataclass(frozen=True)
class Trained:
    """A model, the tokenizer that it reads through, and what is known about its training."""

    model: GPT
    tokenizer: BytePairTokenizer
    about: dict[str, Any]  # evaluations, losses, seed, training, source


def load_encoded(
    name: str,
    d_vocab: int,
    *,
    characters: int = 0,
    held_out_characters: int = 0,
    text: corpora.Text | None = None,
) -> EncodedText:
    """Load a corpus by name (as `corpora.load_text`, unless `text` is it), train a byte-level BPE
    of at most `d_vocab` tokens on its training part, and encode so many characters of it and of
    each held-out part, from the start; 0 takes all. ValueError if a part is empty.
    """
    text = text or corpora.load_text(name)
    parts = {
        "train": text.train[: characters or None],
        "validation": text.validation[: held_out_characters or None],
        "test": text.test[: held_out_characters or None],
    }
    for part, content in parts.items():
        if not content.strip():
            needs = "a language model needs text in all three parts."
            raise ValueError(f"the {part} part of {name} is empty: {needs}")
    cache = Cache(paths.processed_dir() / "corpora", ("papers/language_model/tokens.py",))
    tokens, tokenizer = cache.keep(encode_parts, parts, d_vocab, label=name)
    key = configuration_hash(name, d_vocab, parts)
    return EncodedText(**tokens, tokenizer=tokenizer, source=text.source, key=key)


def trained_gpt(
    name: str,
    profile: str,
    text: EncodedText,
    gpt: GPTConfig,
    config: TrainingConfig,
    *,
    device: str = "auto",
) -> Trained:
    """A GPT trained on a text, read where it is kept; `load_trained(name, profile)` means this one
    from then on. The training's seed seeds the weights too.
    """
    arguments = (gpt, config, text.train, text.validation, text.tokenizer, text.source, device)
    return _gpts(profile).keep(train_gpt, *arguments, label=name, resumes=True)


def load_trained(name: str, profile: str) -> Trained:
    """The model of that name that notebook 01 trained last in this profile, or in one that it
    builds on. Where there is none, or the code that trained it has changed, that notebook runs
    first.
    """

    def read() -> Trained:
        places = profiles.lineage(profile)
        there = [place for place in places if (_gpts(place).folder / f"{name}.json").is_file()]
        return _gpts((there or places)[0]).recall(name, _MAKER)

    return with_maker(read, _MAKER, profile)


def train_gpt(
    gpt: GPTConfig,
    config: TrainingConfig,
    tokens: Tokens,
    validation: Tokens,
    tokenizer: BytePairTokenizer,
    source: Source,
    device: str,
    *,
    checkpoint: Path | None,
) -> Trained:
    """Train a GPT whose weights at the start come from the training's seed; prints evaluations."""

    def report(row: dict[str, float]) -> None:
        print(f"step {row['step']}: validation loss {row['validation']:.3f} nats", flush=True)

    model = GPT(gpt, seed=config.seed)
    how: dict[str, Any] = {"checkpoint": checkpoint, "device": device, "report": report}
    result = train(model, tokens, validation, config, **how)
    about = {"evaluations": result.evaluations, "losses": result.losses, "seed": config.seed}
    about |= {"training": asdict(config), "source": asdict(source)}
    return Trained(model.cpu(), tokenizer, about)


def _gpts(profile: str) -> Cache:
    folder = paths.processed_dir() / "language_models" / profile
    return Cache(folder, ("papers/language_model", "compendium/models/language_models.py"))
