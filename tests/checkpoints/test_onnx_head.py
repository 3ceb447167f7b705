"""The last layer in the forms that exporters give a softmax and a quantised product; damaged graphs
end in a sentence.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from softgeom.checkpoints import load_head, load_softmax_layer

node = helper.make_node


def _save(path, nodes, constants, outputs=("y",), inputs=("x",), opset=17):
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in inputs],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), str(path))
    return path


UNFOLDED = [
    node("ReduceMax", ["logits"], ["m"], axes=[-1]),
    node("Sub", ["logits", "m"], ["s"]),
    node("Exp", ["s"], ["e"]),
    node("ReduceSum", ["e", "axes"], ["t"]),
    node("Div", ["e", "t"], ["y"]),
]


def test_a_softmax_written_out_is_seen_through(tmp_path, layer_arrays):
    W, b = layer_arrays
    nodes = [node("MatMul", ["x", "W"], ["xW"]), node("Add", ["xW", "b"], ["logits"]), *UNFOLDED]
    layer = load_softmax_layer(
        _save(tmp_path / "m.onnx", nodes, {"W": W.T, "b": b, "axes": np.array([-1])})
    )
    np.testing.assert_array_equal(layer.W, W)
    np.testing.assert_array_equal(layer.b, b)


def test_a_temperature_and_a_scale_per_class_are_part_of_the_layer(tmp_path, layer_arrays):
    W, b = layer_arrays
    scale = np.linspace(0.5, 2, 7).astype(np.float32)
    nodes = [
        node("MatMul", ["x", "W"], ["xW"]),
        node("Mul", ["xW", "scale"], ["scaled"]),
        node("Add", ["scaled", "b"], ["z"]),
        node("Div", ["z", "T"], ["logits"]),
        node("Softmax", ["logits"], ["y"]),
    ]
    path = _save(
        tmp_path / "m.onnx", nodes, {"W": W.T, "b": b, "scale": scale, "T": np.float32(0.5)}
    )
    layer = load_softmax_layer(path)
    x = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    expected = np.log(ReferenceEvaluator(str(path)).run(None, {"x": x})[0])
    ours = layer.logits(x)
    np.testing.assert_allclose(
        ours - ours.max(1, keepdims=True), expected - expected.max(1, keepdims=True), atol=1e-4
    )


def test_dynamically_quantised_products_give_the_real_weights(tmp_path, layer_arrays):
    W, b = layer_arrays
    scale = (np.abs(W).max() / 127).astype(np.float32)
    codes = np.round(W / scale).astype(np.int8)
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"]),
        node("MatMulInteger", ["xq", "W", "xz", "wz"], ["products"]),
        node("Cast", ["products"], ["floats"], to=TensorProto.FLOAT),
        node("Mul", ["xs", "ws"], ["factor"]),
        node("Mul", ["floats", "factor"], ["xW"]),
        node("Add", ["xW", "b"], ["logits"]),
        node("Softmax", ["logits"], ["y"]),
    ]
    path = _save(tmp_path / "m.onnx", nodes, {"W": codes.T, "b": b, "wz": np.int8(3), "ws": scale})
    head = load_head(path)
    np.testing.assert_allclose(head.layer.W, (codes.astype(float) - 3) * scale, rtol=1e-6)
    np.testing.assert_array_equal(head.layer.b, b)
    assert any("quantised product" in note for note in head.notes)
    x = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    runtime = ReferenceEvaluator(str(path)).run(None, {"x": x})[0]
    # the runtime rounds the features
    assert (runtime.argmax(1) == head.layer.logits(x).argmax(1)).mean() > 0.9


@pytest.mark.parametrize("transposed", [False, True])
def test_weights_behind_a_dequantisation_are_its_real_numbers(tmp_path, layer_arrays, transposed):
    W, b = layer_arrays
    scales = (np.abs(W).max(axis=1) / 127).astype(np.float32)  # one per class
    codes = np.round(W / scales[:, None]).astype(np.int8)
    stored = codes if transposed else np.ascontiguousarray(codes.T)
    back = [
        node("DequantizeLinear", ["W", "scales", "zero"], ["real"], axis=0 if transposed else 1)
    ]
    back += (
        [node("Transpose", ["real"], ["operand"])]
        if transposed
        else [node("Identity", ["real"], ["operand"])]
    )
    nodes = [*back, node("MatMul", ["x", "operand"], ["xW"]), node("Add", ["b", "xW"], ["y"])]
    path = _save(
        tmp_path / "m.onnx",
        nodes,
        {"W": stored, "b": b, "scales": scales, "zero": np.zeros(7, np.int8)},
        opset=21,
    )
    layer = load_softmax_layer(path)
    x = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    np.testing.assert_allclose(
        layer.logits(x), ReferenceEvaluator(str(path)).run(None, {"x": x})[0], atol=1e-5
    )


@pytest.mark.parametrize(
    ("before", "constants", "low", "high"),
    [
        ([node("Relu", ["x"], ["h"])], {}, 0, 100),
        ([node("Sigmoid", ["x"], ["s"]), node("Mul", ["x", "s"], ["h"])], {}, -0.2785, 100),
        (
            [
                node("Mul", ["x", "two"], ["d"]),
                node("Sigmoid", ["d"], ["s"]),
                node("Mul", ["s", "x"], ["h"]),
            ],
            {"two": np.float32(2)},
            -0.2785 / 2,
            100,
        ),
        (
            [node("Tanh", ["x"], ["t"]), node("Mul", ["t", "c"], ["h"])],
            {"c": np.float32(-3)},
            -3,
            3,
        ),
        ([node("Relu", ["x"], ["r"]), node("Add", ["r", "x"], ["h"])], {}, -100, 100),
        (
            [node("Clip", ["x", "zero", "six"], ["h"])],
            {"zero": np.float32(0), "six": np.float32(6)},
            0,
            6,
        ),
        ([node("Clip", ["x", "", "six"], ["h"])], {"six": np.float32(6)}, -100, 6),
        ([node("Relu", ["x"], ["r"]), node("Clip", ["x", "", "r"], ["h"])], {}, -100, 100),
        ([node("HardSigmoid", ["x"], ["h"])], {}, 0, 1),
    ],
)
def test_the_step_before_the_layer_bounds_its_features(
    tmp_path, layer_arrays, before, constants, low, high
):
    nodes = [*before, node("MatMul", ["h", "W"], ["y"])]
    path = _save(tmp_path / "m.onnx", nodes, {"W": layer_arrays[0].T, **constants})
    features, _ = load_head(path).feature_set()
    assert (features.low, features.high) == pytest.approx((low, high), rel=1e-5)
    probe = _save(tmp_path / "probe.onnx", before, constants, outputs=("h",))
    x = np.random.default_rng(0).uniform(-9, 9, (200, 3)).astype(np.float32)
    h = ReferenceEvaluator(str(probe)).run(None, {"x": x})[0]
    assert h.min() >= features.low - 1e-6
    assert h.max() <= features.high + 1e-6


@pytest.mark.parametrize("pixels", [(1,), (1, 1)])
def test_a_convolution_of_one_pixel_is_the_layer(tmp_path, layer_arrays, pixels):
    W, b = layer_arrays
    nodes = [
        node("Unsqueeze", ["x", "axes"], ["wide"]),
        node("Conv", ["wide", "W", "b"], ["maps"]),
        node("Squeeze", ["maps", "axes"], ["logits"]),
        node("Softmax", ["logits"], ["y"]),
    ]
    axes = np.arange(2, 2 + len(pixels))
    path = _save(
        tmp_path / "m.onnx", nodes, {"W": W.reshape(*W.shape, *pixels), "b": b, "axes": axes}
    )
    layer = load_softmax_layer(path)
    np.testing.assert_array_equal(layer.W, W)
    np.testing.assert_array_equal(layer.b, b)
    x = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    answers = ReferenceEvaluator(str(path)).run(None, {"x": x})[0].argmax(axis=1)
    np.testing.assert_array_equal(layer.logits(x).argmax(axis=1), answers)
    np.testing.assert_array_equal(load_softmax_layer(path, weight="W").W, W)


def test_a_convolution_that_sees_more_than_one_pixel_is_none(tmp_path):
    nodes = [node("Conv", ["x", "W"], ["y"])]
    path = _save(tmp_path / "m.onnx", nodes, {"W": np.ones((7, 3, 3), np.float32)})
    with pytest.raises(ValueError, match="no matrix product"):
        load_softmax_layer(path)


def test_a_layer_norm_written_out_gives_its_ellipsoid(tmp_path, layer_arrays):
    gain, shift = np.array([1.0, 2.0, 3.0], np.float32), np.array([0.1, 0.2, 0.3], np.float32)
    nodes = [
        node("ReduceMean", ["x"], ["mean"], axes=[-1]),
        node("Sub", ["x", "mean"], ["c"]),
        node("Pow", ["c", "two"], ["sq"]),
        node("ReduceMean", ["sq"], ["var"], axes=[-1]),
        node("Add", ["var", "eps"], ["v"]),
        node("Sqrt", ["v"], ["sd"]),
        node("Div", ["c", "sd"], ["n"]),
        node("Mul", ["n", "gain"], ["g"]),
        node("Add", ["g", "shift"], ["h"]),
        node("MatMul", ["h", "W"], ["y"]),
    ]
    constants = {
        "W": layer_arrays[0].T,
        "gain": gain,
        "shift": shift,
        "two": np.float32(2),
        "eps": np.float32(1e-5),
    }
    features, why = load_head(_save(tmp_path / "m.onnx", nodes, constants)).feature_set()
    assert features.centred
    np.testing.assert_array_equal(features.gain, gain)
    np.testing.assert_array_equal(features.bias, shift)
    assert "LayerNorm" in why


W, B = np.ones((3, 7), np.float32), np.ones(7, np.float32)
DAMAGED = {
    "cycle of Identity feeding the output": [
        node("Identity", ["y"], ["a"]),
        node("Identity", ["a"], ["y"]),
    ],
    "cycle of Softmax": [node("Softmax", ["b0"], ["y"]), node("Softmax", ["y"], ["b0"])],
    "cycle of Identity as weight": [
        node("Identity", ["w2"], ["w1"]),
        node("Identity", ["w1"], ["w2"]),
        node("MatMul", ["x", "w1"], ["y"]),
    ],
    "product without inputs": [node("MatMul", [], ["y"])],
    "softmax without inputs": [node("Softmax", [], ["y"])],
    "constant without outputs": [
        node("Constant", [], [], value_float=1.0),
        node("Softmax", ["x"], ["y"]),
    ],
    "cast to no type": [node("Cast", ["W"], ["w"], to=999), node("MatMul", ["x", "w"], ["y"])],
    "no last layer": [node("Relu", ["x"], ["y"])],
}


@pytest.mark.parametrize("case", DAMAGED)
@pytest.mark.parametrize("weight", [None, "W", "w1"])
def test_damaged_graphs_end_in_a_sentence(tmp_path, case, weight):
    path = _save(tmp_path / "m.onnx", DAMAGED[case], {"W": W, "B": B})
    with pytest.raises(ValueError, match=r"m\.onnx"):
        load_softmax_layer(path, weight=weight)


def test_a_transpose_cycle_with_a_named_weight_ends(tmp_path):
    nodes = [
        node("Transpose", ["t2"], ["t1"]),
        node("Transpose", ["t1"], ["t2"]),
        node("Relu", ["x"], ["y"]),
    ]
    with pytest.raises(ValueError, match="no matrix product with the constant"):
        load_softmax_layer(_save(tmp_path / "m.onnx", nodes, {"W": W}), weight="t1")


def test_a_very_long_chain_is_walked(tmp_path):
    chain = [node("Identity", [f"v{n}"], [f"v{n + 1}"]) for n in range(20_000)]
    nodes = [node("MatMul", ["x", "W"], ["v0"]), *chain, node("Identity", ["v20000"], ["y"])]
    assert load_softmax_layer(_save(tmp_path / "m.onnx", nodes, {"W": W})).classes == 7
    weights = [node("Identity", [f"v{n}"], [f"v{n + 1}"]) for n in range(20_000)]
    nodes = [node("Identity", ["W"], ["v0"]), *weights, node("MatMul", ["x", "v20000"], ["y"])]
    assert load_softmax_layer(_save(tmp_path / "m.onnx", nodes, {"W": W})).classes == 7


def test_declared_sizes_are_compared_with_the_file(tmp_path):
    path = _save(tmp_path / "m.onnx", [node("MatMul", ["x", "W"], ["y"])], {"W": W})
    model = onnx.load(str(path))
    for dims, message in (
        [[-3, -7], "impossible shape"],
        [[2**40, 2**20], "more numbers than the file holds"],
    ):
        model.graph.initializer[0].dims[:] = dims
        onnx.save(model, str(path))
        with pytest.raises(ValueError, match=message):
            load_softmax_layer(path)


def test_outputs_with_a_layer_each_are_several_heads(tmp_path):
    nodes = [node("MatMul", ["x", "W"], ["y"]), node("MatMul", ["x", "V"], ["z"])]
    path = _save(tmp_path / "m.onnx", nodes, {"W": W, "V": 2 * W[:, :5]}, outputs=("y", "z"))
    with pytest.raises(ValueError, match=r"several heads.*W \(3, 7\), V \(3, 5\)"):
        load_softmax_layer(path)
    assert load_softmax_layer(path, weight="V").classes == 5
