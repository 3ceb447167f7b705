"""Models that are in memory: a matrix of any library, a pair (W, b), a SoftmaxLayer, a torch module
or state dict, a linear model of scikit-learn.

No library is imported for it: what the caller holds is already there, or is recognised by what it
has.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from softgeom.checkpoints.activation import Activation, named_activation
from softgeom.checkpoints.choosing import Choice, choose
from softgeom.checkpoints.opened import Asked, NamesOf, Opened, Shown
from softgeom.checkpoints.tensors import ArrayStore, plain, unwrapped
from softgeom.layer import SoftmaxLayer
from softgeom.rounding import as_floats, widened
from softgeom.source import Source

_ACTIVATIONS = {
    "ReLU": "ReLU", "SiLU": "Swish", "SiLUActivation": "Swish", "Hardswish": "HardSwish",
    "GELU": "GELU", "GELUActivation": "GELU", "Sigmoid": "sigmoid", "Softmax": "softmax",
    "Tanh": "tanh", "LSTM": "LSTM", "GRU": "GRU",
}  # fmt: skip
_PASSED = {"Dropout", "Flatten", "Identity"}


def open_object(model: Any) -> Opened:
    """What an object in memory holds: a matrix (C, d) as array, tensor, list of rows, DataFrame
    (its index names the classes) or SciPy sparse; (W, b); a SoftmaxLayer; a torch.nn.Module (of
    Transformers its output embeddings, else the last Linear that it registers); a mapping from name
    to tensor; a fitted linear model of scikit-learn. ValueError for anything else.
    """
    if isinstance(model, SoftmaxLayer):
        return _matrix(model.W, model.b, "a layer in memory", model.tokens)
    if _is_torch(model, "nn", "Module"):
        return _module(model)
    if isinstance(model, Mapping):
        return _state_dict(model)
    if hasattr(model, "coef_") or hasattr(model, "fit"):
        return _estimator(model)
    if isinstance(model, tuple) and len(model) == 2 and _axes(model[0]) == 2:
        W, b = model
        names = index_of(W)
        return _matrix(W, aligned(b, names), "a pair (W, b) in memory", names)
    if not (isinstance(model, list | tuple) or hasattr(model, "shape")):
        raise ValueError(
            f"a {type(model).__name__} is not a model: pass a path, a hub id, a matrix (classes, "
            "features), (W, b), a torch module or state dict, or a fitted linear model."
        )
    return _matrix(model, None, "a matrix in memory", index_of(model))


def as_array(values: Any, label: str) -> np.ndarray:
    """Numbers of any library as an array, floats of the width they have. ValueError for what is no
    dense array of real numbers, or hides some behind a mask.
    """
    if _is_torch(values, "Tensor"):
        return _tensor(values, label)
    try:
        array = widened(_unmasked(_dense(values), label))
    except (ValueError, TypeError) as error:
        if str(error).startswith(label):
            raise
        raise ValueError(f"{label} is not an array of numbers ({plain(error)}).") from error
    return array if array.dtype.kind == "f" else as_floats(array, label)


def index_of(values: Any) -> tuple[str, ...] | None:
    """The names in the index of a DataFrame or Series; None where it only counts from 0."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(values, pandas.DataFrame | pandas.Series):
        return None
    counts = isinstance(values.index, pandas.RangeIndex) and (
        values.index.start == 0 and values.index.step == 1
    )
    return None if counts else tuple(map(str, values.index))


def aligned(bias: Any, names: Sequence[str] | None) -> Any:
    """The bias in the order of the classes, as pandas aligns it: its index, where it has one, names
    them, or numbers them from 0. ValueError when it names others.
    """
    index = index_of(bias)
    if index is None:
        return bias
    for classes in (tuple(names or ()), tuple(map(str, range(len(index))))):
        if sorted(index) == sorted(classes) and len(set(index)) == len(index):
            place = {name: n for n, name in enumerate(index)}
            return bias.to_numpy()[[place[name] for name in classes]]
    raise ValueError(
        "the index of the bias differs from the names of the classes: align the two first, "
        "or pass bias.to_numpy()."
    )


def _matrix(W: Any, b: Any, where: str, tokens: Sequence[str] | None = None) -> Opened:
    """One matrix, and a bias where there is one; nothing has a name."""
    arrays = {"W": as_array(W, "W")} | ({} if b is None else {"b": as_array(b, "b")})
    if arrays["W"].ndim != 2:
        shape = arrays["W"].shape
        raise ValueError(f"W must be a (classes, features) matrix, not an array of shape {shape}.")
    store = ArrayStore(arrays, where)

    def show(asked: Asked) -> Shown:
        for option, name in (("weight", asked.weight), ("bias", asked.bias)):
            if name is not None:
                raise ValueError(
                    f"{option}={name!r} names a tensor, but {where} has no names: pass the "
                    "numbers themselves."
                )
        kept = "b" if b is not None and not asked.without_bias else None
        return Shown(store, Choice("W", kept, False, (where,)))

    return Opened(store, Source(where, "memory"), show=show, names=_fixed(tokens))


def _estimator(model: Any) -> Opened:
    """Scores ``coef_ x + intercept_``; two classes have one row, the second's score less the
    first's.
    """
    name = type(model).__name__
    if not hasattr(model, "coef_"):
        raise ValueError(
            f"{name} has no coef_: pass the fitted linear model itself (of a pipeline its last "
            "step, of a search its best_estimator_)."
        )
    if hasattr(model, "support_vectors_"):
        raise ValueError(
            f"{name} decides between pairs of classes, not by one row a class: use LinearSVC."
        )
    W, b = as_array(model.coef_, "coef_"), as_array(getattr(model, "intercept_", 0.0), "intercept_")
    classes = getattr(model, "classes_", None)
    if W.ndim == 2 and len(W) == 1 and classes is not None and len(classes) == 2:
        W = np.vstack([np.zeros_like(W), W])
        b = np.append(np.zeros_like(b), b) if b.size == 1 else b
    if W.ndim != 2 or (classes is not None and len(classes) != len(W)):
        many = "" if classes is None else f" for {len(classes)} classes"
        raise ValueError(f"{name} has coef_ of shape {W.shape}{many}: not one row a class.")
    tokens = None if classes is None else [str(each) for each in classes]
    # fit_intercept=False gives the number zero
    return _matrix(W, b if b.any() else None, f"{name} in memory", tokens)


def _state_dict(model: Mapping[Any, Any]) -> Opened:
    """The tensors of a mapping; what else stands in it is left aside."""
    state = unwrapped(model).items()
    tensors = {str(name): value for name, value in state if hasattr(value, "shape")}
    if not tensors:
        raise ValueError(
            f"a {type(model).__name__} without tensors is not a model: pass a state dict, from "
            "name to array."
        )
    where = "a state dict in memory"
    return Opened(_Tensors(tensors, where), Source(where, "memory"))


def _module(model: Any) -> Opened:
    """The layer of a torch module, which its structure shows better than names do."""
    name = type(model).__name__
    kind = getattr(getattr(model, "config", None), "model_type", None)
    tensors = dict(model.state_dict())
    return Opened(
        _Tensors(tensors, name),
        Source(name, "memory"),
        {} if kind is None else {"model_type": kind},
        show=functools.partial(_show_module, model, tensors),
    )


def _show_module(model: Any, tensors: dict[str, Any], asked: Asked) -> Shown:
    modules = dict(model.named_modules())
    name, why = asked.weight, ""
    if name is None:
        path, why = _last_linear(model, modules)
    else:
        path = name if hasattr(modules.get(name), "weight") else name.rpartition(".")[0]
    if name is None or name == path:
        name = _join(path, "weight")
    owner = modules.get(path)
    # what a layer computes from parameters (a weight norm) no state dict has under its name
    own = {_join(path, part): getattr(owner, part, None) for part in ("weight", "bias")}
    own = {key: value for key, value in own.items() if _is_torch(value, "Tensor")}
    store = _Tensors({**tensors, **own}, type(model).__name__)
    choice = choose(store, {}, name, asked.bias, without_bias=asked.without_bias)
    if why:
        choice = replace(choice, why=(why, *choice.why[1:]))
    return Shown(store, choice, None if owner is None else _before(model, owner))


def _last_linear(model: Any, modules: dict[str, Any]) -> tuple[str, str]:
    """The path of the layer that a module ends with, and why it is that one."""
    name = type(model).__name__
    if _is_torch(model, "nn", "Linear"):
        return "", name
    head = getattr(model, "get_output_embeddings", None)
    found = head() if callable(head) else None
    for path, part in modules.items():
        if part is found and getattr(found, "weight", None) is not None:
            return path, f"the output embeddings of {name}"
    linears = [path for path, part in modules.items() if _is_torch(part, "nn", "Linear")]
    if not linears:
        raise ValueError(
            f"{name} has no Linear layer: pass its last matrix, or softgeom.SoftmaxLayer(W, b)."
        )
    return linears[-1], f"{linears[-1]}, the last Linear of {name}"


def _before(model: Any, layer: Any) -> Activation | None:
    """The module in front of the layer in the Sequential that holds it."""
    for container in model.modules():
        children = list(container) if _is_torch(container, "nn", "Sequential") else []
        for n, child in enumerate(children):
            if child is layer:
                kinds = [c for c in children[:n] if type(c).__name__ not in _PASSED]
                return _activation(kinds[-1]) if kinds else None
    return None


def _activation(module: Any) -> Activation | None:
    kind = type(module).__name__
    if kind in _ACTIVATIONS:
        return named_activation(_ACTIVATIONS[kind])
    if kind in {"LayerNorm", "RMSNorm"} and module.weight is not None:
        shift = getattr(module, "bias", None)
        shift = None if shift is None else as_array(shift, kind)
        return Activation(kind, gain=as_array(module.weight, kind), shift=shift)
    return None


class _Tensors(ArrayStore):
    """Tensors or arrays, converted one at a time; codes of a quantised model stay codes."""

    def read(self, name: str) -> np.ndarray:
        value, label = self._arrays[name], f"{self.label}: {plain(name)!r}"
        return as_array(value, label)


def _join(path: str, part: str) -> str:
    return f"{path}.{part}" if path else part


def _is_torch(value: Any, *names: str) -> bool:
    """Whether it is an instance of ``torch.names...``; never, where nobody has imported torch."""
    kind: Any = sys.modules.get("torch")
    for name in names:
        kind = getattr(kind, name, None)
    return kind is not None and isinstance(value, kind)


def _tensor(tensor: Any, label: str) -> np.ndarray:
    from softgeom.checkpoints.state_dict import tensor_array

    return tensor_array(tensor, label)


def _unmasked(values: Any, label: str) -> np.ndarray:
    if np.ma.is_masked(values):
        raise ValueError(f"{label} is a masked array with hidden entries: fill them first.")
    return np.asarray(values)


def _dense(values: Any) -> Any:
    """SciPy's sparse matrices with their zeros; all else as it is."""
    return values.toarray() if hasattr(values, "toarray") and hasattr(values, "nnz") else values


def _axes(values: Any) -> int:
    """How many axes something has; 0 for what has none or no even shape."""
    try:
        return int(values.ndim) if hasattr(values, "ndim") else np.ndim(values)
    except (ValueError, TypeError):
        return 0


def _fixed(names: Sequence[str] | None) -> NamesOf | None:
    return None if names is None else lambda classes, blank: (names, None)
