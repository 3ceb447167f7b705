"""Witness search for many classes at once: ascent on the margin against a small working set of
rivals.

The margin ``m_t(z) = min_{i != t} (w'_t - w'_i).z + b'_t - b'_i`` is concave. One look at all
rivals (look.py) costs as much per class as thousands of steps against a few, so each class climbs
against its k strongest rivals only (look.py), and then looks at everybody once; rivals that turn
out stronger join its working set. The first candidate is the far point of the region in the
direction from the mean row to the class's own: in most layers that settles nearly everything in
the first look, hence at the cost of one ``W @ W.T``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from softgeom.arrays import Floats, Ints, Singles
from softgeom.problem import Problem
from softgeom.searching.look import look, polyak_ascent

GIVE_UP = 3  # climbs in which a class loses even to its working set before it is left to the proofs
ROUNDS, STEPS = 8, 20  # climbs of one class; steps of its first, each later one has twice as many
GROUP_BYTES = 2**20  # working sets climbed together: small enough for the second-level cache


@dataclass(frozen=True, eq=False)
class Candidates:
    """The best points that a search found for n classes."""

    Z: Singles  # (n, D)
    margin: Floats  # (n,) in float32 arithmetic, against all rivals
    steps: Ints  # (n,) steps of ascent that were taken: none where the first look won
    # per class the working set; empty for classes that won at the first look
    rivals: list[Ints]


def climb(
    problem: Problem, classes: Ints, *, rounds: int = ROUNDS, rivals: int = 32, worth: float = 0.0
) -> Candidates:
    """Search a witness for each of ``classes`` (n,), from the region's far points.

    Before each of ``rounds`` climbs so many ``rivals``, the strongest of the last look at all, join
    a working set. A round in which less than a share ``worth`` of those that climbed have won
    is the last: where proofs are cheap, the rest is better left to them.
    """
    classes = np.asarray(classes, dtype=np.intp)
    Z = far_points(problem, classes)
    seen = look(problem, Z, classes, strongest=rivals)
    margin = seen.margin
    taken = np.zeros(len(classes), np.intp)
    working: list[Ints] = [np.zeros(0, np.intp)] * len(classes)
    left, stuck = seen.losers, np.zeros(len(classes), np.intp)
    strongest = seen.strongest
    for turn in range(rounds):
        if not len(left):
            break
        for n, stronger in zip(left, strongest, strict=True):
            working[n] = np.union1d(working[n], stronger)
        sets = [working[n] for n in left]
        steps = 2 * STEPS if turn else STEPS
        trial, lead = _climb_groups(problem, Z[left], classes[left], sets, steps)
        taken[left] += steps
        seen = look(problem, trial, classes[left], strongest=rivals)
        better = seen.margin > margin[left]
        margin[left[better]], Z[left[better]] = seen.margin[better], trial[better]
        stuck[left] += lead >= 0
        hopeful = stuck[left[seen.losers]] < GIVE_UP
        if len(left) - len(seen.losers) < worth * len(left):
            break
        left, strongest = left[seen.losers][hopeful], seen.strongest[hopeful]
    return Candidates(Z, margin, taken, working)


def far_points(problem: Problem, classes: Ints) -> Singles:
    """The region's far points (n, D) from the mean row towards those of classes (n,)."""
    return problem.reach(problem.rows(classes) - problem.mean.astype(np.float32))


def _climb_groups(
    problem: Problem, Z: Singles, classes: Ints, working: list[Ints], steps: int
) -> tuple[Singles, Singles]:
    """Climb with working sets of like size together: points (n, D), best rivals' leads (n,)."""
    sizes, result = np.array([len(rivals) for rivals in working]), Z.copy()
    lead = np.full(len(Z), np.inf, np.float32)
    for group, width in of_like_size(sizes, GROUP_BYTES // (4 * Z.shape[1])):
        # shorter working sets are padded with their first rival, which changes no maximum
        index = np.stack(
            [np.append(working[n], np.full(width - sizes[n], working[n][0])) for n in group]
        )
        own = classes[group]
        A = problem.rows(index) - problem.rows(own)[:, None]
        c = (problem.b[index] - problem.b[own][:, None]).astype(np.float32)
        result[group], lead[group] = polyak_ascent(A, c, Z[group], problem.project, steps)
    return result, lead


def of_like_size(sizes: Ints, rows: int) -> Iterator[tuple[Ints, int]]:
    """Positions of sets of ``sizes`` (n,), a group of like size at a time, which hold about so many
    rows together, and the largest size in the group.
    """
    order, start = np.argsort(sizes, kind="stable"), 0
    while start < len(order):
        group = order[start : start + max(1, rows // max(1, int(sizes[order[start]])))]
        start += len(group)
        yield group, int(sizes[group].max())
