"""The softmax layer of a model in memory: a Linear, a Transformers model, any module that ends with
a Linear, or plain arrays.

PyTorch is looked for only in what the caller has already imported; nothing here imports it first.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from softgeom.checkpoints.activation import Activation, named_activation
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


def live_layer(model: Any) -> tuple[SoftmaxLayer, str, Activation | None]:
    """The layer of an object in memory, where it was found, and what stands in front of it where a
    Sequential shows it.

    Parameters
    ----------
    model : SoftmaxLayer, array (C, d), torch.Tensor (C, d) or torch.nn.Module
        A Transformers model gives its output embeddings; another module the last Linear that it
        registers.

    Raises
    ------
    ValueError
        When a module has no Linear.
    """
    if isinstance(model, SoftmaxLayer):
        return model, "a layer in memory", None
    if _torch_kind(model) != "module":
        return SoftmaxLayer(_array(model, "W")), "a matrix in memory", None
    linear, where = _last_linear(model)
    bias = getattr(linear, "bias", None)
    final = getattr(model, "final_logits_bias", None)  # MarianMT keeps its bias beside the layer
    bias = final if bias is None and final is not None else bias
    layer = SoftmaxLayer(
        _array(linear.weight, f"{where}.weight"),
        None if bias is None else _array(bias, f"{where}.bias"),
    )
    return layer, where, _before(model, linear)


def _torch_kind(model: Any) -> str | None:
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if isinstance(model, torch.nn.Module):
        return "module"
    return "tensor" if isinstance(model, torch.Tensor) else None


def _array(values: Any, label: str) -> np.ndarray:
    if _torch_kind(values) is None:
        return np.asarray(values)
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
