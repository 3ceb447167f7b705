"""The last layer of ONNX graphs in the forms that exporters write."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from softgeom.checkpoints import load_softmax_layer


def _save(path, nodes, initialisers, output="y", metadata=None, **options):
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_empty_tensor_value_info(output)],
        [numpy_helper.from_array(array, name) for name, array in initialisers.items()],
    )
    model = helper.make_model(graph)
    helper.set_model_props(model, metadata or {})
    onnx.save(model, str(path), **options)
    return path


def _matmul_graph(W, b, constants_as_nodes):
    arrays = {"W": np.ascontiguousarray(W.T), "b": b}
    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node("MatMul", ["h", "W"], ["xW"]),
        helper.make_node("Add", ["b", "xW"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]
    if constants_as_nodes:
        made = [
            helper.make_node("Constant", [], [n], value=numpy_helper.from_array(a))
            for n, a in arrays.items()
        ]
        return made + nodes, {}
    return nodes, arrays


@pytest.mark.parametrize("constants_as_nodes", [True, False])
def test_matmul_and_add_before_a_softmax(tmp_path, layer_arrays, constants_as_nodes):
    W, b = layer_arrays
    layer = load_softmax_layer(_save(tmp_path / "m.onnx", *_matmul_graph(W, b, constants_as_nodes)))
    np.testing.assert_array_equal(layer.W, W)
    np.testing.assert_array_equal(layer.b, b)


@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm_with_its_scales_is_what_the_runtime_computes(tmp_path, layer_arrays, transposed):
    onnxruntime = pytest.importorskip("onnxruntime")
    W, b = layer_arrays
    stored = W if transposed else np.ascontiguousarray(W.T)
    node = helper.make_node("Gemm", ["x", "W", "b"], ["y"], transB=transposed, alpha=2.0, beta=0.5)
    path = _save(tmp_path / "m.onnx", [node], {"W": stored, "b": b})
    model = onnx.load(str(path))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 7]))
    model.ir_version = 10  # the runtime may be older than the writer
    model.opset_import[0].version = 17
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    x = np.random.default_rng(1).standard_normal((5, 3)).astype(np.float32)
    np.testing.assert_allclose(
        load_softmax_layer(path).logits(x), session.run(None, {"x": x})[0], rtol=1e-5, atol=1e-6
    )


def test_constants_behind_transpose_and_outputs_behind_reshape(tmp_path, layer_arrays):
    W, _ = layer_arrays
    nodes = [
        helper.make_node("Transpose", ["W"], ["Wt"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "Wt"], ["logits"]),
        helper.make_node("Reshape", ["logits", "shape"], ["y"]),
    ]
    layer = load_softmax_layer(
        _save(tmp_path / "m.onnx", nodes, {"W": W, "shape": np.array([-1, 7])})
    )
    np.testing.assert_array_equal(layer.W, W)
    assert layer.b is None


def test_the_last_of_two_layers_is_taken_and_another_can_be_named(tmp_path, layer_arrays):
    W, b = layer_arrays
    first = np.eye(3, dtype=np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["h"]),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("Gemm", ["t", "W", "b"], ["y"], transB=1),
    ]
    path = _save(tmp_path / "m.onnx", nodes, {"first": first, "W": W, "b": b})
    np.testing.assert_array_equal(load_softmax_layer(path).W, W)
    np.testing.assert_array_equal(load_softmax_layer(path, weight="first").W, first)


def test_external_data_are_read(tmp_path, layer_arrays):
    W, b = layer_arrays
    nodes, arrays = _matmul_graph(W, b, constants_as_nodes=False)
    path = _save(
        tmp_path / "m.onnx",
        nodes,
        arrays,
        save_as_external_data=True,
        location="weights.data",
        size_threshold=0,
    )
    assert (tmp_path / "weights.data").exists()
    np.testing.assert_array_equal(load_softmax_layer(path).W, W)
    (tmp_path / "weights.data").unlink()
    with pytest.raises(ValueError, match=r"the constant '[Wb]' cannot be read"):
        load_softmax_layer(path)


def test_external_data_outside_the_folder_are_refused(tmp_path, layer_arrays):
    W, b = layer_arrays
    nodes, arrays = _matmul_graph(W, b, constants_as_nodes=False)
    folder = tmp_path / "inner"
    folder.mkdir()
    path = _save(
        folder / "m.onnx",
        nodes,
        arrays,
        save_as_external_data=True,
        location="w.data",
        size_threshold=0,
    )
    (folder / "w.data").rename(tmp_path / "w.data")
    model = onnx.load(str(path), load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../w.data"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match="cannot be read"):
        load_softmax_layer(path)


@pytest.mark.parametrize("ending", ["", "\n"])
def test_characters_in_the_metadata_name_the_classes(tmp_path, layer_arrays, ending):
    W, b = layer_arrays
    path = _save(
        tmp_path / "m.onnx",
        *_matmul_graph(W, b, False),
        metadata={"character": "a\nb\nc\nd\ne" + ending},
    )
    assert load_softmax_layer(path).tokens == ("<blank>", "a", "b", "c", "d", "e", " ")


def test_a_graph_without_a_last_layer_lists_its_matrices(tmp_path, layer_arrays):
    nodes = [helper.make_node("MatMul", ["x", "W"], ["h"]), helper.make_node("Tanh", ["h"], ["y"])]
    path = _save(tmp_path / "m.onnx", nodes, {"W": layer_arrays[0].T.copy()})
    with pytest.raises(
        ValueError,
        match=r"no matrix product with a constant before its output; candidates: W \(3, 7\)",
    ):
        load_softmax_layer(path)


def test_a_truncated_file_is_named(tmp_path, layer_arrays):
    path = _save(tmp_path / "m.onnx", *_matmul_graph(*layer_arrays, False))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"m\.onnx is not a whole ONNX file"):
        load_softmax_layer(path)
