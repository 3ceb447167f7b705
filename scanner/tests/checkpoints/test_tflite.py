"""TFLite files, written here with Google's own FlatBuffers."""

import numpy as np
import pytest

from softgeom.checkpoints import load_head
from softgeom.checkpoints.activation import RELU_BEHIND

pytest.importorskip("flatbuffers", reason="FlatBuffers comes with onnxruntime")
from tflite_writer import (
    CONV,
    CONV_OPTIONS,
    DENSE_OPTIONS,
    DEQUANTIZE,
    FULLY_CONNECTED,
    LOGISTIC,
    QUANTIZE,
    RELU,
    SOFTMAX,
    classifier,
    write,
)


@pytest.fixture
def weights():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 3)).astype("<f4"), rng.normal(size=5).astype("<f4")


@pytest.mark.parametrize("half", [False, True])
def test_the_layer_before_the_output_its_bias_and_the_step_before_it(tmp_path, weights, half):
    W, b = weights
    head = load_head(classifier(tmp_path / "m.tflite", W, b, half=half))
    np.testing.assert_array_equal(
        head.layer.W, W.astype("<f2").astype(head.layer.W.dtype) if half else W
    )
    np.testing.assert_array_equal(head.layer.b, b)
    assert head.names == {"weight": "head/W", "bias": "head/b"}
    assert head.activation is not None
    assert (head.activation.name, head.activation.low) == ("ReLU", 0.0)


def test_a_step_that_bounds_nothing_and_a_bias_that_is_left_out(tmp_path, weights):
    path = classifier(tmp_path / "m.tflite", *weights, before=(CONV, CONV_OPTIONS, 3, 0))
    assert load_head(path).activation is None
    assert load_head(path, without_bias=True).layer.b is None
    assert load_head(path, weight="head/W").layer.classes == 5


def test_a_relu_fused_to_the_layer_before_a_softmax_is_said(tmp_path, weights):
    W, b = weights
    head = load_head(classifier(tmp_path / "m.tflite", W, b, fused=RELU, last=SOFTMAX))
    np.testing.assert_array_equal(head.layer.W, W)
    assert RELU_BEHIND in head.notes


@pytest.mark.parametrize(
    ("scales", "zeros"), [([0.5], [3]), ([0.5, 1, 2, 4, 8], [0, 0, 0, 0, 1]), ([0.5], [])]
)
def test_codes_become_the_real_weights(tmp_path, weights, scales, zeros):
    """One scale for the tensor or one a class, as TensorFlow Lite's converter writes them."""
    codes = np.arange(-7, 8, dtype="i1").reshape(5, 3)
    path = classifier(
        tmp_path / "m.tflite", codes, weights[1], last=QUANTIZE, coded=(scales, zeros)
    )
    zero = np.array(zeros or [0])[:, None]
    expected = (codes - zero) * np.array(scales)[:, None]
    np.testing.assert_array_equal(load_head(path).layer.W, expected)


def test_codes_without_a_scale_and_scales_that_do_not_fit_are_refused(tmp_path, weights):
    codes = np.ones((5, 3), "i1")
    for coded, said in ((([], []), "codes of type 9"), (([1, 2], []), "2 scales for codes")):
        path = classifier(tmp_path / "m.tflite", codes, weights[1], coded=coded)
        with pytest.raises(ValueError, match=said):
            load_head(path)


def test_a_graph_that_goes_round_in_circles_ends_in_a_sentence(tmp_path):
    tensors = [("a", (1, 5), 0, b""), ("b", (1, 5), 0, b"")]
    rounds = [(SOFTMAX, [1], [0], 0, 0, 0), (SOFTMAX, [0], [1], 0, 0, 0)]
    path = write(tmp_path / "m.tflite", tensors, rounds, [0])
    with pytest.raises(ValueError, match="no fully connected layer before its output"):
        load_head(path)


def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path, weights):
    with pytest.raises(ValueError, match="no fully connected layer before its output"):
        load_head(classifier(tmp_path / "m.tflite", *weights, fused=RELU))
    (tmp_path / "n.tflite").write_bytes(b"not a model at all")
    with pytest.raises(ValueError, match="TFLite"):
        load_head(tmp_path / "n.tflite")


def two_layers(path, W, b, shape=(1, 5), last=SOFTMAX):
    """x, a layer of half precision with its bias, a reshape, an answer."""
    reshape = 22
    tensors = [
        ("x", (1, 3), 0, b""),
        ("W16", W.shape, 1, W.astype("<f2").tobytes()), ("W", W.shape, 0, b""),
        ("b16", b.shape, 1, b.astype("<f2").tobytes()), ("b", b.shape, 0, b""),
        ("z", (1, 5), 0, b""), ("arranged", shape, 0, b""), ("answer", shape, 0, b""),
    ]  # fmt: skip
    operators = [
        (DEQUANTIZE, [1], [2], 0, 0, 0), (DEQUANTIZE, [3], [4], 0, 0, 0),
        (FULLY_CONNECTED, [0, 2, 4], [5], DENSE_OPTIONS, 0, 0),
        (reshape, [5], [6], 0, 0, 0), (last, [6], [7], 0, 0, 0),
    ]  # fmt: skip
    return write(path, tensors, operators, [7])


@pytest.mark.parametrize("weight", [None, "W16"])
def test_a_bias_of_half_precision_is_read_like_its_matrix(tmp_path, weights, weight):
    W, b = (values.astype("<f2") for values in weights)
    head = load_head(two_layers(tmp_path / "m.tflite", W, b), weight=weight)
    np.testing.assert_array_equal(head.layer.W, W)
    np.testing.assert_array_equal(head.layer.b, b)


def test_groups_of_scores_are_refused(tmp_path, weights):
    path = two_layers(tmp_path / "m.tflite", *weights, shape=(5, 1))
    with pytest.raises(ValueError, match="RESHAPE arranges the 5 scores"):
        load_head(path)


def test_a_sigmoid_decides_label_by_label(tmp_path, weights):
    for last, rule in ((LOGISTIC, "threshold"), (SOFTMAX, "argmax")):
        head = load_head(two_layers(tmp_path / "m.tflite", *weights, last=last))
        assert head.readout.rule == rule
