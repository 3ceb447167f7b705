"""Which matrix is the layer, which vector its bias, by name and by shape; the reader is told."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from softgeom.checkpoints import load_head, load_softmax_layer

RNG = np.random.default_rng(0)


def _npz(path, **arrays):
    np.savez(path / "m.npz", **arrays)
    return path / "m.npz"


@pytest.mark.parametrize(
    "names", ["fc.weight fc.bias", "fc_w fc_b", "l.w_0 l.b_0", "d/kernel d/bias"]
)
def test_a_named_weight_takes_its_sibling_bias_and_says_so(tmp_path, names):
    weight, bias = names.split()
    W, b = RNG.standard_normal((7, 3)), RNG.standard_normal(7)
    first = {"first.weight": np.ones((9, 4)), "first.bias": np.ones(9)}
    path = _npz(tmp_path, **first, **{weight: W, bias: b})
    head = load_head(path, weight=weight)
    np.testing.assert_array_equal(head.layer.b, b)
    assert any(f"its sibling bias {bias}" in note for note in head.notes)
    without = load_head(path, weight=weight, without_bias=True)
    assert without.layer.b is None
    assert any("left out, as asked" in note for note in without.notes)


def test_a_matrix_that_is_or_may_be_stored_transposed_is_told(tmp_path):
    W, b = RNG.standard_normal((7, 3)), RNG.standard_normal(7)
    head = load_head(_npz(tmp_path, **{"out/kernel": W.T, "out/bias": b}))
    np.testing.assert_array_equal(head.layer.W, W)
    assert any("stored as (features, classes)" in note for note in head.notes)
    head = load_head(_npz(tmp_path, a=np.ones((3, 7)), c=np.ones((4, 4))), weight="a")
    assert any("stored transposed?" in note for note in head.notes)


def test_the_last_layer_of_a_numbered_head_is_taken_and_recurrent_ones_are_not(tmp_path):
    W = RNG.standard_normal((7, 3))
    arrays = {"fc.0.weight": np.ones((3, 5)), "fc.0.bias": np.ones(3)}
    arrays |= {"fc.2.weight": W, "fc.2.bias": np.ones(7)}
    arrays |= {"lstm.weight_ih_l0": np.ones((12, 5)), "lstm.bias_ih_l0": np.ones(12)}
    head = load_head(_npz(tmp_path, **arrays))
    assert head.names == {"weight": "fc.2.weight", "bias": "fc.2.bias"}
    assert head.chosen == "fc.2.weight, the last of the layers that are numbered"
    arrays["fc.2.weight"] = np.ones((7, 4))  # it does not fit onto the one before: parallel heads?
    with pytest.raises(ValueError, match=r"fc\.2\.weight \(7, 4\), fc\.0\.weight \(3, 5\)"):
        load_head(_npz(tmp_path, **arrays))


def test_several_heads_are_listed_to_choose_from(tmp_path):
    arrays = {"lm_head.weight": np.ones((7, 3)), "vocab_projector.weight": np.ones((8, 3))}
    said = r"several heads; name one .*--weight NAME\): vocab.* \(8, 3\), lm_head\.weight \(7, 3\)"
    with pytest.raises(ValueError, match=said):
        load_head(_npz(tmp_path, **arrays))
    assert load_head(tmp_path / "m.npz", weight="lm_head.weight").layer.classes == 7


def test_an_input_embedding_is_taken_only_when_named_and_is_called_one(tmp_path):
    E = RNG.standard_normal((9, 4)).astype(np.float32)
    name = "embeddings.word_embeddings.weight"
    save_file({name: E}, tmp_path / "model.safetensors")
    for architecture, embedding in (("BertModel", True), ("BertForMaskedLM", False)):
        (tmp_path / "config.json").write_text(json.dumps({"architectures": [architecture]}))
        if embedding:
            with pytest.raises(ValueError, match="BertModel ends with no layer over classes"):
                load_head(tmp_path)
        head = load_head(tmp_path, weight=name if embedding else None)
        assert head.is_embedding is embedding
        assert any("input embedding" in note for note in head.notes) is embedding


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.ones((7, 3), complex), "complex numbers"),
        (np.full((7, 3), "1.5"), "text"),
        (np.zeros((7, 3), "M8[s]"), "dates"),
        (np.ones((7, 3), np.int8), "codes, not weights"),
        (np.ones((7, 3), bool), "booleans"),
    ],
)
def test_what_is_no_weight_is_refused(tmp_path, W, message):
    with pytest.raises(ValueError, match=message):
        load_head(_npz(tmp_path, W=W))
    with pytest.raises(ValueError, match=message):
        load_head(_npz(tmp_path, W=np.ones((7, 3)), b=W[:, 0]))


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
    arrays = {weight: W.T if transposed else W, "unrelated": np.zeros((9, 9))}
    arrays[bias] = b[None] if bias.startswith("decoder") else b  # Marian keeps (1, C)
    head = load_head(_npz(tmp_path, **arrays))
    np.testing.assert_array_equal(head.layer.W, W)
    np.testing.assert_array_equal(head.layer.b, b)
    assert head.names == {"weight": weight, "bias": bias}
    assert head.source.kind == "local"


def test_an_untied_output_wins_over_the_embedding_beside_it(tmp_path, layer_arrays):
    W, b = layer_arrays
    output = {"decoder_ff_logit_out_W": W.T, "decoder_ff_logit_out_b": b[None]}
    path = _npz(tmp_path, decoder_Wemb=np.zeros_like(W), **output)
    np.testing.assert_array_equal(load_softmax_layer(path).W, W)


def test_unknown_names_and_transposed_matrices_list_what_would_fit(tmp_path, layer_arrays):
    W, b = layer_arrays
    np.savez(tmp_path / "m.npz", kernel=W, offset=b, inner=np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"--weight NAME\): inner \(2, 3\), kernel \(7, 3\)"):
        load_softmax_layer(tmp_path / "m.npz")
    layer = load_softmax_layer(tmp_path / "m.npz", weight="kernel", bias="offset")
    np.testing.assert_array_equal(layer.b, b)
    np.savez(tmp_path / "m.npz", W=layer_arrays[0], b=layer_arrays[1])
    with pytest.raises(ValueError, match=r"no tensor 'V'; candidates: W \(7, 3\)"):
        load_softmax_layer(tmp_path / "m.npz", weight="V")
    np.savez(tmp_path / "m.npz", W=layer_arrays[0].T, b=layer_arrays[1])
    with pytest.raises(ValueError, match="stored transposed"):
        load_softmax_layer(tmp_path / "m.npz")
