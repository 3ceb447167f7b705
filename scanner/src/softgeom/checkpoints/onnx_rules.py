"""What operations of an ONNX graph do to the scores of its last product: a table, one rule each.

An operation that is not in `RULES`, that reaches across the classes, or whose effect on the choice
between them is not exact is refused by its name. A positive factor of all scores stays a number,
since it would round W. A factor for each class is multiplied into W in float64, where the product
of two float32 is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from softgeom.checkpoints.activation import RELU_BEHIND, clip_bounds
from softgeom.checkpoints.onnx_axes import AXIS_RULES
from softgeom.checkpoints.onnx_graph import OnnxGraph
from softgeom.checkpoints.onnx_scores import Scores, Step, along
from softgeom.checkpoints.onnx_shared import JOINS, is_dynamic_scale, is_positive, is_shared

_NUMBERS = {1, 6, 7, 11, 12, 13}  # types that hold the number of every class, of a Cast
_MOVES = set("Identity Cast Reshape Transpose Squeeze Unsqueeze Flatten".split())
_SOFTMAX_OF_ONE_AXIS = 13  # the opset since which a softmax runs over one axis


def applied(scores: Scores, step: Step) -> Scores:
    """The scores after one more operation. NotFollowedError names one that is not followed."""
    if scores.axis is None:  # the class is chosen
        moves = step.node.op_type in AXIS_RULES and step.at == 0
        if scores.numbered and not (moves and step.option("to", 1) in _NUMBERS):
            raise step.refuse("makes other numbers of the classes' own")
        return scores
    rule = RULES.get(step.node.op_type)
    if rule is None:
        raise step.refuse("is not followed")
    if step.node.op_type not in JOINS and step.at != 0:
        raise step.refuse("uses the scores as places or sizes")
    return rule(scores, step)


def _shaped(s: Scores, step: Step) -> Scores:
    """Another increasing map."""
    if s.form == "sigmoid":
        raise step.refuse("changes where a sigmoid says that a label is on")
    return replace(s, form="shaped")


def _softmax(s: Scores, step: Step) -> Scores:
    legacy = step.graph.opset < _SOFTMAX_OF_ONE_AXIS  # then it runs over all axes from there on
    axis = step.from_end(step.option("axis", 1 if legacy else -1))
    if axis != s.axis or (legacy and step.trail(axis) != 1):
        raise step.refuse("runs over another axis than that of the classes")
    s = replace(s, decided=s.decided or s.sign, cut=None)
    if s.form == "linear" and not s.stretched and step.node.op_type != "Hardmax":
        form = "linear" if step.node.op_type == "LogSoftmax" else "exp"
        return replace(s, form=form, moved=True)
    return replace(s, form="capped" if s.form == "tanh" else "shaped")


def _chosen(s: Scores, step: Step) -> Scores:
    several = step.node.op_type == "TopK"
    if step.from_end(step.option("axis", -1 if several else 0)) != s.axis:
        raise step.refuse("runs over another axis than that of the classes")
    if several and max(step.constant(1) or [0]) > len(s.rows):
        raise step.refuse(f"takes more than the {len(s.rows)} classes")
    least = step.node.op_type == "ArgMin" or not step.option("largest", 1)
    sign, numbered = -s.sign if least else s.sign, not several or step.out == 1
    return replace(s, axis=None, sign=sign, decided=sign, cut=None, numbered=numbered)


def _cut(s: Scores, step: Step) -> Scores:
    if step.node.op_type == "Clip":
        bounds = clip_bounds(step.graph, step.node)
        if bounds is None:
            raise step.refuse("has bounds that the graph computes")
        # a probability above .5 is the only one, and the largest is at least 1 / C
        harmless = bounds[0] < 1 / len(s.rows) and bounds[1] >= 0.5
        if harmless and _sums_to_one(step):
            return s
    kind = "ReLU" if step.node.op_type == "Relu" else step.node.op_type
    note = RELU_BEHIND.replace("a ReLU", f"a {kind}")
    return replace(_shaped(s, step), cut=step.node, notes=(*s.notes, note))


def _sums_to_one(step: Step) -> bool:
    """Whether a step reads what a softmax gave, moved at most, and of all classes."""
    graph, name = step.graph, step.read
    visited: set[str] = set()
    while name not in visited:
        visited.add(name)
        node = graph.producer.get(name)
        if node is None or node.op_type == "Softmax":
            return node is not None
        if node.op_type == "Div":
            return _is_sum_of(replace(step, node=node, at=0), node.input[1])
        if node.op_type not in _MOVES:
            return False
        name = node.input[0]
    return False


def _negated(s: Scores, step: Step) -> Scores:
    return (s if s.form in ("linear", "tanh") else _shaped(s, step)).reversed()


def _exp(s: Scores, step: Step) -> Scores:
    plain = s.form == "linear" and not s.stretched
    return replace(s, form="exp") if plain else _shaped(s, step)


def _log(s: Scores, step: Step) -> Scores:
    if s.form == "exp":
        return replace(s, form="linear")
    return s if s.form == "capped" else _shaped(s, step)


def _tanh(s: Scores, step: Step) -> Scores:
    if s.form != "linear" or s.moved or s.stretched or s.decided:
        return _shaped(s, step)
    return replace(s, form="tanh", inner=s.mul / s.div, mul=1.0, div=1.0)


def _sigmoid(s: Scores, step: Step) -> Scores:
    if s.form != "linear" or s.decided:
        raise step.refuse("says labels behind another map of their scores")
    return replace(s, form="sigmoid")


def _coded(s: Scores, step: Step) -> Scores:
    shapes = map(step.graph.shape, step.others)
    if any(shape is None or any(size != 1 for size in shape) for shape in shapes):
        raise step.refuse("has another scale for each class")
    told = "the graph rounds its scores to codes, which ties near ones: verdicts are about scores"
    note = f"{told} before that"
    return s if note in s.notes else replace(s, notes=(*s.notes, note))


def _added(s: Scores, step: Step) -> Scores:
    if step.node.op_type == "Sub" and step.at == 1:
        s, minus = _negated(s, step), 1
    else:
        minus = -1 if step.node.op_type == "Sub" else 1
    for name in step.others:
        if not step.graph.is_constant(name):
            if not is_shared(step, name, s.axis):
                raise step.refuse("joins two values that both depend on the input")
            s = _shifted(s, step)
            continue
        c = along(s, step, step.graph.constant(name))
        if c is None or (c.size == 1 and (s.form != "linear" or s.decided or s.stretched)):
            if s.form == "tanh" and not s.decided:
                raise step.refuse("adds to a tanh, as a sigmoid does: scores, or labels?")
            s = _shifted(s, step)
        elif s.form != "linear" or s.stretched:
            raise step.refuse("adds a number for each class behind another map")
        else:
            added = (step.node, list(step.node.input).index(name))
            s = replace(s.plus(c if minus == 1 else -c), biases=(*s.biases, added))
    return s


def _shifted(s: Scores, step: Step) -> Scores:
    """With an unknown number that all classes share."""
    return replace(s, moved=True) if s.form == "linear" else _shaped(s, step)


def _scaled(s: Scores, step: Step) -> Scores:
    divides = step.node.op_type == "Div"
    if divides and step.at == 1:
        raise step.refuse("divides by the scores")
    for name in step.others:
        for leaf in _leaves(step.graph, name) if not divides else [name]:
            s = _scaled_by(s, step, leaf, divides)
    return s


def _leaves(graph: OnnxGraph, name: str, left: int = 4) -> list[str]:
    """The factors of a product of what all classes share and constants."""
    node = graph.producer.get(name)
    if graph.is_constant(name) or not left or node is None or node.op_type != "Mul":
        return [name]
    return [leaf for n in node.input for leaf in _leaves(graph, n, left - 1)]


def _scaled_by(s: Scores, step: Step, name: str, divides: bool) -> Scores:
    if is_dynamic_scale(step.graph, name):
        return s  # it belongs to the features, which are codes times it
    if not step.graph.is_constant(name):
        if not is_shared(step, name, s.axis):
            raise step.refuse("joins two values that both depend on the input")
        if not is_positive(step.graph, name):
            raise step.refuse("has a factor that depends on the input and may change sign")
        return _stretched(s, step, name if divides else "")
    v = along(s, step, step.graph.constant(name))
    if v is None:
        if not (step.graph.constant(name) > 0).all():
            raise step.refuse("has a factor for each position, some of them not above 0")
        return _stretched(s, step, "")
    if v.size > 1:
        if s.form != "linear" or s.moved:
            raise step.refuse("has a factor for each class behind another map")
        rounds = divides and not (np.abs(np.frexp(v)[0]) == 0.5).all()
        twice = (s.a is not None and s.a.size > 1) or (s.b is not None and s.b.dtype == float)
        if rounds or twice or v.dtype == float:
            raise step.refuse("has a factor for each class whose products float64 would round")
        return s.times(1 / v if divides else v)
    factor = float(v.reshape(()))
    if factor == 0 or not np.isfinite(factor):
        raise step.refuse(f"has the factor {factor:g}")
    if factor < 0:
        s, factor = _negated(s, step), -factor
    if s.form in ("linear", "tanh"):
        return replace(s, div=s.div * factor) if divides else replace(s, mul=s.mul * factor)
    if s.form == "exp" and not s.decided:
        return replace(s, moved=True)
    return s if v == 1 else _shaped(s, step)


def _stretched(s: Scores, step: Step, divisor: str) -> Scores:
    """With an unknown positive factor that all classes share."""
    if s.form == "exp":
        return replace(s, moved=True, decided=s.decided or s.sign * _is_sum_of(step, divisor))
    return replace(s, stretched=True) if s.form == "linear" else _shaped(s, step)


def _is_sum_of(step: Step, name: str) -> bool:
    """Whether a value is the sum of what it divides: a softmax written out."""
    node = step.graph.producer.get(name)
    while node is not None and node.op_type in {"Cast", "Identity"}:
        node = step.graph.producer.get(node.input[0])
    return node is not None and node.op_type == "ReduceSum" and node.input[0] == step.read


RULES: dict[str, Callable[[Scores, Step], Scores]] = {
    **AXIS_RULES,
    "Softmax": _softmax, "LogSoftmax": _softmax, "Hardmax": _softmax,
    "ArgMax": _chosen, "ArgMin": _chosen, "TopK": _chosen, "Relu": _cut, "Clip": _cut,
    "Softplus": _shaped, "Softsign": _shaped, "Neg": _negated, "Exp": _exp, "Log": _log,
    "Tanh": _tanh, "Sigmoid": _sigmoid,
    "QuantizeLinear": _coded, "DequantizeLinear": _coded,
    "Add": _added, "Sub": _added, "Sum": _added, "Mul": _scaled, "Div": _scaled,
}  # fmt: skip
