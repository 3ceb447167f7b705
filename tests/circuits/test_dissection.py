"""The identities on load: they pass on whole models, and the first that fails is named."""

from dataclasses import replace

import pytest
import torch

from softgeom.circuits import check_identities, dissect, run
from softgeom.circuits.anatomy import ACTIVATIONS


def test_the_identities_hold_in_both_precisions(model):
    assert max(check_identities(dissect(model, check=False), model).values()) < 1e-10
    single = dissect(model, dtype=torch.float32)
    assert single.W_E.dtype == torch.float32
    assert single.name == type(model).__name__


def test_a_model_that_computes_something_else_is_refused(model, anatomy):
    with pytest.raises(ValueError, match="'parts = model' fails"):
        check_identities(replace(anatomy, W_U=anatomy.W_U * 1.001), model)


def test_weights_that_are_no_numbers_are_refused_by_name(anatomy):
    W_O = anatomy.blocks[1].W_O.clone()
    W_O[0, 0, 0] = torch.nan
    blocks = (anatomy.blocks[0], replace(anatomy.blocks[1], W_O=W_O), *anatomy.blocks[2:])
    with pytest.raises(ValueError, match=r"'the weights are finite' fails at blocks\[1\]\.W_O"):
        check_identities(replace(anatomy, blocks=blocks))


def test_a_norm_that_cannot_be_folded_is_refused(anatomy):
    class Capped(type(anatomy.ln_final)):
        """A norm with a soft cap: no matrix behind it can absorb that."""

        def __call__(self, z):
            return torch.tanh(super().__call__(z))

    capped = Capped(**vars(anatomy.ln_final))
    with pytest.raises(ValueError, match="'folded = unfolded' fails"):
        check_identities(replace(anatomy, ln_final=capped))


def test_learned_positions_and_a_bias_of_attention_are_writers_too(anatomy):
    from softgeom.circuits import centre_writers, relative_error, writers

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


def test_what_is_no_decoder_is_refused():
    with pytest.raises(ValueError, match="Linear is not a decoder"):
        dissect(torch.nn.Linear(2, 2))


def test_the_activation_functions_are_transformers(anatomy):
    activations = pytest.importorskip("transformers.activations")
    x = torch.linspace(-4, 4, 33, dtype=torch.float64)
    for name, g in ACTIVATIONS.items():
        torch.testing.assert_close(g(x), activations.ACT2FN[name](x), rtol=0, atol=1e-12)
