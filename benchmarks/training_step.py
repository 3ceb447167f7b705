"""Cost of one training step without the margin term, with the dense d x d determinant, and with the
low-rank one.

One GPT step (forward, backward, AdamW) on the same batch, for widths d; medians of CPU time on one
thread, so that other work on the machine changes little, or of wall time on a GPU, after a warm-up.
Beside it the cost of the step with each term over the plain one, how many times the dense term
costs ours, and the error of the low-rank score against the dense one on those very embeddings.

Usage: `python benchmarks/training_step.py [--widths 64,128,256,384] [--rank 64] [--device auto]
[--repeats 3]` With `--nanogpt model.py`, a checkout's file of github.com/karpathy/nanoGPT, instead
a plain step of ours over one of nanoGPT's, at our small models' shape and at twice their width,
both in single precision on one thread, turn by turn: results/bench/nanogpt.csv. Ours turns queries
and keys by position, theirs adds a learned vector once: a third turn is ours without turning, in
which the two do the same work but for our second matrix of embeddings. Targets: at d = 384 and rank
64 the term adds at most 25% to a step on the device that trains it, and costs at most a twentieth
of the dense one on a CPU. Writes results/bench/training_step.csv.
"""

from __future__ import annotations

import argparse
import contextlib
import runpy
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pandas as pd
import torch
import torch.nn.functional as F

from softgeom.language_model import GPT, GPTConfig, gpt, resolve_device
from softgeom.margins import log_barrier
from softgeom.margins.embedding_prior import EmbeddingPrior, PriorConfig

TABLE = Path(__file__).resolve().parent.parent / "results" / "bench" / "training_step.csv"


def main() -> None:
    options = parse()
    device = resolve_device(options.device)
    if device.type == "cpu":
        torch.set_num_threads(1)
    if options.nanogpt:
        rows = [beside_nanogpt(options.nanogpt, d, options.repeats) for d in (64, 128)]
        print(pd.DataFrame(rows).to_string(index=False))
        pd.DataFrame(rows).to_csv(
            TABLE.with_name("nanogpt.csv"), index=False, float_format="%.4g", lineterminator="\n"
        )
        return
    rows = []
    for d in map(int, options.widths.split(",")):
        rows.append(compare(d, options, device))
        print(rows[-1], flush=True)
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    known = (
        pd.read_csv(TABLE)
        if TABLE.is_file()
        else pd.DataFrame(columns=["device", "d_model", "rank", "blocks"])
    )
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu, 1 thread"
    frame = pd.DataFrame(rows).assign(device=name)
    kept = known[~known["device"].eq(name)] if len(known) else known
    frame = pd.concat([kept, frame]) if len(kept) else frame
    frame.to_csv(TABLE, index=False, float_format="%.4g", lineterminator="\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--widths", default="64,128,256,384", help="d_model, comma-separated")
    parser.add_argument("--rank", type=int, default=64, help="of M; at most each width")
    parser.add_argument(
        "--blocks", type=int, default=12, help="transformer blocks (the paper's model has 12)"
    )
    parser.add_argument("--context", type=int, default=128, help="tokens of a window")
    parser.add_argument("--batch", type=int, default=2, help="windows per step")
    parser.add_argument("--vocabulary", type=int, default=8192, help="tokens of the vocabulary")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument(
        "--nanogpt", type=Path, help="model.py of nanoGPT: compare with its step instead"
    )
    parser.add_argument("--repeats", type=int, default=3, help="timed steps of each kind")
    return parser.parse_args()


def compare(
    d: int, options: argparse.Namespace, device: torch.device
) -> dict[str, float | int | str]:
    """Time the three kinds of step in turn, round by round: a slow moment hits all of them."""
    heads = max(1, d // 64)
    sizes = GPTConfig(options.vocabulary, d, heads, options.blocks, 4 * d, options.context)
    model = GPT(sizes).to(device)
    prior = EmbeddingPrior(PriorConfig(d_model=d, rank=min(options.rank, d), init_scale=4.0)).to(
        device
    )
    # Embeddings of the size of trained ones, so that the determinants are not those of the
    # identity.
    with torch.no_grad():
        model.W_E.mul_(5)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(
        options.vocabulary, (options.batch, options.context + 1), generator=generator
    ).to(device)
    optimizer = torch.optim.AdamW([*model.parameters(), *prior.parameters()])
    methods: dict[str, Callable[[torch.Tensor], torch.Tensor] | None] = {
        "plain": None,
        "low_rank": lambda X: log_barrier(X, *prior.factors(), method="low_rank").mean(),
        "dense": lambda X: log_barrier(X, *prior.factors(), method="dense").mean(),
    }
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for round_number in range(options.repeats + 1):
        for name, penalty in methods.items():
            taken = timed(lambda penalty=penalty: step(model, tokens, optimizer, penalty), device)
            if round_number:
                seconds[name].append(taken)
    plain, ours, dense = (statistics.median(seconds[name]) for name in methods)
    # The term alone too: at large d ours is a few per cent of a step, which the difference of two
    # steps cannot resolve.
    our_term, dense_term = (
        statistics.median(
            timed(lambda name=name: term(model, tokens, methods[name]), device)
            for _ in range(options.repeats)
        )
        for name in ("low_rank", "dense")
    )
    with torch.no_grad():
        X = model.embed(tokens[:, :-1])
        exact, fast = (
            log_barrier(X, *prior.factors(), method=method) for method in ("dense", "low_rank")
        )
    return {
        "d_model": d,
        "rank": min(options.rank, d),
        "blocks": options.blocks,
        "tokens": options.batch * options.context,
        "plain_seconds": plain,
        "low_rank_seconds": ours,
        "dense_seconds": dense,
        "low_rank_over_plain": ours / plain,
        "dense_over_plain": dense / plain,
        "low_rank_term_seconds": our_term,
        "dense_term_seconds": dense_term,
        "low_rank_term_over_plain": our_term / plain,
        "dense_term_over_low_rank_term": dense_term / our_term,
        "largest_score": exact.abs().max().item(),
        "largest_error": (exact - fast).abs().max().item(),
    }


def beside_nanogpt(path: Path, d: int, repeats: int) -> dict[str, float]:
    """CPU seconds of a step of ours and of nanoGPT's: medians, and the ratio of each pair."""
    theirs = runpy.run_path(str(path), run_name="nanogpt")
    sizes = GPTConfig(d_vocab=1024, d_model=d, n_heads=4, n_layers=2, d_mlp=4 * d, n_ctx=128)
    with contextlib.redirect_stdout(None):  # it prints its number of parameters
        other = theirs["GPT"](
            theirs["GPTConfig"](
                block_size=128,
                vocab_size=1024,
                n_layer=2,
                n_head=4,
                n_embd=d,
                dropout=0.0,
                bias=True,
            )
        )
    ours = GPT(sizes)
    tokens = torch.randint(1024, (16, 129), generator=torch.Generator().manual_seed(0))
    optimizers = torch.optim.AdamW(ours.parameters()), torch.optim.AdamW(other.parameters())
    inputs, following = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def their_step() -> None:
        optimizers[1].zero_grad(set_to_none=True)
        other(inputs, following)[1].backward()
        optimizers[1].step()

    def our_step() -> None:
        step(ours, tokens, optimizers[0], None)

    def unturned_step() -> None:
        with mock.patch.object(gpt, "rotate", lambda x, base: x):
            our_step()

    turns = [
        [timed(one, torch.device("cpu")) for one in (our_step, their_step, unturned_step)]
        for _ in range(10 * repeats + 3)
    ][3:]
    ratios = sorted(mine / nano for mine, nano, _ in turns)
    return {
        "d_model": d,
        "our_seconds": statistics.median(mine for mine, *_ in turns),
        "nanogpt_seconds": statistics.median(nano for _, nano, _ in turns),
        "ours_over_nanogpt": statistics.median(ratios),
        "lower_quartile": ratios[len(ratios) // 4],
        "upper_quartile": ratios[-len(ratios) // 4],
        "unturned_over_nanogpt": statistics.median(bare / nano for _, nano, bare in turns),
        "our_tokens_per_second": 16 * 128 / statistics.median(mine for mine, *_ in turns),
    }


def step(
    model: GPT,
    tokens: torch.Tensor,
    optimizer: torch.optim.Optimizer,
    penalty: Callable[[torch.Tensor], torch.Tensor] | None,
) -> None:
    """One update of everything, as the training loop makes it."""
    embeddings = model.embed(tokens[:, :-1])
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=tokens.device.type == "cuda"):
        logits = model.decode(embeddings)
    loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
    if penalty is not None:
        loss = loss + 0.05 * penalty(embeddings)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


def term(
    model: GPT, tokens: torch.Tensor, penalty: Callable[[torch.Tensor], torch.Tensor] | None
) -> None:
    """The margin term by itself, forward and backward down to the embeddings and to M."""
    if penalty is not None:
        penalty(model.embed(tokens[:, :-1])).backward()


def timed(work: Callable[[], None], device: torch.device) -> float:
    """CPU seconds of this process, or wall seconds of a synchronised GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        return time.perf_counter() - start
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
