"""The layer that a torch module in memory ends with: certain, or refused with the candidates.

It is certain where Transformers names it (`get_output_embeddings`; of a classifier, or where that
is an embedding, what `choosing` finds, as in its folder), where the module's own operations, traced
without numbers, lead from its output to one product, where a `Sequential` ends with it, and where
it is the only one.
PyTorch is never imported before the caller has.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from softgeom.checkpoints import head_table as table
from softgeom.checkpoints.choosing import choose
from softgeom.checkpoints.composed import Composed
from softgeom.checkpoints.description import described
from softgeom.checkpoints.tensors import TensorStore, describe
from softgeom.readout import PLAIN, Readout

# what stands behind a layer and changes no score, or every score alike; by name, since a traced
# operation is a module, a function or a method
_PASSED = {
    "Dropout", "Identity", "Softmax", "LogSoftmax", "dropout", "softmax", "log_softmax",
    "contiguous", "float", "double", "clone",
}  # fmt: skip
_SIGMOIDS = {"Sigmoid", "sigmoid"}
_THRESHOLD = Readout("threshold", probability="sigmoid")


@dataclass(frozen=True)
class ModuleHead:
    """Names of a layer's tensors, which they are and why, and what stands behind it where the
    module shows that.
    """

    weight: str
    bias: str | None
    why: str
    readout: Readout | None = None


def find_head(model: Any, store: TensorStore) -> ModuleHead:
    """The layer of a torch module; ValueError when it is not certain: the candidates are listed."""
    name, torch = type(model).__name__, sys.modules["torch"]
    modules = dict(model.named_modules())
    inner = unwrapped_module(model)
    if isinstance(inner, torch.nn.Linear):
        return _layer(modules, inner, name)
    named = getattr(inner, "get_output_embeddings", None)
    found, config = named() if callable(named) else None, configuration(inner)
    # FSMT names its embedding and multiplies with another matrix
    doubtful = bool(config) and _is(found, "Embedding")
    if doubtful or described(config)[1] in (table.CLASSES, table.FRAMES):
        chosen = choose(Composed(store), config)
        part = modules[chosen.weight.rpartition(".")[0]]
        return replace(_layer(modules, part, name), why=chosen.why[0])
    if found is not None and getattr(found, "weight", None) is not None:
        return _layer(modules, found, f"the output embeddings of {name}")
    # what Transformers does not name depends on more than its operations show
    graph = None if config else _traced(inner)
    if graph is not None:
        path = next(key for key, part in modules.items() if part is inner)
        return _behind_output(model, graph, modules, path, store)
    last = _end_of(inner)
    if last is not None:
        return _layer(modules, last, f"the end of {name}")
    matrices = [key for key in store.names() if len(store.shape(key)) == 2]
    linears = [part for part in modules.values() if _is_linear(part)]
    if len(matrices) == len(linears) == 1:
        return _layer(modules, linears[0], f"the only matrix of {name}")
    raise _refusal(model, store, "does not show which layer it ends with")


def unwrapped_module(model: Any) -> Any:
    """The module inside DataParallel, torch.compile and their like."""
    for part in table.WRAPPERS:
        inner = vars(model).get("_modules", {}).get(part)
        if inner is not None and ("Parallel" in type(model).__name__ or part != "module"):
            return unwrapped_module(inner)
    return model


def configuration(module: Any) -> Mapping[str, Any]:
    """The configuration of a module of Transformers, as its config.json would have it; else
    nothing.
    """
    to_dict = getattr(getattr(module, "config", None), "to_dict", None)
    written = to_dict() if callable(to_dict) else None
    if not isinstance(written, dict):
        return {}
    return written | {"architectures": [type(module).__name__]}


def effective(part: Any) -> Any:
    """The matrix that a layer multiplies with: of a weight norm or a pruned layer what it computes
    from its parameters. ValueError for adapters, and for hooks that may change it otherwise.
    """
    kind = type(part).__name__
    if hasattr(part, "base_layer"):
        raise ValueError(
            f"the layer is a {kind} with an adapter beside its matrix: merge it first "
            "(merge_and_unload of PEFT)."
        )
    for hook in getattr(part, "_forward_pre_hooks", {}).values():
        if getattr(hook, "name", None) not in (None, "weight"):
            continue
        if type(hook).__name__ == "WeightNorm":
            return hook.compute_weight(part)
        if callable(getattr(hook, "apply_mask", None)):
            return hook.apply_mask(part)
        raise ValueError(
            f"the layer is a {kind} that {type(hook).__name__} may change before it runs: remove "
            "the hook, or pass the matrix itself."
        )
    return part.weight


def _layer(modules: dict[str, Any], part: Any, why: str, seen: Readout | None = None) -> ModuleHead:
    """A module as a head. ValueError unless it multiplies with one matrix."""
    part = _trained_copy(part)
    path = next((key for key, each in modules.items() if each is part), None)
    effective(part)
    if path is None or not (_is_linear(part) or _is(part, "Embedding")):
        raise ValueError(
            f"{why} is a {type(part).__name__}, whose product is not known: name its matrix "
            "(weight=), or pass the matrix itself."
        )
    front = f"{path}." if path else ""
    bias = f"{front}bias" if getattr(part, "bias", None) is not None else None
    return ModuleHead(f"{front}weight", bias, f"{front}weight, {why}", seen)


def _traced(module: Any) -> Any:
    """The module's operations as a graph; None where they depend on numbers."""
    from torch import fx

    parameters = inspect.signature(module.forward).parameters.values()
    # traced as it runs without them: None is not a tensor
    usual = {p.name: p.default for p in parameters if p.default is not p.empty}
    try:
        return fx.Tracer().trace(module, concrete_args=usual)
    except Exception:  # the module's own code met what stands for a tensor
        return None


def _behind_output(
    model: Any, graph: Any, modules: dict[str, Any], path: str, store: TensorStore
) -> ModuleHead:
    """Walk from the output to the product, through what changes no score, or all alike."""
    front = f"{path}." if path else ""
    why = f"what {type(model).__name__} ends with"
    node, readout = next(n for n in graph.nodes if n.op == "output").args[0], PLAIN
    softmax = False  # behind what is met now
    while getattr(node, "op", None) in ("call_module", "call_function", "call_method"):
        part = modules[front + node.target] if node.op == "call_module" else None
        kind = type(part).__name__ if part is not None else _name(node.target)
        if part is not None and _is_linear(part):
            return _layer(modules, part, why, readout)
        if kind == "linear":
            given = dict(zip(("input", "weight", "bias"), node.args, strict=False)) | node.kwargs
            stored = [given.get("weight"), given.get("bias")]
            if all(each is None or each.op == "get_attr" for each in stored):
                weight, bias = (each and front + each.target for each in stored)
                return ModuleHead(weight, bias, f"{weight}, {why}", readout)
            break
        if kind in _SIGMOIDS and readout == PLAIN and not softmax:
            readout = _THRESHOLD
        elif kind in ("mul", "truediv", "div") and readout == Readout(scale=readout.scale):
            # with no option, as a rounding mode is one
            factor = node.args[1] if len(node.args) == 2 and not node.kwargs else None
            if isinstance(factor, bool) or not isinstance(factor, int | float) or factor <= 0:
                break
            scale = readout.scale * (factor if kind == "mul" else 1 / factor)
            readout = replace(readout, scale=scale)
        elif kind not in _PASSED:
            break
        elif _is_softmax(node, part, kind):
            if softmax or readout != PLAIN:
                break
            softmax = True
        node = node.args[0] if node.args else None
    raise _refusal(model, store, f"ends with {_said(node)}, not with one product")


def _is_softmax(node: Any, part: Any, kind: str) -> bool:
    """Whether a step is a softmax. ValueError for one that is known to run over another axis."""
    if "softmax" not in kind.lower():
        return False
    dim = part.dim if part is not None else node.kwargs.get("dim", (*node.args[1:], None)[0])
    if dim not in (None, 1, -1):
        raise ValueError(f"the model ends with a softmax over axis {dim}, not over its classes.")
    return True


def _said(node: Any) -> str:
    """A traced value in words."""
    if isinstance(node, Mapping | tuple | list):
        return "several outputs"
    return _name(getattr(node, "target", type(node).__name__))


def _name(target: Any) -> str:
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


def _end_of(module: Any) -> Any:
    """The layer that a Sequential ends with; None where its end is a module of its own kind."""
    if _is_linear(module):
        return module
    children = list(module) if _is(module, "Sequential") else []
    behind = [child for child in children if type(child).__name__ not in _PASSED]
    return _end_of(behind[-1]) if behind else None


def _trained_copy(part: Any) -> Any:
    """Of a module that PEFT trains whole, the copy that runs."""
    copies = getattr(part, "modules_to_save", None)
    if copies is None or not hasattr(part, "original_module"):
        return part
    active = getattr(part, "active_adapter", "default")
    return copies[active if isinstance(active, str) else active[0]]


def _is(part: Any, kind: str) -> bool:
    return isinstance(part, getattr(sys.modules["torch"].nn, kind))


def _is_linear(part: Any) -> bool:
    """Whether a module gives W x + b as torch's own Linear does."""
    linear = sys.modules["torch"].nn.Linear
    return isinstance(part, linear) and type(part).forward is linear.forward


def _refusal(model: Any, store: TensorStore, why: str) -> ValueError:
    matrices = [name for name in store.names() if len(store.shape(name)) == 2]
    if not matrices:
        return ValueError(
            f"{type(model).__name__} has no Linear layer: pass its last matrix, or "
            "softgeom.SoftmaxLayer(W, b)."
        )
    return ValueError(
        f"{type(model).__name__} {why}; name the layer (weight=): {describe(store, matrices)}."
    )
