"""Search for features that obey an order, many orders at once: ascent on the comparisons that are
closest to broken.

One look computes all logits of a block of orders; each then climbs by Polyak steps
(searching/polyak.py) on the smallest of its own few comparisons, which grow by those that the next
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
from softgeom.bottleneck.searching.polyak import polyak_ascent

GROUP_BYTES = 2**24  # rows of comparisons that climb together
Pairs = tuple[Ints, Ints]


@dataclass(frozen=True, eq=False)
class Sought:
    """The best point that was found for one order."""

    z: Singles  # (D,)
    margin: float  # in float32
    steps: int


def seek(
    problem: Problem, orders: Sequence[Order], *, rounds: int = 6, steps: int = 40, growth: int = 24
) -> list[Sought]:
    """Look for a point of the region at which each order's comparisons hold, in so many ``rounds``
    of ``steps``, or one where comparisons are few; ``growth`` of them join at a look.
    """
    Z = problem.reach(np.stack([_lean(problem, order) for order in orders]).astype(np.float32))
    margin, taken = np.full(len(orders), -np.inf), np.zeros(len(orders), np.intp)
    best, working = Z.copy(), [_NONE] * len(orders)
    left = np.arange(len(orders))
    few = np.array([order.comparisons(problem.classes) <= FEW for order in orders])
    for turn in range(rounds + 1):
        Y = problem.logits(Z[left])
        open_ = []
        for n, y in zip(left.tolist(), Y, strict=True):
            here = orders[n].margin(y)
            if here > margin[n]:
                margin[n], best[n] = here, Z[n]
            if margin[n] <= 0:
                working[n] = _joined(working[n], orders[n].closest(y, growth), problem.classes)
                open_.append(n)
        left = np.array(open_, dtype=np.intp)
        left = left[~few[left]] if turn else left
        if not len(left) or turn == rounds:
            break
        Z[left] = _climb(problem, best[left], [working[n] for n in left], steps)
        taken[left] += steps
    return [Sought(*found) for found in zip(best, margin.tolist(), taken.tolist(), strict=True)]


_NONE: Pairs = (np.zeros(0, np.intp), np.zeros(0, np.intp))


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


def _joined(old: Pairs, new: Pairs, classes: int) -> Pairs:
    codes = np.unique(np.concatenate([side[0] * classes + side[1] for side in (old, new)]))
    return codes // classes, codes % classes


def _climb(problem: Problem, Z: Singles, working: list[Pairs], steps: int) -> Singles:
    """Climb for n orders from Z (n, D), in groups whose rows fit the cache."""
    result = Z.copy()
    order = np.argsort([len(above) for above, _ in working], kind="stable")
    start = 0
    while start < len(order):
        width = len(working[order[start]][0])
        group = order[start : start + max(1, GROUP_BYTES // (4 * width * problem.dimension))]
        start += len(group)
        width = max(len(working[n][0]) for n in group)
        # shorter lists are padded with their first comparison: a repeated one changes no minimum

        def padded(side: int, group: Ints = group, width: int = width) -> Ints:
            sides = [working[n][side] for n in group]
            return np.stack([np.pad(s, (0, width - len(s)), mode="edge") for s in sides])

        above, below = padded(0), padded(1)
        A = problem.rows(below) - problem.rows(above)
        c = (problem.b[below] - problem.b[above]).astype(np.float32)
        result[group], _ = polyak_ascent(np, A, c, Z[group], problem.project, steps)
    return result
