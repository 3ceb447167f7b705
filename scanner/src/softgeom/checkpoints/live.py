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
from softgeom.checkpoints.opened import Asked, Opened, Shown
from softgeom.checkpoints.tensors import ArrayStore, plain, unwrapped
from softgeom.checkpoints.torch_module import configuration, effective, find_head, unwrapped_module
from softgeom.layer import SoftmaxLayer
from softgeom.readout import Readout
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
    (its index names the classes) or SciPy sparse; (W, b); a SoftmaxLayer; a torch.nn.Module (see
    `torch_module`); a mapping from name to tensor; a fitted linear model of scikit-learn, also in a
    pipeline, a search or OneVsRestClassifier. ValueError for anything else.
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
        from softgeom.checkpoints.state_dict import tensor_array

        return tensor_array(values, label)
    if hasattr(values, "toarray") and hasattr(values, "nnz"):  # SciPy's sparse matrices
        values = values.toarray()
    if np.ma.is_masked(values):
        raise ValueError(f"{label} is a masked array with hidden entries: fill them first.")
    try:
        array = widened(np.asarray(values))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{label} is not an array of numbers ({plain(error)}).") from error
    return array if array.dtype.kind == "f" else as_floats(array, label)


def index_of(values: Any) -> tuple[str, ...] | None:
    """The names in the index of a DataFrame or Series; None where it only counts from 0."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(values, pandas.DataFrame | pandas.Series):
        return None
    counts = pandas.RangeIndex(len(values))
    same = isinstance(values.index, pandas.RangeIndex) and values.index.equals(counts)
    return None if same else tuple(map(str, values.index))


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

    names = None if tokens is None else lambda classes, blank: (tokens, None)
    return Opened(store, Source(where, "memory"), show=show, names=names)


def _estimator(model: Any) -> Opened:
    """Scores ``coef_ x + intercept_``; two classes have one row, the second's score less the
    first's.
    """
    name, steps = type(model).__name__, []
    while hasattr(model, "best_estimator_") or getattr(model, "steps", None):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            steps += [type(step).__name__ for _, step in model.steps[:-1]]
            model = model.steps[-1][1]
    base = sys.modules.get("sklearn.base")
    if base is not None and isinstance(model, base.RegressorMixin):
        raise ValueError(f"{name} is a regression: its outputs are numbers, not classes.")
    several = hasattr(model, "estimators_") and hasattr(model, "label_binarizer_")
    W, b = _rows(model.estimators_ if several else [model], name)
    classes = getattr(model, "classes_", None)
    if len(W) == 1 and classes is not None and len(classes) == 2:
        W = np.vstack([np.zeros_like(W), W])
        b = np.append(np.zeros_like(b), b) if b.size == 1 else b
    if classes is not None and len(W) != len(classes):
        raise ValueError(
            f"{name} has coef_ of shape {W.shape} for {len(classes)} classes: not one row a class."
        )
    tokens = None if classes is None else [str(each) for each in classes]
    # fit_intercept=False gives the number zero
    opened = _matrix(W, b if b.any() else None, f"{name} in memory", tokens)
    before = f"its features are what {', '.join(steps)} give: any in the set are asked about"
    return replace(
        opened, notes=[before] if steps else [], readout=_readout(model, several, len(W))
    )


def _rows(estimators: Sequence[Any], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (rows, d) and intercepts of linear models, one below the other."""
    parts = []
    for each in estimators:
        kind = type(each).__name__
        if hasattr(each, "support_vectors_"):
            raise ValueError(
                f"{kind} decides between pairs of classes, not by one row a class: use LinearSVC."
            )
        if not hasattr(each, "coef_"):
            of = "" if kind == name else f" of {name}"
            raise ValueError(
                f"{kind}{of} has no coef_: it is not fitted, or no linear model; pass one that is."
            )
        W = as_array(each.coef_, "coef_")
        if W.ndim != 2:
            raise ValueError(f"{kind} has coef_ of shape {W.shape}: not one row a class.")
        parts.append((W, as_array(getattr(each, "intercept_", 0.0), "intercept_")))
    if len(parts) == 1:
        return parts[0]
    if any(len(W) != 1 for W, _ in parts):
        raise ValueError(f"{name} holds models of several rows each: not one row a class.")
    return np.vstack([W for W, _ in parts]), np.concatenate([b.reshape(-1)[:1] for _, b in parts])


def _readout(model: Any, several: bool, rows: int) -> Readout:
    """How scikit-learn reads the scores: which label it predicts, and its `predict_proba`."""
    each = model.estimators_[0] if several else model
    kind = type(each).__name__
    binarizer = getattr(model, "label_binarizer_" if several else "_label_binarizer", None)
    together = not str(getattr(binarizer, "y_type_", "")).startswith("multilabel")
    logistic = kind.startswith("LogisticRegression") or getattr(each, "loss", "") == "log_loss"
    if not together:
        return Readout("threshold", probability="sigmoid" if logistic else "none")
    apart = several or kind == "SGDClassifier" or getattr(each, "solver", "") == "liblinear"
    apart = apart or getattr(each, "multi_class", "") == "ovr"
    if logistic and apart and rows > 2:
        return Readout(probability="normalised sigmoids")
    if logistic and rows == 2 and getattr(each, "multi_class", "") == "multinomial":
        return Readout(scale=2.0)  # the softmax of (-score, score)
    softmax = logistic or kind == "LinearDiscriminantAnalysis"
    return Readout(probability="softmax" if softmax else "none")


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
    name, config = type(model).__name__, configuration(unwrapped_module(model))
    tensors = dict(model.state_dict())
    # MobileBERT multiplies with two matrices joined, which its tensors show and no module of it
    joined = config.get("model_type") == "mobilebert"
    show = None if joined else functools.partial(_show_module, model, tensors)
    return Opened(_Tensors(tensors, name), Source(name, "memory"), config, show=show)


def _show_module(model: Any, tensors: dict[str, Any], asked: Asked) -> Shown:
    modules, label = dict(model.named_modules()), type(model).__name__
    name, found = asked.weight, None
    if name is None:
        found = find_head(model, _Tensors(tensors, label))
        name = found.weight
    path = name if hasattr(modules.get(name), "weight") else name.rpartition(".")[0]
    if name == path:
        name = _join(path, "weight")
    owner = modules.get(path)
    own = {_join(path, "bias"): getattr(owner, "bias", None)}
    if hasattr(owner, "weight") and name == _join(path, "weight"):
        own[name] = effective(owner)  # which no state dict has under its name
    own = {key: value for key, value in own.items() if _is_torch(value, "Tensor")}
    store = _Tensors({**tensors, **own}, label)
    before = None if owner is None else _before(model, owner)
    if found is None:
        choice = choose(store, {}, name, asked.bias, without_bias=asked.without_bias)
        return Shown(store, choice, before)
    # a trace shows that there is no bias; a model of Transformers may add a loose one
    bare = asked.without_bias or (found.readout is not None and found.bias is None)
    bias = asked.bias or (None if bare or found.bias == _join(path, "bias") else found.bias)
    choice = choose(store, {}, name, bias, without_bias=bare and asked.bias is None)
    choice = replace(choice, why=(found.why, *choice.why[1:]))
    return Shown(store, choice, before, readout=found.readout)


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
    kind, family = type(module).__name__, type(module).__module__.partition(".")[0]
    if family not in {"torch", "transformers"}:
        return None  # a class of somebody's own may do anything under that name
    if kind in _ACTIVATIONS:
        return named_activation(_ACTIVATIONS[kind])
    own = kind in {"LayerNorm", "RMSNorm"} and _is_torch(module, "nn", kind)
    own = own and not (module.eps is not None and module.eps < 0)
    if own and module.weight is not None and module.weight.ndim == 1:
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


def _axes(values: Any) -> int:
    """How many axes something has; 0 for what has none or no even shape."""
    try:
        return int(values.ndim) if hasattr(values, "ndim") else np.ndim(values)
    except (ValueError, TypeError):
        return 0
