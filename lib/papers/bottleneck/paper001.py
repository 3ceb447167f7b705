"""The methods of paper 001 beside certified verdicts, kept as baselines: Braid Reflect, the
Chebyshev programme, and the approximate test of Demeter, Kimmel and Downey (2020).

*Braid Reflect* (Algorithms 1 and 2). From ``x = w_t`` on, as long as some class i beats t, x is
reflected across the hyperplane on which the two tie:

    w = w_t - w_i,   b = b_t - b_i,   x <- x - 2 (w.x + b) / ||w||^2  w,      i = argmax(W x + b).

Without a bias the reflection is a Householder transformation. A win proves that t is argmaxable,
running out of patience proves nothing. As in the authors' experiments a win outside the box does
not count. ``scan`` searches otherwise (searching/ascent.py).

*Chebyshev programme* (Section 3.3.1, equations 5 and 6):

    maximise r   subject to   (w_i - w_t).x + r ||w_i - w_t|| <= b_t - b_i  for all i != t,
                              -100 <= x <= 100.

A class is argmaxable when r > 0 (the authors' code asks for 1e-8 at least), and r bounds the size
of its region from below; the ball itself may leave the box.

*Interior classes.* Without a bias a class is on the hull of the rows or at every x some class on it
is at least as probable. Of the test for them paper 001 reports only that it is approximate, with "a
precision approaching 100% but 68% recall" against Qhull on ten dimensions. The one here is a
reconstruction with that one-sided error: a class is declared to be on the hull when it wins in one
of a fixed list of directions.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from softgeom.arrays import Array, Bools, Ints
from softgeom.layer import SoftmaxLayer
from softgeom.proving.lp import chebyshev_radius
from softgeom.scan_result import Scan

PATIENCE = 2500  # Section 4 of the paper
CODE_THRESHOLD = 1e-8  # of r, in the authors' code
_TOLERANCE = 1e-6  # relative, of the solver's radii


@dataclass(frozen=True, eq=False)
class Reflections:
    """The outcome of Braid Reflect for n classes."""

    x: Array  # (n, d) the last point
    won: Bools  # (n,) whether the class is the argmax there
    inside: Bools  # (n,) whether the point lies in the box
    steps: Ints  # (n,) reflections made


def reflect_step(x: Array, w_t: Array, w_i: Array, b_t: Array, b_i: Array) -> Array:
    """Reflect points x (n, d) across the hyperplanes on which class t and class i tie (Algorithm
    1), with rows w_t, w_i (n, d) and biases b_t, b_i (n,). Where the rows are equal x stays.
    """
    w = w_t - w_i
    square = np.einsum("nd,nd->n", w, w)
    lead = np.einsum("nd,nd->n", w, x) + (b_t - b_i)
    return x - 2 * np.divide(lead, square, out=np.zeros_like(lead), where=square > 0)[:, None] * w


def braid_reflect(
    layer: SoftmaxLayer,
    classes: Ints | None = None,
    *,
    patience: int = PATIENCE,
    bound: float = 100.0,
    dtype: Any = None,
    start: Array | None = None,
) -> Reflections:
    """Run Braid Reflect (Algorithm 2) for ``classes`` (n,), by default all: up to ``patience``
    reflections from their own rows (Section 3.4.1) or from ``start`` (n, d); a win counts within
    ``bound``. Arithmetic is that of W, at least float32, unless ``dtype`` says otherwise.
    """
    classes = np.arange(layer.classes) if classes is None else np.asarray(classes, dtype=np.intp)
    dtype = dtype or np.result_type(layer.W.dtype, np.float32)
    W, b = layer.W.astype(dtype, copy=False), layer.bias.astype(dtype, copy=False)
    x = W[classes] if start is None else start.astype(dtype)
    won, steps = np.zeros(len(classes), dtype=bool), np.zeros(len(classes), dtype=np.intp)
    left = np.arange(len(classes))
    for step in range(patience + 1):
        best = _argmax(W, b, x[left])
        won[left] = best == classes[left]
        losing = best != classes[left]
        left, best = left[losing], best[losing]
        if not len(left) or step == patience:
            break
        t = classes[left]
        x[left] = reflect_step(x[left], W[t], W[best], b[t], b[best])
        steps[left] += 1
    return Reflections(x, won, np.abs(x).max(axis=1) <= bound, steps)


def _argmax(W: Array, b: Array, x: Array, tile: int = 64) -> Ints:  # logits that fit a cache
    parts = [(x[i : i + tile] @ W.T + b).argmax(axis=1) for i in range(0, len(x), tile)]
    return np.concatenate(parts) if parts else np.zeros(0, np.intp)


def compare_with_programme(scan: Scan, classes: Iterable[int]) -> pd.DataFrame:
    """Solve the programme for some classes of a scan over a box: class, verdict (certified), radius
    (certified lower bound, NaN without a witness), chebyshev (the programme's r), agree (whether r
    > 0 says what the verdict says), bounded (whether the certified radius stays below r, as it
    must).
    """
    verdicts = scan.table.set_index("class")
    layer, rows = scan.layer, []
    low, high = scan.features.bounds(layer.dimension)
    for index in classes:
        verdict, certified = verdicts.verdict[index], float(verdicts.radius[index])
        r = chebyshev_radius(layer.W, layer.b, int(index), low, high)[0]
        bounded = not certified > r * (1 + _TOLERANCE) + _TOLERANCE
        rows.append((index, verdict, certified, r, (r > 0) == (verdict == "argmaxable"), bounded))
    columns = ["class", "verdict", "radius", "chebyshev", "agree", "bounded"]
    return pd.DataFrame(rows, columns=columns)


class Quality(NamedTuple):
    """Agreement of a test with the truth: shares in [0, 1], NaN where there is nothing to count."""

    precision: float
    recall: float


def declare_on_hull(layer: SoftmaxLayer, directions: int = 1000, *, seed: int = 0) -> Bools:
    """Which classes (C,) win in their direction from the mean row or a random one."""
    W = layer.W.astype(np.float64)
    declared = np.zeros(layer.classes, dtype=bool)
    own = W - W.mean(axis=0)
    for start in range(0, layer.classes, 1024):
        block = np.arange(start, min(start + 1024, layer.classes))
        declared[block] |= (own[block] @ W.T).argmax(axis=1) == block
    X = np.random.default_rng(seed).normal(size=(directions, layer.dimension))
    declared[np.unique((X @ W.T).argmax(axis=1))] = True
    return declared


def quality(declared: Bools, truth: Bools) -> Quality:
    """Precision and recall of a declared set against the true one, both (C,) boolean."""
    hits = int((declared & truth).sum())
    claimed, present = int(declared.sum()), int(truth.sum())
    none = float("nan")
    return Quality(hits / claimed if claimed else none, hits / present if present else none)


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
    needs several reflections. RuntimeError if a thousand layers have none.
    """
    for _ in range(1000):
        W, b = rng.uniform(-1, 1, (classes, 2)), rng.uniform(-1, 1, classes) / 2
        found = braid_reflect(SoftmaxLayer(W, b), patience=steps)
        needed = np.where(found.won, found.steps, 0)
        if needed.max() > 1:
            return follow_search(W, b, int(needed.argmax()), steps)
    raise RuntimeError("no random layer needed two reflections: raise the number of classes.")


def _tie(search: Search, step: int) -> tuple[Array, float]:
    """Normal and offset of the hyperplane on which a step's winner ties with the class sought."""
    t, i = search.index, search.winners[step]
    return search.W[t] - search.W[i], float(search.b[t] - search.b[i])


def leads(search: Search, step: int) -> tuple[float, float]:
    """By how much the class sought leads the winner of a step, before the step and after it."""
    normal, offset = _tie(search, step)
    before, after = (float(normal @ x + offset) for x in search.points[step : step + 2])
    return before, after


def mirror_error(search: Search, step: int) -> float:
    """Largest entry of the difference between a step and the Householder transformation about the
    point p of the tie that is nearest the origin: p + (I - 2 n n^T)(x - p), n the unit normal. With
    no offset p is the origin, and the step the transformation itself (footnote 9).
    """
    normal, offset = _tie(search, step)
    nearest = -offset / (normal @ normal) * normal
    mirror = np.eye(len(normal)) - 2 * np.outer(normal, normal) / (normal @ normal)
    mirrored = nearest + mirror @ (search.points[step] - nearest)
    return float(np.abs(mirrored - search.points[step + 1]).max())
