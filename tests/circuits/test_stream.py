"""The residual stream: what was added sums to what is there, and to every logit."""

import pytest
import torch

from softgeom.circuits import fold_norms, logit_lens, logit_shares, run, shares_above_average, writers


def test_the_writers_sum_to_the_final_state(anatomy, tokens, error):
    internals = run(anatomy, tokens)
    found = writers(internals)
    L, H = anatomy.sizes["L"], anatomy.sizes["H"]
    assert len(found.names) == len(set(found.names)) == len(found.writes) == 1 + L * (H + 1)
    assert error(found.writes.sum(0), internals.resid_final) < 1e-10


def test_the_shares_sum_to_every_logit(anatomy, tokens, error):
    internals, folded = run(anatomy, tokens), fold_norms(anatomy)
    assert error(logit_shares(folded, internals).sum(0), internals.logits) < 1e-10
    targets = internals.logits.argmax(-1)
    for_targets = logit_shares(folded, internals, targets)
    assert error(for_targets.sum(0), internals.logits.amax(-1)) < 1e-10
    above = shares_above_average(folded, internals, targets).sum(0)
    assert error(above, internals.logits.amax(-1) - internals.logits.mean(-1)) < 1e-10


def test_shares_need_a_folded_model(anatomy, tokens):
    with pytest.raises(ValueError, match="use fold_norms first"):
        logit_shares(anatomy, run(anatomy, tokens))


def test_the_lens_ends_with_the_model(anatomy, tokens, error):
    internals = run(anatomy, tokens)
    lens = logit_lens(anatomy, internals)
    assert lens.shape[0] == len(anatomy.blocks) + 1
    assert error(lens[-1], internals.logits) < 1e-10
    first = anatomy.ln_final(anatomy.W_E[tokens]) @ anatomy.W_U.T
    assert error(lens[0], first) < 1e-10
    assert not torch.allclose(lens[0], lens[-1])
