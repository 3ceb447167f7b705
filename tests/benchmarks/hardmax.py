"""Hardmax layers and sentiment classifier: ours beside a per-token loop of the published kind, in
one run.

Input: random reviews of IMDb's shape (distinct words between 10 and 128, 71 on average, with
counts; a vocabulary of 27,000). The loop writes equation (1) of source 004 out token by token: all
scores of a token at once, its argmax set, its move, as the source's code does to judge; it runs on
a few reviews and is scaled up. To train, the source's code goes through softmax attention in
batched PyTorch, written out here as it is there, on all 128 words of a review. All times are scaled
to 25,000 reviews and 8 layers. Wall time and CPU time are both given: compare ratios, not seconds.

Usage: `python tests/benchmarks/hardmax.py [--reviews 5000] [--loop-reviews 4] [--threads 1]`
Targets: a compiled epoch at d = 2 in at most 1.2 CPU seconds; our surrogate no slower than the
source's form. Writes results/bench/hardmax.csv.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

from papers.hardmax import hardmax_step
from papers.hardmax.reviews import Bags
from papers.hardmax.sentiment import Classifier, Recipe, logits, random_start
from papers.hardmax.training import fit

FILE = Path(__file__).resolve().parent.parent / "results" / "bench" / "hardmax.csv"
LAYERS, VOCABULARY, SCALE = 8, 27_000, 25_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reviews", type=int, default=5000)
    parser.add_argument("--loop-reviews", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    bags, rows = reviews(options.reviews), []
    labels = np.arange(options.reviews) % 2
    for d in (2, 8):
        recipe = Recipe(dimension=d, epochs=1, scale=1.0)
        model = classifier(recipe)
        few = bags[: options.loop_reviews]
        agree(model, few)
        rows.append(
            timed("per-token loop", d, lambda m=model, f=few: per_token_loop(m, f), len(few))
        )
        rows.append(
            timed(
                "NumPy, one review at a time",
                d,
                lambda m=model, f=few: one_at_a_time(m, f),
                len(few),
            )
        )
        part, goals = bags[: len(bags) // 8], labels[: len(bags) // 8]
        soft = replace(recipe, attention="softmax")
        kinds = {"argmax fixed": (recipe, bags, labels), "softmax surrogate": (soft, part, goals)}
        logits(model, few)
        rows.append(timed("evaluation, compiled", d, lambda m=model: logits(m, bags), len(bags)))
        for what, (kind, some, targets) in kinds.items():
            for compiled in (True, False):
                # Once on a few reviews, so that nothing is compiled or imported while the clock
                # runs; the source's form too, below.
                fit(classifier(kind), few, labels[: len(few)], compiled=compiled)
                way = "compiled" if compiled else "recorded"
                run = partial(fit, classifier(kind), some, targets, compiled=compiled)
                rows.append(timed(f"training epoch, {what}, {way}", d, run, len(some)))
        source_epoch(few, labels[: len(few)], d)
        theirs = lambda p=part, g=goals, e=d: source_epoch(p, g, e)  # noqa: E731
        rows.append(timed("training epoch, the source's surrogate", d, theirs, len(part)))
    table = pd.DataFrame(rows)
    loop = table[table["what"] == "per-token loop"].set_index("d")["cpu_seconds"]
    table["times_faster_than_loop"] = table["d"].map(loop) / table["cpu_seconds"]
    table["threads"] = options.threads
    FILE.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(FILE, index=False, float_format="%.4g", lineterminator="\n")
    print(table.to_string(index=False))


def reviews(number: int) -> Bags:
    """Random reviews of IMDb's shape."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(6.0, 71 / 6.0, number).astype(int), 10, 128)
    there = np.arange(128) < lengths[:, None]
    words = rng.integers(0, VOCABULARY, (number, 128)).astype(np.int32)
    return Bags(
        np.where(there, words, 0),
        np.where(there, rng.geometric(0.85, (number, 128)), 0).astype(np.float32),
    )


def per_token_loop(model: Classifier, bags: Bags) -> np.ndarray:
    """Equation (1), token by token; A = identity. Returns the logits."""
    embedding, beta = (
        model.embedding.detach().double().numpy(),
        model.alpha.item() / (1 + model.alpha.item()),
    )
    out = []
    for words, counts in zip(bags.words, bags.counts.astype(int), strict=True):
        Z = np.repeat(embedding[words], counts, axis=0)
        for _ in range(LAYERS):
            following = np.empty_like(Z)
            for i in range(len(Z)):
                scores = Z @ Z[i]
                C = np.flatnonzero(scores >= scores.max() - 1e-12 * np.abs(scores).max())
                following[i] = Z[i] + beta * (Z[C] - Z[i]).mean(0)
            Z = following
        out.append(Z.mean(0) @ model.w.detach().double().numpy() + model.v.item())
    return np.array(out)


def one_at_a_time(model: Classifier, bags: Bags) -> None:
    """`hardmax_step` in NumPy on each review alone."""
    embedding = model.embedding.detach().double().numpy()
    for words, counts in zip(bags.words, bags.counts, strict=True):
        there = counts > 0
        Z = embedding[words[there]]
        for _ in range(LAYERS):
            Z = hardmax_step(
                Z, np.eye(Z.shape[1]), 1.0, counts=counts[there].astype(float), check=False
            )


def source_epoch(
    bags: Bags, labels: np.ndarray, d: int, temperature: float = 1e-3, batch: int = 64
) -> None:
    """An epoch as the source's code trains: 128 tokens, n x n softmax attention, Adam."""
    rows = [
        np.repeat(words, counts.astype(int))[:128]
        for words, counts in zip(bags.words, bags.counts, strict=True)
    ]
    tokens = torch.from_numpy(np.stack([np.pad(row, (0, 128 - len(row))) for row in rows])).long()
    encoder, decoder, alpha = (
        torch.nn.Embedding(VOCABULARY, d),
        torch.nn.Linear(d, 1),
        torch.nn.Parameter(torch.rand(1)),
    )
    parameters = [*encoder.parameters(), *decoder.parameters(), alpha]
    adam, goals = torch.optim.Adam(parameters, lr=1e-3), torch.from_numpy(labels).float()
    for start in range(0, len(tokens), batch):
        x = encoder(tokens[start : start + batch])
        for _ in range(LAYERS):
            attention = F.softmax(torch.bmm(x, x.transpose(-2, -1)) / temperature, dim=2)
            x = (x + torch.bmm(attention, alpha * x)) / (1 + alpha)
        loss = F.binary_cross_entropy_with_logits(
            decoder(x.mean(1)).squeeze(1), goals[start : start + batch]
        )
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 5)
        adam.step()


def classifier(recipe: Recipe) -> Classifier:
    return Classifier(random_start(VOCABULARY, recipe), recipe)


def agree(model: Classifier, bags: Bags) -> None:
    """A benchmark of two things that differ would mean nothing."""
    with torch.no_grad():
        model.w.copy_(torch.linspace(1, 2, len(model.w)))
    model.double()
    np.testing.assert_allclose(logits(model, bags), per_token_loop(model, bags), atol=1e-9)
    model.float()


def timed(what: str, d: int, run: Callable[[], object], number: int) -> dict[str, object]:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "what": what,
        "d": d,
        "reviews": number,
        "seconds": wall * SCALE / number,
        "cpu_seconds": cpu * SCALE / number,
    }


if __name__ == "__main__":
    main()
