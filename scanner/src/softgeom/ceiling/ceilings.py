"""How probable can an output ever become? Ceilings of classes, floors of any target, with proof.

    found = softgeom.ceiling(layer)     # |x| <= 100
    found.table                                    # class, token, ceiling, reached
    found.counts(0.5)                              # outputs that can, and that may, reach one half
    found.verify()                                 # every bound again, without a solver

``ceiling[t] = sup over x of softmax(W x + b)_t``. Each class has a point; what it attains is a
lower bound of the ceiling, and the softmax there proves an upper one (bound.py). For a target
distribution p the floor is ``inf over x of KL(p || softmax(W x + b))``: what a model with this
layer loses at least on contexts whose true next-token distribution is p (the softmax bottleneck of
Yang et al. 2018 as a number per target).

Classes share points: rows that training never moved have one best point in common. So the points
found so far are tried on all open classes, one product for all, before anything is searched.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from softgeom.arrays import Array, Floats, Ints, Singles
from softgeom.blocks import block_path, finished
from softgeom.ceiling.bound import Certifier, Target
from softgeom.ceiling.descent import Descents, Program, make_program
from softgeom.ceiling.polish import best_in_box, polish
from softgeom.certifying import container
from softgeom.certifying.evidence_file import Odds, load_odds, save_odds
from softgeom.head_facts import HeadFacts, with_facts
from softgeom.layer import Box, FeatureSet, SoftmaxLayer, Unbounded, fingerprint
from softgeom.parallel import Backend, run_blocks
from softgeom.problem import chosen_classes, make_problem
from softgeom.readout import PLAIN, Readout
from softgeom.searching.ascent import far_points
from softgeom.threads import one_thread

GAP = 0.03  # nats between what is attained and what is proven: a ceiling to three per cent
SEEDS = 64  # classes solved first: all blocks start from their points
TOGETHER = 128  # classes that descend at once
FLOORS = ["alternatives", "entropy", "floor", "attained", "of_radius"]
BLOCK = 2048  # classes of a block, the unit of parallel work and of checkpoints
# relative: what another processor's rounding may change in a bound
MACHINES = 1e-9

Target_ = dict[int, float] | Sequence[int]


@dataclass(frozen=True, eq=False)
class Ceilings:
    """Certified ceilings of some or all classes of a layer over a feature set.

    ``ceiling`` (n,) are upper bounds on the probability of ``classes`` (n,) at any x of the set,
    ``reached`` (n,) lower bounds on what they have at their points, ``points[at]``; ``readout`` is
    what stands between the layer and these probabilities.
    """

    layer: SoftmaxLayer
    features: FeatureSet
    classes: Ints
    points: Array
    at: Ints
    ceiling: Floats
    reached: Floats
    readout: Readout = PLAIN
    head: HeadFacts | None = None  # about the layer, where it was read from a model

    def __len__(self) -> int:
        return len(self.classes)

    def __repr__(self) -> str:
        low = int((self.ceiling < 0.5).sum())
        asked = f"{len(self):,} of {self.layer.classes:,} classes, {self.features.describe()}"
        return f"Ceilings({asked}: {low:,} below one half)"

    def __str__(self) -> str:
        return with_facts(repr(self), self.head)

    @property
    def table(self) -> pd.DataFrame:
        """One row per class: class, token, ceiling (rounded up), reached (rounded down)."""
        tokens = [self.layer.token(int(t)) for t in self.classes]
        columns = {"class": self.classes, "token": pd.Series(tokens, dtype=object)}
        return pd.DataFrame({**columns, "ceiling": self.ceiling, "reached": self.reached})

    def counts(self, at: float) -> dict[str, int]:
        """How many classes certainly reach a probability, certainly never do, or are in doubt."""
        if not 0 < at <= 1:
            raise ValueError(f"A probability to reach lies above 0 and is at most 1, not {at}.")
        reach, never = int((self.reached >= at).sum()), int((self.ceiling < at).sum())
        return {"reach": reach, "never": never, "in doubt": len(self) - reach - never}

    def in_doubt(self, at: float) -> Ints:
        """The classes that what is reached and what is proven leave open at a probability."""
        return self.classes[(self.reached < at) & (at <= self.ceiling)]

    @one_thread()
    def sharpened(self, classes: ArrayLike) -> Ceilings:
        """The same with the best points of some of its classes, over a box: there ``ceiling`` and
        ``reached`` agree to rounding, on every machine. ValueError if the features are no box.
        """
        if not isinstance(self.features, Box):
            raise ValueError("Ceilings are sharpened over a box; these features are another set.")
        if self.readout.soft_cap is not None or self.readout.probability != "softmax":
            raise ValueError("Ceilings are sharpened of a softmax without a soft cap alone.")
        low, high = self.features.bounds(self.layer.dimension)
        layer = _scaled(self.layer, self.readout.scale)
        which = np.flatnonzero(np.isin(self.classes, classes))
        pairs = zip(self.classes[which].tolist(), self.at[which].tolist(), strict=True)
        best = [best_in_box(layer, t, self.points[n], low, high) for t, n in pairs]
        if not best:
            return self
        points, own = np.array(best), np.arange(len(best))
        certifier = Certifier(self.layer, self.features, self.readout)
        proven = _bounds(certifier, points, self.classes[which], own)
        at, ceiling, reached = self.at.copy(), self.ceiling.copy(), self.reached.copy()
        at[which] = len(self.points) + own
        ceiling[which], reached[which] = proven
        points = np.concatenate([self.points, points])
        return replace(self, points=points, at=at, ceiling=ceiling, reached=reached)

    @np.errstate(all="ignore")
    def verify(self) -> bool:
        """Recompute every bound from layer and points alone; ValueError at the first class that
        claims more than its point proves.
        """
        certifier = Certifier(self.layer, self.features, self.readout)
        ceiling, reached = certifier.ceilings(self.points, self.classes, self.at)
        bounds = {"ceiling": (ceiling, self.ceiling), "probability": (-reached, -self.reached)}
        for name, (ours, claimed) in bounds.items():
            if (wrong := np.flatnonzero(~(ours <= claimed))).size:
                n, t = wrong[0], int(self.classes[wrong[0]])
                proof = f"{abs(claimed[n]).item()}, only {abs(ours[n]).item()}"
                which = f"Class {t} ({self.layer.token(t)})"
                raise ValueError(f"{which}: its point does not prove the {name} {proof}.")
        return True

    def save(self, path: str | Path) -> None:
        """Write points and bounds to one file (not the layer, but its fingerprint)."""
        odds = Odds(self.classes, self.points, self.at, self.ceiling, self.reached)
        save_odds(path, self.layer, self.features, odds, self.readout)

    @classmethod
    def load(cls, path: str | Path, layer: SoftmaxLayer) -> Ceilings:
        """Read what ``save`` wrote, and verify it; ValueError if damaged, or of another layer."""
        features, odds, readout = load_odds(path, layer)
        found = cls(
            layer, features, odds.classes, odds.points, odds.at, odds.ceiling, odds.reached, readout
        )
        found.verify()
        return found


@np.errstate(all="ignore")
def ceilings(
    layer: SoftmaxLayer,
    classes: ArrayLike | None = None,
    *,
    features: FeatureSet = Box(100.0),  # noqa: B008 - frozen
    readout: Readout = PLAIN,
    gap: float = GAP,
    seed: int = 0,
    n_jobs: int = 1,
    backend: Backend | None = None,
    address: Any = None,
    checkpoint: str | Path | None = None,
    progress: bool = False,
) -> Ceilings:
    """For each class the largest probability that any features of the set can give it.

    ``classes`` (default all) are those asked about, each once. ``readout`` is what the model does
    with the layer's scores; its caveats are the caller's to say. ``gap`` is the aim, in nats, for
    the distance of what is proven from what is attained; a class that attains more than
    ``exp(-gap)`` is done, for no ceiling exceeds 1. ``seed`` chooses the classes that are solved
    first, and with them points and bounds within the gap. A second call with the same
    ``checkpoint`` folder goes on from the points of finished blocks; bounds are always computed
    anew. ``n_jobs``, ``backend``, ``address``: see ``softgeom.parallel.run_blocks``.

    ValueError if a class is out of range or given twice, ``gap`` is not positive, the feature set
    does not fit the layer, or the probabilities are neither a softmax nor sigmoids.
    """
    chosen = np.sort(chosen_classes(layer, classes))
    if not len(chosen):
        raise ValueError("classes names none: give at least one.")
    if not gap > 0 or not math.isfinite(gap):
        raise ValueError(f"gap is a positive number of nats, not {gap}.")
    Certifier(layer, features, readout)  # refuses what it cannot bound before anything is searched
    folder = None if checkpoint is None else Path(checkpoint).absolute()
    key = "" if folder is None else fingerprint(layer)
    none = np.zeros((0, layer.dimension), np.float32)
    task = _Task(layer, features, readout, gap, folder, key, none)
    rng = np.random.default_rng(seed)
    first = np.sort(rng.choice(chosen, min(SEEDS, len(chosen)), replace=False))
    seeds = ceiling_block(task, first)
    task = replace(task, seeds=seeds[0].astype(np.float32))
    blocks = [(chosen[n : n + BLOCK],) for n in range(0, len(chosen), BLOCK)]
    how: Any = {"n_jobs": n_jobs, "backend": backend, "address": address, "shared": task}
    title = "bounding probabilities" if progress else None
    parts = run_blocks(ceiling_block, blocks, **how, description=title, unit="classes")
    offsets = np.cumsum([0, *(len(part[0]) for part in parts)])
    points = np.concatenate([part[0] for part in parts])
    at = np.concatenate([part[1] + o for part, o in zip(parts, offsets[:-1], strict=True)])
    ceiling, reached = (np.concatenate([part[n] for part in parts]) for n in (2, 3))
    return Ceilings(layer, features, chosen, points, at, ceiling, reached, readout)


@np.errstate(all="ignore")
def floor(
    layer: SoftmaxLayer,
    targets: Iterable[Target_],
    *,
    features: FeatureSet = Box(100.0),  # noqa: B008 - frozen
    readout: Readout = PLAIN,
    gap: float = 0.005,
    steps: int = 400,
) -> pd.DataFrame:
    """For each target distribution the KL divergence that no features of the set undercut.

    Targets are dicts class -> probability that sum to one, or sequences of classes, all equally
    likely; ``gap`` is the aim, in nats, for the distance of what is proven from what is attained,
    ``steps`` the most of a descent in a ball or norm.

    Returns
    -------
    DataFrame
        alternatives (classes of the target), entropy, floor (proven, at least 0), attained; nats.
        of_radius: where it is attained, as a share of the radius of a ball or a norm's ellipsoid
        (NaN without one): a normalisation puts its features at 1, where the floor holds too.

    ValueError unless the probabilities are a softmax of scaled scores, without a cap (``readout``);
    if a target is empty, names a class twice or one that does not exist, or has
    probabilities that are not positive or do not sum to one.
    """
    if readout.soft_cap is not None or readout.probability != "softmax":
        raise ValueError("floors are known for a softmax without a soft cap alone.")
    asked = [_target(layer, n, target) for n, target in enumerate(targets)]
    if not asked:
        return pd.DataFrame(columns=FLOORS)
    program = make_program(_scaled(layer, readout.scale), features)
    shares = [t.weights / t.weights.sum() for t in asked]
    means = np.stack([s @ program.W[t.classes] for s, t in zip(shares, asked, strict=True)])
    shifts = np.array([float(s @ program.b[t.classes]) for s, t in zip(shares, asked, strict=True)])
    entropies = np.array([t.entropy[0] for t in asked])
    start = np.zeros((len(asked), layer.dimension), np.float32)
    # a KL divergence within the gap of zero is done, whatever its bound
    descents = Descents(program, gap, steps)
    descents.admit(np.arange(len(asked)), means, shifts, start, entropies + gap)
    points = np.zeros(start.shape)
    while len(descents):
        ended = descents.step()
        points[ended["name"]] = ended["z"]
    certifier = Certifier(layer, features, readout)
    proven, attained = certifier.floors(points, asked, np.arange(len(asked)))
    radius = program.region.radius
    share = np.linalg.norm(points, axis=1) / radius if np.isfinite(radius) else np.nan
    alternatives = [len(t.classes) for t in asked]
    found_of = (alternatives, entropies, proven, attained, share)
    return pd.DataFrame(dict(zip(FLOORS, found_of, strict=True)))


@dataclass(frozen=True, eq=False)
class _Task:
    layer: SoftmaxLayer
    features: FeatureSet
    readout: Readout
    gap: float
    checkpoint: Path | None
    key: str  # fingerprint of the layer, where there is a checkpoint
    seeds: Singles


Part = tuple[Array, Ints, Floats, Floats]


@np.errstate(all="ignore")
def ceiling_block(task: _Task, classes: Ints) -> Part:
    """Points (m, d) of a block, which is whose (n,), ceilings (n,), reached (n,)."""
    work = partial(_search, task, classes)
    if task.checkpoint is None:
        points, at = work()
    else:
        seeds = hashlib.sha256(task.seeds.tobytes()).hexdigest()
        options = f"ceilings {task.gap} {seeds}"
        options += "" if task.readout == PLAIN else f" {task.readout}"
        path = block_path(task.checkpoint, task.key, options, task.features, classes)
        sizes: Any = {"n": len(classes), "d": task.layer.dimension}
        points, at = finished(path, partial(_read_block, **sizes), work, _write_block)
    # beyond the range of float32 a search ends nowhere: the origin proves a ceiling, too
    points = np.where(np.isfinite(points).all(axis=1, keepdims=True), points, 0)
    certifier = Certifier(task.layer, task.features, task.readout)
    return points, at, *_bounds(certifier, points, classes, at)


def _bounds(certifier: Certifier, points: Array, classes: Ints, at: Ints) -> tuple[Floats, Floats]:
    """What points prove for classes (n,), to be written: it holds on any machine, whose rounding
    may differ by a few units.
    """
    ceiling, reached = certifier.ceilings(points, classes, at)
    return np.minimum(1.0, ceiling * (1 + MACHINES)), reached * (1 - MACHINES)


def _search(task: _Task, classes: Ints) -> tuple[Array, Ints]:
    if task.readout.probability == "sigmoid":
        return _highest_points(task.layer, task.features, classes), np.arange(len(classes))
    layer = _scaled(task.layer, task.readout.scale)
    program = make_program(layer, task.features)
    pool = _Pool(program, classes, task.gap)
    if not isinstance(task.features, Unbounded):
        # most winners are as good as certain far out in their own direction
        pool.try_own(far_points(make_problem(layer, task.features), classes))
    pool.try_all(np.concatenate([np.zeros((1, task.layer.dimension), np.float32), task.seeds]))
    descents = Descents(program, task.gap / 2)
    while len(batch := pool.next(TOGETHER - len(descents))) or len(descents):
        W, b = program.W[classes[batch]], program.b[classes[batch]].astype(np.float64)
        descents.admit(batch, W, b, pool.Z[pool.best[batch]], task.gap / 2)
        ended = descents.step()
        pool.close(ended)
        # some of the others are served by what these found
        descents.drop(pool.done[descents.state["name"]])
    points, at = pool.points()
    if isinstance(task.features, Unbounded):
        return polish(layer, classes, points, at)
    return points, at


def _scaled(layer: SoftmaxLayer, scale: float) -> SoftmaxLayer:
    """The layer with its scores multiplied and rounded, for the search alone."""
    if scale == 1:
        return layer
    kind = np.promote_types(layer.W.dtype, np.float32)
    W = layer.W.astype(kind) * kind.type(scale)
    return SoftmaxLayer(W, None if layer.b is None else layer.bias * scale)


def _highest_points(layer: SoftmaxLayer, features: FeatureSet, classes: Ints) -> Floats:
    """For each class a point (n, d) at which its score is as good as highest."""
    W = np.asarray(features.effective_rows(layer.W[classes], np.float64), float)
    region = features.region(layer.dimension, has_bias=False)
    if region.low is not None and region.high is not None:
        return np.where(W > 0, region.high, region.low)
    if region.radius is None or not np.isfinite(region.radius):
        return np.zeros(W.shape)
    lengths = np.linalg.norm(W, axis=1, keepdims=True)
    # just inside: a point on the sphere may round to one outside
    return W / np.where(lengths > 0, lengths, 1.0) * (region.radius * (1 - 2.0**-40))


class _Pool:
    """Points found so far, and for each class the one at which its loss is least."""

    def __init__(self, program: Program, classes: Ints, gap: float) -> None:
        self.program, self.classes, self.gap = program, classes, gap
        self.Z = np.zeros((0, program.W.shape[1]), np.float32)
        self.best = np.zeros(len(classes), np.intp)
        self.loss = np.full(len(classes), np.inf)
        self.done = np.zeros(len(classes), bool)
        self.given_out = 0

    def next(self, count: int) -> Ints:
        """Positions that no point serves, each given out once, at most so many."""
        left = np.flatnonzero(~self.done[self.given_out :])[:count] + self.given_out
        self.given_out = int(left[-1]) + 1 if len(left) else self.given_out
        return left

    def try_all(self, Z: Singles) -> None:
        """Try points (m, d) on all open classes."""
        level, means = self.program.losses(Z, np.zeros_like(Z), np.zeros(len(Z)))
        self._add(Z, level, means)

    def _add(self, Z: Singles, level: Floats, means: Singles) -> None:
        """Points with the log-sum-exp (m,) and the mean row (m, d) of their softmax."""
        first, self.Z = len(self.Z), np.concatenate([self.Z, Z])
        open_ = np.flatnonzero(~self.done)
        rows, b = self.program.W[self.classes[open_]], self.program.b[self.classes[open_]]
        losses = level - (rows @ Z.T + b[:, None])  # (n, m)
        which = losses.argmin(axis=1)
        least = losses[np.arange(len(open_)), which]
        better = least < self.loss[open_]
        n = open_[better]
        self.loss[n], self.best[n] = least[better], which[better] + first
        G = means[which[better]] - rows[better]
        gaps = self.program.judged.gap(Z[which[better]], G)
        self.done[n] = (gaps <= self.gap) | (least[better] <= self.gap / 2)

    def try_own(self, Z: Singles) -> None:
        """Try a point (n, d) for each class, on that class alone."""
        W, b = self.program.W[self.classes], self.program.b[self.classes].astype(np.float64)
        self.Z = self.program.region.project(Z.astype(np.float32))
        self.best = np.arange(len(Z))
        self.loss, _ = self.program.losses(self.Z, W, b)
        self.done = self.loss <= self.gap / 2

    def close(self, ended: Array) -> None:
        """Take the ends of descents: of the classes that they were for, and for others."""
        if not len(ended):
            return
        n, Z = ended["name"], ended["z"]
        self.done[n], self.loss[n] = True, ended["loss"]
        self.best[n] = len(self.Z) + np.arange(len(n))
        own = np.einsum("nd,nd->n", ended["mean"].astype(np.float64), Z) + ended["shift"]
        self._add(Z, ended["loss"] + own, ended["gradient"] + ended["mean"])

    def points(self) -> tuple[Singles, Ints]:
        """The points that some class uses, and which is whose."""
        used, at = np.unique(self.best, return_inverse=True)
        return self.Z[used], at.astype(np.intp)


def _target(layer: SoftmaxLayer, n: int, given: Target_) -> Target:
    where = f"target {n}"
    classes = list(given)
    weights = np.full(len(classes), 1.0 / max(1, len(classes)))
    if isinstance(given, dict):
        try:
            weights = np.array(list(given.values()), dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{where}: a probability is not a number.") from None
    if not classes:
        raise ValueError(f"{where} names no class.")
    index = np.array(classes)
    if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= layer.classes:
        raise ValueError(f"{where} names a class that the layer does not have.")
    if len(np.unique(index)) < len(index):
        raise ValueError(f"{where} names a class twice.")
    if not np.isfinite(weights).all() or (weights <= 0).any() or abs(weights.sum() - 1) > 1e-6:
        found = f"{weights.min():g} is the smallest, and they sum to {weights.sum():g}"
        raise ValueError(f"{where}: probabilities are positive and sum to one; {found}.")
    return Target(index.astype(np.intp), weights)


def _read_block(path: Path, n: int, d: int) -> tuple[Array, Ints]:
    """The points of a finished block; ValueError where they do not fit."""
    _, arrays = container.read(path)
    if set(arrays) != {"points", "at"}:
        raise ValueError("it has other arrays")
    points, at = np.array(arrays["points"]), np.array(arrays["at"])
    fits = points.ndim == 2 and points.shape[1] == d and at.shape == (n,)
    fits = fits and (points.dtype.kind, at.dtype.kind) == ("f", "i")
    if not fits or not np.isfinite(points).all() or not 0 <= at.min() <= at.max() < len(points):
        raise ValueError("its points do not fit")
    return points, at.astype(np.intp)


def _write_block(path: Path, found: tuple[Array, Ints]) -> None:
    container.write(path, {}, {"points": found[0], "at": found[1].astype(np.int64)})


__all__ = ["Ceilings", "ceiling_block", "ceilings", "floor"]
