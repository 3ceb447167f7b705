"""Which matrix is named, which vector is its bias, and what the reader is told about it."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from softgeom.checkpoints import load_head

RNG = np.random.default_rng(0)
W, B = RNG.standard_normal((7, 3)).astype(np.float32), RNG.standard_normal(7).astype(np.float32)
HIDDEN = {"first.weight": np.ones((9, 4)), "first.bias": np.ones(9)}
FC = {"fc.0.weight": np.ones((3, 5)), "fc.0.bias": np.ones(3), "fc.2.bias": np.ones(7)}
LSTM = {"lstm.weight_ih_l0": np.ones((12, 5)), "lstm.bias_ih_l0": np.ones(12)}


def npz(path, **arrays):
    np.savez(path / "m.npz", **arrays)
    return path / "m.npz"


# arrays, options, tensors that are taken, a note about them
TAKEN = [
    *(
        (HIDDEN | {weight: W, bias: B}, {"weight": weight}, (weight, bias), f"sibling bias {bias}")
        for weight, bias in (("fc.weight", "fc.bias"), ("fc_w", "fc_b"), ("l.w_0", "l.b_0"))
    ),
    (HIDDEN | {"fc.weight": W, "fc.bias": B}, {"weight": "fc.weight", "without_bias": True},
     ("fc.weight", None), "left out, as asked"),
    ({"out/kernel": W.T, "out/bias": B}, {}, ("out/kernel", "out/bias"),
     "stored as (features, classes)"),
    (FC | LSTM | {"fc.2.weight": W}, {}, ("fc.2.weight", "fc.2.bias"),
     "the last of the layers that are numbered"),
    ({"a": W, "c": B, "d": np.ones((2, 3))}, {"weight": "a", "bias": "c"}, ("a", "c"), "as named"),
    ({"W": W, "b": B}, {}, ("W", "b"), ""),
    ({"weight": W, "bias": B}, {}, ("weight", "bias"), ""),
    ({"Wemb_dec": W, "ff_logit_b": B}, {}, ("Wemb_dec", "ff_logit_b"), ""),
    ({"Wemb": W, "decoder_ff_logit_out_b": B[None]}, {}, ("Wemb", "decoder_ff_logit_out_b"), ""),
    ({"decoder_ff_logit_out_W": W.T, "decoder_Wemb": np.zeros_like(W),
      "decoder_ff_logit_out_b": B[None]}, {},
     ("decoder_ff_logit_out_W", "decoder_ff_logit_out_b"), ""),
]  # fmt: skip


@pytest.mark.parametrize(("arrays", "options", "taken", "note"), TAKEN)
def test_a_layer_is_taken_with_its_bias_and_said(tmp_path, arrays, options, taken, note):
    head = load_head(npz(tmp_path, unrelated=np.zeros((9, 9)), **arrays), **options)
    assert (head.names["weight"], head.names.get("bias")) == taken
    np.testing.assert_array_equal(head.layer.W, W)
    bias = arrays[taken[1]].reshape(-1) if taken[1] else None
    np.testing.assert_array_equal(head.layer.b, bias)
    assert any(note in each for each in head.notes)
    assert head.source.kind == "local"


@pytest.mark.parametrize(
    ("arrays", "options", "said"),
    [
        ({"kernel": W, "offset": B, "inner": np.ones((2, 3))}, {},
         r"--weight NAME\): inner \(2, 3\), kernel \(7, 3\)"),
        ({"W": W, "b": B}, {"weight": "V"}, r"no tensor 'V'; candidates: W \(7, 3\)"),
        ({"W": W, "b": B}, {"weight": "b"}, r"tensor 'b' in shape \(7,\), not as a matrix"),
        ({"W": W.T, "b": B}, {}, "stored transposed"),
        (FC | {"fc.2.weight": np.ones((7, 4))}, {},
         r"fc\.2\.weight \(7, 4\), fc\.0\.weight \(3, 5\)"),
        *(
            ({"W": wrong}, {}, said)
            for wrong, said in (
                (W.astype(complex), "complex numbers"),
                (np.full((7, 3), "1.5"), "text"),
                (np.zeros((7, 3), "M8[s]"), "dates"),
                (W.astype(np.int8), "codes, not weights"),
                (W > 0, "booleans"),
            )
        ),
        ({"W": W, "b": B > 0}, {}, "booleans"),
    ],
)  # fmt: skip
def test_what_is_not_certain_or_no_weight_is_refused(tmp_path, arrays, options, said):
    with pytest.raises(ValueError, match=said):
        load_head(npz(tmp_path, **arrays), **options)


def test_a_matrix_that_may_be_stored_transposed_is_said(tmp_path):
    head = load_head(npz(tmp_path, a=np.ones((3, 7)), c=np.ones((4, 4))), weight="a")
    assert any("stored transposed?" in note for note in head.notes)


def test_an_input_embedding_is_taken_only_when_named_and_is_called_one(tmp_path):
    name = "embeddings.word_embeddings.weight"
    save_file({name: W}, tmp_path / "model.safetensors")
    for architecture, embedding in (("BertModel", True), ("BertForMaskedLM", False)):
        (tmp_path / "config.json").write_text(json.dumps({"architectures": [architecture]}))
        if embedding:
            with pytest.raises(ValueError, match="BertModel ends with no layer over classes"):
                load_head(tmp_path)
        head = load_head(tmp_path, weight=name if embedding else None)
        assert head.is_embedding is embedding
        assert any("input embedding" in note for note in head.notes) is embedding
