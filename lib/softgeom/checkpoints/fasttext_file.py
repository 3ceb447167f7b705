"""fastText's `.bin` and `.ftz`: the output matrix of a model, a row for each label (or word).

int32 magic and version; twelve int32 of options and a float64; the dictionary: int32 entries, words
and labels, int64 tokens and pruned n-grams, for each entry its text, a zero byte, int64 count, int8
type (0 word, 1 label), then a pair of int32 for each pruned n-gram; the input and the output
matrix, each behind a byte that says whether it is quantised (fasttext.cc, dictionary.cc, matrix.cc,
productquantizer.cc of fastText 0.9). A quantised row is put together from centroids, one for every
few features, times a norm.

Features are means of rows of the input matrix (or nothing, zero), so that they lie between its
least and its largest entry. A hierarchical softmax has a row for each inner node of a tree, none
for a class: it is refused.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from softgeom.checkpoints.activation import Activation
from softgeom.checkpoints.cursor import Cursor, CutShortError, reading
from softgeom.checkpoints.opened import Opened, shown
from softgeom.checkpoints.tensors import ArrayStore

_MAGIC, _VERSIONS = 793_712_314, (11, 12)
_OPTIONS = "dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate".split()
_TREE, _SUPERVISED = 1, 3  # of the losses, of the models
_LABEL = 1
_AT_ONCE = 2**22  # numbers of the input matrix that are looked at together
_CENTROIDS = 256  # what a code of one byte chooses from
_PREFIX = "__label__"
_WHY = "the output matrix; the features are means of rows of the input matrix"


def looks_like_fasttext(path: Path) -> bool:
    """Whether a file begins as one."""
    with path.open("rb") as file:
        return file.read(4) == _MAGIC.to_bytes(4, "little")


def open_fasttext(path: Path) -> Opened:
    """One file, with its labels. ValueError when it is none, damaged, of another version, or its
    output is a tree and no matrix with a row for each class.
    """
    with reading(path, "fastText model") as cursor:
        magic, version = cursor.number("i"), cursor.number("i")
        if magic != _MAGIC or version not in _VERSIONS:
            raise ValueError(f"{path} is not a fastText model of version 11 or 12.")
        options = dict(zip(_OPTIONS, cursor.array("<i4", len(_OPTIONS)).tolist(), strict=True))
        cursor.skip(8)
        if options["loss"] == _TREE:
            raise ValueError(
                f"{path} ends in a hierarchical softmax, a tree of binary decisions: its rows "
                "belong to inner nodes, so no row is a class's: it is not a softmax layer."
            )
        supervised = options["model"] == _SUPERVISED
        names = _dictionary(cursor, labels=supervised)
        quantised = cursor.number("?")
        low, high = _quantised_range(cursor) if quantised else _range(cursor)
        codes = cursor.number("?") and quantised
        W = _quantised(cursor) if codes else _dense(cursor)
        if len(W) != len(names):
            raise CutShortError(f"{len(W)} rows for {len(names)} classes")
    step = None
    if np.isfinite([low, high]).all():  # fastText's own mean is rounded to float32
        step = Activation("mean of rows", min(low, 0.0), max(high, 0.0)).scaled(1 + 1e-6)
    store = ArrayStore({"output": W}, str(path), {"format": "fasttext"})
    return Opened(
        store,
        show=lambda asked: shown(store, asked, ("output", None, _WHY)),
        activation=step,
        names=lambda classes, _: (names, f"names from the file's own {len(names):,} entries"),
    )


def _dictionary(cursor: Cursor, *, labels: bool) -> list[str]:
    """The labels in their order, without the usual prefix; else the words."""
    entries = cursor.number("i")
    cursor.skip(16)
    pruned = cursor.number("q")
    found = []
    for _ in range(entries):
        text = cursor.text_until(b"\0")
        cursor.skip(8)
        if (cursor.number("b") == _LABEL) == labels:
            found.append(text.removeprefix(_PREFIX) if labels else text)
    cursor.skip(8 * max(pruned, 0))
    return found


def _dense(cursor: Cursor) -> np.ndarray:
    rows, columns = cursor.number("q"), cursor.number("q")
    return cursor.array("<f4", rows, columns)


def _range(cursor: Cursor) -> tuple[float, float]:
    """Least and largest entry of a matrix, which may have gigabytes."""
    rows, columns = cursor.number("q"), cursor.number("q")
    if min(rows, columns) < 0 or 4 * rows * columns > cursor.left:
        raise CutShortError(
            f"{rows} x {columns} numbers are declared where {cursor.left} bytes are left"
        )
    low, high, left = np.inf, -np.inf, rows * columns
    while left:
        part = cursor.array("<f4", min(left, _AT_ONCE))
        low, high = float(np.minimum(low, part.min())), float(np.maximum(high, part.max()))
        left -= len(part)
    return low, high


def _quantised(cursor: Cursor) -> np.ndarray:
    """A matrix (m, n) as the numbers that its codes stand for."""
    normed = cursor.number("?")
    rows, columns, size = cursor.number("q"), cursor.number("q"), cursor.number("i")
    codes = cursor.array("u1", size)
    parts = _centroids(cursor)
    if rows < 0 or size != rows * len(parts) or sum(p.shape[1] for p in parts) != columns:
        raise CutShortError(f"{size} codes for {rows} rows of {columns} numbers")
    codes = codes.reshape(rows, len(parts))
    W = np.hstack([part[codes[:, n]] for n, part in enumerate(parts)])
    if not normed:
        return W
    norms = cursor.array("u1", rows)
    (part,) = _centroids(cursor)[:1]
    return W * part[norms, :1]


def _quantised_range(cursor: Cursor) -> tuple[float, float]:
    """Bounds on the entries of such a matrix: those of the centroids, times a norm."""
    normed = cursor.number("?")
    rows, _, size = cursor.number("q"), cursor.number("q"), cursor.number("i")
    cursor.skip(size)
    parts = _centroids(cursor)
    low, high = float(min(p.min() for p in parts)), float(max(p.max() for p in parts))
    if not normed or not rows:
        return low, high
    codes = cursor.array("u1", rows)
    norms = _centroids(cursor)[0][np.unique(codes)]
    ends = [x * float(norm) for x in (low, high) for norm in (norms.min(), norms.max())]
    return min(ends), max(ends)


def _centroids(cursor: Cursor) -> list[np.ndarray]:
    """For each part of a row the numbers (256, size of the part) that a code stands for."""
    width, parts, size, last = cursor.array("<i4", 4).tolist()
    if not 0 < parts <= width or min(size, last) < 1 or (parts - 1) * size + last != width:
        raise CutShortError(f"{parts} parts of {size} for rows of {width}")
    values = cursor.array("<f4", width * _CENTROIDS)
    cut = [n * size * _CENTROIDS for n in range(1, parts)]
    return [part.reshape(_CENTROIDS, -1) for part in np.split(values, cut)]
