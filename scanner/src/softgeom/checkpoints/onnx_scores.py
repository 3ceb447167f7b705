"""What an ONNX graph does to the scores of its last product, one operation after the other.

At each position the graph holds one number y_c for each class c,

    y_c = T(sign * mul / div * (a_c (W x)_c + b_c)),

with T increasing and the same for all classes (`form`): "linear" (y itself, perhaps plus a number
that all classes share), "exp" (times such a number: a softmax), "tanh" (times mul / div: a soft
cap), "sigmoid", "capped" (a softmax of a soft cap), "shaped" (anything else).

Each operation is one `Step`. `onnx_rules` says what it does to these numbers, `onnx_axes` where it
moves the classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softgeom.checkpoints.onnx_graph import OnnxGraph, attributes
from softgeom.checkpoints.tensors import plain
from softgeom.readout import Readout


class NotFollowedError(ValueError):
    """An operation whose effect on the choice between classes is not followed."""

    def __init__(self, node: Any, why: str) -> None:
        super().__init__(f"{plain(node.op_type)} {why}")
        self.node = node


@dataclass(frozen=True)
class Scores:
    """The numbers above; which rows of W the classes are (R,), and their axis, counted from the
    end, None once the graph has chosen one. `decided` is the sign at the softmax, 0 before; `cut`
    an operation that ties scores, until a softmax comes; `stretched` says that an unknown positive
    factor stands in front of (a W x + b), `moved` that a shared number was added; `biases` are the
    nodes that added a number for each class, with the place of the input that it is.
    """

    rows: np.ndarray
    axis: Any  # int | None; most steps know that it is there
    a: np.ndarray | None = None
    b: np.ndarray | None = None
    mul: float = 1.0
    div: float = 1.0
    sign: int = 1
    form: str = "linear"
    inner: float = 1.0  # the factor inside of a tanh
    moved: bool = False
    stretched: bool = False
    decided: int = 0
    numbered: bool = False
    cut: Any = None
    notes: tuple[str, ...] = ()
    biases: tuple[tuple[Any, int], ...] = ()

    def plus(self, c: np.ndarray) -> Scores:
        """With constants added. All products here are of two float32, so exact in float64."""
        by = self.sign * self.div
        b = c if by == 1 else c.astype(float) * by
        if self.b is not None:
            b = np.add(self.b.astype(float) * self.mul, b, dtype=float)
        a = self.a if self.mul == 1 else np.multiply(1.0 if self.a is None else self.a, self.mul)
        return replace(self, a=a, b=b, mul=1.0)

    def plus_constant(self, values: np.ndarray, step: Step) -> Scores:
        """With a constant of a graph, which has to be one number or one for each class."""
        c = along(self, step, values)
        if c is None:
            raise step.refuse("adds another constant at each position")
        return self.plus(c)

    def same_layer(self, other: Scores) -> bool:
        """Whether another output chooses between the same classes by the same numbers."""
        if not np.array_equal(self.rows, other.rows):
            return False
        mine, theirs = ((s.a, s.b, s.decided or s.sign) for s in (self, other))
        return mine[2] == theirs[2] and all(
            one is two or (one is not None and two is not None and np.array_equal(one, two))
            for one, two in zip(mine[:2], theirs[:2], strict=True)
        )

    def times(self, v: np.ndarray) -> Scores:
        """With a factor for each class."""
        b = None if self.b is None else self.b.astype(float) * v
        return replace(self, a=v.astype(float) if self.a is None else self.a * v, b=b)

    def picked(self, places: np.ndarray) -> Scores:
        """Some of the classes, in this order."""
        a, b = (v if v is None or v.size == 1 else v[places] for v in (self.a, self.b))
        return replace(self, rows=self.rows[places], a=a, b=b)

    def reversed(self) -> Scores:
        return replace(self, sign=-self.sign)

    def readout(self) -> Readout:
        """What stands between the layer's scores and the graph's output."""
        scale = self.mul / self.div
        if self.form in ("tanh", "capped"):
            return Readout(scale=self.inner * scale, soft_cap=scale)
        if self.form == "sigmoid":
            return Readout(
                "argmax" if self.decided else "threshold", scale=scale, probability="sigmoid"
            )
        if self.form == "linear" and not self.stretched:
            return Readout(scale=scale)
        if self.form == "exp" and self.decided:
            return Readout(scale=scale)
        told = "the graph puts another increasing map than a softmax behind the scores"
        return Readout(probability="none", caveats=(told,))


@dataclass(frozen=True)
class Step:
    """One operation; the scores are its input number `at`, and its output number `out` goes on."""

    graph: OnnxGraph
    node: Any
    at: int = 0
    out: int = 0

    def refuse(self, why: str) -> NotFollowedError:
        return NotFollowedError(self.node, why)

    def option(self, name: str, default: Any) -> Any:
        import onnx

        found = attributes(self.node).get(name)
        return default if found is None else onnx.helper.get_attribute_value(found)

    @property
    def read(self) -> str:
        return str(self.node.input[self.at])

    @property
    def others(self) -> list[str]:
        return [name for n, name in enumerate(self.node.input) if name and n != self.at]

    def constant(self, place: int) -> list[int] | None:
        """Whole numbers of a constant input; None where there is none."""
        if len(self.node.input) <= place or not self.node.input[place]:
            return None
        name = self.node.input[place]
        if not self.graph.is_constant(name):
            raise self.refuse("works on places that the graph computes")
        return [int(n) for n in self.graph.constant(name).reshape(-1)]

    def rank(self) -> int:
        rank = self.graph.rank(self.read)
        if rank is None:
            raise self.refuse(
                "works on an axis, and the graph does not say how many axes there are"
            )
        return rank

    def from_end(self, axis: int) -> int:
        """An axis of the input, counted from the end."""
        return axis if axis < 0 else axis - self.rank()

    def trail(self, axis: int) -> int | None:
        """How many numbers stand behind the axis of the classes, None where it is not known."""
        if axis == -1:
            return 1
        shape = self.graph.shape(self.read)
        sizes = None if shape is None else shape[axis + 1 :]
        return None if sizes is None or None in sizes else int(np.prod([n or 0 for n in sizes]))


def along(s: Scores, step: Step, values: np.ndarray) -> np.ndarray | None:
    """A constant as one number, or one for each class (C,); None where it has one a position."""
    if values.size == 1:
        return values.reshape(())
    along = values.shape[s.axis] if values.ndim >= -s.axis else 1
    if along == 1:
        return None
    if along != len(s.rows):
        raise step.refuse(
            f"has a constant of shape {values.shape}, and {len(s.rows)} classes: they do not fit"
        )
    if values.size != along:
        raise step.refuse("has another constant for each class at each position")
    return values.reshape(-1)
