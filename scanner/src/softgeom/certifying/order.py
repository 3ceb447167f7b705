"""An order that logits may or may not be able to obey: blocks of classes, each above the next.

The logits of a layer obey ``B_1 > B_2 > ... > B_m`` at x when every class of a block has a higher
logit there than every class of the next block; classes of one block, and classes that are named
nowhere, are not compared. Such an ordered set partition is a face of the braid arrangement (paper
001, Section 2.2), and the layer obeys the order somewhere iff the affine image of its features
meets the open cone around that face. Each question of this package is one or several such orders:

=====================================  =====================================================
question                               order
=====================================  =====================================================
class t wins among candidates S        ``{t} > S``
t_1, ..., t_k are the top k in order   ``{t_1} > ... > {t_k} > everybody else``
S are the top k, in any order          ``S > everybody else``
labels P on and N off (sigmoid)        ``P > {zero} > N``, with a class whose logit is always 0
expert e is among the top k of n       ``{e} > all but k - 1 others``, for some choice of those
=====================================  =====================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from softgeom.arrays import Array, Ints
from softgeom.layer import SoftmaxLayer

# every class of the first is to be above every class of the second
Step = tuple[Ints, Ints]


@dataclass(frozen=True)
class Order:
    """Blocks of classes, each above the next; with ``rest`` all classes that no block names follow
    as the last block. ValueError if a block is empty or holds something else than class numbers, or
    a class is named twice.
    """

    blocks: tuple[tuple[int, ...], ...]
    rest: bool = False

    def __init__(self, blocks: Iterable[Iterable[int]], rest: bool = False) -> None:
        named = tuple(tuple(_class(i) for i in block) for block in blocks)
        if not named or not all(named):
            raise ValueError(
                "An order needs blocks of at least one class each: [[3], [1, 4]] puts 3 "
                "above 1 and 4."
            )
        flat = [i for block in named for i in block]
        twice = sorted({i for i in flat if flat.count(i) > 1}) if len(set(flat)) < len(flat) else []
        if twice:
            raise ValueError(f"An order names each class at most once; {twice[0]} is named twice.")
        object.__setattr__(self, "blocks", named)
        object.__setattr__(self, "rest", bool(rest))

    @property
    def named(self) -> Ints:
        """Every class that a block names."""
        return np.array([i for block in self.blocks for i in block], dtype=np.intp)

    def check(self, classes: int) -> None:
        """Raise ValueError unless every class exists in a layer of so many."""
        low, high = int(self.named.min()), int(self.named.max())
        if low < 0 or high >= classes:
            raise ValueError(
                f"The order names class {low if low < 0 else high}; the layer has classes 0 "
                f"to {classes - 1}."
            )

    def steps(self, classes: int) -> Iterator[Step]:
        """The blocks in pairs, upper and lower; the last lower one may be everybody else."""
        blocks = [np.array(block, dtype=np.intp) for block in self.blocks]
        if self.rest:
            others = np.ones(classes, dtype=bool)
            others[self.named] = False
            blocks.append(np.flatnonzero(others))
        for upper, lower in pairwise(blocks):
            if len(lower):
                yield upper, lower

    def comparisons(self, classes: int) -> int:
        """How many pairs the order demands, in a layer of so many classes."""
        return sum(len(upper) * len(lower) for upper, lower in self.steps(classes))

    def margin(self, logits: Array) -> float:
        """``min over comparisons of y_upper - y_lower`` for logits (C,): positive iff they obey;
        inf without comparisons.
        """
        steps = self.steps(len(logits))
        return min(
            (float(logits[upper].min() - logits[lower].max()) for upper, lower in steps),
            default=np.inf,
        )

    def closest(self, logits: Array, most: int) -> tuple[Ints, Ints]:
        """The comparisons that logits (C,) come closest to breaking, or break: upper and lower
        classes (k,) each.

        Of each step some ``most`` pairs of low uppers and high lowers.
        """
        above, below = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
        for upper, lower in self.steps(len(logits)):
            few = max(1, round(most**0.5))
            up = _first(upper, logits[upper], max(few, most // len(lower)))
            low = _first(lower, -logits[lower], max(1, most // len(up)))
            above.append(np.repeat(up, len(low)))
            below.append(np.tile(low, len(up)))
        return np.concatenate(above), np.concatenate(below)

    def demands(self, above: Array, below: Array, classes: int) -> bool:
        """Whether each comparison (k,) of a proof, k > 0, is one that the order demands."""
        above, below = np.asarray(above), np.asarray(below)
        if above.ndim != 1 or above.shape != below.shape or not len(above):
            return False
        if above.dtype.kind not in "iu" or below.dtype.kind not in "iu":
            return False
        if min(above.min(), below.min()) < 0 or max(above.max(), below.max()) >= classes:
            return False
        level = np.full(classes, -2)  # classes that are not compared
        if self.rest:
            level[:] = len(self.blocks)
        for n, block in enumerate(self.blocks):
            level[list(block)] = n
        return bool(np.all(level[above] >= 0) and np.all(level[below] == level[above] + 1))

    def describe(self, layer: SoftmaxLayer | None = None, most: int = 4) -> str:
        """``a > b > others``, by the layer's tokens if there is one."""

        def name(block: tuple[int, ...]) -> str:
            shown = [str(i) if layer is None else layer.token(i) for i in block[:most]]
            more = [f"{len(block) - most} more"] if len(block) > most else []
            return ", ".join(shown + more)

        return " > ".join([*map(name, self.blocks), *(["others"] if self.rest else [])])

    def numbered(self) -> str:
        """The blocks by number, every class of them, runs by their ends: ``2 > 0-1 4 > others``.

        No two orders that ask for different things read alike, which tokens do not promise.
        """
        blocks = []
        for block in self.blocks:
            runs = groupby(enumerate(sorted(block)), key=lambda pair: pair[1] - pair[0])
            ends = [[t for _, t in run] for _, run in runs]
            blocks.append(" ".join(f"{e[0]}-{e[-1]}" if e[1:] else f"{e[0]}" for e in ends))
        return " > ".join([*blocks, *(["others"] if self.rest else [])])


def _class(i: Any) -> int:
    if isinstance(i, bool) or not isinstance(i, int | np.integer):
        raise ValueError(f"An order is made of class numbers, not {i!r}.")
    return int(i)


def _first(classes: Ints, keys: Array, most: int) -> Ints:
    """The classes with the smallest keys, at most so many."""
    if len(classes) <= most:
        return classes
    return np.asarray(classes[np.argpartition(keys, most - 1)[:most]])
