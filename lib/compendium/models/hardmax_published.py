"""What the authors of 004 published of their experiment (CC0): the trained classifier at d = 2, and
their training histories at four dimensions.

The vocabulary is not published: geometry, step size, limits and dynamics can be studied, single
words and accuracy cannot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from compendium import paths
from compendium.corpora import checksums
from papers.hardmax.sentiment import Recipe
from papers.hardmax.training import Trained
from softgeom.source import Source, announce, sha256_of

_MODEL, _HISTORIES = (
    f"models/hardmax_published/{name}" for name in ("published_d2.npz", "published_histories.csv")
)
_ARRAYS = ("embedding", "alpha", "decoder_weight", "decoder_bias", "layers", "temperature")


@dataclass(frozen=True)
class Published:
    """The authors' classifier, and their histories of losses and accuracies (`_hm`: hard)."""

    model: Trained
    histories: pd.DataFrame
    source: Source


def load_published() -> Published | None:
    """The authors' artefacts, or None where the data folder does not hold them; ValueError when a
    file lacks an array or a shape does not fit: a damaged file must not turn into an absent one.
    """
    model, histories = paths.find_data(_MODEL), paths.find_data(_HISTORIES)
    if model is None or histories is None:
        return None
    with np.load(checksums.check(model), allow_pickle=False) as file:
        if missing := [name for name in _ARRAYS if name not in file.files]:
            known = ", ".join(file.files)
            raise ValueError(f"{model.name} lacks {', '.join(missing)}; it holds {known}")
        found = {name: file[name] for name in _ARRAYS}
    E, w = found["embedding"].astype(np.float32), found["decoder_weight"].astype(np.float32).ravel()
    if E.ndim != 2 or w.shape != E.shape[1:]:
        told = f"an embedding of shape {E.shape} and a decoder of shape {w.shape} do not fit"
        raise ValueError(f"{model.name}: {told}")
    alpha, v, layers, T = (
        found[name].item() for name in ("alpha", "decoder_bias", "layers", "temperature")
    )
    recipe = Recipe(
        dimension=len(w), layers=int(layers), alpha=alpha, train_alpha=True, attention="softmax",
        temperature=T,
    )  # fmt: skip
    digest = sha256_of(model.read_bytes())
    source = announce(
        Source("the classifier published by the authors of 004", "local", _MODEL, "", digest)
    )
    return Published(
        Trained(recipe, E, w, v, alpha, []), pd.read_csv(checksums.check(histories)), source
    )
