"""Every way to compute the log-barrier, measured on priors that were trained (003, Section 9,
"Scaling").

Training moves the spectrum of S M, and the estimates live from its size: random matrices would
flatter them. Tokens are clusters, X (8, T, d); a prior minimises squared residual plus barrier,
with free coupling or with W_K = W_Q, whose coupling is positive.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor

from softgeom.margins import barrier, barrier_estimates

_CLUSTERS, _RANK = 6, 8
_STANDARD_ERRORS = 4.0  # of a stochastic estimate, in what it states as its error


def clustered_tokens(d: int, T: int, seed: int) -> Tensor:
    """Eight sequences of tokens around six centres, of typical length one: (8, T, d)."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(_CLUSTERS, d, generator=generator)
    labels = torch.randint(_CLUSTERS, (8, T), generator=generator)
    return (centres[labels] + 0.3 * torch.randn(8, T, d, generator=generator)) / d**0.5


def train_prior(X: Tensor, coupling: str, steps: int, seed: int) -> tuple[Tensor, Tensor]:
    """W_Q and W_K (8, d) after some steps of Adam on 2 |e|^2 + beta; ``coupling`` is ``free`` or
    ``positive``.
    """
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(2, _RANK, X.shape[-1], generator=generator) / X.shape[-1] ** 0.5
    W_Q, W_K = (factor.clone().requires_grad_() for factor in start)
    factors = (W_Q, W_K) if coupling == "free" else (W_Q, W_Q)
    optimiser = torch.optim.Adam([W_Q, W_K] if coupling == "free" else [W_Q], lr=0.02)
    for _ in range(steps):
        optimiser.zero_grad()
        residual = X - barrier.prepare_heads(X, *factors, None, None).weights()[:, 0] @ X
        (
            2.0 * residual.square().sum(-1).mean() + barrier.log_barrier(X, *factors).mean()
        ).backward()
        optimiser.step()
    return factors[0].detach(), factors[1].detach()


def compare_methods(X: Tensor, W_Q: Tensor, W_K: Tensor, seed: int) -> pd.DataFrame:
    """Error of each method against the dense float64 determinant, and how often it stays within the
    error that it states.
    """
    exact = barrier.signed_log_barrier(X, W_Q, W_K, method="dense")
    single = [operand.float() for operand in (X, W_Q, W_K)]
    results: dict[str, tuple[Tensor, Tensor | None]] = {
        "low rank (Sylvester)": (barrier.log_barrier(X, W_Q, W_K, method="low_rank"), None),
        "dual": (barrier.log_barrier(X, W_Q, W_K, method="dual"), None),
        "low rank, float32": (barrier.log_barrier(*single, method="low_rank"), None),
    }
    for order in (1, 2, 4, 8):
        estimate = barrier_estimates.series_log_barrier(X, W_Q, W_K, order=order)
        results[f"series, order {order}"] = estimate.beta, estimate.remainder
    for probes in (8, 64):
        generator = torch.Generator().manual_seed(seed)
        estimate = barrier_estimates.stochastic_log_barrier(
            X, W_Q, W_K, order=8, probes=probes, generator=generator
        )
        allowed = estimate.remainder + _STANDARD_ERRORS * estimate.standard_error
        results[f"stochastic, order 8, {probes} probes"] = estimate.beta, allowed
    rows = [
        {"method": name} | _errors(beta, exact.beta, allowed)
        for name, (beta, allowed) in results.items()
    ]
    beyond = int((exact.sign < 0).sum())
    return pd.DataFrame(rows).assign(mean_beta=exact.beta.mean().item(), positions_beyond=beyond)


def _errors(beta: Tensor, exact: Tensor, allowed: Tensor | None) -> dict[str, float]:
    error = (beta - exact).abs()
    row = {"median_error": error.median().item(), "largest_error": error.max().item()}
    if allowed is not None:
        stated = torch.isfinite(allowed)
        row["positions_with_a_bound"] = stated.double().mean().item()
        row["within_stated_error"] = (error <= allowed + 1e-12)[stated].double().mean().item()
    return row


def cross_boundary(offsets: Sequence[float]) -> pd.DataFrame:
    """The barrier of one token on the line with past (-u, u), where det J = 1 - u^2, at u^2 = 1 +
    offset: score, sign, gradient.
    """
    rows = []
    one = torch.ones(1, 1, dtype=torch.float64)
    for offset in offsets:
        root = (1 + offset) ** 0.5
        tokens = torch.tensor([[-root], [root], [0.0]], dtype=torch.float64, requires_grad=True)
        out = barrier.signed_log_barrier(tokens, one, one, method="low_rank")
        (slope,) = torch.autograd.grad(out.beta[2], tokens)
        row = {"u_squared": 1 + offset, "beta": out.beta[2].item(), "sign": int(out.sign[2])}
        rows.append(row | {"replaced": int(out.replaced[2]), "gradient_norm": slope.norm().item()})
    return pd.DataFrame(rows)
