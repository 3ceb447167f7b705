"""Characters read by a real recogniser: who is shown, in pairs of equal rarity and ink, and what a bias shift would change (notebook 15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgeom.checkpoints import glyphs, ppocr
from softgeom.layer import SoftmaxLayer
from softgeom.progress import track

__all__ = [
    "Pictures",
    "likeness",
    "line_features",
    "matched_partners",
    "own_and_other_gaps",
    "read_pictures",
    "shares_under_shift",
]

_BATCH = 64  # pictures a run of the network


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures of single characters, the features that the network makes of them, and what its head reads.

    `table` has one row a picture: group, class, token, font, size, reading, read. `features` holds (T, d) for each.
    """

    table: pd.DataFrame
    features: list[NDArray[Any]]


def matched_partners(
    targets: Sequence[int], pool: Sequence[int], kinds: NDArray[Any], ink: Mapping[int, float]
) -> NDArray[np.intp]:
    """One partner for each target: same standard, nearest ink, without replacement; none where the standard has run out."""
    free, partners = {int(p) for p in pool}, []
    for target in targets:
        if candidates := [p for p in free if kinds[p] == kinds[target]]:
            partners.append(min(candidates, key=lambda p: (abs(ink[p] - ink[target]), p)))
            free.remove(partners[-1])
    return np.array(partners, dtype=np.intp)


def read_pictures(
    groups: Mapping[str, Sequence[int]],
    layer: SoftmaxLayer,
    fonts: Sequence[glyphs.Font],
    sizes: Sequence[int],
    threads: int,
) -> Pictures:
    """Show each class of each group alone on a line, in every font and size, to the network of PP-OCRv4."""
    assert layer.tokens is not None
    plan = [(n, int(i), f, s) for n, members in groups.items() for i in members for f in fonts for s in sizes]
    recogniser, features = ppocr.Recogniser(threads), []
    for start in track(range(0, len(plan), _BATCH), "reading characters"):
        part = plan[start : start + _BATCH]
        features += recogniser.features([glyphs.render_line(layer.tokens[i], f, s) for _, i, f, s in part])
    rows = [(n, i, layer.tokens[i], f.family, s) for n, i, f, s in plan]
    table = pd.DataFrame(rows, columns=["group", "class", "token", "font", "size"])
    table["reading"] = ppocr.read_lines(features, layer)
    table["read"] = [token in reading for token, reading in zip(table["token"], table["reading"], strict=True)]
    return Pictures(table, features)


def likeness(one: str, other: str, font: glyphs.Font) -> float:
    """Correlation of two characters' blurred pictures."""

    def picture(character: str) -> NDArray[np.float64]:
        flat = 255.0 - np.asarray(glyphs.render_line(character, font, 20).resize((16, 16)), float).ravel()
        return (flat - flat.mean()) / max(flat.std(), 1e-9)

    return float(np.mean(picture(one) * picture(other)))


def own_and_other_gaps(
    pictures: Pictures, layer: SoftmaxLayer, held: Sequence[int]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """How far each held class stays behind the winner: on its own pictures (n,), and on pictures of others that are read (m, held).

    The gap of a picture is the least over its positions: a bias shift of more than that makes the class appear there.
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
    """Share of each group's pictures read rightly when the bias of all held classes is raised together by each shift."""
    assert layer.tokens is not None
    members, rest = np.asarray(held), np.setdiff1d(np.arange(layer.classes), held)
    right = np.zeros((len(pictures.features), len(shifts)), dtype=bool)
    for n, (x, token) in enumerate(zip(pictures.features, pictures.table["token"], strict=True)):
        logits = x @ layer.W.T + layer.bias
        ahead = logits[:, members].max(axis=1) - logits[:, rest].max(axis=1)
        first = members[logits[:, members].argmax(axis=1)], rest[logits[:, rest].argmax(axis=1)]
        for k, shift in enumerate(shifts):
            right[n, k] = token in ppocr.ctc_decode(np.where(ahead + shift > 0, *first), layer.tokens)
    names = pictures.table["group"]
    shares = {name: right[(names == name).to_numpy()].mean(axis=0) for name in names.unique()}
    return pd.DataFrame({"shift": shifts} | shares)


def line_features(
    layer: SoftmaxLayer, fonts: Sequence[glyphs.Font], rng: np.random.Generator, lines: int, length: int, threads: int
) -> NDArray[Any]:
    """Features (positions, d) of lines of random characters of the layer's alphabet, drawn in turn in the fonts, in three sizes."""
    assert layer.tokens is not None
    pictures = []
    for n in range(lines):
        font = fonts[n % len(fonts)]
        alphabet = [t for t in layer.tokens if len(t) == 1 and t in font.characters and not t.isspace()]
        text = "".join(rng.choice(alphabet, length))
        pictures.append(glyphs.render_line(text, font, int(rng.choice([20, 32, 48]))))
    return np.concatenate(ppocr.Recogniser(threads).features(pictures))
