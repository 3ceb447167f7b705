"""The joint law of tokens and embeddings from library distributions, beside the terms of 003, eqs.
(26) and (27).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from softgeom.margins.prior import log_density


def joint_log_density(X: Any, tokens: Any, U: Any, W_Q: Any, W_K: Any, s: float) -> Any:
    """log p(w, x) from library distributions and the determinant of the whole Jacobian by automatic
    differentiation (a tensor, for gradients).
    """
    import torch

    from softgeom.margins.depth import prior_residuals

    def residuals(Z: torch.Tensor) -> torch.Tensor:
        return prior_residuals(Z, W_Q, W_K)

    J = torch.autograd.functional.jacobian(residuals, X, create_graph=True).reshape(
        X.numel(), X.numel()
    )
    return (
        torch.distributions.Categorical(logits=X @ U.T).log_prob(tokens).sum()
        + torch.distributions.Normal(X.new_zeros(()), X.new_tensor(s)).log_prob(residuals(X)).sum()
        + torch.linalg.slogdet(J).logabsdet
    )


class Objective(NamedTuple):
    """One draw: gap in value, largest gap in gradient, and the cosine of the gradients of barrier
    and whole prior, for embeddings and coupling.
    """

    value_gap: float
    gradient_gap: float
    cosine_embeddings: float
    cosine_coupling: float


def compare_objectives(seed: int, T: int, d: int, classes: int, s: float) -> Objective:
    """Negative log-posterior against its summands at random embeddings, tokens, head and coupling;
    then the barrier against the whole log-prior.
    """
    import torch

    from softgeom.margins.posterior import joint_terms

    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()

    X, U, W_Q, W_K = normal(T, d), normal(classes, d), normal(d, d), normal(d, d)
    tokens = torch.randint(classes, (T,), generator=generator)
    terms, other = (
        joint_terms(X, tokens, U, W_Q, W_K, s=s),
        joint_log_density(X, tokens, U, W_Q, W_K, s),
    )
    learned = (X, U, W_Q, W_K)
    ours, theirs = (
        torch.autograd.grad(terms.total, learned, retain_graph=True),
        torch.autograd.grad(-other, learned),
    )
    scale = max(float(g.abs().max()) for g in theirs)

    def cosine(*variables: torch.Tensor) -> float:
        whole, barrier = (
            torch.cat(
                [g.flatten() for g in torch.autograd.grad(value, variables, retain_graph=True)]
            )
            for value in (terms.energy + terms.barrier, terms.barrier)
        )
        return float(torch.nn.functional.cosine_similarity(whole, barrier, dim=0))

    in_numpy = log_density(*(Z.detach().numpy() for Z in (X, W_Q, W_K)), s=s)
    prior = (terms.energy + terms.barrier + terms.constant).item()
    return Objective(
        max(abs((terms.total + other).item()), abs(prior + in_numpy)) / max(1.0, abs(other.item())),
        max(float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True)) / scale,
        cosine(X),
        cosine(W_Q, W_K),
    )
