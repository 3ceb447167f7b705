"""What is one number for all classes at a position: largest scores, sums, scales of features.

A softmax that is written out takes such numbers off and divides by them. They change no choice
between the classes, where they are added, or where they are factors above 0.
"""

from __future__ import annotations

from typing import Any

from softgeom.checkpoints.activation import clip_bounds
from softgeom.checkpoints.onnx_graph import OnnxGraph, axes_of
from softgeom.checkpoints.onnx_scores import Step

JOINS = {"Add", "Sub", "Sum", "Mul", "Div"}
_MOVES = {"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Expand"}
_POSITIVE = {"Exp", "Sigmoid", "Softmax", "Softplus"}
_STAYS_POSITIVE = set("Add Mul Div Sqrt Reciprocal ReduceSum ReduceMax ReduceMean".split())
_ALONG = {"Sqrt", "Exp", "Log", "Neg", "Reciprocal", "Clip", "Max"}
_DEPTH = 50  # operations that are looked through


def main_input(graph: OnnxGraph, node: Any) -> int | None:
    """Which input of an operation can hold scores: the one that is neither constant nor one number
    for all classes. None for none, and where two stand side by side.
    """
    varying = [n for n, name in enumerate(node.input) if name and not graph.is_constant(name)]
    if len(varying) > 1 and node.op_type in JOINS:
        names = {n: node.input[n] for n in varying}
        wide = [n for n in varying if not _seems_shared(graph, names[n])]
        if len(wide) == 2 == len(varying):
            shapes = [graph.shape(names[n]) for n in wide]
            wide = [
                n
                for n, one, other in zip(wide, shapes, shapes[::-1], strict=True)
                if not _narrow(one, other)
            ]
        return wide[0] if len(wide) == 1 else None
    return varying[0] if varying else None


def _narrow(one: Any, other: Any) -> bool:
    """Whether a shape has an axis of one number where the other has more."""
    if one is None or other is None:
        return False
    return len(one) < len(other) or any(
        a == 1 != b for a, b in zip(one[::-1], other[::-1], strict=False)
    )


def _seems_shared(graph: OnnxGraph, name: str, left: int = _DEPTH) -> bool:
    """Whether a value comes out of a sum or maximum; `is_shared` then looks at the axis."""
    node = graph.producer.get(name)
    if node is None or not left:
        return False
    if node.op_type.startswith("Reduce") or is_dynamic_scale(graph, name):
        return True
    varying = {n for n in node.input if n and not graph.is_constant(n)}
    if not varying or node.op_type not in _MOVES | _ALONG | JOINS:
        return False
    # what divides the steps that are left: a file can nest more ways than operations
    return all(_seems_shared(graph, n, (left - 1) // len(varying)) for n in varying)


def is_dynamic_scale(graph: OnnxGraph, name: str) -> bool:
    """Whether a value is the scale that features were quantised with as they came, moved or not."""
    node = graph.producer.get(name)
    for _ in range(_DEPTH):
        if node is None or node.op_type not in _MOVES or not node.input:
            break
        name = node.input[0]
        node = graph.producer.get(name)
    return node is not None and node.op_type == "DynamicQuantizeLinear" and name == node.output[1]


def is_shared(step: Step, name: str, axis: int) -> bool:
    """Whether a value is one number for all classes at each position."""
    if is_dynamic_scale(step.graph, name):
        return True
    for _ in range(_DEPTH):
        shape = step.graph.shape(name)
        if shape is not None:
            return len(shape) < -axis or shape[axis] == 1
        node = step.graph.producer.get(name)
        if node is None or not node.input:
            return False
        if node.op_type.startswith("Reduce"):
            inner = Step(step.graph, node)
            axes = axes_of(step.graph, node)
            if not axes:
                return not inner.option("noop_with_empty_axes", 0)
            return bool(inner.option("keepdims", 1)) and axis in map(inner.from_end, axes)
        if node.op_type not in {"Cast", "Identity"} | _ALONG:
            return False
        name, *others = node.input
        if any(n and not _is_number(step.graph, n) for n in others):
            return False
    return False


def _is_number(graph: OnnxGraph, name: str) -> bool:
    return graph.is_constant(name) and graph.constant(name).size == 1


def is_positive(graph: OnnxGraph, name: str, left: int = _DEPTH) -> bool:
    """Whether a value is above 0 for certain."""
    if graph.is_constant(name):
        return bool((graph.constant(name) > 0).all())
    node = graph.producer.get(name)
    if node is None or not left:
        return False
    if node.op_type in _POSITIVE or is_dynamic_scale(graph, name):
        return True
    if node.op_type == "Clip":
        bounds = clip_bounds(graph, node)
        return bounds is not None and bounds[0] > 0
    if node.op_type not in _MOVES | _STAYS_POSITIVE:
        return False
    inner = set(node.input if node.op_type in JOINS else node.input[:1])
    return all(is_positive(graph, n, (left - 1) // len(inner)) for n in inner)
