import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.margins.perturb import (
    Perturbation,
    add_drift,
    add_noise,
    contextual_embedding_error,
    embedding_rms,
    perturber,
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_noise_has_its_size_in_every_coordinate():
    change = add_noise(torch.zeros(20, 50, 40, dtype=torch.float64), 0.3, seeded())
    # 40,000 independent draws: the standard error of a standard deviation is 0.3 / sqrt(80,000),
    # about 0.001
    assert change.std().item() == pytest.approx(0.3, abs=0.005)
    assert change.mean().item() == pytest.approx(0, abs=0.01)
    assert torch.corrcoef(change.flatten(0, 1).T).fill_diagonal_(0).abs().max() < 0.2


def test_drift_moves_a_sequence_along_one_direction():
    change = add_drift(torch.zeros(200, 40, 16).double(), 0.5, seeded())
    assert change.norm(dim=-1).pow(2).mean().sqrt().item() == pytest.approx(0.5, rel=0.1)
    _, singular, directions = torch.linalg.svd(change[:6], full_matrices=False)
    assert (singular[:, 1] < 1e-12 * singular[:, 0]).all()  # rank one: z u^T
    # each sequence has its own
    overlaps = directions[:, 0] @ directions[:, 0].T
    assert overlaps.fill_diagonal_(0).abs().max() < 0.99


@pytest.mark.parametrize("family", ["noise", "drift"])
def test_relative_sigma_scales_with_the_embeddings(family):
    """Embeddings k times as large are moved k times as far."""
    X = torch.randn(3, 20, 9, generator=seeded(3), dtype=torch.float64)
    perturbation = Perturbation(family, "relative", 1, 0.7)
    small, large = (
        perturber(perturbation, embedding_rms(k * X), seed=5)(k * X, slice(0, 3)) / k
        for k in (1.0, 10.0)
    )
    assert torch.allclose(small, large, atol=1e-12)
    length = (small - X).pow(2).sum(-1).mean().sqrt() / X.pow(2).sum(-1).mean().sqrt()
    # both families move an embedding by 0.7 of its length
    assert length.item() == pytest.approx(0.7, rel=0.25)


@pytest.mark.parametrize("family", ["noise", "drift"])
def test_a_window_gets_the_same_draw_in_any_batch_and_at_any_level(family):
    X = torch.zeros(5, 7, 4)
    whole = perturber(Perturbation(family, "absolute", 1, 1.0), 1.0, seed=9)(X, slice(0, 5))
    part = perturber(Perturbation(family, "absolute", 2, 3.0), 1.0, seed=9)(X[:2], slice(3, 5))
    assert torch.allclose(3 * whole[3:], part, atol=1e-6)
    other = perturber(Perturbation(family, "absolute", 1, 1.0), 1.0, seed=10)(X, slice(0, 5))
    assert not torch.allclose(whole, other)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_contextual_error_by_the_sum_over_the_vocabulary(seed):
    generator = seeded(seed)
    E = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    logits = torch.randn(3, 5, 6, generator=generator, dtype=torch.float64)
    tokens = torch.randint(6, (3, 5), generator=generator)
    found = contextual_embedding_error(logits, tokens, E)
    for at in itertools.product(range(3), range(5)):
        p, e = torch.exp(logits[at]) / torch.exp(logits[at]).sum(), E[tokens[at]]
        missing = e - sum(p[v] * E[v] for v in range(6))
        assert found[at].item() == pytest.approx((missing @ missing / (e @ e)).item())
