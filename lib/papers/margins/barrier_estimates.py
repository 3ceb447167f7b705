"""Two estimates of the log-barrier that need no determinant, each with its error (003, Section 9,
"Scaling").

With A_i = sum_h W_V^h S_i^h M_h and spectral radius rho(A_i) < 1,

    beta_i = -log det(I - A_i) = sum over k >= 1 of tr(A_i^k) / k.

* series: the first terms.  tr(A_i) and tr(A_i^2) need the weights and the shared T x T matrices
  G_gh only; higher orders use powers of the r x r matrices of Sylvester's identity.
* stochastic: terms 1 and 2 exact, terms 3..order by Hutchinson probes z with z^T B_i^k z, B_i
  applied without being formed.

Truncation error.  In the basis of the tokens A_i has the non-zero eigenvalues of N = P^(1/2) G
P^(1/2), so |tr(A_i^k)| <= phi^k for k >= 2, phi = Frobenius norm of N, and for phi < 1 the
neglected terms are at most phi^(order+1) / ((order+1)(1 - phi)).  For phi >= 1 no error is
guaranteed (inf), and for rho >= 1 the series diverges: use the determinant there.  The stochastic
estimate adds a standard error over its probes, itself an estimate: with few probes it understates
rare large deviations.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from papers.arrays import Array
from papers.margins.barrier import sylvester_matrices
from papers.margins.heads import AttentionHeads, prepare_heads


class BarrierEstimate(NamedTuple):
    """beta, a bound on omitted terms, the probes' standard error (or 0): (..., T)."""

    beta: Array
    remainder: Array
    standard_error: Array


def series_log_barrier(
    X: Array,
    W_Q: Array,
    W_K: Array,
    *,
    W_V: Array | None = None,
    order: int = 2,
    positions: Array | None = None,
) -> BarrierEstimate:
    """Sum the first ``order`` terms tr(A_i^k) / k of the barrier; operands as in
    :func:`~papers.margins.log_barrier`. ValueError: ``order`` < 1, or shapes that do not fit.
    """
    if order < 1:
        raise ValueError(
            f"order = {order}: the series starts with its first term, choose at least 1."
        )
    heads = prepare_heads(X, W_Q, W_K, W_V, positions)
    with torch.autocast(device_type=heads.X.device.type, enabled=False):
        traces, phi = _first_traces(heads)
        if order > 2:
            traces = _power_traces(sylvester_matrices(heads), order)
        terms = [trace / (k + 1) for k, trace in enumerate(traces[:order])]
        beta = torch.stack(terms).sum(0)
    found = beta, _remainder(phi, order), torch.zeros_like(beta)
    return BarrierEstimate(*map(heads.restore, found))


def stochastic_log_barrier(
    X: Array,
    W_Q: Array,
    W_K: Array,
    *,
    W_V: Array | None = None,
    order: int = 6,
    probes: int = 8,
    generator: torch.Generator | None = None,
    positions: Array | None = None,
) -> BarrierEstimate:
    """Estimate terms 3..order of the series with random signs: unbiased for the truncated series,
    in O(order * probes * T^2 * H r) instead of O(T^2 (Hr)^2 + T (Hr)^3). ValueError: ``order`` < 3
    (the series is exact there), ``probes`` < 2, or shapes that do not fit.
    """
    if order < 3 or probes < 2:
        raise ValueError(
            f"order = {order} must be at least 3 (use the series below) and probes = "
            f"{probes} at least 2."
        )
    heads = prepare_heads(X, W_Q, W_K, W_V, positions)
    with torch.autocast(device_type=heads.X.device.type, enabled=False):
        traces, phi = _first_traces(heads)
        a, p, k = heads.weights(), heads.values(heads.Q.flatten(0, 1)), heads.keys()
        shape = (a.shape[0], probes, a.shape[2], p.shape[-1])
        where = generator.device if generator else a.device
        z = (2.0 * torch.randint(2, shape, generator=generator, device=where) - 1.0).to(a)
        y, samples = z, a.new_zeros(shape[:-1])
        for power in range(1, order + 1):
            y = _apply(a, p, k, y)
            if power > 2:
                samples = samples + (z * y).sum(-1) / power
        beta = traces[0] + traces[1] / 2 + samples.mean(1)
        error = samples.std(1) / probes**0.5
    return BarrierEstimate(*map(heads.restore, (beta, _remainder(phi, order), error.detach())))


def _first_traces(heads: AttentionHeads) -> tuple[list[Tensor], Tensor]:
    """[tr A_i, tr A_i^2] and phi, each (N, P), from a and G alone; P_h = diag(a^h) - a^h a^h^T."""
    a, G = heads.weights(), heads.gram()  # (N, H, P, T), (N, g, h, T, T)
    own = torch.diagonal(G, dim1=1, dim2=2)  # (N, T, T, H)
    first = torch.einsum("nhpt,ntth->np", a, own) - torch.einsum("nhps,nsth,nhpt->np", a, own, a)
    second = _pair_trace(a, G, G.transpose(1, 2).mT)
    return [first, second], _pair_trace(a, G, G).clamp_min(0.0).sqrt()


def _pair_trace(a: Tensor, G: Tensor, E: Tensor) -> Tensor:
    """sum_gh tr(P_g G_gh P_h E_gh^T), the four terms of (diag a - a a^T) twice: (N, P)."""
    both = torch.einsum("ngps,nghst,nhpt->np", a, G * E, a)
    rows = torch.einsum("nghst,nhpt->nghps", G, a) * torch.einsum("nghst,nhpt->nghps", E, a)
    columns = torch.einsum("ngps,nghst->nghpt", a, G) * torch.einsum("ngps,nghst->nghpt", a, E)
    means = torch.einsum("ngps,nghst,nhpt->nghp", a, G, a) * torch.einsum(
        "ngps,nghst,nhpt->nghp", a, E, a
    )
    rows_sum = torch.einsum("ngps,nghps->np", a, rows)
    columns_sum = torch.einsum("nhpt,nghpt->np", a, columns)
    return both - rows_sum - columns_sum + means.sum((1, 2))


def _power_traces(B: Tensor, order: int) -> list[Tensor]:
    """tr(B^k), k = 1..order, with half as many products: tr(B^(i+j)) = <B^i, (B^j)^T>."""
    powers = [B]
    while len(powers) < (order + 1) // 2:
        powers.append(powers[-1] @ B)
    traces = [B.diagonal(dim1=-2, dim2=-1).sum(-1)]
    for k in range(2, order + 1):
        traces.append((powers[(k + 1) // 2 - 1] * powers[k // 2 - 1].mT).sum((-2, -1)))
    return traces


def _apply(a: Tensor, p: Tensor, k: Tensor, z: Tensor) -> Tensor:
    """B_i z for probes z (N, probes, P, Hr), never forming B_i."""
    out = torch.zeros_like(z)
    for h, z_h in enumerate(z.split(k.shape[-1], dim=-1)):
        scores = z_h @ k[:, None, h].mT  # (N, probes, P, T): z_h . W_K^h x_j
        weighted = a[:, None, h] * scores
        out = out + (weighted - a[:, None, h] * weighted.sum(-1, keepdim=True)) @ p[:, None, h]
    return out


def _remainder(phi: Tensor, order: int) -> Tensor:
    phi = phi.detach()
    bound = phi ** (order + 1) / ((order + 1) * (1.0 - phi))
    return torch.where(phi < 1.0, bound, torch.inf)
