"""Trained models on disk: safetensors for weights, JSON for everything else, nothing that executes.

One folder per trained model, ``data/processed/language_models/<profile>/<name>-<hash>``, where the hash names
configuration and corpus; beside it ``<name>.json`` points at the one that was trained last, so that later notebooks ask
by name.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compendium import paths, profiles
from softgeom.language_model.gpt import GPT
from softgeom.language_model.saved import load_model, save_model
from softgeom.language_model.tokens import BytePairTokenizer


@dataclass(frozen=True)
class Trained:
    """A model, the tokenizer that it reads through, and what is known about its training."""

    model: GPT
    tokenizer: BytePairTokenizer
    about: dict[str, Any]  # whatever the trainer wrote: configuration, losses, data source


def models_dir(profile: str) -> Path:
    """Folder of a profile's trained models."""
    return paths.processed_dir() / "language_models" / profile


def save_trained(name: str, profile: str, key: str, trained: Trained) -> Path:
    """Write a trained model under its name and hash, and make it the one that the name means; return its folder."""
    folder = models_dir(profile) / f"{name}-{key}"
    incomplete = folder.with_name(folder.name + ".part")
    shutil.rmtree(incomplete, ignore_errors=True)
    save_model(incomplete, trained.model)
    trained.tokenizer.save(incomplete / "tokenizer.json")
    (incomplete / "about.json").write_text(json.dumps(trained.about, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    incomplete.replace(folder)
    _point(name, profile, key)
    return folder


def load_trained(name: str, profile: str, key: str | None = None) -> Trained:
    """A model that a notebook trained.

    Parameters
    ----------
    name : str
        Such as ``"gpt"``.
    profile : str
        ``smoke``, ``default`` or ``paper``; ``lab`` falls back on ``default``, then on ``smoke``.
    key : str, optional
        Hash of the configuration wanted; the one trained last by default.

    Raises
    ------
    FileNotFoundError
        If there is no such model: the message names the notebook that trains it.
    """
    for place in (*profiles.lineage(profile), *(["smoke"] if profile == profiles.LAB else [])):
        wanted = key or _pointed(name, place)
        folder = models_dir(place) / f"{name}-{wanted}"
        if wanted and (folder / "about.json").is_file():
            about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
            return Trained(load_model(folder), BytePairTokenizer.load(folder / "tokenizer.json"), about)
    raise FileNotFoundError(
        f"no trained model {name!r}{f' of configuration {key}' if key else ''} in profile {profile!r}: "
        f"run notebook 01_language_models with that profile first."
    )


def find_trained(name: str, profile: str, key: str) -> Trained | None:
    """The trained model of exactly this configuration, which becomes what the name means; None when there is none."""
    try:
        trained = load_trained(name, profile, key)
    except FileNotFoundError:
        return None
    _point(name, profile, key)
    return trained


def _point(name: str, profile: str, key: str) -> None:
    pointer = models_dir(profile) / f"{name}.json"
    pointer.parent.mkdir(parents=True, exist_ok=True)
    part = pointer.with_suffix(".part")
    part.write_text(json.dumps({"hash": key}) + "\n", encoding="utf-8")
    part.replace(pointer)


def _pointed(name: str, profile: str) -> str | None:
    pointer = models_dir(profile) / f"{name}.json"
    return json.loads(pointer.read_text(encoding="utf-8"))["hash"] if pointer.is_file() else None
