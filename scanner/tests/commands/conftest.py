"""Small models with unargmaxable classes, as files that commands read."""

import numpy as np
import onnx
import onnx.parser
import pytest

from softgeom.cli import main
from softgeom.commands import boundary
from softgeom.examples import uniform_layer
from softgeom.layer import SoftmaxLayer


@pytest.fixture
def told(capsys):
    """`told("scan", ...)`: what that command prints, which is done."""

    def told_(*command) -> str:
        assert main([str(word) for word in command]) == boundary.DONE
        return capsys.readouterr().out

    return told_


@pytest.fixture
def refused(capsys):
    """`refused(words, "scan", ...)`: that command is refused, in one line with these words."""

    def refused_(words: str, *command) -> None:
        capsys.readouterr()
        assert main([str(word) for word in command]) == boundary.REFUSED
        said = capsys.readouterr().err
        assert said.startswith("softgeom: ")
        assert words in said
        assert said.count("\n") == 1

    return refused_


@pytest.fixture
def layer():
    """A float32 layer, C = 40, d = 2, some unargmaxable by far."""
    drawn = uniform_layer(40, 2)
    W, b = (array.astype(np.float32) for array in (drawn.W, drawn.bias))
    return SoftmaxLayer(W, b, [f"t{n}" for n in range(40)])


@pytest.fixture
def npz(layer, tmp_path):
    """The layer as .npz with its tokens."""
    np.savez(tmp_path / "model.npz", W=layer.W, b=layer.b, tokens=np.array(layer.tokens))
    return tmp_path / "model.npz"


@pytest.fixture
def network(layer, tmp_path):
    """The layer behind a tanh in an ONNX file that names its classes as PaddleOCR does."""
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["": 17]>
        test (float[n, 2] x) => (float[n, 40] y) {
            h = Tanh (x)
            xW = MatMul (h, W)
            logits = Add (xW, b)
            y = Softmax (logits)
        }""")
    for name, array in {"W": layer.W.T, "b": layer.b}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, str(tmp_path / "model.onnx"))
    return tmp_path / "model.onnx"
