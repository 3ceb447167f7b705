"""What each missing feature costs: the least cross-entropy of a table of distributions at every
rank (001, Section 2.1).

Ganea et al. (2019, Theorem 2): it falls as the rank grows. Both ends are known in closed form: a
layer of no features but a bias costs the mutual information of context and class, and from
`sufficient_dimension` on nothing is lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from softgeom.bottleneck.counting.lowrank import descend_by_bounds, fit_low_rank

__all__ = ["costs_by_rank", "mutual_information"]

_ROUNDS = 200  # of the second optimiser, which takes over where the first stops


def costs_by_rank(P: Any, rng: np.random.Generator, *, starts: int = 8) -> pd.DataFrame:
    """Fit a table P (N, C) with d = 0 ... C features, without and with a bias.

    Returns
    -------
    DataFrame
        Columns bias, dimension, cross_entropy, divergence (the excess over the entropy, in nats),
        gradient (largest entry), and second_route: by how much an independent descent, continued
        from the fit, changes the divergence.
    """
    table = np.asarray(P, dtype=float)
    rows = []
    for bias in (False, True):
        for d in range(table.shape[1] + 1):
            fit = fit_low_rank(table, d, bias, rng=rng, starts=starts)
            again = descend_by_bounds(table, fit, bias, _ROUNDS)
            change = abs(again.divergence - fit.divergence)
            rows.append(
                (bias, d, fit.cross_entropy, max(fit.divergence, 0.0), fit.gradient, change)
            )
    return pd.DataFrame(
        rows,
        columns=["bias", "dimension", "cross_entropy", "divergence", "gradient", "second_route"],
    )


def mutual_information(P: Any) -> float:
    """Mutual information, in nats, of class and context under rows P (N, C) of equal weight."""
    table = np.asarray(P, dtype=float)
    return float((table * np.log(table / table.mean(axis=0))).sum() / len(table))
