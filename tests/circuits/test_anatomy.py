"""A model in parts computes what the model computes."""

import pytest
import torch

from softgeom.circuits import relative_error, run


def test_parts_and_model_agree_on_every_intermediate_value(model, anatomy, tokens, error):
    found, expected = run(anatomy, tokens), model.run_with_internals(tokens)
    assert error(found.logits, model(tokens)) < 1e-10
    for layer, layer_expected in zip(found.layers, expected.layers, strict=True):
        for name in vars(layer_expected):
            assert error(getattr(layer, name), getattr(layer_expected, name)) < 1e-10, name
    for name in (
        "embed", "resid_final", "ln_final_scale", "ln_final_normalized", "final_state", "logits",
    ):  # fmt: skip
        assert error(getattr(found, name), getattr(expected, name)) < 1e-10, name


def test_future_tokens_change_nothing(anatomy, tokens, error):
    changed = tokens.clone()
    changed[:, 9:] = (changed[:, 9:] + 1) % len(anatomy.W_E)
    assert error(run(anatomy, changed).logits[:, :9], run(anatomy, tokens).logits[:, :9]) < 1e-12


def test_tokens_outside_the_vocabulary_and_long_prompts_are_refused(anatomy):
    with pytest.raises(ValueError, match="outside the vocabulary"):
        run(anatomy, torch.tensor([[0, len(anatomy.W_E)]]))
    with pytest.raises(ValueError, match="outside the vocabulary"):
        run(anatomy, torch.tensor([[-1]]))
    with pytest.raises(ValueError, match=f"from 1 to {anatomy.n_ctx}"):
        run(anatomy, torch.zeros(1, anatomy.n_ctx + 1, dtype=torch.long))
    with pytest.raises(ValueError, match="do not fit"):
        run(anatomy, torch.zeros(4, dtype=torch.long))


def test_the_relative_error_sees_what_it_should():
    a = torch.tensor([1.0, -torch.inf, 4.0])
    assert relative_error(a, a) == 0
    assert relative_error(torch.tensor([1.0, -torch.inf, 3.0]), a) == 0.25
    assert relative_error(torch.zeros(2), torch.zeros(2)) == 0
    assert relative_error(torch.ones(2), torch.zeros(2)) == float("inf")
    assert relative_error(torch.tensor([1.0, 0.0, 4.0]), a) == float("inf")
    assert not relative_error(torch.tensor([torch.nan, -torch.inf, 4.0]), a) < 1
    with pytest.raises(ValueError, match="cannot be compared"):
        relative_error(a[None], a)
