"""The residual stream: what was added sums to what is there, and to every logit."""

import pytest
import torch

from softgeom.circuits import (
    fold_norms,
    lens_by_depth,
    logit_lens,
    logit_shares,
    run,
    shares_above_average,
    writers,
)


def test_the_writers_sum_to_the_final_state(anatomy, tokens, error):
    internals = run(anatomy, tokens)
    found = writers(internals)
    L, H = anatomy.sizes["L"], anatomy.sizes["H"]
    assert len(found.names) == len(set(found.names)) == len(found.writes) == 1 + L * (H + 1)
    assert error(found.writes.sum(0), internals.resid_final) < 1e-10


def test_the_shares_of_a_folded_model_sum_to_every_logit(anatomy, tokens, error):
    internals, folded = run(anatomy, tokens), fold_norms(anatomy)
    assert error(logit_shares(folded, internals).sum(0), internals.logits) < 1e-10
    targets = internals.logits.argmax(-1)
    for_targets = logit_shares(folded, internals, targets)
    assert error(for_targets.sum(0), internals.logits.amax(-1)) < 1e-10
    above = shares_above_average(folded, internals, targets).sum(0)
    assert error(above, internals.logits.amax(-1) - internals.logits.mean(-1)) < 1e-10
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


def test_the_lens_by_depth_sums_up_the_lens(anatomy, tokens):
    table, internals = lens_by_depth(anatomy, tokens), run(anatomy, tokens[:, :-1])
    lens, following = logit_lens(anatomy, internals).flatten(1, 2), tokens[:, 1:].flatten()
    for depth, logits in enumerate(lens):
        row = table.loc[depth]
        p = logits.log_softmax(-1).gather(-1, following[:, None])[:, 0]
        order = logits.argsort(-1, descending=True)
        ranks = (order == following[:, None]).nonzero()[:, 1] + 1
        assert row["depth"] == depth
        assert abs(row["nats"] + float(p.mean())) < 1e-9
        assert row["rank"] == float(ranks.double().median())
        assert row["agrees"] == float((order[:, 0] == lens[-1].argmax(-1)).double().mean())
    assert table["agrees"].iloc[-1] == 1
