"""The residual stream: what was added sums to what is there, and to every logit."""

import pytest
import torch

from papers.circuits import (
    decisions,
    fold_norms,
    lens_by_depth,
    logit_lens,
    logit_shares,
    p_of_draws,
    relative_error,
    run,
    shares_above_average,
    token_log_probabilities,
    writers,
)


def test_writers_sum_to_the_final_state_and_their_shares_to_every_logit(anatomy, tokens):
    internals, folded = run(anatomy, tokens), fold_norms(anatomy)
    found, L, H = writers(internals), anatomy.sizes["L"], anatomy.sizes["H"]
    assert len(found.names) == len(set(found.names)) == len(found.writes) == 1 + L * (H + 1)
    assert relative_error(found.writes.sum(0), internals.resid_final) < 1e-10
    assert relative_error(logit_shares(folded, internals).sum(0), internals.logits) < 1e-10
    targets = internals.logits.argmax(-1)
    for_targets = logit_shares(folded, internals, targets)
    assert relative_error(for_targets.sum(0), internals.logits.amax(-1)) < 1e-10
    above = shares_above_average(folded, internals, targets).sum(0)
    assert relative_error(above, internals.logits.amax(-1) - internals.logits.mean(-1)) < 1e-10


def test_the_lens_ends_with_the_model_and_its_table_sums_it_up(anatomy, tokens):
    table, internals = lens_by_depth(anatomy, tokens), run(anatomy, tokens[:, :-1])
    lens, following = logit_lens(anatomy, internals), tokens[:, 1:].flatten()
    first = anatomy.ln_final(anatomy.W_E[tokens[:, :-1]]) @ anatomy.W_U.T
    assert relative_error(lens[0], first) < 1e-10
    assert relative_error(lens[-1], internals.logits) < 1e-10
    lens = lens.flatten(1, 2)
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


def test_the_margin_is_the_distance_at_which_the_decision_changes(anatomy, tokens):
    states = run(anatomy, tokens).final_state
    found = decisions(states, anatomy.W_U)
    normal = anatomy.W_U[found.rival] - anatomy.W_U[found.winner]
    direction = normal / normal.norm(dim=-1, keepdim=True)
    for factor, same in ((0.999, True), (1.001, False)):
        moved = states + factor * found.margin[..., None] * direction
        assert ((moved @ anatomy.W_U.T).argmax(-1) == found.winner).all() == same
    # No other direction of that length changes it.
    generator = torch.Generator().manual_seed(0)
    other = torch.randn(states.shape, generator=generator, dtype=torch.float64)
    moved = states + 0.999 * found.margin[..., None] * other / other.norm(dim=-1, keepdim=True)
    assert ((moved @ anatomy.W_U.T).argmax(-1) == found.winner).all()


@pytest.mark.parametrize(
    ("state", "W_U", "b_U", "found"),
    [
        # Gaps 0.1 and 0.2; the rivals' normals are 0.1 and sqrt(5) long: the runner-up is not near.
        ([1.0, 0.4], [[1.0, 0.0], [0.9, 0.0], [0.0, 2.0]], None, (0, 1, 2, 0.2 / 5**0.5)),
        # A bias moves the boundary, and a row equal to the winner's makes none.
        ([1.0], [[1.0], [1.0], [-1.0]], [0.5, 0.0, 0.5], (0, 1, 2, 1.0)),
    ],
)
def test_the_nearest_boundary_by_hand(state, W_U, b_U, found):
    bias = None if b_U is None else torch.tensor(b_U).double()
    told = decisions(torch.tensor([state]).double(), torch.tensor(W_U).double(), bias)
    by_hand = (told.winner, told.runner_up, told.rival, told.margin)
    assert tuple(map(float, by_hand)) == pytest.approx(found)


def test_log_probabilities_are_those_of_the_tokens_that_follow():
    p = torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [1.0, 0.0, 0.0]]])
    found = token_log_probabilities(p.log() + 3, torch.tensor([[2, 0, 1]]))
    torch.testing.assert_close(found, torch.tensor([[0.5, 0.2]]).log())


def test_draws_from_the_softmax_pass_and_others_do_not():
    p = torch.tensor([0.5, 0.3, 0.15, 0.05, 1e-9])
    assert p_of_draws(torch.tensor([50, 30, 15, 5, 0]), p) > 0.9
    assert p_of_draws(torch.tensor([30, 50, 15, 5, 0]), p) < 1e-3
    assert p_of_draws(torch.tensor([3, 0, 0, 0, 0]), torch.tensor([1.0, 0, 0, 0, 0])) == 1
