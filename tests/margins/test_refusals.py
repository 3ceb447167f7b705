"""Bad input of every function of this chapter gets one sentence that names it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from papers.margins import (
    attention_jacobian_blocks,
    constrained,
    controls,
    depth,
    head_blocks,
    infimum,
    intervals,
    log_barrier,
    log_density,
    perturb,
    population,
    process,
    sample_sequence,
    series_log_barrier,
    stochastic_log_barrier,
    support,
)
from papers.margins.embedding_prior import EmbeddingPrior, PriorConfig

ONE, FLAT, LINE = np.array([[1.0]]), torch.zeros(2, 2).double(), np.ones((5, 2)) * np.c_[:5]
TOKENS = process.TokenModel((-0.7, 0.2, 1.1), (0.3, -0.5, 0.9), 1.4)
OPERANDS = [torch.zeros(*shape) for shape in ((4, 3), (2, 3), (2, 3))]


def barrier(X=OPERANDS[0], W_Q=OPERANDS[1], W_K=OPERANDS[2], **options):
    return log_barrier(X, W_Q, W_K, **options)


ZEROS = np.zeros((2, 3))


def blocks(X=ZEROS, W_K=ZEROS, **options):
    return attention_jacobian_blocks(X, ZEROS, W_K, **options)


HEADS = head_blocks.HeadWeights(
    *torch.ones(3, 1, 2, 3), torch.ones(1, 3, 2), torch.ones(3), True, None
)


def real_blocks(position=0, dtype=torch.float64):
    y = torch.ones(4, 3, dtype=dtype)
    return head_blocks.head_blocks(HEADS, y, y, y[:, 0], torch.tensor([position]))


def prior(**readings):
    return EmbeddingPrior(PriorConfig(d_model=6, **{"rank": 3} | readings), seed=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: blocks(np.zeros(3)), "one sequence"),
        (lambda: blocks(np.zeros((0, 3))), "T >= 1"),
        (lambda: blocks(np.full((2, 3), np.nan)), "finite"),
        (lambda: blocks(W_K=np.zeros((2, 4))), "d = 3"),
        (lambda: blocks(W_V=np.zeros((2, 3))), r"must be \(3, 3\)"),
        (lambda: blocks(W_V=np.zeros((2, 3, 3))), r"must be \(3, 3\)"),
        (lambda: blocks(causal="both"), "causal must be"),
        (lambda: barrier(torch.zeros(3)), "T >= 1"),
        (lambda: barrier(torch.zeros(0, 3)), "T >= 1"),
        (lambda: barrier(W_Q=torch.zeros(2, 4), W_K=torch.zeros(2, 4)), "d = 3"),
        (lambda: barrier(W_K=torch.zeros(1, 3)), "d = 3"),
        (lambda: barrier(W_V=torch.zeros(2, 3)), "W_V"),
        (lambda: barrier(positions=torch.zeros(2)), "integer"),
        (lambda: barrier(positions=torch.ones(4, dtype=torch.bool)), "integer"),
        (lambda: barrier(positions=torch.tensor([-1])), "from 0 to 3"),
        (lambda: barrier(positions=torch.tensor([4])), "from 0 to 3"),
        (lambda: barrier(positions=torch.zeros(0, dtype=torch.long)), "at least one row"),
        (lambda: barrier(W_Q=torch.zeros(0, 3), W_K=torch.zeros(0, 3)), "no direction"),
        (lambda: barrier(W_Q=torch.zeros(0, 2, 3), W_K=torch.zeros(0, 2, 3)), "no head"),
        (lambda: stochastic_log_barrier(*OPERANDS, order=2), "at least 3"),
        (lambda: series_log_barrier(*OPERANDS, order=0), "at least 1"),
        (lambda: prior(coupling="any"), "choose one of free, positive, held, negative"),
        (lambda: prior(rank=7), "rank is 7"),
        (lambda: prior(noise_scale=0.0), "noise_scale is 0.0"),
        (lambda: prior(stride=0), "stride is 0"),
        (lambda: controls.DosedPrior(PriorConfig(6, 3), 2, 2.0, 1), r"dose is 2.*0 to 1"),
        (lambda: depth.stack_log_densities(FLAT[None], (FLAT, FLAT), [], s=0.0), "positive"),
        (lambda: depth.joint_terms(FLAT, torch.zeros(2), *[FLAT] * 3, s=-1.0), "positive"),
        (lambda: log_density(np.zeros((2, 1)), ONE, ONE, s=0.0), "must be positive"),
        (lambda: sample_sequence(np.random.default_rng(0), 2, ONE, ONE, s=-1.0), "positive"),
        (lambda: process.token_law(TOKENS, 0), "at least 1"),
        (lambda: process.token_law(TOKENS, 2, "sideways"), "one of causal"),
        (lambda: process.latent_token_law(4, 1.0, 1.0, 1.0), "lengths 2 and 3"),
        (lambda: constrained.barrier_path(np.zeros(2), LINE[:2, 0], 9.0, 0.5, [1]), "start inside"),
        (lambda: real_blocks(4), "from 0 to 3"),
        (lambda: real_blocks(dtype=torch.bfloat16), r"bfloat16.*float64"),
        (lambda: replace(HEADS, W_K=HEADS.W_K[:, :1]), "do not fit"),
        (lambda: infimum.unseen_direction(LINE, 4), "take a later position"),
        (lambda: population.density_association(LINE[:3], -1.0, 1.0), "3 sequences are inside"),
        (lambda: intervals.draw_subsamples(15, 1, 16, seed=0), "a subsample of 16 windows"),
        (lambda: support.barrier_shares([1.0], "sum"), "choose one of positive, softmax, absolute"),
        (lambda: support.barrier_shares([1.0, np.inf], "softmax"), "must be finite"),
        (lambda: perturb.Perturbation("shift", "absolute", 1, 0.1), "a family of noise, drift"),
        (lambda: perturb.Perturbation("noise", "rms", 1, 0.1), "a scale of absolute, relative"),
        (lambda: perturb.Perturbation("noise", "absolute", 1, -0.1), "sigma is -0.1"),
    ],
)
def test_what_makes_no_sense_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
