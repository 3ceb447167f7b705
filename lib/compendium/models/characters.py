"""Characters read by a real recogniser: who is shown, in pairs of equal rarity and ink, and what a
bias shift would change (notebook 15).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compendium.models import ppocr
from softgeom.layer import SoftmaxLayer

_T = TypeVar("_T", int, str)


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures of single characters: a table with a row a picture (group, class, token, font, size,
    reading, read), and the features (T, d) that the network makes of each.
    """

    table: pd.DataFrame
    features: list[NDArray[Any]]


def matched_partners(
    targets: Iterable[int], pool: Iterable[int], kinds: NDArray[Any], ink: Mapping[int, float]
) -> NDArray[np.intp]:
    """A partner for each target: same standard, nearest ink, each once, while there are."""
    some, others = map(int, targets), map(int, pool)
    chosen = partners(some, others, lambda c: kinds[c], lambda a, b: abs(ink[a] - ink[b]))
    return np.array(chosen, dtype=np.intp)


def partners(
    targets: Iterable[_T],
    pool: Iterable[_T],
    kind: Callable[[_T], Any],
    distance: Callable[[_T, _T], Any],
) -> list[_T]:
    """For each target the nearest of its kind in the pool, without replacement, while there are."""
    free, chosen = set(pool), list[_T]()
    for target in targets:
        if alike := [p for p in free if kind(p) == kind(target)]:
            chosen.append(min(alike, key=lambda p: (distance(p, target), p)))
            free.remove(chosen[-1])
    return chosen


def own_and_other_gaps(
    pictures: Pictures, layer: SoftmaxLayer, held: Sequence[int]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """How far each held class stays behind the winner: on its own pictures (n,), and on pictures of
    others that are read (m, held). A bias shift of more than a picture's gap, the least over its
    positions, makes the class appear there.
    """
    members = np.asarray(held)
    gaps = np.empty((len(pictures.features), len(members)))
    for n, x in enumerate(pictures.features):
        logits = x @ layer.W.T + layer.bias  # (T, C)
        gaps[n] = (logits.max(axis=1, keepdims=True) - logits[:, members]).min(axis=0)
    column = {int(t): k for k, t in enumerate(members)}
    own = [gaps[n, column[t]] for n, t in enumerate(pictures.table["class"]) if t in column]
    others = gaps[(~pictures.table["class"].isin(column) & pictures.table["read"]).to_numpy()]
    return np.array(own), others


def shares_under_shift(
    pictures: Pictures, layer: SoftmaxLayer, held: Sequence[int], shifts: NDArray[np.float64]
) -> pd.DataFrame:
    """Share of each group's pictures read rightly when all held biases are raised by a shift."""
    assert layer.tokens is not None
    members, rest = np.asarray(held), np.setdiff1d(np.arange(layer.classes), held)
    right = np.zeros((len(pictures.features), len(shifts)), dtype=bool)
    for n, (x, token) in enumerate(zip(pictures.features, pictures.table["token"], strict=True)):
        logits = x @ layer.W.T + layer.bias
        ahead = logits[:, members].max(axis=1) - logits[:, rest].max(axis=1)
        first = members[logits[:, members].argmax(axis=1)], rest[logits[:, rest].argmax(axis=1)]
        for k, shift in enumerate(shifts):
            best = np.where(ahead + shift > 0, *first)
            right[n, k] = token in ppocr.ctc_decode(best, layer.tokens)
    names = pictures.table["group"]
    shares = {name: right[(names == name).to_numpy()].mean(axis=0) for name in names.unique()}
    return pd.DataFrame({"shift": shifts} | shares)
