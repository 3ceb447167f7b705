"""What is known about an unargmaxable class: which blocking classes prove it, which raise of its
bias lets it win, and how high it can be ranked.

*Blocking classes* i with weights l_i >= 0 prove that at every x of the set some blocking class
scores at least as high as the class, since their weighted mean does. A proof need not be the only
one, and which one a scan finds first hangs on how a processor rounds. The *strongest*, whose bound
on the margin is the margin itself, is the same everywhere.

*The least raise of its bias.* A shift s of b_t raises every margin of class t by s, so that the
class is argmaxable from s > -g_t on, with its best margin g_t = max over the box of min over i of
(w_t - w_i).x + b_t - b_i (001, Section 3.3). Blocking classes bound that margin from above, and
need not reach it; here the margin itself is solved for.

*Its best rank.* Take the blocking classes away and scan the class again: a second, disjoint set of
blocking classes proves a second class ahead of it, and k disjoint sets give rank >= k + 1. Once the
class wins in the remaining layer, its witness shows the rank that it has there among all classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softgeom.arrays import Floats, Ints
from softgeom.asking.ask import ask
from softgeom.certifying.checker import Checker
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import BlockingClasses, Comparisons, Witness
from softgeom.layer import Box, FeatureSet, SoftmaxLayer
from softgeom.problem import make_problem, proofs_of
from softgeom.proving.dual_simplex import SharedProgramme, solve_batch
from softgeom.proving.lp import TOLERANCE, MarginProgramme
from softgeom.scaling import in_units
from softgeom.scan_result import Scan
from softgeom.threads import one_thread

_ROUNDS = 60  # of the working set; blocking classes are a good start, so that a few suffice
_FRESH = 128  # rivals that join at a time


def heaviest_blocking_classes(
    scan: Scan, index: int, count: int | None = None
) -> tuple[Ints, Floats]:
    """The blocking classes of a class by falling weight, at most `count`: class numbers (n,) and
    shares (n,) of the whole weight. ValueError if the class was not scanned or has no blocking
    classes.
    """
    evidence = scan.evidence(index)
    if not isinstance(evidence, BlockingClasses):
        raise ValueError(f"Class {index} is {evidence.verdict}: it has no blocking classes.")
    # stored as fractions where an equality must hold to the last bit
    weights = evidence.weights.astype(float)
    order = np.argsort(-weights, kind="stable")[:count]
    return evidence.rivals[order], weights[order] / weights.sum()


def unargmaxable_table(scan: Scan, named: int = 3) -> pd.DataFrame:
    """One row per unargmaxable class, deepest first; blocking classes counted, the heaviest
    named."""
    verdicts = scan.table
    lost = verdicts[verdicts.verdict == "unargmaxable"].sort_values("margin")
    rows = []
    for index, token, margin in zip(lost["class"], lost.token, lost.margin, strict=True):
        rivals, shares = heaviest_blocking_classes(scan, index, named)
        names = [f"{scan.layer.token(int(r))} {s:.0%}" for r, s in zip(rivals, shares, strict=True)]
        heaviest = ", ".join(names)
        rows.append((index, token, margin, len(scan.evidence(index).rivals), heaviest))  # type: ignore[union-attr]
    return pd.DataFrame(
        rows, columns=["class", "token", "certified_margin", "blocking_classes", "heaviest"]
    )


@one_thread()
def with_strongest_proofs(scan: Scan, classes: Iterable[int] | None = None) -> Scan:
    """A scan over a box with the strongest proof of each unargmaxable class, or of those of
    ``classes``: the blocking classes of the programme with all rivals, at most d + 1. ValueError if
    the features are no box.
    """
    chosen = [f.index for f in scan.findings if isinstance(f.evidence, BlockingClasses)]
    if classes is not None:
        chosen = sorted({*chosen} & {int(t) for t in classes})
    problem = make_problem(scan.layer, _demand_box(scan))
    found: dict[int, BlockingClasses] = {}
    if chosen:
        rows, bias = problem.rows(np.array(chosen)), problem.b[chosen]
        everybody = problem.rows(np.arange(problem.classes), np.float64)
        programme = SharedProgramme(everybody, problem.b, *problem.box)
        # the basis of the class nearest to the median serves all of them (shared_basis.py)
        middle = int(((rows - np.median(rows, axis=0)) ** 2).sum(axis=1).argmin())
        itself = np.array(chosen)
        here = slice(middle, middle + 1)
        [(_, first)] = solve_batch(programme, rows[here], bias[here], itself[here])
        start = None if first is None else first.basic
        for n, vertex in solve_batch(programme, rows, bias, itself, start):
            t = chosen[n]
            lead = -np.inf if vertex is None else _lead(scan.layer, t, vertex.z).min()
            if vertex is not None and lead >= vertex.value - TOLERANCE:
                # its inverse was updated at every pivot: the weights of a fresh one prove more
                target = np.append(rows[n].astype(np.float64), 1.0)
                inverse = programme.invert(vertex.basic)[0]
                vertex = programme.vertex(vertex.basic, inverse, target, float(bias[n]))
                found[t] = BlockingClasses(vertex.positions, vertex.weights)
    proofs = proofs_of(problem, found)
    # where prices in single precision went astray, or weights are no proof
    proofs |= proofs_of(problem, {t: _best_margin(scan, t)[1] for t in chosen if t not in proofs})
    findings = [
        replace(f, evidence=proofs[f.index][0], margin=proofs[f.index][1], method="strongest")
        if f.index in proofs
        else f
        for f in scan.findings
    ]
    return replace(scan, findings=findings)


def smallest_shift(scan: Scan, index: int) -> float:
    """``-g_t`` of an unargmaxable class of a scan over a box: a larger raise of its bias lets it
    win, a smaller one does not. ValueError if the class is not unargmaxable in this scan, or its
    features are no box. RuntimeError if the working set does not close.
    """
    if not isinstance(evidence := scan.evidence(index), BlockingClasses):
        what = f"Class {index} is {evidence.verdict}"
        raise ValueError(f"{what}: only an unargmaxable class has a smallest shift.")
    _demand_box(scan)
    return -_best_margin(scan, index)[0]


def _demand_box(scan: Scan) -> Box:
    if not isinstance(scan.features, Box):
        raise ValueError("A best margin is over a box; this scan's features are another set.")
    return scan.features


def _lead(layer: SoftmaxLayer, index: int, x: Floats) -> Floats:
    """By how much the class leads each other (C,) at x; infinite for itself."""
    W, b = layer.W, layer.bias.astype(np.float64)
    lead = (W[index].astype(np.float64) - W) @ x + b[index] - b
    lead[index] = np.inf
    return lead


def _best_margin(scan: Scan, index: int) -> tuple[float, BlockingClasses]:
    """The best margin of an unargmaxable class over the box, and the blocking classes that prove
    it; solved in units of order one, which the solver's tolerances suppose.
    """
    units = in_units(scan.layer, _demand_box(scan))
    layer, box = units.layer, units.features
    W, b = layer.W.astype(np.float64), layer.bias.astype(np.float64)
    evidence = scan.evidence(index)
    assert isinstance(evidence, BlockingClasses)
    programme = MarginProgramme(*box.bounds(layer.dimension))
    fresh = evidence.rivals
    for _ in range(_ROUNDS):
        fresh = np.setdiff1d(fresh, programme.rivals)
        programme.add(fresh, W[index] - W[fresh], b[index] - b[fresh])
        x, margin, weights = programme.solve()
        lead = _lead(layer, index, x)
        if lead.min() >= margin - TOLERANCE:
            used, best = weights > 0, float(np.ldexp(margin, units.margins))
            return best, BlockingClasses(programme.rivals[used], weights[used])
        fresh = np.argsort(lead)[:_FRESH]
    raise RuntimeError(f"class {index}: the working set did not close in {_ROUNDS} rounds.")


@dataclass(frozen=True, eq=False)
class RankBounds:
    """Bounds on the best rank of a class (1 = wins); ``point`` shows ``at_most``."""

    at_least: int
    at_most: int
    point: NDArray[np.floating] | None


def bound_rank(
    layer: SoftmaxLayer,
    t: int,
    features: FeatureSet = Box(100.0),  # noqa: B008 - frozen
) -> RankBounds:
    """Bound the best rank of class t over the feature set; a logit that is not certainly smaller
    counts as ahead. Undecided classes end with the trivial bound C.
    """
    kept, ahead = np.arange(layer.classes), 0
    while True:
        rest = SoftmaxLayer(layer.W[kept], None if layer.b is None else layer.b[kept])
        here = int(np.searchsorted(kept, t))
        evidence = ask(rest, [Order([[here]], rest=True)], features=features)[0].evidence
        if isinstance(evidence, Witness):
            rank = 1 + Checker(layer, features).ahead(t, evidence.point)
            return RankBounds(ahead + 1, rank, evidence.point)
        if not isinstance(evidence, Comparisons):
            return RankBounds(ahead + 1, layer.classes, None)
        kept, ahead = np.delete(kept, evidence.below[evidence.weights > 0]), ahead + 1
