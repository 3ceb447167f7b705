"""A model in parts computes what the model computes; the first identity that fails is named."""

from dataclasses import replace

import pytest
import torch

from papers.circuits import (
    Ledger,
    centre_writers,
    check_identities,
    dissect,
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
    assert repr(single).startswith(f"Anatomy('{single.name}': ")
    assert len(repr(single)) < 100


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


def test_parts_and_model_agree_on_every_intermediate_value(model, anatomy, tokens):
    found, expected = run(anatomy, tokens), model.run_with_internals(tokens)
    assert relative_error(found.logits, model(tokens)) < 1e-10
    for layer, layer_expected in zip(found.layers, expected.layers, strict=True):
        for name in vars(layer_expected):
            assert relative_error(getattr(layer, name), getattr(layer_expected, name)) < 1e-10, name
    for name in set(vars(expected)) - {"layers"}:
        assert relative_error(getattr(found, name), getattr(expected, name)) < 1e-10, name


def test_the_relative_error_sees_what_it_should():
    a, inf = torch.tensor([1.0, -torch.inf, 4.0]), torch.inf
    for entries, error in (([1.0, -inf, 4.0], 0), ([1.0, -inf, 3.0], 0.25), ([1.0, 0.0, 4.0], inf)):
        assert relative_error(torch.tensor(entries), a) == error
    assert relative_error(torch.zeros(2), torch.zeros(2)) == 0
    assert relative_error(torch.ones(2), torch.zeros(2)) == inf
    assert not relative_error(torch.tensor([torch.nan, -inf, 4.0]), a) < 1


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


def test_only_the_shape_of_the_values_disagrees_with_the_notes(anatomy):
    table = glossary([anatomy]).set_index("symbol")
    assert list(table.index[table["agrees"] == "no"]) == ["W_{out}^l"]
    sizes = anatomy.sizes
    assert table.loc["W_{out}^l", anatomy.name] == f"{sizes['F']} x {sizes['D']}"
    assert (table.loc["beta", anatomy.name] == "-") == (not anatomy.ln_final.centred)
