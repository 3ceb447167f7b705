"""What the conditional density of Corollary 3.1 integrates to, by three routes (003, Section
3.3).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.integrate import quad

from softgeom.margins import scalar


def weigh_conditionals(
    cases: Iterable[tuple[tuple[float, ...], float]], s: float, draws: int, rng: np.random.Generator
) -> pd.DataFrame:
    """One row a case (past, c): the mass by folds, by quadrature, and as the mean number of
    solutions of ``draws`` random noises.

    ``positive_mass`` leaves out the tokens beyond the boundary, ``oriented_mass`` the absolute
    value.
    """

    def weigh(past: tuple[float, ...], c: float) -> dict[str, object]:
        p = np.array(past)
        folds = scalar.critical_points(p, c)
        integral = quad(
            scalar.conditional_density,
            -15,
            15,
            args=(p, c, s),
            points=sorted([*folds, *p]),
            limit=400,
        )[0]
        return {
            "past": str(past),
            "c": c,
            "folds": len(folds),
            "mass": scalar.mass(p, c, s),
            "mass_by_quadrature": integral,
            "solutions_by_drawing": float(
                np.mean([len(scalar.preimages(e, p, c)) for e in s * rng.standard_normal(draws)])
            ),
            "positive_mass": scalar.positive_mass(p, c, s),
            "oriented_mass": scalar.oriented_mass(p, c, s),
        }

    return pd.DataFrame([weigh(*case) for case in cases])
