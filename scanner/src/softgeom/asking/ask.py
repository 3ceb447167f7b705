"""Ask a layer whether its logits can obey orders: search first, then prove, each with evidence.

answers = ask(layer, [Order([[17], [4]], rest=True)])      # can 17 be first, 4 second?
answers.table                                              # one row per order
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softgeom.arrays import Floats, Ints, Singles
from softgeom.certifying.checker import Checker
from softgeom.certifying.evidence_file import VERDICTS, load_answers, save_answers
from softgeom.certifying.kernel import certify_answer, verify_answers
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import Answer, Comparisons, Proof, Unknown, Witness
from softgeom.head_facts import HeadFacts, with_facts
from softgeom.layer import Box, FeatureSet, SoftmaxLayer
from softgeom.names import Names
from softgeom.parallel import run_blocks
from softgeom.problem import FEW, Problem, make_problem
from softgeom.proving.decide import decide
from softgeom.proving.exact import closest_pairs, split
from softgeom.scaling import Scaled, in_units
from softgeom.searching.ascent import of_like_size
from softgeom.searching.look import polyak_ascent
from softgeom.threads import one_thread
from softgeom.verdict_table import count_verdicts

logger = logging.getLogger("softgeom")

BOX = Box(100.0)
LOGITS = 2**23  # logits held at once by the search
MOST_TOGETHER = 256  # orders of one block
GROUP_BYTES = 2**24  # rows of comparisons that climb together
ROUNDS, STEPS, GROWTH = 6, 40, 24


@dataclass(frozen=True, eq=False)
class Answers:
    """Verdicts on orders of one layer's logits over one feature set."""

    layer: SoftmaxLayer
    features: FeatureSet
    answers: list[Answer]
    head: HeadFacts | None = None  # about the layer, where it was read from a model

    def __len__(self) -> int:
        """Number of orders."""
        return len(self.answers)

    def __getitem__(self, n: int) -> Answer:
        """The n-th answer, in the order of the questions."""
        return self.answers[n]

    def __repr__(self) -> str:
        counted = [f"{count:,} {verdict}" for verdict, count in self.counts.items() if count]
        what = ", ".join(counted) or "nothing asked"
        return f"Answers({len(self):,} orders, {self.features.describe()}: {what})"

    def __str__(self) -> str:
        return with_facts(repr(self), self.head)

    def _repr_html_(self) -> str:
        from softgeom.card import piece

        known = self.head.lines() if self.head else ()
        return piece("Which orders are possible?", [repr(self), *known], self.table)

    @property
    def counts(self) -> dict[str, int]:
        """Number of orders of each verdict."""
        return count_verdicts(self.answers, VERDICTS)

    @property
    def table(self) -> pd.DataFrame:
        """One row per order: order (by token, of long blocks four), classes (every one, by number),
        verdict, method, steps, margin, comparisons.
        """
        columns = ["order", "classes", "verdict", "method", "steps", "margin", "comparisons"]
        rows = [
            (
                a.order.describe(self.layer),
                a.order.numbered(),
                a.verdict,
                a.method,
                a.steps,
                a.margin,
                len(a.evidence.weights) if isinstance(a.evidence, Comparisons) else 0,
            )
            for a in self.answers
        ]
        return pd.DataFrame(rows, columns=columns)

    def verify(self) -> bool:
        """Re-check every verdict and margin without a solver, or EvidenceError at the first."""
        verify_answers(self.layer, self.features, self.answers)
        return True

    def save(self, path: str | Path) -> None:
        """Write orders and evidence to one file (docs/certificates.md), without the layer."""
        save_answers(path, self.layer, self.features, self.answers)

    @classmethod
    def load(cls, path: str | Path, layer: SoftmaxLayer) -> Answers:
        """Read what ``save`` wrote, to ``verify``; ValueError if damaged or of another layer."""
        features, answers, *_ = load_answers(path, layer)
        return cls(layer, features, answers)


@np.errstate(all="ignore")  # whatever the caller lets floats raise
def ask(
    layer: SoftmaxLayer,
    orders: Iterable[Order],
    *,
    features: FeatureSet = BOX,
    n_jobs: int = 1,
    progress: bool = False,
) -> Answers:
    """Decide for each order whether some features of the set make the layer's logits obey it.
    ValueError if an order names a class that the layer does not have, or the feature set does not
    fit.
    """
    questions = list(orders)
    for order in questions:
        if not isinstance(order, Order):
            such = f"such as Order([[3], [1, 4]]), not {order!r:.60}"
            raise ValueError(f"Each question is an Order, {such}.")
        order.check(layer.classes)
    features.check(layer.dimension)
    task = _Task(layer, features)
    size = min(MOST_TOGETHER, max(1, LOGITS // layer.classes))
    blocks = [(questions[start : start + size],) for start in range(0, len(questions), size)]
    options: Any = {"n_jobs": n_jobs, "description": "asking" if progress else None}
    found = run_blocks(_ask_block, blocks, shared=task, unit="questions", **options)
    return Answers(layer, features, [answer for block in found for answer in block])


@dataclass(frozen=True, eq=False)
class _Task:
    """What every block of questions shares: the problem, also in units of order one."""

    layer: SoftmaxLayer
    features: FeatureSet

    @cached_property
    def units(self) -> Scaled:
        return in_units(self.layer, self.features)

    @cached_property
    def problem(self) -> Problem:
        return make_problem(self.units.layer, self.units.features)

    @cached_property
    def inner(self) -> Checker:
        return Checker(self.units.layer, self.units.features)

    @cached_property
    def outer(self) -> Checker:
        return Checker(self.layer, self.features)


def _ask_block(task: _Task, orders: list[Order]) -> list[Answer]:
    """A fault in one question leaves it undecided, with a reason, and loses no other; memory and
    interrupts are no question's fault.
    """
    try:
        with one_thread(), np.errstate(all="ignore"):
            found = zip(orders, seek(task.problem, orders), strict=True)
            return [_answer(task, order, sought) for order, sought in found]
    except MemoryError:
        raise
    except Exception as fault:
        if len(orders) > 1:
            return [answer for order in orders for answer in _ask_block(task, [order])]
        reason = f"deciding it failed ({type(fault).__name__}: {fault})"
        logger.warning("%s: %s", orders[0].describe(), reason)
        return [Answer(orders[0], Unknown(0.0, reason), "failed", 0, 0.0)]


def _answer(task: _Task, order: Order, found: Sought) -> Answer:
    point = task.problem.lift(found.z, max(found.margin, 0.0))
    if found.margin > 0 and task.inner.margin(order, point) > 0:
        evidence: Proof = Witness(point)
        method, steps = "search", found.steps
    else:
        evidence, _, steps = decide(task.problem, task.inner, order, found.z)
        method = "programme"
    evidence = task.units.evidence_back(evidence)
    if isinstance(evidence, Unknown):
        return Answer(order, evidence, method, steps, evidence.bound)
    return Answer(order, evidence, method, steps, certify_answer(task.outer, order, evidence))


def ask_rankings(
    layer: SoftmaxLayer,
    rankings: Iterable[Sequence[int | str]],
    *,
    features: FeatureSet = BOX,
    n_jobs: int = 1,
    progress: bool = False,
) -> Answers:
    """For each ranking, k classes by number or token, best first, whether it can be the top k of
    all classes, in this order (paper 001, Section 2.2); options are those of ``ask``. ValueError if
    a ranking is empty, or names a class twice or one that does not exist.

    It is a sharper question than the order of the k among themselves: of k <= d + 1 classes with
    affinely independent rows all k! orders are possible over unbounded features (for more, never
    all), while above all others already k = 2 can fail.
    """
    names = Names(layer)
    ranked = (names.find_all(ranking, "a ranking") for ranking in rankings)
    orders = [Order([[i] for i in classes], rest=True) for classes in ranked]
    return ask(layer, orders, features=features, n_jobs=n_jobs, progress=progress)


@dataclass(frozen=True, eq=False)
class Sought:
    """The best point that was found for one order."""

    z: Singles  # (D,)
    margin: float  # in float32
    steps: int


def seek(problem: Problem, orders: Sequence[Order]) -> list[Sought]:
    """Look for a point of the region at which each order's comparisons hold, in `ROUNDS` of
    `STEPS`, or one where comparisons are few; `GROWTH` of them join at a look.

    One look computes all logits of a block of orders; each then climbs by Polyak steps
    (searching/ascent.py) on the smallest of its own few comparisons, which grow by those that the
    next look finds broken. The first point leans from the lower blocks' mean row to the upper
    ones'. Everything is float32: what is found proves nothing until it is checked.
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
        result[group], _ = polyak_ascent(A, c, Z[group], problem.project, STEPS)
    return result
