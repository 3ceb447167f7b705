"""What stands in front of a softmax layer, and so where its features lie.

`INTERVALS` bounds every feature behind a step that acts number by number; a mean of rows lies
between their least and largest entry, a Clip between its bounds. LayerNorm and RMSNorm give
x = shift + gain u with norm(u) <= sqrt(d), an ellipsoid.

Averages, maxima and reshapes between the two keep an interval; what is put together from several
lies in the smallest that holds theirs. An ellipsoid is of one row of numbers, each with its gain:
it is kept only by what leaves whole rows as they are. In a graph the step is found by walking back,
also to the cells of an LSTM that is written out, a sigmoid times a tanh; in a file of tensors alone
it cannot be seen, except a normalisation with weights of a known name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from softgeom.checkpoints.onnx_graph import attributes, axes_of

if TYPE_CHECKING:
    from softgeom.checkpoints.onnx_graph import OnnxGraph

# minima: -0.278464543, -3/8, and -0.16997 (of GELU's tanh form -0.17004)
INTERVALS = {
    "ReLU": (0.0, math.inf), "ReLU6": (0.0, 6.0), "Swish": (-0.2785, math.inf),
    "HardSwish": (-0.3751, math.inf), "GELU": (-0.1701, math.inf), "sigmoid": (0.0, 1.0),
    "softmax": (0.0, 1.0), "tanh": (-1.0, 1.0), "LSTM": (-1.0, 1.0), "GRU": (-1.0, 1.0),
}  # fmt: skip
RELU_BEHIND = (
    "a ReLU stands between the layer and the softmax and ties what is below 0: the verdicts are "
    "about scores before it, and what never wins there never wins behind it"
)
_BY_OPERATOR = {
    "Relu": "ReLU", "Sigmoid": "sigmoid", "Tanh": "tanh", "Softmax": "softmax",
    "HardSwish": "HardSwish", "HardSigmoid": "sigmoid", "Softplus": "ReLU", "Gelu": "GELU",
    "FastGelu": "GELU", "QuickGelu": "Swish", "LSTM": "LSTM", "GRU": "GRU",
}  # fmt: skip
# Operators that only move numbers, pick some, or average them: an interval before is an interval
# after.
_KEEPS_INTERVAL = {
    "Identity", "Cast", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Dropout",
    "Slice", "Gather", "GlobalAveragePool", "ReduceMean", "GlobalMaxPool", "MaxPool", "ReduceMax",
    "DynamicQuantizeLinear", "QuantizeLinear", "DequantizeLinear",
}  # fmt: skip
_SLICE_BY_INPUTS = 10  # the opset since which a Slice reads its places
_DEEPEST = 50  # nested Concats that are walked back through
# what a gate of a recurrent cell, and what it lets pass, may go through to stay within 1
_GATES = {b"sigmoid", b"hardsigmoid"}
_WITHIN_ONE = {*_GATES, b"tanh", b"softsign"}
_CENTRED = {
    "LayerNormalization": True, "SimplifiedLayerNormalization": False, "RMSNormalization": False,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Activation:
    """The last step before the layer: bounds of every feature, infinite where there are none; gain
    and shift (d,) of a normalisation.
    """

    name: str
    low: float = -math.inf
    high: float = math.inf
    gain: np.ndarray | None = None
    shift: np.ndarray | None = None

    def scaled(self, factor: float) -> Activation:
        """After a product with one constant, whose float32 rounding is allowed for; 1 is none."""
        if factor == 1.0:
            return self
        wide, near = factor * (1 + 1e-6), factor * (1 - 1e-6)
        ends = [end * by for end in (self.low, self.high) for by in (wide, near)]
        return Activation(self.name, min(ends), max(ends))


def named_activation(name: str) -> Activation:
    """An activation by its name in `INTERVALS`; KeyError for another."""
    return Activation(name, *INTERVALS[name])


def activation_of(
    graph: OnnxGraph, value: str, known: dict[str, Activation | None] | None = None, depth: int = 0
) -> Activation | None:
    """The activation or normalisation that a value comes out of; None for another operator. What
    the parts of a Concat, ``depth`` of them deep, come out of is ``known`` once it is found.
    """
    # whether each row so far is one that the step before gives, number by number
    factor, visited, rounded, rows = 1.0, set(), False, True
    while value not in visited:
        visited.add(value)
        node = graph.producer.get(value)
        if node is None or not node.input or value not in _told_of(graph, node):
            return None
        if node.op_type in _BY_OPERATOR:
            found = named_activation(_BY_OPERATOR[node.op_type])
            if node.op_type == "QuickGelu" and "alpha" in (options := attributes(node)):
                if not (alpha := options["alpha"].f) > 0:
                    return None
                factor /= alpha
            # zero is a code of its own, so only that bound survives the rounding
            if rounded and found.name != "ReLU":
                return None
            return found.scaled(factor)
        if rounded and node.op_type not in _KEEPS_INTERVAL:
            return None
        if node.op_type == "Clip":
            bounds = clip_bounds(graph, node)
            return None if bounds is None else Activation("Clip", *bounds).scaled(factor)
        if node.op_type in _CENTRED:
            plain = factor == 1.0 and rows
            return _norm(graph, node, _CENTRED[node.op_type]) if plain else None
        if node.op_type == "Concat":
            if rounded or depth == _DEEPEST:
                return None
            together = _together(graph, node, {} if known is None else known, depth + 1)
            return None if together is None else together.scaled(factor)
        if node.op_type == "Mul":
            if _is_gated(graph, node):
                return named_activation("LSTM").scaled(factor)
            if (beta := _swish_slope(graph, node)) is not None:
                return named_activation("Swish").scaled(factor / beta)
            constant, other = _constant_and_other(graph, node)
            if constant is not None and (number := graph.constant(constant)).size == 1:
                factor, value = factor * float(number.reshape(())), other
                if not factor or not math.isfinite(factor):
                    return None
                continue
            plain = factor == 1.0 and rows
            return _written_out_norm(graph, node, None) if plain else None
        if node.op_type == "Add":
            return _shifted_norm(graph, node) if factor == 1.0 and rows else None
        if node.op_type not in _KEEPS_INTERVAL:
            return None
        rounded |= "Quantize" in node.op_type
        rows &= _keeps_rows(graph, node)
        value = node.input[0]
    return None


def _keeps_rows(graph: OnnxGraph, node: Any) -> bool:
    """Whether each row (the last axis) of the result is certainly a row of what was read."""
    match node.op_type:
        case "Identity" | "Cast" | "Dropout":
            return True
        case "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze":
            # numbers lie row by row: rows of the same length are the same rows
            before, after = graph.shape(node.input[0]), graph.shape(node.output[0])
            if not before or not after:
                return False
            return before[-1] == after[-1] != 1 and bool(after[-1])
        case "Gather":
            options = attributes(node)
            axis = options["axis"].i if "axis" in options else 0
            return not _is_last(graph, node.input[0], axis, otherwise=True)
        case "Slice" if graph.opset >= _SLICE_BY_INPUTS and len(node.input) > 3:
            axes = graph.constant(node.input[3]) if graph.is_constant(node.input[3]) else [-1]
            return not any(_is_last(graph, node.input[0], int(n), otherwise=True) for n in axes)
    return False


def _is_last(graph: OnnxGraph, value: str, axis: int, *, otherwise: bool) -> bool:
    """Whether an axis is the last one of a value; ``otherwise`` where that cannot be told."""
    if axis < 0:
        return axis == -1
    rank = graph.rank(value)
    return otherwise if rank is None else axis == rank - 1


def _told_of(graph: OnnxGraph, node: Any) -> list[str]:
    """The outputs of a node that the table is about: not the cells of an LSTM, the mean of a
    normalisation, or the places of a maximum. A GRU mixes its first state into all that follow.
    """
    first = node.input[5] if node.op_type == "GRU" and len(node.input) > 5 else ""
    if first and not (graph.is_constant(first) and (np.abs(graph.constant(first)) <= 1).all()):
        return []
    if node.op_type not in ("LSTM", "GRU"):
        return list(node.output[:1])
    options, each = attributes(node), 3 if node.op_type == "LSTM" else 2
    names = [n.lower() for n in options["activations"].strings] if "activations" in options else []
    within = _GATES.issuperset(names[::each]) and _WITHIN_ONE.issuperset(names)
    return list(node.output[:2]) if within else []


def _together(
    graph: OnnxGraph, node: Any, known: dict[str, Activation | None], depth: int
) -> Activation | None:
    """What holds all parts of a Concat; None where one of them has no bound.

    A part is looked at once: a file can nest them so that there are more ways than parts.
    """
    for value in node.input:
        if value not in known:
            known[value] = None  # until it is found: also what leads back to itself
            known[value] = activation_of(graph, value, known, depth)
    parts = [known[value] for value in node.input]
    steps = [step for step in parts if step is not None and step.gain is None]
    if not steps or len(steps) < len(parts):
        return None
    names = " and ".join(sorted({step.name for step in steps}))
    return Activation(names, min(step.low for step in steps), max(step.high for step in steps))


def _is_gated(graph: OnnxGraph, node: Any) -> bool:
    """Whether this is a sigmoid times a tanh, what leaves the cell of an LSTM."""
    makers = [graph.producer.get(value) for value in node.input]
    return {maker.op_type for maker in makers if maker is not None} == {"Sigmoid", "Tanh"}


def clip_bounds(graph: OnnxGraph, node: Any) -> tuple[float, float] | None:
    """The bounds of a Clip, which are attributes or further inputs; None where one is computed."""
    options = attributes(node)
    bounds = []
    for n, name in enumerate(("min", "max"), 1):
        given = node.input[n] if len(node.input) > n else ""
        if given and not (graph.is_constant(given) and graph.constant(given).size == 1):
            return None
        if given:
            bounds.append(float(graph.constant(given).reshape(())))
        else:
            bounds.append(float(options[name].f) if name in options else (-1) ** n * math.inf)
    low, high = bounds
    # a NaN, or bounds the wrong way round, bound nothing
    return (low, high) if low < high else None


def _swish_slope(graph: OnnxGraph, node: Any) -> float | None:
    """The beta > 0 of z * sigmoid(beta z), whose values are those of Swish over beta, or None."""
    if len(node.input) != 2:
        return None
    for z, gate in (node.input, reversed(node.input)):
        maker = graph.producer.get(gate)
        if maker is None or maker.op_type != "Sigmoid" or not maker.input:
            continue
        if maker.input[0] == z:
            return 1.0
        inner = graph.producer.get(maker.input[0])
        if inner is not None and inner.op_type == "Mul" and z in inner.input:
            betas = [graph.constant(name) for name in inner.input if graph.is_constant(name)]
            if len(betas) == 1 and betas[0].size == 1 and float(betas[0].reshape(())) > 0:
                return float(betas[0].reshape(()))
    return None


def _norm(graph: OnnxGraph, node: Any, centred: bool) -> Activation | None:
    """A normalisation over the features alone: their axis is the last one, of one gain each."""
    if len(node.input) < 2 or not graph.is_constant(node.input[1]):
        return None
    options = attributes(node)
    axis = options["axis"].i if "axis" in options else -1
    # a root of a variance less a number may be small where the variance is not
    negative = "epsilon" in options and not options["epsilon"].f >= 0
    if negative or not _is_last(graph, node.input[0], axis, otherwise=False):
        return None
    shift = node.input[2] if len(node.input) > 2 else ""
    return _gained(graph, node.input[1], shift, "LayerNorm" if centred else "RMSNorm")


def _gained(graph: OnnxGraph, gain: str, shift: str, name: str) -> Activation | None:
    """A normalisation with constants that have one number a feature; None for any other."""
    if shift and not graph.is_constant(shift):
        return None
    parts = [graph.constant(part) for part in (gain, shift) if part]
    if any(part.ndim < 1 or part.size < 2 or part.size != part.shape[-1] for part in parts):
        return None
    if len({part.size for part in parts}) > 1:
        return None
    return Activation(
        name, gain=parts[0].reshape(-1), shift=parts[1].reshape(-1) if shift else None
    )


def _shifted_norm(graph: OnnxGraph, node: Any) -> Activation | None:
    """``gain * normalised + shift`` written as Add and Mul."""
    constant, other = _constant_and_other(graph, node)
    inner = graph.producer.get(other)
    if constant is None or inner is None or inner.op_type != "Mul":
        return None
    return _written_out_norm(graph, inner, constant)


def _constant_and_other(graph: OnnxGraph, node: Any) -> tuple[str | None, str]:
    """The inputs of a node that has one constant and one other; None and "" elsewhere."""
    constants = [name for name in node.input if graph.is_constant(name)]
    others = [name for name in node.input if not graph.is_constant(name)]
    return (constants[0], others[0]) if len(constants) == len(others) == 1 else (None, "")


def _written_out_norm(graph: OnnxGraph, node: Any, shift: str | None) -> Activation | None:
    """``gain * (z - mean z) / sqrt(var + eps)`` from ReduceMean, Sub, Pow, Sqrt and Div."""
    constant, other = _constant_and_other(graph, node)
    quotient = graph.producer.get(other)
    if quotient is None or quotient.op_type != "Div" or len(quotient.input) != 2:
        return None
    top, bottom = (graph.producer.get(name) for name in quotient.input)
    if constant is None or top is None or bottom is None or len(top.input) != 2:
        return None
    if (top.op_type, bottom.op_type) != ("Sub", "Sqrt"):
        return None
    if _averaged(graph, top.input[1]) != top.input[0]:
        return None
    if not _is_variance(graph, bottom, quotient.input[0]):
        return None
    return _gained(graph, constant, shift or "", "LayerNorm")


def _averaged(graph: OnnxGraph, value: str) -> str | None:
    """What a value is the mean of, over the last axis, which stays with length one; or None."""
    node = graph.producer.get(value)
    if node is None or node.op_type != "ReduceMean" or not node.input:
        return None
    options = attributes(node)
    kept = "keepdims" not in options or options["keepdims"].i == 1
    computed = len(node.input) > 1 and not graph.is_constant(node.input[1])
    axes = None if computed else axes_of(graph, node)
    if not kept or axes is None or len(axes) != 1:
        return None
    if not _is_last(graph, node.input[0], axes[0], otherwise=False):
        return None
    return str(node.input[0])


def _is_variance(graph: OnnxGraph, root: Any, centred: str) -> bool:
    """Whether a square root is taken of the mean square of a value, plus a constant from 0 on."""
    plus = graph.producer.get(root.input[0]) if root.input else None
    if plus is None or plus.op_type != "Add":
        return False
    epsilon, mean = _constant_and_other(graph, plus)
    if epsilon is None or not (graph.constant(epsilon) >= 0).all():
        return False
    square = graph.producer.get(_averaged(graph, mean) or "")
    if square is None or len(square.input) != 2 or square.input[0] != centred:
        return False
    if square.op_type == "Mul":
        return bool(square.input[1] == centred)
    two = square.input[1]
    return (
        square.op_type == "Pow"
        and graph.is_constant(two)
        and bool((graph.constant(two) == 2).all())
    )
