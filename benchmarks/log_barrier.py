"""The log-barrier alone: time of every method beside the dense determinant, and its error on
trained models.

Times: forward and backward pass of the mean score on the same random batch, all methods in turn
within each round, so that a slow moment hits all of them; medians of CPU time on one thread (wall
time on a GPU). Compare ratios, not seconds. Errors: a small GPT is trained with the barrier as a
penalty, once with free and once with positive coupling, and every method scores its embeddings; the
reference is the dense determinant in float64, and each estimate's stated bound stands beside its
actual error.

Usage: `python benchmarks/log_barrier.py [--widths 64,128,256,384] [--ranks 16,64] [--device auto]
[--steps 150]` Target: low rank at least 20 times faster than dense at d = 384. The step of a whole
model is timed in training_step.py. Writes results/bench/log_barrier.csv and
results/bench/log_barrier_errors.csv.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch

from compendium import corpora
from softgeom.language_model import (
    GPT,
    GPTConfig,
    TrainingConfig,
    resolve_device,
    train,
    train_tokenizer,
)
from softgeom.margins import log_barrier, series_log_barrier, stochastic_log_barrier
from softgeom.margins.embedding_prior import EmbeddingPrior, PriorConfig

FOLDER = Path(__file__).resolve().parent.parent / "results" / "bench"
METHODS: dict[str, dict[str, object]] = {
    "dense": {"method": "dense"},
    "low_rank": {"method": "low_rank"},
    "low_rank, every 4th position": {"method": "low_rank"},
    "series, order 2": {"method": "series", "order": 2},
    "series, order 8": {"method": "series", "order": 8},
    "stochastic, order 6, 8 probes": {"method": "stochastic", "order": 6, "probes": 8},
}


def main() -> None:
    options = parse()
    device = resolve_device(options.device)
    if device.type == "cpu":
        torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu, 1 thread"
    rows = []
    for d in map(int, filter(None, options.widths.split(","))):
        for rank in map(int, options.ranks.split(",")):
            if rank <= d:
                rows += compare(d, rank, options, device)
                print(pd.DataFrame(rows[-len(METHODS) :]).to_string(index=False), flush=True)
    if rows:
        write("log_barrier", pd.DataFrame(rows).assign(device=name), name)
    if options.steps:
        errors = pd.DataFrame(
            [
                row
                for coupling in ("free", "positive")
                for row in trained_errors(coupling, options, device)
            ]
        )
        print(errors.to_string(index=False), flush=True)
        write("log_barrier_errors", errors.assign(device=name), name)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--widths", default="64,128,256,384", help="d, comma-separated; empty: errors only"
    )
    parser.add_argument(
        "--ranks",
        default="16,64",
        help="ranks of M, comma-separated; those above a width are left out",
    )
    parser.add_argument("--context", type=int, default=128, help="tokens of a window")
    parser.add_argument("--batch", type=int, default=2, help="windows")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds")
    parser.add_argument(
        "--steps",
        type=int,
        default=150,
        help="training steps of the models behind the errors; 0: times only",
    )
    return parser.parse_args()


def compare(
    d: int, rank: int, options: argparse.Namespace, device: torch.device
) -> list[dict[str, object]]:
    """Time all methods on one batch whose logits and determinants are of order one."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(options.batch, options.context, d, generator=generator).to(device)
    W = [torch.randn(rank, d, generator=generator).to(device) / (d * rank) ** 0.5 for _ in range(2)]
    operands = [t.requires_grad_() for t in (X, *W)]
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    for round_number in range(options.repeats + 1):
        for name, how in METHODS.items():
            kept = torch.arange(3, options.context, 4, device=device) if "4th" in name else None
            taken = timed(
                lambda how=how, kept=kept: (
                    log_barrier(*operands, positions=kept, **how).mean().backward()
                ),
                device,
            )
            if round_number:  # the first round warms up
                seconds[name].append(taken)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return [
        {
            "d": d,
            "rank": rank,
            "tokens": options.batch * options.context,
            "context": options.context,
            "method": name,
        }
        | {"seconds": median, "dense_over_method": medians["dense"] / median}
        for name, median in medians.items()
    ]


def timed(work: Callable[[], object], device: torch.device) -> float:
    """CPU seconds of this process, or wall seconds of a synchronised GPU."""
    clock = time.process_time
    if device.type == "cuda":
        torch.cuda.synchronize()
        clock = time.perf_counter
    start = clock()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return clock() - start


def trained_errors(
    coupling: str, options: argparse.Namespace, device: torch.device
) -> list[dict[str, object]]:
    """Train a model with the penalty, then score held-out windows by every method."""
    text = corpora.load_text("imdb")
    tokenizer = train_tokenizer(text.train[:1_000_000], 1024)
    tokens, held_out = (
        tokenizer.encode(text.train[:1_000_000]),
        tokenizer.encode(text.validation[:100_000]),
    )
    model = GPT(GPTConfig(d_vocab=len(tokenizer), d_model=64, n_ctx=options.context))
    prior = EmbeddingPrior(PriorConfig(d_model=64, rank=16, coupling=coupling))
    config = TrainingConfig(
        steps=options.steps, batch_size=8, penalty_weight=0.05, evaluate_every=options.steps
    )
    train(model, tokens, held_out, config, penalty=prior, device=str(device))
    with torch.no_grad():
        windows = (
            torch.as_tensor(held_out[: 4 * options.context].astype("int64"))
            .reshape(4, -1)
            .to(device)
        )
        X, factors = model.embed(windows), prior.factors()
        wide = [t.double() for t in (X, *factors)]
        exact = log_barrier(*wide, method="dense")
        results = {
            "low_rank, float32": (log_barrier(X, *factors, method="low_rank"), None),
            "low_rank": (log_barrier(*wide, method="low_rank"), None),
            "dual": (log_barrier(*wide, method="dual"), None),
        }
        for order in (1, 2, 4, 8):
            estimate = series_log_barrier(*wide, order=order)
            results[f"series, order {order}"] = (estimate.beta, estimate.remainder)
        estimate = stochastic_log_barrier(
            *wide, order=6, probes=8, generator=torch.Generator(device).manual_seed(0)
        )
        results["stochastic, order 6, 8 probes"] = (
            estimate.beta,
            estimate.remainder + 4 * estimate.standard_error,
        )
    return [
        {
            "coupling": coupling,
            "corpus": str(text.source),
            "steps": options.steps,
            "method": name,
            "mean_score": exact.mean().item(),
        }
        | summary((beta - exact).abs(), bound)
        for name, (beta, bound) in results.items()
    ]


def summary(error: torch.Tensor, bound: torch.Tensor | None) -> dict[str, float]:
    out = {"median_error": error.median().item(), "largest_error": error.max().item()}
    if bound is not None:
        stated = torch.isfinite(bound)
        out["positions_with_a_bound"] = stated.double().mean().item()
        out["within_stated_error"] = (error <= bound + 1e-12)[stated].double().mean().item()
    return out


def write(table: str, frame: pd.DataFrame, device: str) -> None:
    """Replace this device's rows and keep the others'."""
    path = FOLDER / f"{table}.csv"
    if path.is_file():
        known = pd.read_csv(path)
        frame = pd.concat([known[~known["device"].eq(device)], frame], ignore_index=True)
    frame.to_csv(path, index=False, float_format="%.4g", lineterminator="\n")


if __name__ == "__main__":
    main()
