"""No more blocking classes than there are features, and one: the same mean with fewer points.

Among more than D + 1 points of R^D there is an affine dependence, along which weights can be moved
until one of them is zero while ``sum_i l_i`` and ``sum_i l_i A_i`` stay (Carathéodory 1907). Here
dependences are read off a basis, as in the simplex method: every other point is a combination of D
+ 1 basic ones and hands its weight to them; a basic point that would be left with less than nothing
changes places with it. Non-negative least squares, which refine.py takes for its few classes, finds
as few and takes three to four times as long at 120 features.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

from softgeom.arrays import Floats

# A pivot below this share of its column's largest entry is what rounding left of zero.
LEAST_PIVOT = 1e-9


def reduce_support(A: Floats, c: Floats, weights: Floats) -> Floats:
    """Weights (n,) >= 0 with the same sum and, up to rounding, the same ``weights @ A``, A (n, D),
    of which at most D + 1 are positive, and no less ``weights @ c``. They come back as they are if
    the heaviest points are dependent.
    """
    columns = np.vstack([A.T, np.ones(len(A))])
    heaviest = np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)]
    basic, others = heaviest[: len(columns)], heaviest[: len(columns) - 1 : -1]
    if not len(others):
        return weights
    lu, order, _ = scipy.linalg.lapack.dgetrf(columns[:, basic])
    pivots = np.abs(lu.diagonal())
    if pivots.min() <= LEAST_PIVOT * pivots.max():
        return weights
    # columns[:, others] = columns[:, basic] @ T
    T = scipy.linalg.lapack.dgetrs(lu, order, columns[:, others])[0]
    basic, x = basic.copy(), weights[basic]
    loss = c[others] - c[basic] @ T  # of weights @ c, for each unit of weight that is handed over
    for j, y in enumerate(weights[others].tolist()):
        given = T[:, j]
        is_dear = loss[j] * y > 0
        change = -given if is_dear else given  # one that is dear takes weight instead
        most = np.full_like(x, np.inf)
        np.divide(x, -change, out=most, where=change < -LEAST_PIVOT * np.abs(change).max())
        row = int(most.argmin())
        amount = float(most[row]) if is_dear else min(float(most[row]), y)
        x += amount * change
        if is_dear or amount < y:
            basic[row], x[row] = others[j], y + amount if is_dear else y - amount
            ratio = T[row, j + 1 :] / given[row]
            given[row] -= 1.0
            loss[j + 1 :] -= loss[j] * ratio
            if len(ratio):
                # In place, since T is in Fortran's order.
                scipy.linalg.blas.dger(-1.0, given, ratio, a=T[:, j + 1 :], overwrite_a=True)
    thinned = np.zeros(len(weights))
    thinned[basic] = np.maximum(x, 0.0)
    return thinned
