"""From logits to probability and margin: prefixes, the boundary."""

import pytest
import torch

from softgeom.circuits import decisions, p_of_draws, run, token_log_probabilities


def test_one_pass_and_one_pass_per_prefix_agree(anatomy, tokens, error):
    """So a token that comes later changes nothing."""
    at_once = token_log_probabilities(run(anatomy, tokens).logits, tokens)
    for length in range(1, tokens.shape[1]):
        p = run(anatomy, tokens[:, :length]).logits[:, -1].log_softmax(-1)
        alone = p.gather(-1, tokens[:, length : length + 1])[:, 0]
        assert error(alone, at_once[:, length - 1]) < 1e-10


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


def test_the_nearest_boundary_need_not_be_the_runner_ups():
    W = torch.tensor([[1.0, 0.0], [0.9, 0.0], [0.0, 2.0]], dtype=torch.float64)
    found = decisions(torch.tensor([[1.0, 0.4]], dtype=torch.float64), W)
    # Gaps 0.1 and 0.2; the rivals' normals are 0.1 and sqrt(5) long, so the third token is nearer.
    assert (int(found.winner), int(found.runner_up), int(found.rival)) == (0, 1, 2)
    assert float(found.margin) == pytest.approx(0.2 / 5**0.5)


def test_a_bias_moves_the_boundary_and_an_equal_row_is_none():
    W = torch.tensor([[1.0], [1.0], [-1.0]])
    found = decisions(torch.tensor([[1.0]]), W, torch.tensor([0.5, 0.0, 0.5]))
    assert float(found.margin) == pytest.approx(1)
    assert int(found.rival) == 2


def test_draws_from_the_softmax_pass_and_others_do_not():
    p = torch.tensor([0.5, 0.3, 0.15, 0.05, 1e-9])
    assert p_of_draws(torch.tensor([50, 30, 15, 5, 0]), p) > 0.9
    assert p_of_draws(torch.tensor([30, 50, 15, 5, 0]), p) < 1e-3
    assert p_of_draws(torch.tensor([3, 0, 0, 0, 0]), torch.tensor([1.0, 0, 0, 0, 0])) == 1
