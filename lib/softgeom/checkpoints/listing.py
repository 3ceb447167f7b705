"""Every matrix of a local model that could be a softmax layer, for a reader to choose from."""

from __future__ import annotations

from pathlib import Path

from softgeom.checkpoints.choosing import candidates
from softgeom.checkpoints.loading import open_store
from softgeom.checkpoints.onnx_graph import OnnxGraph

Candidate = tuple[str, tuple[int, ...], str | None]


def list_candidates(path: Path) -> list[Candidate]:
    """(name, shape, sibling bias) of each candidate, likely ones last.

    Raises
    ------
    ValueError
        When the file cannot be read.
    """
    if path.suffix == ".onnx":
        return [
            (name, shape, None)
            for name, shape in OnnxGraph(path).matrices().items()
            if min(shape) > 1
        ]
    return candidates(open_store(path))
