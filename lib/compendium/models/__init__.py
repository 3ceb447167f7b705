"""The models of the book: corpora as they are read, what was trained and where it is kept, and what others released."""

from __future__ import annotations

from compendium.models.encoded import EncodedText, load_encoded
from compendium.models.released import load_released_llama
from compendium.models.store import Trained, find_trained, load_trained, models_dir, save_trained
from compendium.models.subjects import Subject, load_subjects

__all__ = [
    "EncodedText",
    "Subject",
    "Trained",
    "find_trained",
    "load_encoded",
    "load_released_llama",
    "load_subjects",
    "load_trained",
    "models_dir",
    "save_trained",
]
