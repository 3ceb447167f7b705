"""Pictures whose most probable text has an output that can never win a frame: for the outputs that
miss the condition of scanner/docs/texts.md.

    softgeom ask ppocr-v4 --in-text --out answers
    python tests/benchmarks/in_a_text.py ppocr-v4 answers/answers.safetensors

A picture shows one frame several times, between two others. At that frame at most two outputs and
perhaps the blank are ahead of the class, and these as little as a linear programme allows; at each
of the two others one of these outputs is ahead by far. The best text without the class is exact, so
that a log ratio above 0 proves that every most probable text has the class. One row per class in
results/bench/in_a_text.csv.
"""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.optimize import linprog

from papers.bottleneck.ctc import BLANK, Floats, best_text, read
from softgeom.arrays import Array
from softgeom.asking import Router
from softgeom.asking.experts import Chosen
from softgeom.checkpoints import load_head
from softgeom.layer import SoftmaxLayer

TABLE = Path(__file__).resolve().parents[2] / "results" / "bench" / "in_a_text.csv"
BOX, JOIN = 100.0, 150  # classes that join a programme at a time
FRAMES = (3, 6, 10)
LEADS = (2e-3, 5e-4)  # of the class, over all that may not be ahead
BLANK_BEHIND = (0.0, 3.0)  # the others that may be ahead, by so much


def main(head: str, proofs: str) -> None:
    """Look for a picture for each class that is not excluded, and file what was found."""
    layer = load_head(head).layer
    found = Router.load(proofs, layer)
    rows = [pictured(layer, one) for one in found.experts if one.verdict == "possible"]
    table = pd.DataFrame(rows).assign(head=head).set_index("head").reset_index()
    if TABLE.exists():
        old = pd.read_csv(TABLE)
        table = pd.concat([old[old["head"] != head], table], ignore_index=True)
    table.to_csv(TABLE, index=False)
    print(table.to_string())


def pictured(layer: SoftmaxLayer, free: Chosen) -> dict[str, object]:
    """The picture of the largest log ratio that was found for a class."""
    W, b, t = layer.W.astype(float), layer.bias.astype(float), free.expert
    near = sorted({*range(layer.classes)} - {*free.answers[0].order.named, BLANK})
    sides = (near[0], near[-1]) if near else ()
    everyone, nothing = np.ones(layer.classes, bool), np.zeros(layer.classes)
    ends = [most(W, b, side, everyone, nothing) for side in sides]
    text, best = (*sides[:1], t, *sides[1:]), (-np.inf, 0, 0.0, 0.0)
    for lead, behind in product(LEADS, BLANK_BEHIND):
        ahead, least = ~everyone, np.full(layer.classes, lead)
        ahead[[BLANK, *near]], least[near], least[BLANK] = True, 0.0, behind
        x = most(W, b, t, ahead, least)
        if x is not None:
            for k in FRAMES:
                X = np.array([*ends[:1], *[x] * k, *ends[1:]])
                best = max(best, (log_ratio(W, b, X, text, t), k, lead, behind))
    named = [layer.token(i) for i in (t, *text)]
    row = {"class": t, "token": named[0], "text": "".join(named[1:])}
    return row | dict(zip(("log ratio", "frames", "lead", "blank behind"), best, strict=True))


def most(W: Floats, b: Floats, t: int, ahead: Array, least: Floats) -> Floats | None:
    """Features x (d,) in the box with the largest s such that class t leads each other class u by
    ``least[u]``, and those of ``ahead`` (C,) by s more; None where there are none.
    """
    C, d = W.shape
    x, s = BOX * np.sign(W[t] - W.mean(axis=0)), 0.0
    joined = np.zeros(C, bool)
    while True:
        short = (W - W[t]) @ x + b - b[t] + least + s * ahead
        short[joined], short[t] = -np.inf, -np.inf
        new = np.argsort(-short)[:JOIN]
        new = new[short[new] > (1e-7 if joined.any() else -np.inf)]
        if not len(new):
            return np.asarray(x)
        joined[new] = True
        joined[ahead] |= ahead.sum() < JOIN
        u = np.flatnonzero(joined)
        A, c = np.column_stack([W[u] - W[t], ahead[u]]), b[t] - b[u] - least[u]
        limits = [*[(-BOX, BOX)] * d, (None, BOX)]
        found = linprog(np.append(np.zeros(d), -1.0), A, c, bounds=limits)
        if found.status != 0:
            return None
        x, s = found.x[:d], found.x[d]


def log_ratio(W: Floats, b: Floats, X: Floats, text: tuple[int, ...], t: int) -> float:
    """Of a text to the best one without class t, at features X (T, d)."""
    Y = X @ W.T + b
    Y -= np.logaddexp.reduce(Y, axis=1, keepdims=True)
    try:
        return float(read(torch.tensor(Y)[None], text)[0, -1]) - best_text(Y, [t], 100)[0]
    except RuntimeError:  # open
        return -np.inf


if __name__ == "__main__":
    main(*sys.argv[1:])
