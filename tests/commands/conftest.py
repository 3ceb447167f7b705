"""Small models with captives, as files that commands read."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from softgeom.bottleneck.examples import uniform_layer
from softgeom.layer import SoftmaxLayer


@pytest.fixture
def layer():
    """A float32 layer, C = 40, d = 2, with captives that trail by far."""
    drawn = uniform_layer(40, 2)
    return SoftmaxLayer(
        drawn.W.astype(np.float32), drawn.bias.astype(np.float32), [f"t{n}" for n in range(40)]
    )


@pytest.fixture
def npz(layer, tmp_path):
    """The layer as .npz with its tokens."""
    np.savez(tmp_path / "model.npz", W=layer.W, b=layer.b, tokens=np.array(layer.tokens))
    return tmp_path / "model.npz"


@pytest.fixture
def network(layer, tmp_path):
    """The layer behind a tanh in an ONNX file that names its classes as PaddleOCR does."""
    W, b = np.asarray(layer.W).T, layer.b
    nodes = [
        helper.make_node("Tanh", ["x"], ["h"]),
        helper.make_node("MatMul", ["h", "W"], ["xW"]),
        helper.make_node("Add", ["xW", "b"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 40])],
        [numpy_helper.from_array(np.ascontiguousarray(W), "W"), numpy_helper.from_array(b, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.save(model, str(tmp_path / "model.onnx"))
    return tmp_path / "model.onnx"
