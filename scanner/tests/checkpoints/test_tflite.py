"""TFLite files, written here with Google's own FlatBuffers."""

import numpy as np
import pytest

from softgeom.checkpoints import load_head
from softgeom.checkpoints.activation import RELU_BEHIND

pytest.importorskip("flatbuffers", reason="FlatBuffers comes with onnxruntime")
import tflite_writer as tfl

RNG = np.random.default_rng(0)
W, B = RNG.normal(size=(5, 3)).astype("<f4"), RNG.normal(size=5).astype("<f4")
HALF = W.astype("<f2"), B.astype("<f2")
CODES = np.arange(-7, 8, dtype="i1").reshape(5, 3)
EACH = np.array([0.5, 1, 2, 4, 8])
# the file, and what is read of it: W, b, rule and the step in front
READ = {
    "a sigmoid": ({}, W, B, "threshold", "ReLU"),
    "a softmax": ({"last": tfl.SOFTMAX}, W, B, "argmax", "ReLU"),
    "a step that bounds nothing": (
        {"before": (tfl.CONV, tfl.CONV_OPTIONS, 3, 0)}, W, B, "threshold", None),
    "half precision": ({"W": HALF[0], "b": HALF[1]}, *HALF, "threshold", "ReLU"),
    "a ReLU before the softmax": ({"fused": tfl.RELU, "last": tfl.SOFTMAX}, W, B, "argmax", "ReLU"),
    "codes with one scale": (
        {"W": CODES, "coded": ([0.5], [3]), "last": tfl.QUANTIZE}, (CODES - 3) / 2, B, "argmax",
        "ReLU"),
    "codes with a scale each": (
        {"W": CODES, "coded": (EACH, [0, 0, 0, 0, 1])},
        (CODES - np.array([[0], [0], [0], [0], [1]])) * EACH[:, None], B, "threshold", "ReLU"),
    "codes without a zero": (
        {"W": CODES, "coded": ([0.5], [])}, CODES / 2, B, "threshold", "ReLU"),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_the_layer_before_the_output_and_what_stands_around_it(tmp_path, name):
    options, weight, bias, rule, step = READ[name]
    path = tfl.classifier(tmp_path / "m.tflite", **{"W": W, "b": B} | options)
    for named in (None, "head/W"):
        head = load_head(path, weight=named)
        np.testing.assert_array_equal(head.layer.W, weight)
        np.testing.assert_array_equal(head.layer.b, bias)
        assert head.names == {"weight": "head/W", "bias": "head/b"}
        assert head.readout.rule == rule
        assert (head.activation and head.activation.name) == step
        assert (RELU_BEHIND in head.notes) == ("fused" in options)
    assert load_head(path, without_bias=True).layer.b is None


def test_a_layer_inside_is_read_where_it_is_named(tmp_path):
    path = tfl.classifier(tmp_path / "m.tflite", W, B, outputs=(5, 7))
    head = load_head(path, weight="head/W")
    np.testing.assert_array_equal(head.layer.b, B)
    assert "a fully connected layer inside of the graph" in head.notes


def test_a_sigmoid_behind_another_map_is_refused(tmp_path):
    for first, fused in ((tfl.SOFTMAX, 0), (tfl.LOGISTIC, 0), (tfl.RESHAPE, tfl.TANH)):
        tensors = [("x", (1, 3)), ("W", W), ("b", B), ("z", (1, 5)), ("p", (1, 5)), ("q", (1, 5))]
        rounds = [
            (tfl.FULLY_CONNECTED, [0, 1, 2], [3], tfl.DENSE_OPTIONS, 0, fused),
            (first, [3], [4], tfl.NO_OPTIONS, 0, 0),
            (tfl.LOGISTIC, [4], [5], tfl.NO_OPTIONS, 0, 0),
        ]
        path = tfl.write(tmp_path / "m.tflite", tensors, rounds, [5])
        with pytest.raises(ValueError, match=r"LOGISTIC behind another map|makes features"):
            load_head(path)


def circles(path):
    rounds = [(tfl.SOFTMAX, [1], [0], 0, 0, 0), (tfl.SOFTMAX, [0], [1], 0, 0, 0)]
    return tfl.write(path, [("a", (1, 5)), ("b", (1, 5))], rounds, [0])


def text(path):
    path.write_bytes(b"not a model at all")
    return path


REFUSED = {
    "a ReLU before a sigmoid": ({"fused": tfl.RELU}, "operator 1 is fused to the last one"),
    "groups of scores": ({"arranged": (5, 1)}, "RESHAPE arranges the 5 scores"),
    "another step before the output": ({"last": tfl.CONV}, r"no fully connected.*\(operator 3"),
    "codes without a scale": ({"W": CODES, "coded": ([], [])}, "codes of type 9"),
    "scales that do not fit": ({"W": CODES, "coded": ([1, 2], [])}, "2 scales for codes"),
    "two outputs": ({"outputs": (5, 7)}, "has 2 outputs"),
    "circles": (circles, "no fully connected layer before its output"),
    "text": (text, "TFL3 does not stand at its fifth byte"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_certain_is_refused_in_a_sentence(tmp_path, name):
    made, said = REFUSED[name]
    path = tmp_path / "m.tflite"
    path = made(path) if callable(made) else tfl.classifier(path, **{"W": W, "b": B} | made)
    with pytest.raises(ValueError, match=said):
        load_head(path)
