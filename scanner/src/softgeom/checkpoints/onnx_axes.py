"""Where operations of an ONNX graph move the axis of the classes, and which classes are left.

Each rule takes scores and a step and gives the scores behind it. Axes are counted from the end,
which stays true where the number of axes is not known. A step that takes the axis of the classes
apart is refused.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from softgeom.checkpoints.onnx_graph import axes_of
from softgeom.checkpoints.onnx_scores import Scores, Step

_FLOATS = {1, 10, 11, 16}  # float32, float16, float64, bfloat16: a Cast to others rounds
_SLICE_BY_INPUTS = 10  # the opset since which a Slice reads its places


def same(s: Scores, step: Step) -> Scores:
    return s


def _cast(s: Scores, step: Step) -> Scores:
    if step.option("to", 1) not in _FLOATS:
        raise step.refuse("rounds the scores to whole numbers")
    return s


def _transposed(s: Scores, step: Step) -> Scores:
    order = step.option("perm", None) or list(range(step.rank()))[::-1]
    return replace(s, axis=list(order).index(s.axis + len(order)) - len(order))


def _squeezed(s: Scores, step: Step) -> Scores:
    axes = _axes(step)
    if axes is None:
        shape = step.graph.shape(step.read)
        behind = () if s.axis == -1 else None if shape is None else shape[s.axis + 1 :]
        if behind is None or None in behind:
            raise step.refuse("takes axes out whose sizes are not known")
        return replace(s, axis=s.axis + sum(n == 1 for n in behind))
    gone = {step.from_end(axis) for axis in axes}
    if s.axis in gone:
        raise step.refuse("takes the axis of the classes out")
    return replace(s, axis=s.axis + sum(axis > s.axis for axis in gone))


def _unsqueezed(s: Scores, step: Step) -> Scores:
    axes = _axes(step) or ()
    rank = step.rank() + len(axes) if any(axis >= 0 for axis in axes) else 0
    new = {axis if axis < 0 else axis - rank for axis in axes}
    old = [place for place in range(-1, s.axis - len(new) - 1, -1) if place not in new]
    return replace(s, axis=old[-s.axis - 1])


def _axes(step: Step) -> tuple[int, ...] | None:
    try:
        return axes_of(step.graph, step.node)
    except ValueError:
        raise step.refuse("works on axes that the graph computes") from None


def _reshaped(s: Scores, step: Step) -> Scores:
    """Rows lie one behind the other, so an axis stays one where as much stands behind it."""
    target, trail = _target(step), step.trail(s.axis)
    behind = 1
    for place, size in enumerate(reversed(target), 1):
        if size == len(s.rows) and behind == trail:
            return replace(s, axis=-place)
        if size is None:
            break
        behind *= size
    group = target[-1] if target else None
    if s.axis == -1 and group and len(s.rows) % group == 0:
        raise step.refuse(
            f"arranges the {len(s.rows)} scores in groups of {group}: each group is a "
            "choice of its own, and classes of two groups are not rivals"
        )
    raise step.refuse(f"to {_shown(target)} leaves the classes no axis of their own")


def _target(step: Step) -> list[int | None]:
    """The shape that a Reshape, Flatten or Expand gives, None for what is not known."""
    shape = step.graph.shape(step.read)
    known = step.graph.shape(step.node.output[0])
    if known is not None and known[-1] is not None:
        return list(known)
    if step.node.op_type == "Flatten":
        start = step.option("axis", 1)
        inner = None if shape is None else shape[start:]
        sizes_known = inner is not None and None not in inner
        return [None, int(np.prod([n or 0 for n in inner or ()])) if sizes_known else None]
    given = step.constant(1)
    if not given:
        raise step.refuse("gives a shape that is not known")
    sizes: list[int | None] = [n if n > 0 else None for n in given]
    # 0 stands for the old size; a last -1 is what is then left
    if shape is None or len(given) != len(shape):
        return sizes
    if all(n == 0 or n == old for n, old in zip(given[:-1], shape[:-1], strict=True)):
        sizes[-1] = shape[-1]
    return sizes


def _shown(sizes: list[int | None]) -> str:
    return "(" + ", ".join("?" if n is None else str(n) for n in sizes) + ")"


def _expanded(s: Scores, step: Step) -> Scores:
    if len(s.rows) < 2:
        raise step.refuse("repeats one score")
    return s


def _sliced(s: Scores, step: Step) -> Scores:
    if step.graph.opset < _SLICE_BY_INPUTS:
        starts, ends, axes = (step.option(name, None) for name in ("starts", "ends", "axes"))
        steps = None
    else:
        axes = step.constant(3)
        # where the parts begin matters on the axis of the classes alone
        there = s.axis in map(step.from_end, axes) if axes else True
        starts, ends, steps = (step.constant(n) for n in (1, 2, 4)) if there else (None,) * 3
    places = [step.from_end(axis) for axis in (range(len(starts)) if axes is None else axes)]
    if s.axis not in places:
        return s
    if not starts or not ends:
        raise step.refuse("takes a part of the classes that is not known")
    n = places.index(s.axis)
    part = slice(starts[n], ends[n], steps[n] if steps else 1)
    return s.picked(np.arange(len(s.rows))[part])


def _gathered(s: Scores, step: Step) -> Scores:
    axis, where = step.from_end(step.option("axis", 0)), step.node.input[1]
    shape = step.graph.shape(where)
    if axis != s.axis:
        if axis < s.axis:
            return s
        if shape is None:
            raise step.refuse("works on an axis behind the classes in an unknown way")
        return replace(s, axis=s.axis + 1 - len(shape))
    if not step.graph.is_constant(where) or step.graph.constant(where).ndim != 1:
        raise step.refuse("takes classes out one by one")
    places = step.graph.constant(where).astype(int)
    if places.size and not -len(s.rows) <= places.min() <= places.max() < len(s.rows):
        raise step.refuse(f"takes out classes that are not among the {len(s.rows)}")
    return s.picked(places)


def _split(s: Scores, step: Step) -> Scores:
    if step.from_end(step.option("axis", 0)) != s.axis:
        return s
    sizes = step.option("split", None) or step.constant(1)
    if sizes is None:  # equal parts, the last one perhaps smaller
        each = -(-len(s.rows) // len(step.node.output))
        sizes = [each] * len(step.node.output)
    start = sum(sizes[: step.out])
    return s.picked(np.arange(len(s.rows))[start : start + sizes[step.out]])


AXIS_RULES = {
    "Identity": same, "Dropout": same, "Cast": _cast, "Transpose": _transposed,
    "Squeeze": _squeezed, "Unsqueeze": _unsqueezed, "Reshape": _reshaped, "Flatten": _reshaped,
    "Expand": _expanded, "Slice": _sliced, "Gather": _gathered, "Split": _split,
}  # fmt: skip
