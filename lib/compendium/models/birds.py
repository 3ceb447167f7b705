"""A multi-label model in use, for notebook 19: BirdNET hears 6,522 kinds of birds and other sounds,
each on or off by a sigmoid.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from softgeom.bottleneck.asking import Answers, ask_label_sets
from softgeom.checkpoints import Head

COLUMNS = ["size", "asked", "possible", "impossible", "undecided"]


def flocks(
    head: Head, sizes: Sequence[int], count: int, seed: int
) -> tuple[pd.DataFrame, list[Answers]]:
    """Random sets of labels of each size, exactly these on, for features that the step in front of
    the layer allows: verdicts by size; the answers.
    """
    rng = np.random.default_rng(seed)
    features, rows, answers = head.feature_set()[0], [], []
    for size in sizes:
        sets = [rng.choice(head.layer.classes, size, replace=False).tolist() for _ in range(count)]
        found = ask_label_sets(head.layer, sets, features=features)
        rows.append({"size": size, "asked": count, **found.counts})
        answers.append(found)
    return pd.DataFrame(rows, columns=COLUMNS), answers


def look_alikes(head: Head, count: int) -> tuple[pd.DataFrame, Answers]:
    """The pairs of labels whose rows are most alike, by cosine, each label in one pair: can exactly
    both be on? One row a pair; the answers.
    """
    W = head.layer.W.astype(np.float32)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    likeness = np.triu(W @ W.T, 1)
    pairs: list[tuple[int, int]] = []
    flat = likeness.ravel()
    nearest = np.argpartition(flat, -20 * count)[-20 * count :]
    for code in nearest[np.argsort(-flat[nearest])].tolist():
        i, j = divmod(code, len(W))
        if not {i, j} & {k for pair in pairs for k in pair}:
            pairs.append((i, j))
        if len(pairs) == count:
            break
    found = ask_label_sets(head.layer, pairs, features=head.feature_set()[0])
    names = [" and ".join(head.layer.token(k).rpartition("_")[2] for k in pair) for pair in pairs]
    rows = [
        (name, float(likeness[pair]), answer.verdict, answer.margin)
        for name, pair, answer in zip(names, pairs, found.answers, strict=True)
    ]
    return pd.DataFrame(rows, columns=["birds", "likeness", "together", "margin"]), found
