"""A product with a constant in an ONNX graph: W x, by a MatMul, a Gemm, a quantised product or a
convolution of one pixel.

Quantised weights become the real numbers that the runtime multiplies with, scale * (code - zero
point); quantised *features* stay features.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softgeom.checkpoints.activation import Activation, activation_of
from softgeom.checkpoints.onnx_graph import OnnxGraph, attributes, dequantise
from softgeom.checkpoints.onnx_scores import NotFollowedError, Scores, Step

# where the scale and the zero point stand; of MatMulInteger the scale is a factor after the product
_QUANTISED: dict[str, tuple[int | None, int]] = {
    "MatMulInteger": (None, 3), "QLinearMatMul": (4, 5), "DynamicQuantizeMatMul": (2, 3),
    "MatMulIntegerToFloat": (3, 5),
}  # fmt: skip
_PRODUCTS = {"MatMul", "Gemm", "FusedMatMul", "FusedGemm"} | set(_QUANTISED)
_BIAS_AT = {"Gemm": 2, "FusedGemm": 2, "Conv": 2, "DynamicQuantizeMatMul": 4}


@dataclass(frozen=True)
class Product:
    """y = x B with a constant B (d, C), or y = A x with A (C, d) from the ``left``; ``constant`` is
    the name that the node reads it by.
    """

    graph: OnnxGraph
    node: Any
    constant: str
    left: bool

    @property
    def name(self) -> str:
        """The stored constant that W is."""
        return self.graph.root(self.constant)

    @property
    def features(self) -> str:
        """The value that the product multiplies."""
        return str(self.node.input[1 if self.left else 0])

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """W (C, d)."""
        stored = self.graph.constant(self.constant)
        if self.node.op_type in _QUANTISED:
            stored = self._real(stored)
        if self.node.op_type == "Conv":
            return stored.reshape(stored.shape[0], -1)
        while stored.ndim > 2 and stored.shape[0] == 1:
            stored = stored[0]
        if stored.ndim != 2:
            why = f"has a constant of shape {stored.shape}, not of two axes"
            raise NotFollowedError(self.node, why)
        turned = Step(self.graph, self.node).option("transA" if self.left else "transB", 0)
        return stored if self.left != bool(turned) else stored.T

    def scores(self) -> Scores:
        """W x, with what the node itself adds to it."""
        graph, node = self.graph, self.node
        step = Step(graph, node)
        for name in ("activation", "transBatchA", "transBatchB"):  # of com.microsoft
            if step.option(name, None):
                raise step.refuse(f"has the option {name}")
        axis = -2 if self.left else -1
        if node.op_type == "Conv":
            axis = 1 - graph.constant(node.input[1]).ndim
        elif self.left and node.op_type == "MatMul" and graph.rank(node.input[1]) in (None, 1):
            raise step.refuse("has the constant on the left of a value of unknown axes")
        alpha = float(step.option("alpha", 1.0))
        if not (np.isfinite(alpha) and alpha):
            raise step.refuse(f"has the factor {alpha:g}")
        scores = Scores(
            np.arange(len(self.matrix)), axis, mul=abs(alpha), sign=1 if alpha > 0 else -1
        )
        place = _BIAS_AT.get(node.op_type, len(node.input))
        if len(node.input) <= place or not node.input[place]:
            return scores
        if not graph.is_constant(node.input[place]):
            raise step.refuse("adds a value that depends on the input")
        bias, beta = graph.constant(node.input[place]), float(step.option("beta", 1.0))
        if node.op_type == "Conv":  # (C,), whatever stands behind the axis of the classes
            bias = bias.reshape(-1, *[1] * (-axis - 1))
        scores = scores.plus_constant(bias if beta == 1 else bias.astype(float) * beta, step)
        return replace(scores, biases=((node, place),))

    def step_before(self, W: np.ndarray) -> tuple[Activation | None, list[str]]:
        """What stands in front of the layer W (C, d), where it bounds the features; and a note."""
        step, option = activation_of(self.graph, self.features), Step(self.graph, self.node).option
        if step is None or (self.node.op_type == "Conv" and any(option("pads", ()))):
            return None, []  # features of 0 stand in the margin
        if step.gain is None:
            return step, []
        # the features are the last axis of what the product reads, one a gain
        turned = self.left or option("transA", 0) or self.node.op_type == "Conv"
        if step.gain.shape == W.shape[1:] and not turned:
            return step, []
        return None, ["the normalisation in front of the layer runs over other axes than W: unused"]

    def notes(self) -> list[str]:
        kind = self.node.op_type
        notes = [f"the last product with a constant before the output: {kind}"]
        if kind in _QUANTISED:
            notes.append(
                f"quantised product {kind}: W is scale * (code - zero point), as the runtime "
                "multiplies"
            )
        return notes

    def _real(self, codes: np.ndarray) -> np.ndarray:
        """The real weights behind codes (d, C), in float64: the runtime adds up whole numbers and
        multiplies then.
        """

        def constant(position: int | None, otherwise: float) -> np.ndarray:
            reads = self.node.input
            given = position is not None and len(reads) > position and reads[position]
            return self.graph.constant(given) if given else np.full((), otherwise)

        scale, zero = _QUANTISED[self.node.op_type]
        return dequantise(codes, constant(scale, 1.0), constant(zero, 0.0), -1, float)


def product_of(graph: OnnxGraph, node: Any) -> Product | None:
    """The product that a node is; None where it multiplies with no constant."""
    kind, reads = node.op_type, node.input
    right = 3 if kind == "QLinearMatMul" else 1
    if kind not in _PRODUCTS | {"Conv"} or not node.output:
        return None
    if len(reads) > right and graph.is_constant(reads[right]):
        if kind == "Conv":
            shape, group = graph.constant(reads[1]).shape, attributes(node).get("group")
            if len(shape) < 3 or set(shape[2:]) != {1} or (group is not None and group.i != 1):
                return None
        return Product(graph, node, reads[right], left=False)
    if kind in {"MatMul", "Gemm"} and len(reads) > 1 and graph.is_constant(reads[0]):
        return Product(graph, node, reads[0], left=True)
    return None
