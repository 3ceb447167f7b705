"""Hardmax layers and sentiment classifier: ours beside a per-token loop of the published kind.

    python tests/benchmarks/hardmax.py [--reviews 5000] [--loop-reviews 4] [--threads 1]

Input: random reviews of IMDb's shape (10 to 128 distinct words, 71 on average, with counts; a
vocabulary of 27,000). The loop writes equation (1) of source 004 out token by token, as the
source's code does to judge. To train, the source's code goes through softmax attention in batched
PyTorch on all 128 words of a review, written out here as it is there. All times are scaled to
25,000 reviews and 8 layers: compare ratios, not seconds. Targets: a compiled epoch at d = 2 in at
most 1.2 CPU seconds; our surrogate no slower than the source's form. Writes
results/bench/hardmax.csv.
"""

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

FILE = Path(__file__).resolve().parents[2] / "results" / "bench" / "hardmax.csv"
LAYERS, VOCABULARY, SCALE = 8, 27_000, 25_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reviews", type=int, default=5000)
    parser.add_argument("--loop-reviews", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    bags, labels = reviews(options.reviews), np.arange(options.reviews) % 2
    rows = [row for d in (2, 8) for row in measured(d, bags, labels, options.loop_reviews)]
    table = pd.DataFrame(rows)
    loop = table[table["what"] == "per-token loop"].set_index("d")["cpu_seconds"]
    table["times_faster_than_loop"] = table["d"].map(loop) / table["cpu_seconds"]
    table["threads"] = options.threads
    FILE.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(FILE, index=False, float_format="%.4g", lineterminator="\n")
    print(table.to_string(index=False))


def measured(d: int, bags: Bags, labels: np.ndarray, loop_reviews: int) -> list[dict[str, object]]:
    """One row for each way of judging, and of training for an epoch. Every way runs once on a few
    reviews first, so that nothing is compiled or imported while the clock runs.
    """
    recipe = Recipe(dimension=d, epochs=1, scale=1.0)
    model, few, part = classifier(recipe), bags[:loop_reviews], bags[: len(bags) // 8]
    agree(model, few)
    work = {
        "per-token loop": (partial(per_token_loop, model), few),
        "NumPy, one review at a time": (partial(one_at_a_time, model), few),
        "evaluation, compiled": (partial(logits, model), bags),
    }
    soft = replace(recipe, attention="softmax")
    for what, kind, some in (("argmax fixed", recipe, bags), ("softmax surrogate", soft, part)):
        for way in ("compiled", "recorded"):
            run = partial(our_epoch, kind, labels, way == "compiled")
            work[f"training epoch, {what}, {way}"] = run, some
    work["training epoch, the source's surrogate"] = partial(source_epoch, d, labels), part
    rows = []
    for what, (run, some) in work.items():
        run(few)
        rows.append({"what": what, "d": d, **timed(partial(run, some), len(some))})
    return rows


def reviews(number: int) -> Bags:
    """Random reviews of IMDb's shape."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(6.0, 71 / 6.0, number).astype(int), 10, 128)
    there = np.arange(128) < lengths[:, None]
    words = rng.integers(0, VOCABULARY, (number, 128)).astype(np.int32)
    counts = np.where(there, rng.geometric(0.85, (number, 128)), 0)
    return Bags(np.where(there, words, 0), counts.astype(np.float32))


def per_token_loop(model: Classifier, bags: Bags) -> np.ndarray:
    """Equation (1), token by token; A = identity. Returns the logits."""
    embedding, alpha = model.embedding.detach().double().numpy(), model.alpha.item()
    out = []
    for words, counts in zip(bags.words, bags.counts.astype(int), strict=True):
        Z = np.repeat(embedding[words], counts, axis=0)
        for _ in range(LAYERS):
            following = np.empty_like(Z)
            for i in range(len(Z)):
                scores = Z @ Z[i]
                C = np.flatnonzero(scores >= scores.max() - 1e-12 * np.abs(scores).max())
                following[i] = Z[i] + alpha / (1 + alpha) * (Z[C] - Z[i]).mean(0)
            Z = following
        out.append(Z.mean(0) @ model.w.detach().double().numpy() + model.v.item())
    return np.array(out)


def one_at_a_time(model: Classifier, bags: Bags) -> None:
    """`hardmax_step` in NumPy on each review alone."""
    embedding, A = model.embedding.detach().double().numpy(), np.eye(model.embedding.shape[1])
    for words, counts in zip(bags.words, bags.counts, strict=True):
        there = counts > 0
        Z = embedding[words[there]]
        for _ in range(LAYERS):
            Z = hardmax_step(Z, A, 1.0, counts=counts[there].astype(float), check=False)


def our_epoch(recipe: Recipe, labels: np.ndarray, compiled: bool, bags: Bags) -> None:
    """An epoch of ours."""
    fit(classifier(recipe), bags, labels[: len(bags)], compiled=compiled)


def source_epoch(d: int, labels: np.ndarray, bags: Bags) -> None:
    """An epoch as the source's code trains: 128 tokens, n x n softmax attention at temperature
    0.001, batches of 64, Adam.
    """
    each = zip(bags.words, bags.counts.astype(int), strict=True)
    rows = [np.repeat(words, counts)[:128] for words, counts in each]
    tokens = torch.from_numpy(np.stack([np.pad(row, (0, 128 - len(row))) for row in rows])).long()
    encoder, decoder = torch.nn.Embedding(VOCABULARY, d), torch.nn.Linear(d, 1)
    alpha = torch.nn.Parameter(torch.rand(1))
    parameters = [*encoder.parameters(), *decoder.parameters(), alpha]
    adam = torch.optim.Adam(parameters, lr=1e-3)
    goals = torch.from_numpy(labels[: len(bags)]).float()
    for start in range(0, len(tokens), 64):
        x = encoder(tokens[start : start + 64])
        for _ in range(LAYERS):
            attention = F.softmax(torch.bmm(x, x.transpose(-2, -1)) / 1e-3, dim=2)
            x = (x + torch.bmm(attention, alpha * x)) / (1 + alpha)
        logit = decoder(x.mean(1)).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(logit, goals[start : start + 64])
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


def timed(run: Callable[[], object], number: int) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    scale = SCALE / number
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"reviews": number, "seconds": wall * scale, "cpu_seconds": cpu * scale}


if __name__ == "__main__":
    main()
