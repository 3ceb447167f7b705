"""Heads that are more than ``softmax(W x + b)``: which keep every verdict, and which do not.

*Monotone heads keep all of them.* A temperature, a soft cap ``c tanh(y / c)``, a softmax, a sigmoid
or any other strictly increasing function, the same for each class, changes no order of logits in
exact arithmetic. (In floating point a saturated one ties logits that differ; a tie is no win
either.) What depends on the class, such as a bias per class after the cap, is another layer.

*A mixture of softmaxes* (Yang et al. 2018) predicts ``p = sum_m pi_m softmax(W x_m + b)`` with one
W and b. It lets no unargmaxable class win:

    Theorem. If weights l >= 0, sum 1, prove ``{t} > S`` impossible over X, then ``p_t <= max_{i in
    S} p_i`` for every mixture of features in X.

    Proof. At each x the proof says ``y_t <= sum l_i y_i``; exponentials turn it into ``q_t <= prod
    q_i^{l_i} <= sum l_i q_i`` for the softmax q of that x, by the inequality of means. Both sides
    are linear in q, so the mixture obeys it too; and a weighted mean is at most the largest.

So candidates, scans of a whole layer, and documents that are never first stay what they are; equal
components show the converse. *Other orders are outside*: ``A > B`` with several classes above (a
k-set, a ranking, an expert among the top k) compares products of probabilities, and a mixture of
two peaks, one a class of A, puts all of A above B. `mixed_pair` is a layer in which that happens.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from softgeom.arrays import Array, Floats
from softgeom.certifying.order import Order
from softgeom.layer import SoftmaxLayer


def survives_mixing(order: Order) -> bool:
    """Whether the order's impossibility for one softmax proves it for every mixture of softmaxes of
    the layer: of one class above one block, by the theorem above.
    """
    blocks = len(order.blocks) + order.rest
    return blocks == 2 and len(order.blocks[0]) == 1


def mixture(layer: SoftmaxLayer, X: ArrayLike, priors: ArrayLike) -> Floats:
    """``sum_m pi_m softmax(W x_m + b)`` for components X (..., m, d) and priors (..., m):
    probabilities (..., C). ValueError if the shapes do not fit, or priors are no probabilities.
    """
    components, weights = np.asarray(X, dtype=float), np.asarray(priors, dtype=float)
    fits = components.ndim > 1 and components.shape[:-1] == weights.shape
    if not fits or components.shape[-1] != layer.dimension:
        needed = f"components (..., m, {layer.dimension}) and priors (..., m)"
        given = f"{components.shape} and {weights.shape}"
        raise ValueError(f"A mixture needs {needed}, not {given}.")
    finite = np.isfinite(weights).all() and (weights >= 0).all()
    if not finite or not np.allclose(weights.sum(axis=-1), 1):
        raise ValueError("The priors of a mixture are not negative and sum to one.")
    return np.asarray(
        (weights[..., None] * softmax(layer.logits(components), axis=-1)).sum(axis=-2)
    )


def mixed_pair() -> tuple[SoftmaxLayer, Order, Array, Array]:
    """A layer, an order that one softmax cannot obey, and components (2, d) with priors (2,) whose
    mixture obeys it.

    The corners of a square: the sums over opposite corners are equal, so that no x ranks both ends
    of one diagonal above the other's. Two components, each at one end, do.
    """
    layer = SoftmaxLayer([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    ends = np.array([[4.0, 4.0], [-4.0, -4.0]])
    return layer, Order([[0, 1], [2, 3]]), ends, np.array([0.5, 0.5])
