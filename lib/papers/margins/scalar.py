"""Causal attention on the line, d = 1: the margin 1 - c Var, its density and the count of preimages
(003, Section 3).

Given the past x_1..x_n the next token is x with residual e(x) = x - mu(x), mu(x) = sum_j a_j x_j, a
= softmax(c x x_j). Then mu'(x) = c Var(x), with Var the variance of the past under a, so that

    e'(x) = 1 - c Var(x)                    (Proposition 1; eqs. 8, 9: the margin of the position)
    p(x | past) = N(e(x); 0, s^2) |e'(x)|   (eq. 11).

Mass.  Substituting e on the intervals between critical points (zeros of e') shows that p integrates
to the expected number of preimages E #{x : e(x) = e}, e ~ N(0, s^2).  Because mu is bounded, e is
onto: the number is at least one and odd, the orientations of the preimages sum to one (the degree
of e), and the mass is one iff e is monotone.  Two past tokens fold the line iff c > 0 and |x_1 -
x_2| > 2 / sqrt(c), since their variance reaches (x_1 - x_2)^2 / 4.

Shapes: x (...), past (n,), sequences (N, T).
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from softgeom.arrays import Floats

# Sign changes of e' are looked for on a grid and polished by a root finder. A step between two
# weights is 1 / (c spread) wide: so many grid points across it resolve every fold of visible mass.
_STEPS_PER_WIDTH = 50
_MIN_GRID = 1001


class Moments(NamedTuple):
    """Mean and variance of the past under the attention weights, each of the shape of x."""

    mean: Floats
    variance: Floats


def attention_moments(x: Floats | float, past: Floats, c: float) -> Moments:
    """Compute mu(x) and Var(x) of eq. (7) for queries x (...) against one past (n,)."""
    logits = c * np.multiply.outer(np.asarray(x, dtype=float), past)
    a = np.exp(logits - logits.max(axis=-1, keepdims=True))
    a /= a.sum(axis=-1, keepdims=True)
    mean = a @ past
    return Moments(mean, np.einsum("...n,...n->...", a, (past - mean[..., None]) ** 2))


def residual(x: Floats | float, past: Floats, c: float) -> Floats:
    """Compute e(x) = x - mu(x)."""
    return x - attention_moments(x, past, c).mean


def margin(x: Floats | float, past: Floats, c: float) -> Floats:
    """Compute e'(x) = 1 - c Var(x) (eqs. 8 and 9)."""
    return 1.0 - c * attention_moments(x, past, c).variance


def conditional_density(x: Floats | float, past: Floats, c: float, s: float) -> Floats:
    """N(e(x); 0, s^2) |e'(x)|, the next token's density by eq. (11); see :func:`mass`."""
    mean, variance = attention_moments(x, past, c)
    return norm.pdf(x - mean, scale=s) * np.abs(1.0 - c * variance)


def sequence_moments(sequences: Floats, c: float) -> Moments:
    """mu_i and Var_i at every position, (N, T) -> two (N, T); zero without a past."""
    past = np.tri(sequences.shape[1], k=-1, dtype=bool)
    logits = np.where(past, c * sequences[:, :, None] * sequences[:, None, :], -np.inf)
    a = np.exp(logits - np.max(logits, axis=-1, keepdims=True, initial=np.finfo(float).min))
    a /= np.maximum(a.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
    mean = np.einsum("nij,nj->ni", a, sequences)
    return Moments(
        mean, np.einsum("nij,nij->ni", a, np.square(sequences[:, None, :] - mean[:, :, None]))
    )


def sequence_log_density(sequences: Floats, c: float, s: float) -> Floats:
    """sum_i log N(e_i; 0, s^2) + log |1 - c Var_i| (eqs. 11, 12), (N, T) -> (N,); mu_1 = 0."""
    mean, variance = sequence_moments(sequences, c)
    return (norm.logpdf(sequences - mean, scale=s) + np.log(np.abs(1.0 - c * variance))).sum(axis=1)


def critical_points(past: Floats, c: float) -> Floats:
    """The zeros of e', increasing, where the line folds: none iff e is monotone (on the grid)."""
    spread = float(np.ptp(past))
    if c <= 0.0 or c * spread**2 <= 4.0:  # Popoviciu: Var <= spread^2 / 4, so that e' >= 0
        return np.empty(0)
    # Beyond `reach` the tokens farther than 1/sqrt(c) from the extreme one weigh less than
    # 1 / (2 c spread^2) together, the others vary by at most 1/(4c) about their middle: Var < 1/c
    # there, no fold.
    reach = np.log(2.0 * c * len(past) * spread**2) / np.sqrt(c)
    x = np.linspace(-reach, reach, int(max(_MIN_GRID, _STEPS_PER_WIDTH * 2.0 * reach * c * spread)))
    m = margin(x, past, c)
    return np.array(
        [brentq(margin, x[k], x[k + 1], args=(past, c)) for k in np.flatnonzero(m[:-1] * m[1:] < 0)]
    )


def preimages(e: float, past: Floats, c: float) -> Floats:
    """Find every x with e(x) = e, in increasing order: at most one on each monotone piece."""
    # x - e = mu(x) lies in the hull of the past
    low, high = e + past.min() - 1.0, e + past.max() + 1.0
    folds = critical_points(past, c)
    ends = np.concatenate([[low], folds[(folds > low) & (folds < high)], [high]])
    gap = residual(ends, past, c) - e
    pieces = np.flatnonzero(gap[:-1] * gap[1:] < 0)
    return np.array(
        [brentq(lambda x: float(residual(x, past, c)) - e, ends[k], ends[k + 1]) for k in pieces]
    )


def mass(past: Floats, c: float, s: float) -> float:
    """Integrate the conditional density: E #{x : e(x) = e}, e ~ N(0, s^2); 1 iff e is monotone."""
    return float(np.abs(_pieces(past, c, s)).sum())


def oriented_mass(past: Floats, c: float, s: float) -> float:
    """The integral of N(e; 0, s^2) e': the degree of e, one for every past and coupling."""
    return float(_pieces(past, c, s).sum())


def positive_mass(past: Floats, c: float, s: float) -> float:
    """The density's integral where the margin is positive: (mass + 1) / 2."""
    return float(_pieces(past, c, s).clip(min=0.0).sum())


def _pieces(past: Floats, c: float, s: float) -> Floats:
    """What N(0, s^2) gives to each monotone piece of e, from its first value to its last."""
    folds = critical_points(past, c)
    levels = np.concatenate([[-np.inf], residual(folds, past, c), [np.inf]])
    return np.diff(norm.cdf(levels, scale=s))
