"""`.npz` layers under our own, Nematus' and Marian's names."""

import numpy as np
import pytest

from softgeom.checkpoints import load_head, load_softmax_layer


@pytest.mark.parametrize(
    ("weight", "bias", "transposed"),
    [
        ("W", "b", False),
        ("weight", "bias", False),
        ("Wemb_dec", "ff_logit_b", False),
        ("ff_logit_W", "ff_logit_b", True),
        ("Wemb", "decoder_ff_logit_out_b", False),
        ("decoder_Wemb", "decoder_ff_logit_out_b", False),
        ("decoder_ff_logit_out_W", "decoder_ff_logit_out_b", True),
    ],
)
def test_every_convention_gives_the_layer(tmp_path, layer_arrays, weight, bias, transposed):
    W, b = layer_arrays
    # Marian keeps (1, C)
    stored_bias = b[None] if weight.startswith("decoder") or weight == "Wemb" else b
    np.savez(
        tmp_path / "model.npz",
        **{weight: W.T if transposed else W, bias: stored_bias, "unrelated": np.zeros((9, 9))},
    )
    head = load_head(tmp_path / "model.npz")
    np.testing.assert_array_equal(head.layer.W, W)
    np.testing.assert_array_equal(head.layer.b, b)
    assert head.names == {"weight": weight, "bias": bias}
    assert head.source.kind == "local"


def test_an_untied_output_wins_over_the_embedding_beside_it(tmp_path, layer_arrays):
    W, b = layer_arrays
    np.savez(
        tmp_path / "m.npz",
        decoder_Wemb=np.zeros_like(W),
        decoder_ff_logit_out_W=W.T,
        decoder_ff_logit_out_b=b[None],
    )
    np.testing.assert_array_equal(load_softmax_layer(tmp_path / "m.npz").W, W)


def test_unknown_names_and_transposed_matrices_list_what_would_fit(tmp_path, layer_arrays):
    W, b = layer_arrays
    np.savez(tmp_path / "m.npz", kernel=W, offset=b, inner=np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"--weight\): kernel \(7, 3\), inner \(2, 3\)"):
        load_softmax_layer(tmp_path / "m.npz")
    layer = load_softmax_layer(tmp_path / "m.npz", weight="kernel", bias="offset")
    np.testing.assert_array_equal(layer.b, b)
    np.savez(tmp_path / "m.npz", W=layer_arrays[0], b=layer_arrays[1])
    with pytest.raises(ValueError, match=r"no tensor 'V'; candidates: W \(7, 3\)"):
        load_softmax_layer(tmp_path / "m.npz", weight="V")
    np.savez(tmp_path / "m.npz", W=layer_arrays[0].T, b=layer_arrays[1])
    with pytest.raises(ValueError, match="stored transposed"):
        load_softmax_layer(tmp_path / "m.npz")
