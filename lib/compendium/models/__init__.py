"""The models of the book: corpora as they are read, what was trained and where it is kept, and what
others released.
"""

from __future__ import annotations

from compendium.models.encoded import EncodedText, load_encoded
from compendium.models.released import load_released_llama
from compendium.models.store import load_trained, trained_gpt
from compendium.models.subjects import Subject, load_subjects
from compendium.models.trained import Trained

__all__ = [
    "EncodedText",
    "Subject",
    "Trained",
    "load_encoded",
    "load_released_llama",
    "load_subjects",
    "load_trained",
    "trained_gpt",
]
