"""Pairs of classes that meet all blocking sets of a class: proofs that leave none (texts.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softgeom.arrays import Array, Floats, Ints
from softgeom.asking.candidates import about
from softgeom.asking.experts import OpenError, Search
from softgeom.certifying.checker import Checker
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import Answer, Comparisons, EvidenceError
from softgeom.proving.cheapest import CheapestWeights
from softgeom.proving.lp import SolverError


def blocked(checker: Checker, t: int, rivals: Ints, weights: Array) -> Answer:
    """The blocking set of some weights (n,) on rivals (n,) of t; EvidenceError if they do not prove
    it.
    """
    rivals, weights = rivals[weights > 0], weights[weights > 0]
    pairs = Comparisons(np.full(len(rivals), t), rivals, weights)
    order = Order([[t], sorted(rivals.tolist())])
    return about(checker, Answer(order, pairs, "", 0, 0.0), order)


def meet(search: Search) -> Answer | None:
    """A point at which only the members of a pair are ahead; None when no pair meets all sets.

    The pair that weighs most is left out of the next set. Other classes cost as much there as the
    number of pairs that they are in, so that few pairs meet the cheapest set.
    """
    if not search.blocking and (answer := search.ask(set())) is not None:
        return answer
    others = np.array(search.rivals)
    room = -0.5 * max(answer.margin for answer in search.blocking)
    programme = CheapestWeights(search.layer, search.e, others, room)
    while search.left > 0:
        pairs = Pairs(search.blocking)
        if not pairs.left:
            return None
        pair, costs = pairs.heaviest()
        cost = np.zeros(len(others))
        cost[np.searchsorted(others, pairs.members)] = costs
        try:
            weights = programme.solve(cost, np.searchsorted(others, sorted(pair)))
            search.blocking.append(blocked(search.checker, search.e, others, weights))
            search.left -= 1
        except (SolverError, EvidenceError):
            if (answer := search.ask(pair)) is not None:
                return answer
            if (less := -0.5 * search.blocking[-1].margin) < room:
                room = less
                programme = CheapestWeights(search.layer, search.e, others, room)
    raise OpenError


class Pairs:
    """The pairs of classes that meet all blocking sets."""

    def __init__(self, blocking: Sequence[Answer]) -> None:
        evidence = [answer.evidence for answer in blocking]
        each = [(e.below, e.weights.astype(float)) for e in evidence if isinstance(e, Comparisons)]
        self.members: Ints = np.unique(np.concatenate([below for below, _ in each]))
        shares = np.zeros((len(each), len(self.members)))
        for share, (below, weights) in zip(shares, each, strict=True):
            share[np.searchsorted(self.members, below)] = weights / weights.sum()
        self._total = shares.sum(axis=0)
        # each pair has a member in the smallest set
        self._first = np.flatnonzero(shares[(shares > 0).sum(axis=1).argmin()])
        misses = (shares == 0).astype(np.float32)
        self._meet = misses[:, self._first].T @ misses == 0

    @property
    def left(self) -> bool:
        """Whether there are any."""
        return bool(self._meet.any())

    def heaviest(self) -> tuple[set[int], Floats]:
        """The pair with most weight in all sets together; what each of ``members`` costs in a set
        without that pair: 1 where it is in a pair with one of the two, and its share of all pairs.
        """
        weight = np.where(self._meet, self._total[self._first, None] + self._total, -1.0)
        one, other = np.unravel_index(weight.argmax(), weight.shape)
        costs = self._meet.sum(axis=0, dtype=float)
        costs[self._first] += self._meet.sum(axis=1)
        costs = self._meet[one] + costs / costs.sum()
        costs[self._first] += self._meet[:, other]
        return {int(self.members[self._first[one]]), int(self.members[other])}, costs


def exclude(blocking: Sequence[Answer]) -> bool:
    """Whether no pair of classes meets all blocking sets."""
    return bool(blocking) and not Pairs(blocking).left
