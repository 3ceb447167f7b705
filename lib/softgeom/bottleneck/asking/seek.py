"""Search for features that obey an order, many orders at once: ascent on the comparisons that are
closest to broken.

One look computes all logits of a block of orders; each then climbs by Polyak steps
(searching/ascent.py) on the smallest of its own few comparisons, which grow by those that the next
look finds broken. The first point leans from the lower blocks' mean row to the upper ones'.
Everything is float32: what is found proves nothing until it is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softgeom.arrays import Floats, Ints, Singles
from softgeom.bottleneck.certifying.order import Order
from softgeom.bottleneck.problem import FEW, Problem
from softgeom.bottleneck.proving.exact import closest_pairs, split
from softgeom.bottleneck.searching.ascent import of_like_size, polyak_ascent

GROUP_BYTES = 2**24  # rows of comparisons that climb together
ROUNDS, STEPS, GROWTH = 6, 40, 24


@dataclass(frozen=True, eq=False)
class Sought:
    """The best point that was found for one order."""

    z: Singles  # (D,)
    margin: float  # in float32
    steps: int


def seek(problem: Problem, orders: Sequence[Order]) -> list[Sought]:
    """Look for a point of the region at which each order's comparisons hold, in `ROUNDS` of
    `STEPS`, or one where comparisons are few; `GROWTH` of them join at a look.
    """
    Z = problem.reach(np.stack([_lean(problem, order) for order in orders]).astype(np.float32))
    margin, taken = np.full(len(orders), -np.inf), np.zeros(len(orders), np.intp)
    best, working = Z.copy(), [np.zeros(0, np.intp)] * len(orders)
    left = np.arange(len(orders))
    few = np.array([order.comparisons(problem.classes) <= FEW for order in orders])
    for turn in range(ROUNDS + 1):
        Y = problem.logits(Z[left])
        open_ = []
        for n, y in zip(left.tolist(), Y, strict=True):
            here = orders[n].margin(y)
            if here > margin[n]:
                margin[n], best[n] = here, Z[n]
            if margin[n] <= 0:
                working[n] = np.union1d(working[n], closest_pairs(orders[n], y, GROWTH))
                open_.append(n)
        left = np.array(open_, dtype=np.intp)
        left = left[~few[left]] if turn else left
        if not len(left) or turn == ROUNDS:
            break
        Z[left] = _climb(problem, best[left], [working[n] for n in left])
        taken[left] += STEPS
    return [Sought(*found) for found in zip(best, margin.tolist(), taken.tolist(), strict=True)]


def _lean(problem: Problem, order: Order) -> Floats:
    """The sum of unit steps from each block's lower neighbour's mean row to its own."""
    direction = np.zeros(problem.dimension)
    members = (np.array(block, dtype=np.intp) for block in order.blocks)
    blocks = [problem.rows(block, np.float64).mean(axis=0) for block in members]
    below = [*blocks[1:], *([problem.mean] if order.rest else [])]
    for upper, lower in zip(blocks, below, strict=False):
        way = upper - lower
        direction += way / max(float(np.linalg.norm(way)), 1e-30)
    return direction


def _climb(problem: Problem, Z: Singles, working: list[Ints]) -> Singles:
    """Climb for n orders from Z (n, D), in groups whose rows fit the cache."""
    sizes, result = np.array([len(codes) for codes in working]), Z.copy()
    for group, width in of_like_size(sizes, GROUP_BYTES // (4 * problem.dimension)):
        # shorter lists repeat their last comparison, which changes no minimum
        padded = [np.pad(working[n], (0, width - sizes[n]), mode="edge") for n in group]
        above, below = split(np.stack(padded), problem.classes)
        A = problem.rows(below) - problem.rows(above)
        c = (problem.b[below] - problem.b[above]).astype(np.float32)
        result[group], _ = polyak_ascent(np, A, c, Z[group], problem.project, STEPS)
    return result
