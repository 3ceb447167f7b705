"""Norms before, after and without the blocks; the fixtures are the models of this folder."""

from __future__ import annotations

import pytest
import torch

from softgeom import circuits


@pytest.fixture
def opened(model):
    anatomy = circuits.dissect(model, "a model")
    tokens = torch.arange(8)[None] % len(anatomy.W_E)
    return anatomy, tokens, circuits.run(anatomy, tokens)


def test_every_norm_is_met_with_what_it_reads(opened):
    anatomy, _, internals = opened
    places = list(circuits.norms_with_inputs(anatomy, internals))
    assert len(places) == 2 * anatomy.sizes["L"] + 1
    norm, states, reader = places[-1]
    assert circuits.relative_error(norm(states) @ reader + anatomy.b_U, internals.logits) < 1e-12
    with pytest.raises(ValueError, match="folded"):
        list(circuits.norms_with_inputs(circuits.fold_norms(anatomy), internals))


def test_post_norm_returns_to_the_sphere_and_pre_norm_is_the_stream(opened):
    anatomy, tokens, internals = opened
    states = circuits.run_post_norm(anatomy, tokens)
    assert len(states) == len(circuits.pre_norm_stream(internals)) == 2 * anatomy.sizes["L"] + 1
    assert circuits.off_the_sphere(anatomy, states) < 1e-10
    assert circuits.off_the_sphere(anatomy, [*states[:-1], 1.1 * states[-1]]) > 1e-2
    assert torch.equal(circuits.pre_norm_stream(internals)[-1], internals.resid_final)
    assert circuits.mean_lengths([torch.full((1, 3, 4), 2.0)]) == [2.0]


def test_without_norms_other_logits(opened):
    anatomy, tokens, internals = opened
    assert (
        circuits.relative_error(circuits.run_without_norms(anatomy, tokens), internals.logits)
        > 1e-2
    )
