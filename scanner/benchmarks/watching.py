"""What watching a model costs beside its training: a recurrent language model, epoch by epoch.

    python benchmarks/watching.py TEXT [--epochs 4] > ../results/bench/watching.csv

The model: an embedding, a GRU of 64 units, an output layer over 2,000 words, 200 of which never
occur in what it is trained on (the most frequent words of TEXT stand for themselves, the others for
one class). AdamW, rate .002, decay .01, 32 rows of 64 words a step, one thread. Per epoch: CPU
seconds of the epoch, of `softgeom.watch` with loading the layer, of a scan from nothing with and
without `verdicts_only`; the verdicts of all three are compared.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import torch

import softgeom as sg
from softgeom.scanner import scan

CLASSES, SHOWN, WIDTH, ROWS, LENGTH = 2000, 1800, 64, 32, 64


class Words(torch.nn.Module):
    """Scores of the next word (rows, length, classes)."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(CLASSES, WIDTH)
        self.gru = torch.nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.head = torch.nn.Linear(WIDTH, CLASSES)

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(self.gru(self.embed(x))[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("--epochs", type=int, default=4)
    asked = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    words = asked.text.read_text(encoding="utf-8").split()
    names = [word for word, _ in Counter(words).most_common(SHOWN - 1)]
    numbers = {word: n + 1 for n, word in enumerate(names)}
    x = torch.tensor([numbers.get(word, 0) for word in words])
    model = Words()
    watch, rows = sg.watch(model, log=None), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.002, weight_decay=0.01)
    for epoch in range(1, asked.epochs + 1):
        row: dict[str, Any] = {"epoch": epoch, "words": len(x)}
        _, row["epoch_cpu_s"] = timed(lambda: train(model, optimizer, x))
        seen, row["watch_cpu_s"] = timed(watch)
        layer = sg.load(model).layer
        whole, row["scan_cpu_s"] = timed(lambda layer=layer: scan(layer))
        quick, row["verdicts_only_cpu_s"] = timed(
            lambda layer=layer: scan(layer, verdicts_only=True)
        )
        assert watch.scan is not None
        assert seen.counts == whole.counts == quick.counts
        assert watch.scan.table["verdict"].equals(whole.table["verdict"])
        share = row["watch_cpu_s"] / row["epoch_cpu_s"]
        rows.append(row | {"share": share, "unargmaxable": seen.counts["unargmaxable"]})
    print(pd.DataFrame(rows).round(4).to_csv(index=False, lineterminator="\n"), end="")


def train(model: Words, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    """One epoch over the words x (n,), laid out in rows."""
    steps = (len(x) - 1) // (ROWS * LENGTH)
    given, wanted = (part[: steps * ROWS * LENGTH].view(ROWS, -1) for part in (x[:-1], x[1:]))
    for k in range(0, steps * LENGTH, LENGTH):
        scores = model(given[:, k : k + LENGTH])
        target = wanted[:, k : k + LENGTH].reshape(-1)
        loss = torch.nn.functional.cross_entropy(scores.reshape(-1, CLASSES), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work gives, and its CPU seconds."""
    started = time.process_time()
    found = work()
    return found, time.process_time() - started


if __name__ == "__main__":
    main()
