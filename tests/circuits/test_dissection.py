"""A model in parts computes what the model computes; the first identity that fails is named."""

from dataclasses import replace

import pytest
import torch

from papers.circuits import (
    Ledger,
    centre_writers,
    check_identities,
    dissect,
    fold_norms,
    glossary,
    relative_error,
    run,
    writers,
)
from papers.circuits.anatomy import ACTIVATIONS


def test_the_identities_hold_in_both_precisions(model):
    assert max(check_identities(dissect(model, check=False), model).values()) < 1e-10
    single = dissect(model, dtype=torch.float32)
    assert single.W_E.dtype == torch.float32
    assert single.name == type(model).__name__


def test_another_model_weights_that_are_no_numbers_and_a_norm_that_cannot_be_folded_are_refused(
    model, anatomy
):
    with pytest.raises(ValueError, match="'parts = model' fails"):
        check_identities(replace(anatomy, W_U=anatomy.W_U * 1.001), model)
    W_O = anatomy.blocks[1].W_O.clone()
    W_O[0, 0, 0] = torch.nan
    blocks = (anatomy.blocks[0], replace(anatomy.blocks[1], W_O=W_O), *anatomy.blocks[2:])
    with pytest.raises(ValueError, match=r"'the weights are finite' fails at blocks\[1\]\.W_O"):
        check_identities(replace(anatomy, blocks=blocks))

    class Capped(type(anatomy.ln_final)):
        """A norm with a soft cap: no matrix behind it can absorb that."""

        def __call__(self, z):
            return torch.tanh(super().__call__(z))

    capped = Capped(**vars(anatomy.ln_final))
    with pytest.raises(ValueError, match="'folded = unfolded' fails"):
        check_identities(replace(anatomy, ln_final=capped))


def test_learned_positions_and_a_bias_of_attention_are_writers_too(anatomy):
    generator = torch.Generator().manual_seed(0)
    D = anatomy.sizes["D"]
    b_O = torch.randn(D, generator=generator, dtype=torch.float64)
    blocks = tuple(replace(block, b_O=b_O, activation="relu") for block in anatomy.blocks)
    W_pos = torch.randn(anatomy.n_ctx, D, generator=generator, dtype=torch.float64)
    changed = replace(anatomy, blocks=blocks, rotary_base=None, W_pos=W_pos)
    assert max(check_identities(changed).values()) < 1e-10
    tokens = torch.arange(8)[None]
    assert "L0.bias" in writers(run(changed, tokens)).names
    assert "L0.bias" not in writers(run(anatomy, tokens)).names
    if anatomy.ln_final.centred:
        found = run(centre_writers(changed), tokens).logits
        assert relative_error(found, run(changed, tokens).logits) < 1e-10


def test_the_activation_functions_are_transformers():
    activations = pytest.importorskip("transformers.activations")
    x = torch.linspace(-4, 4, 33, dtype=torch.float64)
    for name, g in ACTIVATIONS.items():
        torch.testing.assert_close(g(x), activations.ACT2FN[name](x), rtol=0, atol=1e-12)


def test_parts_and_model_agree_on_every_intermediate_value(model, anatomy, tokens, error):
    found, expected = run(anatomy, tokens), model.run_with_internals(tokens)
    assert error(found.logits, model(tokens)) < 1e-10
    for layer, layer_expected in zip(found.layers, expected.layers, strict=True):
        for name in vars(layer_expected):
            assert error(getattr(layer, name), getattr(layer_expected, name)) < 1e-10, name
    for name in set(vars(expected)) - {"layers"}:
        assert error(getattr(found, name), getattr(expected, name)) < 1e-10, name


def test_tokens_outside_the_vocabulary_long_prompts_and_no_decoder_are_refused(anatomy):
    with pytest.raises(ValueError, match="Linear is not a decoder"):
        dissect(torch.nn.Linear(2, 2))
    for token in (-1, len(anatomy.W_E)):
        with pytest.raises(ValueError, match="outside the vocabulary"):
            run(anatomy, torch.tensor([[0, token]]))
    with pytest.raises(ValueError, match=f"from 1 to {anatomy.n_ctx}"):
        run(anatomy, torch.zeros(1, anatomy.n_ctx + 1, dtype=torch.long))
    with pytest.raises(ValueError, match="do not fit"):
        run(anatomy, torch.zeros(4, dtype=torch.long))


def test_the_relative_error_sees_what_it_should():
    a, inf = torch.tensor([1.0, -torch.inf, 4.0]), torch.inf
    for entries, error in (([1.0, -inf, 4.0], 0), ([1.0, -inf, 3.0], 0.25), ([1.0, 0.0, 4.0], inf)):
        assert relative_error(torch.tensor(entries), a) == error
    assert relative_error(torch.zeros(2), torch.zeros(2)) == 0
    assert relative_error(torch.ones(2), torch.zeros(2)) == inf
    assert not relative_error(torch.tensor([torch.nan, -inf, 4.0]), a) < 1
    with pytest.raises(ValueError, match="cannot be compared"):
        relative_error(a[None], a)


def test_ledger_keeps_the_largest_error_and_refuses_what_was_never_tested():
    ledger, one = Ledger(), torch.ones(2)
    ledger.note("a = b", "GPT", one, one)
    ledger.note("a = b", "GPT", 1.5 * one, one)
    ledger.note("a = b", "GPT", one, one)
    ledger.note("c = d", "Llama", one, one)
    assert ledger.worst("a = b") == ledger.worst() == 0.5
    assert ledger.worst("c = d") == 0
    table = ledger.table().set_index("identity")
    assert table.loc["a = b", "GPT"] == 0.5
    assert table.loc["c = d", "GPT"] != table.loc["c = d", "GPT"]  # NaN: not tested there
    with pytest.raises(KeyError, match="never tested: e = f"):
        ledger.worst("e = f")


def test_only_the_shape_of_the_values_disagrees_with_the_notes(anatomy):
    table = glossary([anatomy]).set_index("symbol")
    assert list(table.index[table["agrees"] == "no"]) == ["W_{out}^l"]
    sizes = anatomy.sizes
    assert table.loc["W_{out}^l", anatomy.name] == f"{sizes['F']} x {sizes['D']}"
    assert (table.loc["beta", anatomy.name] == "-") == (not anatomy.ln_final.centred)
    with pytest.raises(ValueError, match="are folded"):  # no gain is left to list
        glossary([fold_norms(anatomy)])
