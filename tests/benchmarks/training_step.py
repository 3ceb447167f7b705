"""Cost of one training step without the margin term, with the dense d x d determinant, and with the
low-rank one.

    python tests/benchmarks/training_step.py [--widths 64,128,256,384] [--rank 64] [--device auto]

One GPT step (forward, backward, AdamW) of twelve blocks on the same batch; medians of CPU time on
one thread, or of wall time on a GPU, after a warm-up. Beside them the cost of each term alone, and
the error of the low-rank score against the dense one. Targets: at d = 384 and rank 64 the term adds
at most 25% to a step, and costs at most a twentieth of the dense one on a CPU. Writes
results/bench/training_step.csv; rows of other devices stay.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
import torch.nn.functional as F

from papers.language_model import GPT, GPTConfig, resolve_device
from papers.margins import log_barrier
from papers.margins.embedding_prior import EmbeddingPrior, PriorConfig
from papers.margins.heads import prepare_heads

TABLE = Path(__file__).resolve().parents[2] / "results" / "bench" / "training_step.csv"
BLOCKS, CONTEXT, BATCH, VOCABULARY = 12, 128, 2, 8192  # the paper's model has 12 blocks

Penalty = Callable[[torch.Tensor], torch.Tensor]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--widths", default="64,128,256,384", help="d_model, comma-separated")
    parser.add_argument("--rank", type=int, default=64, help="of M; at most each width")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--repeats", type=int, default=3, help="timed steps of each kind")
    options = parser.parse_args()
    device = resolve_device(options.device)
    if device.type == "cpu":
        torch.set_num_threads(1)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu, 1 thread"
    rows = []
    for d in map(int, options.widths.split(",")):
        rows.append(compare(d, min(options.rank, d), options.repeats, device) | {"device": name})
        print(rows[-1], flush=True)
    known = pd.read_csv(TABLE).to_dict("records") if TABLE.is_file() else []
    table = pd.DataFrame([row for row in known if row["device"] != name] + rows)
    table.to_csv(TABLE, index=False, float_format="%.4g", lineterminator="\n")


def compare(d: int, rank: int, repeats: int, device: torch.device) -> dict[str, float | str]:
    """Time the three kinds of step in turn, round by round: a slow moment hits all of them."""
    model = GPT(GPTConfig(VOCABULARY, d, max(1, d // 64), BLOCKS, 4 * d, CONTEXT)).to(device)
    prior = EmbeddingPrior(PriorConfig(d_model=d, rank=rank, init_scale=4.0)).to(device)
    with torch.no_grad():  # the size of trained embeddings: determinants far from the identity's
        model.W_E.mul_(5)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(VOCABULARY, (BATCH, CONTEXT + 1), generator=generator).to(device)
    optimizer = torch.optim.AdamW([*model.parameters(), *prior.parameters()])

    work: dict[str, Callable[[], None]] = {"plain": lambda: step(model, tokens, optimizer)}
    methods = {"low_rank": log_barrier, "dense": dense_barrier}
    for method, barrier in methods.items():

        def term(X: torch.Tensor, barrier: Callable[..., torch.Tensor] = barrier) -> torch.Tensor:
            return barrier(X, *prior.factors()).mean()

        work[method] = lambda term=term: step(model, tokens, optimizer, term)
        # the term alone: at large d ours is less than two steps differ by
        work[f"{method}_term"] = lambda term=term: term(model.embed(tokens[:, :-1])).backward()
    turns = [{name: timed(one, device) for name, one in work.items()} for _ in range(repeats + 1)]
    cost = {name: statistics.median(turn[name] for turn in turns[1:]) for name in work}
    with torch.no_grad():
        X = model.embed(tokens[:, :-1])
        fast, exact = (barrier(X, *prior.factors()) for barrier in methods.values())
    return {
        "d_model": d,
        "rank": rank,
        **{f"{name}_seconds": seconds for name, seconds in cost.items()},
        "low_rank_over_plain": cost["low_rank"] / cost["plain"],
        "low_rank_term_over_plain": cost["low_rank_term"] / cost["plain"],
        "dense_term_over_low_rank_term": cost["dense_term"] / cost["low_rank_term"],
        "largest_error": (exact - fast).abs().max().item(),
    }


def dense_barrier(X: torch.Tensor, W_Q: torch.Tensor, W_K: torch.Tensor) -> torch.Tensor:
    """The same scores by d x d determinants, as they are written."""
    a = prepare_heads(X, W_Q, W_K).weights()[:, 0]  # (N, T, T)
    mean = a @ X
    S = torch.einsum("npt,ntc,nte->npce", a, X, X) - mean[..., None] * mean[..., None, :]
    identity = torch.eye(X.shape[-1], device=X.device)
    return -torch.linalg.slogdet(identity - S @ W_K.T @ W_Q).logabsdet


def step(
    model: GPT, tokens: torch.Tensor, optimizer: torch.optim.Optimizer, term: Penalty | None = None
) -> None:
    """One update of everything, as the training loop makes it."""
    embeddings = model.embed(tokens[:, :-1])
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=tokens.device.type == "cuda"):
        logits = model.decode(embeddings)
    loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
    if term is not None:
        loss = loss + 0.05 * term(embeddings)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()


def timed(work: Callable[[], None], device: torch.device) -> float:
    """CPU seconds of this process, or wall seconds of a synchronised GPU."""
    cuda = device.type == "cuda"
    clock = time.perf_counter if cuda else time.process_time
    start = clock()
    work()
    if cuda:
        torch.cuda.synchronize()
    return clock() - start


if __name__ == "__main__":
    main()
