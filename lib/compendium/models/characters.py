"""Characters read by a real recogniser: who is shown, in pairs of equal rarity and ink, and what a
bias shift would change (notebook 15).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgeom.bottleneck import Scan
from softgeom.bottleneck.captives import heaviest_captors
from softgeom.checkpoints import glyphs, ppocr
from softgeom.layer import SoftmaxLayer
from softgeom.progress import track

_BATCH = 64  # pictures a run of the network
_AS_SHORT = 1.03  # of the longest imprisoned row: rows of about that length


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures of single characters, the features that the network makes of them, and what its head
    reads.

    `table` has one row a picture: group, class, token, font, size, reading, read. `features` holds
    (T, d) for each.
    """

    table: pd.DataFrame
    features: list[NDArray[Any]]


def matched_partners(
    targets: Iterable[int], pool: Iterable[int], kinds: NDArray[Any], ink: Mapping[int, float]
) -> NDArray[np.intp]:
    """One partner for each target: same standard, nearest ink, without replacement; none where the
    standard has run out.
    """
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
    """Show each class of each group alone on a line, in every font and size, to the network of
    PP-OCRv4.
    """
    assert layer.tokens is not None
    shown = [(name, int(i)) for name, members in groups.items() for i in members]
    plan = [(n, i, f, s) for n, i in shown for f in fonts for s in sizes]
    recogniser, features = ppocr.Recogniser(threads), []
    for start in track(range(0, len(plan), _BATCH), "reading characters"):
        part = plan[start : start + _BATCH]
        drawn = [glyphs.render_line(layer.tokens[i], f, s) for _, i, f, s in part]
        features += recogniser.features(drawn)
    rows = [(n, i, layer.tokens[i], f.family, s) for n, i, f, s in plan]
    table = pd.DataFrame(rows, columns=["group", "class", "token", "font", "size"])
    table["reading"] = ppocr.read_lines(features, layer)
    said = zip(table["token"], table["reading"], strict=True)
    table["read"] = [token in reading for token, reading in said]
    return Pictures(table, features)


def likeness(one: str, other: str, font: glyphs.Font) -> float:
    """Correlation of two characters' blurred pictures."""

    def picture(character: str) -> NDArray[np.float64]:
        small = glyphs.render_line(character, font, 20).resize((16, 16))
        flat = 255.0 - np.asarray(small, float).ravel()
        return (flat - flat.mean()) / max(flat.std(), 1e-9)

    return float(np.mean(picture(one) * picture(other)))


def own_and_other_gaps(
    pictures: Pictures, layer: SoftmaxLayer, held: Sequence[int]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """How far each held class stays behind the winner: on its own pictures (n,), and on pictures of
    others that are read (m, held).

    The gap of a picture is the least over its positions: a bias shift of more than that makes the
    class appear there.
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
    """Share of each group's pictures read rightly when the bias of all held classes is raised
    together by each shift.
    """
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


def captor_likeness(
    scanned: Scan,
    captives: Sequence[int],
    kinds: NDArray[Any],
    drawable: NDArray[np.bool_],
    font: glyphs.Font,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Likeness (n,) of each captive to its heaviest captor, and its mean likeness (n,) to ten
    random characters of its own standard.
    """
    tokens = scanned.layer.tokens
    assert tokens is not None
    near, chance = [], []
    for t in captives:
        captor = int(heaviest_captors(scanned, t, 1)[0][0])
        if drawable[t] and drawable[captor]:
            pool = rng.choice(np.flatnonzero((kinds == kinds[t]) & drawable), 10)
            near.append(likeness(tokens[t], tokens[captor], font))
            chance.append(np.mean([likeness(tokens[t], tokens[r], font) for r in pool]))
    return np.array(near), np.array(chance)


def reading_groups(
    layer: SoftmaxLayer,
    kinds: NDArray[Any],
    held: NDArray[Any],
    only_swish: NDArray[Any],
    free: NDArray[Any],
    font: glyphs.Font,
) -> tuple[dict[str, NDArray[np.intp]], pd.DataFrame]:
    """Who is shown to the network, and a table of what the groups have in common.

    The imprisoned `held`; partners among the `free`, one to one by standard and ink; the free whose
    rows are as short as those of the held (3% more at most); and those that only the network's own
    range imprisons. Empty groups are left out. All classes given must be drawable.
    """
    assert layer.tokens is not None
    norms = np.linalg.norm(layer.W.astype(np.float64), axis=1)
    of_kind = [int(i) for i in (*held, *free) if kinds[i] in set(kinds[held])]
    ink = {i: glyphs.ink(layer.tokens[i], font, 32) for i in of_kind}
    groups = {
        "imprisoned": held,
        "matched": matched_partners(held, [i for i in free if i in ink], kinds, ink),
        "short rows": free[norms[free] <= _AS_SHORT * norms[held].max()],
        "imprisoned in the Swish range": only_swish,
    }
    groups = {name: members for name, members in groups.items() if len(members)}
    rows = []
    for name, g in groups.items():
        inks = np.mean([ink.get(int(i), np.nan) for i in g])
        rows.append((name, len(g), inks, np.mean(kinds[g] == "GB2"), norms[g].mean()))
    columns = ["group", "characters", "mean_ink", "share_GB2", "mean_row_length"]
    return groups, pd.DataFrame(rows, columns=columns)
