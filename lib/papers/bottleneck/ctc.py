"""Every text of a CTC decoder, summed over its alignments, for small alphabets and few frames.

CTC (Graves et al. 2006) gives each of T frames a distribution over C classes. An *alignment* is one
class a frame; its text is what stays when repeats are merged and then blanks (class 0) dropped; the
probability of a text is the sum over its alignments. All C^T alignments are listed here, so that
nothing is approximate but the floats.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, product

import numpy as np
from numpy.typing import NDArray

from softgeom.layer import SoftmaxLayer

Floats = NDArray[np.float64]
BLANK = 0


def text_of(alignment: tuple[int, ...]) -> tuple[int, ...]:
    """The text of an alignment: repeats merged, then blanks dropped."""
    return tuple(k for k, _ in groupby(alignment) if k != BLANK)


@dataclass(frozen=True)
class Decoder:
    """All texts of so many classes and frames."""

    classes: int
    frames: int

    @cached_property
    def _listed(self) -> tuple[list[tuple[int, ...]], NDArray[np.intp]]:
        known: dict[tuple[int, ...], int] = {}
        every = product(range(self.classes), repeat=self.frames)
        place = [known.setdefault(text_of(one), len(known)) for one in every]
        return list(known), np.array(place)

    @property
    def texts(self) -> list[tuple[int, ...]]:
        """Every text that the frames have room for."""
        return self._listed[0]

    def alignments(self, P: Floats) -> Floats:
        """Probabilities (n, C^T) of all alignments of pictures P (n, T, C)."""
        found = P[:, 0]
        for frame in range(1, self.frames):
            found = (found[:, :, None] * P[:, None, frame]).reshape(len(P), -1)
        return found

    def probabilities(self, P: Floats) -> Floats:
        """Probabilities (n, texts) of all texts of pictures P (n, T, C)."""
        place = self._listed[1]
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(len(self.texts)))
        return np.asarray(np.add.reduceat(self.alignments(P)[:, order], starts, axis=1))

    def holds(self, t: int) -> NDArray[np.bool_]:
        """Which texts contain class t."""
        return np.array([t in text for text in self.texts])

    def marginals(self, P: Floats, text: NDArray[np.intp]) -> Floats:
        """For each picture how probable each class is at each frame (n, T, C), given its text."""
        found = self.alignments(P) * (self._listed[1] == text[:, None])
        found = found.reshape(len(P), *[self.classes] * self.frames)
        frames = range(1, self.frames + 1)
        sums = [found.sum(axis=tuple(f for f in frames if f != frame)) for frame in frames]
        each = np.stack(sums, axis=1)
        return np.asarray(each / each.sum(axis=2, keepdims=True))


def softmax(Y: Floats) -> Floats:
    """Probabilities over the last axis."""
    P = np.exp(Y - Y.max(axis=-1, keepdims=True))
    return np.asarray(P / P.sum(axis=-1, keepdims=True))


def climb(
    layer: SoftmaxLayer, decoder: Decoder, t: int, X: Floats, steps: int, bound: float
) -> Floats:
    """The largest log ratio (n,) on the way of P(best text with class t) to P(best text without),
    by gradient ascent from features X (n, T, d) that stay in the box of ``bound``.

    The gradient over the logits of a frame is the difference of the two texts' marginals there. A
    positive ratio is a picture whose most probable text contains t.
    """
    W, b = layer.W.astype(float), layer.bias.astype(float)
    holds, best = decoder.holds(t), np.full(len(X), -np.inf)
    step = np.full(len(X), 0.3)
    for _ in range(steps + 1):
        P = softmax(X @ W.T + b)
        Q = np.log(np.maximum(decoder.probabilities(P), 1e-300))
        with_t, without = (np.where(chosen, Q, -np.inf) for chosen in (holds, ~holds))
        ratio = with_t.max(axis=1) - without.max(axis=1)
        step = np.where(ratio > best, 1.2 * step, 0.5 * step)
        best = np.maximum(best, ratio)
        toward = decoder.marginals(P, with_t.argmax(axis=1))
        G = (toward - decoder.marginals(P, without.argmax(axis=1))) @ W
        size = np.maximum(np.linalg.norm(G, axis=(1, 2), keepdims=True), 1e-12)
        X = np.clip(X + step[:, None, None] * G / size, -bound, bound)
    return best
