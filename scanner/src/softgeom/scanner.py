"""Scan a layer: which classes can never win, each verdict with evidence that anyone can re-check.

    found = scan(SoftmaxLayer(W, b))  # search first, then prove
    found.table                       # one row per class
    found.evidence(17)                # a witness, blocking classes, a twin, or a bound
    found.verify()                    # every verdict again, without a solver

Blocks of classes are independent. First each is searched (ascent.py) and certified (checker.py);
then the classes without a witness, in new blocks, go down a table of routes (routes.py), from what
one look at all of them has found. With ``checkpoint=folder`` a finished block is written at once
and a killed scan goes on where it was, with the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from softgeom.arrays import Floats, Ints
from softgeom.blocks import block_path, finished, load_block
from softgeom.certifying.checker import Checker
from softgeom.certifying.evidence_file import save_parts
from softgeom.certifying.kernel import certify_evidence
from softgeom.certifying.partial import ASKED, CLAIMED, PartialLook, certify_by, partial_look
from softgeom.certifying.slack import slack_bounds
from softgeom.certifying.verdict import BlockingClasses, Finding, Twin, Unknown, Witness
from softgeom.layer import Box, FeatureSet, SoftmaxLayer, fingerprint
from softgeom.parallel import Backend, one_cluster, run_blocks
from softgeom.problem import FEW, Problem, chosen_classes, make_problem
from softgeom.proving.refine import refine
from softgeom.rounding import demand_standard_model
from softgeom.routes import (
    ROUTES,
    Open,
    Start,
    decide_open,
    make_start,
    surviving,
    winners,
    without_findings,
)
from softgeom.scaling import in_units
from softgeom.scan_result import Scan
from softgeom.searching.ascent import ROUNDS, Candidates, climb, far_points
from softgeom.searching.twins import find_twins
from softgeom.threads import one_thread

# classes without a witness that share their sample of rivals and a block of the checkpoint: groups
# that pivot in step end late in small blocks, and few blocks leave workers without work
DECIDE_TOGETHER = 256
# share of climbers that a round must bring to the top: unargmaxable classes cannot win, and
# those that can are pursued once proofs have taken the others away
WORTH = 0.3
MISSED = Finding(-1, Unknown(np.inf, "not found by search"), "ascent", 0, np.inf, np.nan)


@np.errstate(all="ignore")  # whatever the caller lets floats raise
def scan(
    layer: SoftmaxLayer,
    classes: ArrayLike | None = None,
    *,
    features: FeatureSet = Box(100.0),  # noqa: B008 - frozen
    seed: int = 0,
    block: int = 1024,
    n_jobs: int = 1,
    backend: Backend | None = None,
    address: Any = None,
    checkpoint: str | Path | None = None,
    verdicts_only: bool = False,
    without: Collection[str] = (),
    progress: bool = False,
) -> Scan:
    """Decide for each class whether some feature vector of the set makes it the strict winner.

    Parameters
    ----------
    layer : SoftmaxLayer
        Weights (C, d), bias (C,) or none.
    classes : integers, optional
        The classes to decide; default all.
    features : Box, Ball, Unbounded or Ellipsoid
        Where the layer's inputs may lie.
    seed : int
        Seeds the samples of rivals that proofs are tried with: margins of unargmaxable classes
        depend on it, verdicts do not. The same call gives the same table.
    block : int
        Classes per block, the unit of memory, of parallel work and of checkpoints.
    n_jobs, backend, address
        See ``softgeom.parallel.run_blocks``.
    checkpoint : path, optional
        Folder for finished blocks; a second call with the same layer and options resumes there.
    verdicts_only : bool
        Let a part of each product show who wins, where a sample of classes says that it mostly
        does: such a scan takes half of the time or less. Its margins and radii are certified lower
        bounds too, but far smaller ones.
    without : names of routes
        Routes to leave out (``routes.ROUTES``), to measure what each is worth.
    progress : bool
        Print how far the scan is, when it takes longer than some seconds.

    Raises
    ------
    ValueError
        If a class index is out of range or stands there twice, the feature set does not fit the
        layer, or a route is unknown.
    """
    demand_standard_model()
    chosen = chosen_classes(layer, classes)
    features.check(layer.dimension)
    features.to_json()  # says at once when a set of one's own cannot be written
    names = [route.name for route in ROUTES]
    if unknown := sorted(set(without) - set(names)):
        there = ", ".join(map(repr, names))
        raise ValueError(f"There is no route {unknown[0]!r}; there are {there}.")
    # a worker may stand in another folder
    checkpoint = None if checkpoint is None else Path(checkpoint).absolute()
    units = in_units(layer, features)
    key = None if checkpoint is None else fingerprint(units.layer)
    twins = find_twins(units.layer, units.features)
    partly, left_out = verdicts_only and len(chosen) >= ASKED, tuple(sorted(without))
    task = _Task(units.layer, units.features, *twins, seed, checkpoint, key, partly, left_out)
    titles = ("searching for witnesses", "proving the rest") if progress else (None, None)
    with one_cluster(n_jobs, backend, address) as at:
        options: Any = {"shared": task, "n_jobs": n_jobs, "backend": backend, "address": at}

        def run(
            work: Callable[..., Any], classes: Ints, size: int, title: str | None, *more: Any
        ) -> Any:
            jobs = [(classes[i : i + size], *more) for i in range(0, len(classes), size)]
            parts = run_blocks(work, jobs, **options, description=title, unit="classes")
            return {f.index: f for part in parts for f in part}

        findings = run(search_block, chosen, block, titles[0])
        unknown_yet = [t for t in findings if isinstance(findings[t].evidence, Unknown)]
        open_ = np.array(unknown_yet, dtype=np.intp)
        if len(open_):
            with one_thread():
                start = make_start(task.problem, open_, seed)
            findings |= run(decide_block, open_, DECIDE_TOGETHER, titles[1], start)
    return Scan(layer, features, [units.finding_back(findings[t]) for t in chosen.tolist()])


@dataclass(frozen=True, eq=False)
class _Task:
    """What every block of one scan shares."""

    layer: SoftmaxLayer
    features: FeatureSet
    tied: dict[int, int]
    dominated: dict[int, int]
    seed: int
    checkpoint: str | Path | None
    key: str | None  # fingerprint of the layer, computed once
    verdicts_only: bool
    without: tuple[str, ...]

    @cached_property
    def problem(self) -> Problem:
        return make_problem(self.layer, self.features)

    @cached_property
    def checker(self) -> Checker:
        return Checker(self.layer, self.features)

    @cached_property
    def partial_look(self) -> PartialLook | None:
        """What shows winners from a part of each product, where asked for and of use."""
        if not self.verdicts_only or self.problem.homogeneous:
            return None
        count = min(self.layer.classes, ASKED)
        classes = np.linspace(0, self.layer.classes - 1, count).astype(np.intp)
        return partial_look(self.checker, list(far_points(self.problem, classes)), classes)


def search_block(task: _Task, classes: Ints) -> list[Finding]:
    """Twins and witnesses of one block of classes (n,); others are filed as unknown."""
    with np.errstate(all="ignore"):
        return _kept(task, "search", classes, lambda: _search(task, classes))


def decide_block(task: _Task, classes: Ints, start: Start) -> list[Finding]:
    """Decide classes (n,) for which the search found no witness, from what the open ones share."""
    with one_thread(), np.errstate(all="ignore"):
        return _kept(task, "decide", classes, lambda: _decide(task, classes, start))


def _kept(
    task: _Task, stage: str, classes: Ints, work: Callable[[], list[Finding]]
) -> list[Finding]:
    """A block's findings: from the checkpoint folder, else computed and written there."""
    folder, key, known = task.checkpoint, task.key, (task.layer, task.features)
    if folder is None or key is None:
        return work()
    options = f"{stage} {task.seed}" + " verdicts only" * task.verdicts_only
    options += "".join(f" without {name}" for name in task.without)
    return finished(
        block_path(folder, key, options, task.features, classes),
        lambda path: load_block(path, *known, classes, key),
        work,
        lambda path, found: save_parts(path, task.layer, [(task.features, found)], key),
    )


def _search(task: _Task, classes: Ints) -> list[Finding]:
    findings: dict[int, Finding] = {}
    for t in classes.tolist():
        if t in task.tied:
            findings[t] = Finding(t, Twin(task.tied[t]), "twin", 0, 0.0, np.nan)
        elif t in task.dominated:
            blocking = BlockingClasses(np.array([task.dominated[t]]), np.ones(1))
            bound = certify_evidence(task.layer, task.features, t, blocking)
            findings[t] = Finding(t, blocking, "twin", 0, bound, np.nan)
    for search in (_won_by_part, _won_by_search):
        left = without_findings(classes, findings)
        if len(left):
            with surviving("the search", left.tolist()):
                findings |= search(task, left)
    return [findings.get(t, replace(MISSED, index=t)) for t in classes.tolist()]


def _won_by_search(task: _Task, classes: Ints) -> dict[int, Finding]:
    """What the search shows for each class: a witness, or that it found none."""
    rounds = 1 if task.layer.classes <= FEW else ROUNDS
    found = climb(task.problem, classes, rounds=rounds, worth=WORTH)
    margins = _certified(task, classes, found)
    radii = task.checker.radius(classes, margins)
    findings = {t: replace(MISSED, index=t) for t in classes.tolist()}
    for n in np.flatnonzero(margins > 0).tolist():
        t, steps, margin = int(classes[n]), int(found.steps[n]), float(margins[n])
        point = Witness(task.problem.lift(found.Z[n], float(found.margin[n])))
        method = "ascent" if steps else "look"
        findings[t] = Finding(t, point, method, steps, margin, float(radii[n]))
    return findings


def _won_by_part(task: _Task, classes: Ints) -> dict[int, Finding]:
    """Witnesses at far points, by a partial look where the task has one."""
    if task.partial_look is None:
        return {}
    points = far_points(task.problem, classes)
    margins = CLAIMED * certify_by(task.checker, task.partial_look, points, classes)
    return winners(task.checker, dict(zip(classes.tolist(), points, strict=True)), margins, "look")


def _certified(task: _Task, classes: Ints, found: Candidates) -> Floats:
    """Certified margins (n,) of what a search found; -inf where nothing was.

    The search's own last look is a float32 product with a known rounding bound: what clears that
    bound is certified already. Only the rest is multiplied again.
    """
    error = None if task.problem.homogeneous else task.checker.look_error(found.Z)
    margins = np.full(len(classes), -np.inf) if error is None else found.margin - error
    again = np.flatnonzero((found.margin > 0) & ~(margins > 0))
    points = [task.problem.lift(found.Z[n], float(found.margin[n])) for n in again]
    margins[again] = task.checker.certify_many(points, classes[again].tolist())
    return np.where(found.margin > 0, margins, -np.inf)


def _decide(task: _Task, classes: Ints, start: Start) -> list[Finding]:
    open_ = Open(task.problem, task.checker, task.seed, classes, start)
    findings = decide_open(open_, task.without)
    return _refined(task, [findings[t] for t in classes.tolist()])


def _refined(task: _Task, findings: list[Finding]) -> list[Finding]:
    """The findings with weights that anyone can check, where those hold up to a residual."""
    proven = [n for n, found in enumerate(findings) if isinstance(found.evidence, BlockingClasses)]
    classes = [findings[n].index for n in proven]
    blocking = [cast(BlockingClasses, findings[n].evidence) for n in proven]
    bounds = slack_bounds(task.layer, task.features, classes, blocking)
    for n, few, bound in zip(proven, blocking, bounds.tolist(), strict=True):
        found = findings[n]
        if not bound <= 0:
            with surviving("refining weights", [found.index]):  # those that are there prove it too
                finer, finer_bound = refine(task.layer, task.features, found.index, few)
                findings[n] = replace(found, evidence=finer, margin=finer_bound)
    return findings


__all__ = ["decide_block", "scan", "search_block"]
