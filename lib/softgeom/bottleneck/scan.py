"""Scan a layer: which classes can never win, each verdict with evidence that anyone can re-check.

    scan = softgeom.bottleneck.scan(SoftmaxLayer(W, b))     # paper 001, Figure 4: search first, then prove
    scan.table                                             # one row per class
    scan.evidence(17)                                      # a witness, captors, a twin, or a bound
    scan.verify()                                          # every verdict again, without a solver

Blocks of classes are independent: each is searched (ascent.py), certified (witness.py) and, where no witness was
found, decided by a programme (decide.py). With ``checkpoint=folder`` a finished block is written at once and a killed
scan goes on where it was, with the same table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from softgeom.bottleneck import archive
from softgeom.bottleneck.ascent import climb
from softgeom.bottleneck.decide import decide
from softgeom.bottleneck.problem import Problem, make_problem
from softgeom.bottleneck.twins import find_twins
from softgeom.bottleneck.verdict import Captors, Evidence, EvidenceError, Finding, Twin, Witness, check_evidence
from softgeom.bottleneck.witness import WitnessChecker
from softgeom.layer import Box, FeatureSet, SoftmaxLayer
from softgeom.parallel import Backend, run_blocks

COLUMNS = ["class", "token", "verdict", "method", "steps", "margin", "radius"]


@dataclass(frozen=True, eq=False)
class Scan:
    """The verdicts on some or all classes of a layer over a feature set."""

    layer: SoftmaxLayer
    features: FeatureSet
    findings: list[Finding]
    _position: dict[int, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_position", {f.index: n for n, f in enumerate(self.findings)})

    @property
    def table(self) -> pd.DataFrame:
        """One row per class: class, token, verdict, method, steps, margin, radius.

        margin : certified lower bound on the witness's margin; certified upper bound (<= 0) on the best margin of an
            unargmaxable class; 0 for a tied one.
        radius : certified lower bound on ``min_i margin_i / ||w_t - w_i||`` at the witness; NaN without one.
        """
        rows = [
            (f.index, self.layer.token(f.index), f.evidence.verdict, f.method, f.steps, f.margin, f.radius)
            for f in self.findings
        ]
        return pd.DataFrame(rows, columns=COLUMNS)

    @property
    def counts(self) -> dict[str, int]:
        """Number of classes of each verdict."""
        verdicts = [f.evidence.verdict for f in self.findings]
        return {name: verdicts.count(name) for name in ("argmaxable", "tied", "unargmaxable", "undecided")}

    def evidence(self, index: int) -> Evidence:
        """The evidence for a class.

        Raises
        ------
        ValueError
            If the class was not scanned.
        """
        if int(index) not in self._position:
            raise ValueError(f"Class {index} is not among the {len(self.findings)} scanned classes.")
        return self.findings[self._position[int(index)]].evidence

    def verify(self) -> bool:
        """Re-check every verdict from the layer and the evidence alone, without a solver.

        Raises
        ------
        EvidenceError
            At the first class whose evidence does not prove its verdict; the message names it.
        """
        checker = WitnessChecker(self.layer, self.features)
        witnesses = [f for f in self.findings if isinstance(f.evidence, Witness)]
        for start in range(0, len(witnesses), 1024):
            block = witnesses[start : start + 1024]
            margins = checker.certify_many([f.evidence.point for f in block], [f.index for f in block])  # type: ignore[union-attr]
            for f, margin in zip(block, margins, strict=True):
                if not margin > 0:
                    check_evidence(self.layer, self.features, f.index, f.evidence)
        for f in self.findings:
            if not isinstance(f.evidence, Witness):
                check_evidence(self.layer, self.features, f.index, f.evidence)
        return True

    def save(self, path: str | Path) -> None:
        """Write verdicts and evidence to one ``.npz`` (the layer itself is not stored, its fingerprint is)."""
        archive.save_findings(path, self.layer, self.features, self.findings)

    @classmethod
    def load(cls, path: str | Path, layer: SoftmaxLayer) -> Scan:
        """Read what ``save`` wrote; call ``verify`` to trust it.

        Raises
        ------
        ValueError
            If the file is no saved scan, is damaged, or belongs to another layer.
        """
        features, findings = archive.load_findings(path, layer)
        return cls(layer, features, findings)


def scan(
    layer: SoftmaxLayer,
    classes: ArrayLike | None = None,
    *,
    features: FeatureSet = Box(100.0),  # noqa: B008 - frozen
    seed: int = 0,
    block: int = 1024,
    n_jobs: int = 1,
    backend: Backend | None = None,
    address: str | None = None,
    checkpoint: str | Path | None = None,
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
        Seeds every random choice (none is needed at present: the same call gives the same table).
    block : int
        Classes per block, the unit of memory, of parallel work and of checkpoints.
    n_jobs, backend, address
        See ``softgeom.parallel.run_blocks``.
    checkpoint : path, optional
        Folder for finished blocks; a second call with the same layer and options resumes there.

    Raises
    ------
    ValueError
        If a class index is out of range or the feature set does not fit the layer.
    """
    chosen = _chosen_classes(layer, classes)
    make_problem(layer, features)
    tied, dominated = find_twins(layer)
    blocks = [chosen[i : i + block] for i in range(0, len(chosen), block)]
    jobs = [(layer, features, part, tied, dominated, checkpoint) for part in blocks]
    results = run_blocks(scan_block, jobs, n_jobs=n_jobs, backend=backend, address=address)
    return Scan(layer, features, [finding for part in results for finding in part])


def scan_block(
    layer: SoftmaxLayer,
    features: FeatureSet,
    classes: NDArray[np.intp],
    tied: dict[int, int],
    dominated: dict[int, int],
    checkpoint: str | Path | None = None,
) -> list[Finding]:
    """Decide one block of classes (n,); with a checkpoint folder, read the block there or write it."""
    path = None if checkpoint is None else archive.block_path(checkpoint, layer, features, classes)
    if path is not None and path.is_file():
        return archive.load_findings(path, layer)[1]
    findings: dict[int, Finding] = {}
    for t in classes.tolist():
        if t in tied:
            findings[t] = Finding(t, Twin(tied[t]), "twin", 0, 0.0, np.nan)
        elif t in dominated:
            evidence = Captors(np.array([dominated[t]]), np.ones(1))
            findings[t] = Finding(t, evidence, "twin", 0, check_evidence(layer, features, t, evidence), np.nan)
    left = np.array([t for t in classes.tolist() if t not in findings], dtype=np.intp)
    for finding in _search_and_decide(make_problem(layer, features), left):
        findings[finding.index] = finding
    ordered = [findings[t] for t in classes.tolist()]
    if path is not None:
        archive.save_findings(path, layer, features, ordered)
    return ordered


def _search_and_decide(problem: Problem, classes: NDArray[np.intp]) -> list[Finding]:
    if not len(classes):
        return []
    checker = WitnessChecker(problem.layer, problem.features)
    found = climb(problem, classes)
    points = [problem.lift(z, max(m, 0.0)) for z, m in zip(found.Z, found.margin, strict=True)]
    margins = np.where(found.margin > 0, 0.0, -np.inf)
    promising = np.flatnonzero(found.margin > 0)
    margins[promising] = checker.certify_many([points[n] for n in promising], classes[promising].tolist())
    findings = []
    for n, t in enumerate(classes.tolist()):
        if margins[n] > 0:
            evidence: Evidence = Witness(points[n])
            method, steps, margin = "ascent" if found.steps[n] else "look", int(found.steps[n]), float(margins[n])
        else:
            evidence, margin, steps = decide(problem, checker, t, found.Z[n], found.rivals[n])
            method = "programme"
        radius = checker.radius(t, margin) if isinstance(evidence, Witness) else np.nan
        findings.append(Finding(t, evidence, method, steps, margin, radius))
    return findings


def _chosen_classes(layer: SoftmaxLayer, classes: ArrayLike | None) -> NDArray[np.intp]:
    if classes is None:
        return np.arange(layer.classes)
    chosen = np.atleast_1d(np.asarray(classes))
    if chosen.dtype == bool:
        chosen = np.flatnonzero(chosen)
    if chosen.ndim != 1 or not (np.issubdtype(chosen.dtype, np.integer) or not len(chosen)):
        raise ValueError("classes must be a list of class numbers.")
    if len(chosen) and (chosen.min() < 0 or chosen.max() >= layer.classes):
        raise ValueError(f"classes must lie between 0 and {layer.classes - 1}, not {chosen.min()} to {chosen.max()}.")
    if len(np.unique(chosen)) != len(chosen):
        raise ValueError("classes must not repeat: each is decided once.")
    return chosen.astype(np.intp)


__all__ = ["COLUMNS", "EvidenceError", "Finding", "Scan", "scan", "scan_block"]
