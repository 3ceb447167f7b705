"""Every matrix of a local model that could be a softmax layer, for a reader to choose from."""

from __future__ import annotations

from pathlib import Path

from softgeom.checkpoints.choosing import candidates
from softgeom.checkpoints.formats import open_model

Candidate = tuple[str, tuple[int, ...], str | None]


def list_candidates(path: Path) -> list[Candidate]:
    """(name, shape, sibling bias) of each, likely ones last; ValueError if unreadable."""
    return candidates(open_model(str(path)).store)
