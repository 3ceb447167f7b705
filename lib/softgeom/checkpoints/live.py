"""The softmax layer of a model in memory: a Linear, a Transformers model, any module that ends with
a Linear, or plain arrays.

PyTorch is looked for only in what the caller has already imported; nothing here imports it first.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from softgeom.checkpoints.activation import Activation, named_activation
from softgeom.checkpoints.choosing import choose
from softgeom.checkpoints.conventions import require
from softgeom.checkpoints.tensors import TensorStore
from softgeom.layer import SoftmaxLayer

_ACTIVATIONS = {
    "ReLU": "ReLU",
    "SiLU": "Swish",
    "SiLUActivation": "Swish",
    "Hardswish": "HardSwish",
    "GELU": "GELU",
    "GELUActivation": "GELU",
    "Sigmoid": "sigmoid",
    "Softmax": "softmax",
    "Tanh": "tanh",
    "LSTM": "LSTM",
    "GRU": "GRU",
}
_PASSED = {"Dropout", "Flatten", "Identity"}


def is_model(model: Any) -> bool:
    """Whether an object is something that `live_layer` can read, rather than the name of a file."""
    return isinstance(model, SoftmaxLayer | np.ndarray) or _torch_kind(model) is not None


def live_layer(
    model: Any, weight: str | None = None, bias: Any = None, *, without_bias: bool = False
) -> tuple[SoftmaxLayer, str, Activation | None]:
    """The layer of an object in memory, where it was found, and what stands in front of it where a
    Sequential shows it.

    Parameters
    ----------
    model : SoftmaxLayer, array (C, d), torch.Tensor (C, d) or torch.nn.Module
        A Transformers model gives its output embeddings; another module the last Linear that it
        registers.
    weight : str, optional
        Of a module: the parameter that is W, by its name in `state_dict()`.
    bias : str or array (C,), optional
        Of a module the name of a parameter or buffer, of a matrix the vector itself.
    without_bias : bool
        Leave out a bias that is there.

    Raises
    ------
    ValueError
        When a module has no Linear or no tensor of that name, or an option has no meaning with the
        object.
    """
    kind = "layer" if isinstance(model, SoftmaxLayer) else _torch_kind(model) or "matrix"
    if weight is not None and kind != "module":
        raise ValueError(f"weight={weight!r} names a tensor, but a {kind} in memory has no names.")
    if kind == "layer":
        if bias is not None:
            raise ValueError("a SoftmaxLayer holds its bias: build SoftmaxLayer(W, bias) instead.")
        plain = SoftmaxLayer(model.W, None, model.tokens) if without_bias else model
        return plain, "a layer in memory", None
    if kind != "module":
        if isinstance(bias, str):
            raise ValueError(f"bias={bias!r} is a name: pass the bias of a {kind} as a vector.")
        b = None if bias is None else _array(bias, "bias")
        return SoftmaxLayer(_array(model, "W"), b), "a matrix in memory", None
    if not isinstance(bias, str | None):
        raise ValueError("the bias of a module is given by its name, as in state_dict().")
    if weight is not None:
        return _named_layer(model, weight, bias, without_bias)
    linear, where = _last_linear(model)
    found = getattr(linear, "bias", None)
    if found is None:  # MarianMT keeps its bias beside the layer
        found = getattr(model, "final_logits_bias", None)
    if bias is not None:
        store = _tensors(model)
        found = store.read(require(store, bias, (1, 2)))
    layer = SoftmaxLayer(
        _array(linear.weight, f"{where}.weight"),
        None if found is None or without_bias else _array(found, f"{where}.bias"),
    )
    return layer, where, _before(model, linear)


def _named_layer(
    model: Any, weight: str, bias: str | None, without_bias: bool
) -> tuple[SoftmaxLayer, str, Activation | None]:
    store = _tensors(model)
    choice = choose(store, {}, weight, bias, without_bias=without_bias)
    W = store.read(weight)
    b = None if choice.bias is None else store.read(choice.bias)
    where = f"{weight} of {type(model).__name__}{f', bias {choice.bias}' if choice.bias else ''}"
    owner = model.get_submodule(weight.rpartition(".")[0])
    return SoftmaxLayer(W.T if choice.transposed else W, b), where, _before(model, owner)


def _tensors(model: Any) -> TensorStore:
    from softgeom.checkpoints.state_dict import named_tensors

    return named_tensors(model.state_dict(), type(model).__name__)


def _torch_kind(model: Any) -> str | None:
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if isinstance(model, torch.nn.Module):
        return "module"
    return "tensor" if isinstance(model, torch.Tensor) else None


def _array(values: Any, label: str) -> Any:
    if _torch_kind(values) is None:
        return values
    from softgeom.checkpoints.state_dict import tensor_array

    return tensor_array(values, label)


def _last_linear(model: Any) -> tuple[Any, str]:
    torch = sys.modules["torch"]
    name = type(model).__name__
    if isinstance(model, torch.nn.Linear):
        return model, name
    head = getattr(model, "get_output_embeddings", None)
    found = head() if callable(head) else None
    if found is not None and getattr(found, "weight", None) is not None:
        return found, f"the output embeddings of {name}"
    linears = [
        (path, module)
        for path, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
    ]
    if not linears:
        raise ValueError(
            f"{name} has no Linear layer: pass its last matrix, or softgeom.SoftmaxLayer(W, b)."
        )
    return linears[-1][1], f"{linears[-1][0]}, the last Linear of {name}"


def _before(model: Any, linear: Any) -> Activation | None:
    """The module in front of the layer in the Sequential that holds it."""
    torch = sys.modules["torch"]
    for container in model.modules():
        if isinstance(container, torch.nn.Sequential) and any(
            child is linear for child in container
        ):
            earlier = []
            for child in container:
                if child is linear:
                    break
                earlier.append(child)
            kinds = [child for child in earlier if type(child).__name__ not in _PASSED]
            return _activation(kinds[-1]) if kinds else None
    return None


def _activation(module: Any) -> Activation | None:
    kind = type(module).__name__
    if kind in _ACTIVATIONS:
        return named_activation(_ACTIVATIONS[kind])
    if kind in {"LayerNorm", "RMSNorm"} and module.weight is not None:
        shift = getattr(module, "bias", None)
        return Activation(
            kind,
            gain=_array(module.weight, kind),
            shift=None if shift is None else _array(shift, kind),
        )
    return None
