"""Adam and a classifier's training step, compiled with the loops of `fused`; needs numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from softgeom.hardmax.fused import hard_gradients, soft_gradients

MEMORY, MEMORY_OF_SQUARES, LEAST_SCALE = 0.9, 0.999, 1e-8  # of Adam (Kingma and Ba 2015)
# a momentum below this moves no weight any more; left alone it would reach numbers that processors
# handle a hundred times slower
_VANISHED = 1e-30


class FusedStep:
    """A training step of a classifier on the CPU, in place (its parameters' memory is worked on
    directly): call it with words and counts (B, n), targets (B,) and the learning rate. ``rates``
    are factors on that, of each trainable parameter; ``clip`` is the gradient's largest norm, 0 for
    any.
    """

    def __init__(self, model: Any, rates: dict[Any, float], clip: float = 0.0) -> None:
        self._model, self._clip, self._steps = model, clip, 0
        trained = [(p, factor) for p, factor in rates.items() if p.requires_grad]
        flat = [(p, p.detach().numpy().reshape(-1), factor) for p, factor in trained]
        # with the gradient and both means of Adam
        self._slots = [(*slot, *(np.zeros_like(slot[1]) for _ in range(3))) for slot in flat]

    def __call__(
        self, words: np.ndarray, counts: np.ndarray, goals: np.ndarray, rate: float
    ) -> float:
        """Take the step; returns the mean cross-entropy before it."""
        model, recipe = self._model, self._model.recipe
        E, w = model.embedding.detach().numpy(), model.w.detach().numpy()
        kind, alpha = E.dtype.type, model.alpha.item()
        c, v = kind(alpha / (1 + alpha)), kind(model.v.item())
        gradients = {id(p): g for p, _, _, g, _, _ in self._slots}
        dE, dw = gradients[id(model.embedding)].reshape(E.shape), gradients[id(model.w)]
        sizes, signs = counts.astype(kind, copy=False), goals.astype(np.float64, copy=False)
        data = (words, sizes, signs, recipe.layers, dE, dw)
        if recipe.attention == "softmax":
            # 128 weights this small are still below rounding
            cut = kind(5.0 - np.log(np.finfo(kind).eps))
            loss, dv, dc = soft_gradients(E, w, v, c, kind(recipe.temperature), cut, *data)
        else:
            loss, dv, dc = hard_gradients(E, w, v, c, *data)
        gradients[id(model.v)][0] = dv
        if id(model.step) in gradients and recipe.layers:
            gradients[id(model.step)][0] = dc / (1 + alpha) ** 2 * model.slope_of_alpha()
        self._descend(rate)
        return loss

    def _descend(self, rate: float) -> None:
        self._steps += 1
        if self._clip > 0:
            norm = np.sqrt(sum(float(np.dot(g, g)) for _, _, _, g, _, _ in self._slots))
            for _, _, _, g, _, _ in self._slots:
                g *= min(1.0, self._clip / (norm + 1e-6))
        first, second = (1 - memory**self._steps for memory in (MEMORY, MEMORY_OF_SQUARES))
        constants = 1 / second, 1 - MEMORY, MEMORY_OF_SQUARES, 1 - MEMORY_OF_SQUARES, LEAST_SCALE
        for _, flat, factor, g, mean, square in self._slots:
            kind = flat.dtype.type
            _adam(flat, g, mean, square, kind(rate * factor / first), *map(kind, constants))


@njit(cache=True, error_model="numpy")
def _adam(p, g, mean, square, rate, stretch, take, memory_of_squares, take_squares, least):
    """One step of Adam on flat arrays in their precision; the gradient is left zero."""
    for i in range(len(p)):
        if g[i] == 0 and mean[i] == 0:
            square[i] *= memory_of_squares
            continue
        mean[i] += take * (g[i] - mean[i])
        square[i] = square[i] * memory_of_squares + take_squares * g[i] * g[i]
        p[i] -= rate * mean[i] / (np.sqrt(square[i] * stretch) + least)
        if abs(mean[i]) < _VANISHED:
            mean[i] = 0
        g[i] = 0
