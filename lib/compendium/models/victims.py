"""Which tokens are the victims: how rare, of which kind, and how hard the others are to find (001,
Sections 4.2 and 5.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from softgeom.bottleneck import Box, SoftmaxLayer, braid_reflect, scan

__all__ = [
    "Judged",
    "chance_rarer",
    "judge_layer",
    "kind_of",
    "rank_correlation",
    "rare_over_frequent",
]

KINDS = ("single character", "word stem", "other")
_STEM = 4  # letters from which a token at the start of a word counts as a stem


@dataclass(frozen=True, eq=False)
class Judged:
    """Verdicts on a trained layer beside the paper's search.

    Attributes
    ----------
    lost : (C,) array
        Tokens that can never win in the box: unargmaxable, or tied with another.
    steps : (C,) array
        Reflections of Braid Reflect; patience + 1 where it gave up or won outside the box.
    failures : int
        Argmaxable tokens among the latter: those that the paper's exact algorithm has to decide.
    """

    lost: NDArray[np.bool_]
    steps: NDArray[np.intp]
    failures: int
    counts: dict[str, int]

    @property
    def mean_steps(self) -> float | None:
        """Mean steps over the argmaxable tokens; None when there is none."""
        return float(self.steps[~self.lost].mean()) if not self.lost.all() else None


def judge_layer(layer: SoftmaxLayer, patience: int) -> Judged:
    """Scan a layer over the paper's box with checked evidence, and run Braid Reflect in double
    precision beside it.
    """
    found = scan(layer, features=Box(100.0))
    found.verify()
    lost = (found.table["verdict"] != "argmaxable").to_numpy()
    outcome = braid_reflect(layer, patience=patience, dtype=np.float64)
    steps = np.where(outcome.won & outcome.inside, outcome.steps, patience + 1)
    return Judged(lost, steps, int(((steps > patience) & ~lost).sum()), found.counts)


def kind_of(token: str) -> str:
    """One of `KINDS`: a single character; the beginning of a word (a space, then four letters or
    more); anything else.
    """
    core = token.strip()
    if len(core) <= 1:
        return KINDS[0]
    return KINDS[1] if token.startswith(" ") and core.isalpha() and len(core) >= _STEM else KINDS[2]


def chance_rarer(lost: NDArray[np.bool_], frequency: NDArray[Any]) -> float | None:
    """Chance that a random victim is rarer than a random survivor, ties counted half (the area
    under the ROC curve); None without both.
    """
    victims, survivors = frequency[lost], frequency[~lost]
    if not len(victims) or not len(survivors):
        return None
    return float(
        1 - stats.mannwhitneyu(victims, survivors).statistic / (len(victims) * len(survivors))
    )


def rank_correlation(steps: NDArray[Any], frequency: NDArray[Any]) -> float | None:
    """Spearman's correlation of steps with rarity: positive when rare tokens take more steps; None
    when all take the same.
    """
    if np.ptp(steps) == 0 or np.ptp(frequency) == 0:
        return None
    return float(stats.spearmanr(steps, -np.asarray(frequency)).statistic)


def rare_over_frequent(
    steps: NDArray[Any], frequency: NDArray[Any], share: float = 0.1
) -> float | None:
    """Mean steps of the rarest tokens over those of the most frequent ones; None when the latter
    take none.
    """
    order, count = np.argsort(frequency, kind="stable"), max(1, round(share * len(steps)))
    frequent = float(np.mean(steps[order[-count:]]))
    return float(np.mean(steps[order[:count]])) / frequent if frequent > 0 else None
