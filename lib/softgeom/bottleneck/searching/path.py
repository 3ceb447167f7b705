"""A single Braid Reflect search with every point that it visits, for drawing and for checking its
steps (001, Section 3.4.1, Figure 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.paper001 import braid_reflect, reflect_step
from softgeom.layer import SoftmaxLayer

__all__ = ["Search", "example_search", "follow_search", "leads", "mirror_error"]

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Search:
    """The points (n, d) from x = w_t on, and the class that wins at each of them but the last."""

    W: Array
    b: Array
    index: int
    points: Array
    winners: tuple[int, ...]


def follow_search(W: Array, b: Array, index: int, steps: int) -> Search:
    """Follow the search in W (C, d), b (C,) until the class wins or for `steps` steps."""
    x = W[index]
    points, winners = [x], list[int]()
    while len(winners) < steps and (i := int(np.argmax(W @ x + b))) != index:
        x = reflect_step(x[None], W[[index]], W[[i]], b[[index]], b[[i]])[0]
        points.append(x)
        winners.append(i)
    return Search(W, b, index, np.array(points), tuple(winners))


def example_search(rng: np.random.Generator, classes: int = 6, steps: int = 10) -> Search:
    """The longest successful search of the first random layer of two features in which some class
    needs more than one reflection. RuntimeError if a thousand layers have none.
    """
    for _ in range(1000):
        W, b = rng.uniform(-1, 1, (classes, 2)), rng.uniform(-1, 1, classes) / 2
        found = braid_reflect(SoftmaxLayer(W, b), patience=steps)
        needed = np.where(found.won, found.steps, 0)
        if needed.max() > 1:
            return follow_search(W, b, int(needed.argmax()), steps)
    raise RuntimeError("no random layer needed two reflections: raise the number of classes.")


def leads(search: Search, step: int) -> tuple[float, float]:
    """By how much the class sought leads the winner of a step, before the step and after it."""
    t, i = search.index, search.winners[step]
    normal, offset = search.W[t] - search.W[i], search.b[t] - search.b[i]
    before, after = (float(normal @ search.points[step + k] + offset) for k in (0, 1))
    return before, after


def mirror_error(search: Search, step: int) -> float:
    """Largest entry of the difference between a step and the Householder transformation about the
    nearest point of the tie.

    With the unit normal n of the hyperplane and its point p nearest the origin the step is p + (I -
    2 n n^T)(x - p); without an offset p is the origin, and the step the transformation itself
    (footnote 9).
    """
    t, i = search.index, search.winners[step]
    normal, offset = search.W[t] - search.W[i], search.b[t] - search.b[i]
    unit = normal / np.linalg.norm(normal)
    nearest = -offset / (normal @ normal) * normal
    mirrored = nearest + (np.eye(len(unit)) - 2 * np.outer(unit, unit)) @ (
        search.points[step] - nearest
    )
    return float(np.abs(mirrored - search.points[step + 1]).max())
