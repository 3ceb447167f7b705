"""The GPTs of the book: trained once for each profile, kept in
`data/processed/language_models/PROFILE`, and found again by their names.
"""

from __future__ import annotations

from compendium import paths, profiles
from compendium.cache import Cache
from compendium.models import trained
from compendium.models.encoded import EncodedText
from compendium.models.trained import Trained
from papers.language_model.configuration import TrainingConfig
from papers.language_model.gpt import GPTConfig


def gpts(profile: str) -> Cache[Trained]:
    """The cache of a profile's GPTs."""
    code = ("papers/language_model", "compendium/models/trained.py")
    folder = paths.processed_dir() / "language_models" / profile
    return Cache(folder, trained.write, trained.read, code)


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
    return gpts(profile).keep(trained.train_gpt, *arguments, label=name, resumes=True)


def load_trained(name: str, profile: str) -> Trained:
    """The model of that name that notebook 01 trained last in this profile, or in one that it
    builds on. FileNotFoundError if there is none, or the code that trained it has changed.
    """
    places = profiles.lineage(profile)
    there = [place for place in places if (gpts(place).folder / f"{name}.json").is_file()]
    return gpts((there or places)[0]).recall(name, maker="01_language_models")
