import numpy as np
import pytest
import torch

from softgeom.margins.controls import DosedPrior, SizePull
from softgeom.margins.embedding_prior import EmbeddingPrior, PriorConfig

CONFIG = PriorConfig(d_model=6, rank=3)


def embeddings() -> torch.Tensor:
    return torch.randn(2, 9, 6, generator=torch.Generator().manual_seed(1)).requires_grad_()


def gradients(penalty: torch.nn.Module) -> tuple[float, torch.Tensor, list[torch.Tensor]]:
    X = embeddings()
    value = penalty(X)
    value.backward()
    assert X.grad is not None
    return value.item(), X.grad, [p.grad for p in penalty.parameters()]


def test_the_dose_scales_what_embeddings_feel_and_nothing_else():
    value, felt, learned = gradients(EmbeddingPrior(CONFIG, 2))
    assert felt.abs().max() > 0
    for dose in (0.0, 0.25, 1.0):
        dosed = gradients(DosedPrior(CONFIG, 2, dose, 1))
        assert dosed[0] == value
        torch.testing.assert_close(dosed[1], dose * felt, rtol=1e-5, atol=1e-9)
        for ours, theirs in zip(dosed[2], learned, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_sizes_are_noted_call_by_call_and_a_dose_is_a_share():
    penalty, X = DosedPrior(CONFIG, 2, 1.0, 3), embeddings().detach()
    penalty(X)
    penalty(2 * X)
    rms = X.square().mean().sqrt()
    torch.testing.assert_close(penalty.sizes, torch.stack([rms, 2 * rms, 0 * rms]))
    with pytest.raises(ValueError, match=r"dose is 2.*0 to 1"):
        DosedPrior(CONFIG, 2, 2.0, 1)


def test_the_pull_follows_its_path_and_only_changes_sizes():
    X = embeddings()
    rms = X.detach().square().mean().sqrt().item()
    pull = SizePull(np.array([rms, rms / np.e, 2 * rms]))
    assert pull(X).item() == pytest.approx(0, abs=1e-10)
    assert pull(X).item() == pytest.approx(1, rel=1e-5)
    value = pull(X)
    value.backward()
    assert value.item() == pytest.approx(np.log(2) ** 2, rel=1e-5)
    # too small: the step against the gradient enlarges every entry by one factor
    ratio = -X.grad / X.detach()
    assert ratio.min() > 0
    torch.testing.assert_close(ratio, ratio.mean().expand_as(ratio), rtol=1e-4, atol=0)
    with pytest.raises(ValueError, match="positive"):
        SizePull(np.array([1.0, 0.0]))
