import numpy as np
import pytest
import torch

from papers.margins import residual_map
from papers.margins.controls import DosedPrior
from papers.margins.embedding_prior import EmbeddingPrior, PriorConfig


def embeddings(T: int = 9, d: int = 6, batch: int = 2) -> torch.Tensor:
    return torch.randn(batch, T, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def make(**readings) -> EmbeddingPrior:
    return EmbeddingPrior(PriorConfig(d_model=6, **{"rank": 3} | readings), seed=2).double()


def scores_by_definition(X: torch.Tensor, M: torch.Tensor) -> torch.Tensor:
    """-log |det(I - S_i M)| with S_i summed token by token, logits x_i^T M^T x_j."""
    beta = torch.zeros(X.shape[:2], dtype=X.dtype)
    for n, x in enumerate(X):
        for i in range(1, len(x)):
            a = torch.softmax(torch.stack([x[j] @ M @ x[i] for j in range(i)]), 0)
            mean = sum(a[j] * x[j] for j in range(i))
            S = sum(a[j] * torch.outer(x[j] - mean, x[j] - mean) for j in range(i))
            beta[n, i] = -torch.linalg.slogdet(torch.eye(len(M), dtype=X.dtype) - S @ M).logabsdet
    return beta


@pytest.mark.parametrize("rank", [0, 3])
@pytest.mark.parametrize("coupling", ["free", "positive", "held", "negative"])
def test_scores_by_definition_for_every_reading(rank, coupling):
    prior, X = make(rank=rank, coupling=coupling), embeddings()
    expected = scores_by_definition(X, prior.coupling_matrix())
    assert torch.allclose(prior.scores(X), expected, atol=1e-10)


def test_the_coupling_decides_the_sign_of_the_matrix_and_the_rank_its_rank():
    positive, negative = (make(coupling=c).coupling_matrix() for c in ("positive", "negative"))
    assert torch.linalg.eigvalsh(positive).min() > -1e-12
    assert torch.equal(negative, -positive)
    # No boundary on the negative side: every determinant is at least one, every score at most zero.
    assert make(coupling="negative").scores(10 * embeddings()).max() < 1e-10
    ranks = [int(torch.linalg.matrix_rank(make(rank=r).coupling_matrix())) for r in (2, 0)]
    assert ranks == [2, 6]


@pytest.mark.parametrize("rank", [0, 3])
def test_a_held_matrix_is_positive_and_keeps_its_norm(rank):
    held, positive = (make(rank=rank, coupling=coupling) for coupling in ("held", "positive"))
    assert torch.allclose(held.coupling_matrix(), positive.coupling_matrix())
    norm = held.coupling_matrix().norm().item()
    with torch.no_grad():
        held.W_Q[1:] *= 1e-3
        held.W_Q += 0.1 * torch.eye(len(held.W_Q), 6)
    assert held.coupling_matrix().norm().item() == pytest.approx(norm)
    assert torch.linalg.eigvalsh(held.coupling_matrix()).min() > -1e-12


def test_the_penalty_is_a_mean_plus_residuals_or_over_a_stride():
    X, plain = embeddings(T=10), make()
    assert plain(X).item() == pytest.approx(plain.scores(X).mean().item())
    W_Q, W_K = (W.detach().numpy() for W in plain.factors())
    energy = np.mean([np.square(residual_map(x.numpy(), W_Q, W_K)).sum(-1) for x in X])
    expected = plain(X).item() + energy / (2 * 0.7**2)
    assert make(quadratic=True, noise_scale=0.7)(X).item() == pytest.approx(expected, abs=1e-10)
    every_third = make(stride=3)
    assert every_third(X).item() == pytest.approx(every_third.scores(X)[:, 2::3].mean().item())


def test_every_factor_has_a_gradient_and_the_seed_decides_the_start():
    couplings = [{"coupling": one} for one in ("positive", "held", "negative")]
    for readings in ({}, {"rank": 0}, *couplings):
        prior = make(**readings)
        prior(embeddings()).backward()
        assert all(p.grad is not None and p.grad.abs().max() > 0 for p in prior.parameters())
    config = PriorConfig(d_model=6, rank=3)
    assert torch.equal(EmbeddingPrior(config, seed=2).W_Q, EmbeddingPrior(config, seed=2).W_Q)
    assert not torch.equal(EmbeddingPrior(config, seed=2).W_Q, EmbeddingPrior(config, seed=3).W_Q)
    assert repr(EmbeddingPrior(config)) != repr(EmbeddingPrior(PriorConfig(d_model=6, rank=2)))


CONFIG = PriorConfig(d_model=6, rank=3)


def single_embeddings() -> torch.Tensor:
    return torch.randn(2, 9, 6, generator=torch.Generator().manual_seed(1)).requires_grad_()


def felt_and_learned(penalty: torch.nn.Module) -> tuple[float, torch.Tensor, list[torch.Tensor]]:
    X = single_embeddings()
    value = penalty(X)
    value.backward()
    assert X.grad is not None
    return value.item(), X.grad, [p.grad for p in penalty.parameters()]


def test_the_dose_scales_what_embeddings_feel_and_nothing_else():
    value, felt, learned = felt_and_learned(EmbeddingPrior(CONFIG, 2))
    assert felt.abs().max() > 0
    for dose in (0.0, 0.25, 1.0):
        dosed = felt_and_learned(DosedPrior(CONFIG, 2, dose, 1))
        assert dosed[0] == value
        torch.testing.assert_close(dosed[1], dose * felt, rtol=1e-5, atol=1e-9)
        for ours, theirs in zip(dosed[2], learned, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_sizes_are_noted_call_by_call():
    penalty, X = DosedPrior(CONFIG, 2, 1.0, 3), single_embeddings().detach()
    penalty(X)
    penalty(2 * X)
    rms = X.square().mean().sqrt()
    torch.testing.assert_close(penalty.sizes, torch.stack([rms, 2 * rms, 0 * rms]))
