"""Ask a layer whether its logits can obey orders: search first, then prove, each with evidence.

answers = ask(layer, [Order([[17], [4]], rest=True)])      # can 17 be first, 4 second?
answers.table                                              # one row per order
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softgeom.bottleneck.asking.seek import Sought, seek
from softgeom.bottleneck.certifying.checker import Checker
from softgeom.bottleneck.certifying.evidence_file import VERDICTS, load_answers, save_answers
from softgeom.bottleneck.certifying.kernel import certify_answer, verify_answers
from softgeom.bottleneck.certifying.order import Order
from softgeom.bottleneck.certifying.verdict import Answer, Comparisons, Proof, Unknown, Witness
from softgeom.bottleneck.problem import QUIET, Problem, make_problem
from softgeom.bottleneck.proving.decide import decide
from softgeom.bottleneck.scaling import Scaled, in_units
from softgeom.bottleneck.verdict_table import count_verdicts
from softgeom.layer import Box, FeatureSet, SoftmaxLayer
from softgeom.parallel import run_blocks
from softgeom.threads import one_thread

logger = logging.getLogger("softgeom")

LOGITS = 2**23  # logits held at once by the search
MOST_TOGETHER = 256  # orders of one block


@dataclass(frozen=True, eq=False)
class Answers:
    """Verdicts on orders of one layer's logits over one feature set."""

    layer: SoftmaxLayer
    features: FeatureSet
    answers: list[Answer]

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
        """Write orders and evidence to one ``.npz`` (docs/certificates.md), without the layer."""
        save_answers(path, self.layer, self.features, self.answers)

    @classmethod
    def load(cls, path: str | Path, layer: SoftmaxLayer) -> Answers:
        """Read what ``save`` wrote, to ``verify``; ValueError if damaged or of another layer."""
        return cls(layer, *load_answers(path, layer))


def ask(
    layer: SoftmaxLayer,
    orders: Iterable[Order],
    *,
    features: FeatureSet = Box(100.0),  # noqa: B008 - frozen
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
        with one_thread(), np.errstate(**QUIET):
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
