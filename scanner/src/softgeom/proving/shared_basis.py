"""Unargmaxable classes of one layer proven together, from the basis of one in their midst.

Heads with few features hold thousands of unargmaxable classes, most of them alike: rows that
training never moved. One programme (dual_simplex.py) serves them all, over a few shared rivals:

1. *The rivals.* The convex weights of largest entropy whose mean is the median of the open rows say
   which other rows surround them; a systematic sample of those, flattened, is what all share.
2. *The median.* The class nearest to it that never wins against the shared rivals gives a first
   basis, which is optimal for every class in the same simplex: most copies are done.
3. *In step.* From that basis all others pivot together. A class that beats the shared rivals at
   some point is left as soon as that point is found.

Where that simplex holds few others, classes are not alike, and nothing is shared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softgeom.arrays import Floats, Ints, Singles
from softgeom.certifying.verdict import BlockingClasses
from softgeom.problem import BLOCK_BYTES, Points, Problem, Proofs, proofs_of
from softgeom.proving.dual_simplex import SharedProgramme, solve_batch

# classes for which finding the shared rivals pays, and that show what most of a narrow layer are;
# so many next to the median give a basis, since the first may win
FEWEST = 16
NEAREST = 0.9  # share of the open classes, those nearest to the median, that hold no other
SHARED = 12  # shared rivals per dimension
# power of the weights by which they are drawn: rows that matter little to the median matter to
# others
FLATTEN = 0.25


@dataclass(frozen=True, eq=False)
class SharedBasis:
    """Where the programmes of all open classes begin."""

    rivals: Ints  # (k,) that all share
    basis: Ints  # (D + 1,) of the programme over them


def shared_basis(problem: Problem, classes: Ints, seed: int = 0) -> SharedBasis | None:
    """The rivals, sampled by ``seed``, and the basis that the open ``classes`` (n,) share; None
    where they are not alike.
    """
    rows, bias = problem.rows(classes), problem.b[classes]
    median = np.median(rows, axis=0)
    order = np.argsort(((rows - median) ** 2).sum(axis=1), kind="stable")
    others = np.setdiff1d(np.arange(problem.classes), classes[order[: int(NEAREST * len(rows))]])
    if len(others) <= problem.dimension:
        return None
    rivals = _surrounding(problem, others, median, seed)
    programme, itself = _programme(problem, rivals)
    near = order[:FEWEST]
    solved = dict(solve_batch(programme, rows[near], bias[near], itself[classes[near]]))
    vertices = [vertex for _, vertex in sorted(solved.items()) if vertex is not None]
    bases = [vertex.basic for vertex in vertices if vertex.value <= 0]
    # 43% of the open classes of PP-OCRv4 share it, and .5% in a layer where one programme a class
    # is sooner done
    if not bases or FEWEST * programme.weights(bases[0], rows)[0].mean() < 1:
        return None
    return SharedBasis(rivals, bases[0])


def prove_together(problem: Problem, classes: Ints, start: SharedBasis) -> tuple[Proofs, Points]:
    """Class -> blocking classes, at most d + 1, and the bound <= 0 that they certify, of those
    ``classes`` (n,) that never win against the shared rivals; class -> a point (D,) at which it
    beats them. Classes without either are absent. A ball is enlarged to the box around it.
    """
    programme, itself = _programme(problem, start.rivals)
    rows, bias = problem.rows(classes), problem.b[classes]
    blocking: dict[int, BlockingClasses] = {}
    points: Points = {}
    for n, vertex in solve_batch(programme, rows, bias, itself[classes], start.basis):
        t = int(classes[n])
        if vertex is not None and vertex.value > 0:
            points[t] = vertex.z
        elif vertex is not None:
            blocking[t] = BlockingClasses(start.rivals[vertex.positions], vertex.weights)
    return proofs_of(problem, blocking), points


def _programme(problem: Problem, rivals: Ints) -> tuple[SharedProgramme, Ints]:
    """The programme over shared rivals (k,), and each class's place among them (C,), or -1."""
    itself = np.full(problem.classes, -1)
    itself[rivals] = np.arange(len(rivals))
    rows, bias = problem.rows(rivals, np.float64), problem.b[rivals]
    return SharedProgramme(rows, bias, *problem.box), itself


def shares(problem: Problem) -> bool:
    """Whether classes of a layer may share a basis: not a homogeneous one's, nor where the shared
    rivals take more than a block of rows, since each pivot reads them all.
    """
    return not problem.homogeneous and 8 * SHARED * (problem.dimension + 1) ** 2 <= BLOCK_BYTES


def _surrounding(problem: Problem, others: Ints, median: Singles, seed: int) -> Ints:
    """Rows of others (n,) around a point: drawn by flattened weights of largest entropy."""
    bias = problem.b[others]
    spread = float(np.subtract(*np.quantile(bias, [0.75, 0.25]))) / 1.35
    prior = np.clip((bias - np.median(bias)) / spread, -4, 4) if spread else np.zeros(len(bias))
    p = _largest_entropy(problem.rows(others) - median, prior) ** FLATTEN
    rng = np.random.default_rng(seed)
    size = min(SHARED * (problem.dimension + 1), len(others))
    order = rng.permutation(len(others))
    places = np.searchsorted(np.cumsum(p[order]), (np.arange(size) + rng.random()) / size * p.sum())
    return others[np.unique(order[np.minimum(places, len(others) - 1)])]


def _largest_entropy(A: Singles, prior: Floats, steps: int = 30, tolerance: float = 1e-6) -> Floats:
    """Weights (k,) proportional to ``exp(prior + A z)`` with mean row 0, by Newton's method on
    log-sum-exp; A is (k, D).

    Outside the hull there are none: the last weights are as good a guess as any.
    """

    def state(z: Floats) -> tuple[float, Floats]:
        lead = A @ z.astype(np.float32) + prior
        top = lead.max()
        p = np.exp(lead - top)
        return float(top + np.log(p.sum())), p / p.sum()

    z = np.zeros(A.shape[1])
    value, p = state(z)
    for _ in range(steps):
        root = A * np.sqrt(p).astype(np.float32)[:, None]
        gradient = p @ A
        hessian = (root.T @ root).astype(np.float64) - np.outer(gradient, gradient)
        ridge = 1e-6 * np.trace(hessian) / len(hessian) + np.finfo(np.float32).tiny
        hessian[np.diag_indices_from(hessian)] += ridge
        move = -np.linalg.solve(hessian, gradient)
        gain = float(-gradient @ move)
        if not gain > tolerance:
            break
        step = 1.0
        following = state(z + move)
        while following[0] > value - 0.1 * step * gain and step > 1e-3:
            step *= 0.4
            following = state(z + step * move)
        z, (value, p) = z + step * move, following
    return p
