"""The generative model behind causal attention: draw noise, solve for the token (003, Section 2.1,
Corollary 3.1).

Token i solves x = mu_i(x) + e_i with e_i ~ N(0, s^2 I), where mu_i(x) = sum_j a_j W_V x_j, a =
softmax((W_Q x).(W_K x_j)), over the tokens j < i already drawn.  mu_i is continuous and bounded, so
a solution exists for every e (Brouwer).  It is unique for every e iff x -> e(x) is a bijection, for
which det J_i(x) != 0 at every x suffices (Hadamard, Caccioppoli: e is proper). Otherwise the
conditional "density" N(e(x)) |det J_i(x)| of eq. (16) integrates to the expected number of
solutions.

A rule that selects one solution per e makes a density for any coupling, that of eq. (16) on the
selected sheet.  :func:`draw_token` selects the first that Newton's method with step halving reaches
from fixed starts.

Shapes: past (n, d), tokens X (T, d), W_Q and W_K (r, d), W_V (d, d) or None for the identity.
NumPy only.
"""

from __future__ import annotations

import numpy as np

from papers.margins.jacobian import attention_jacobian_blocks, residual_map
from softgeom.arrays import Floats

_MAX_STEPS = 200
# |x - mu(x) - e| accepted, relative to 1 + |e|: a few hundred times the rounding of mu
_RESIDUAL = 1e-11


def check_scale(s: float) -> None:
    """ValueError unless the noise scale is positive."""
    if not s > 0.0:
        raise ValueError(
            f"the noise scale s must be positive, not {s}: at s = 0 the model has no density."
        )


def log_density(
    X: Floats, W_Q: Floats, W_K: Floats, W_V: Floats | None = None, *, s: float
) -> float:
    """Compute sum_i log N(e_i; 0, s^2 I) + log |det J_i| (Corollary 3.1, eqs. 16 and 18).
    ValueError: A noise scale that is not positive, or what :func:`attention_jacobian_blocks`
    refuses.
    """
    check_scale(s)
    e = residual_map(X, W_Q, W_K, W_V)
    energy = -0.5 * np.square(e / s).sum() - e.size * np.log(s * np.sqrt(2.0 * np.pi))
    return float(energy + np.linalg.slogdet(attention_jacobian_blocks(X, W_Q, W_K, W_V))[1].sum())


def token_residual(
    x: Floats, past: Floats, W_Q: Floats, W_K: Floats, W_V: Floats | None = None
) -> Floats:
    """Compute e(x) = x - mu(x) of a candidate token x (d,) after ``past`` (n, d); n = 0 gives x."""
    return residual_map(np.vstack([past, x]), W_Q, W_K, W_V)[-1]


def token_jacobian(
    x: Floats, past: Floats, W_Q: Floats, W_K: Floats, W_V: Floats | None = None
) -> Floats:
    """Compute J(x) = de/dx of a candidate token, (d, d)."""
    return attention_jacobian_blocks(np.vstack([past, x]), W_Q, W_K, W_V)[-1]


def solve_token(
    e: Floats,
    past: Floats,
    W_Q: Floats,
    W_K: Floats,
    W_V: Floats | None = None,
    *,
    start: Floats | None = None,
) -> Floats:
    """Solve x - mu(x) = e by Newton's method with step halving, from ``start`` (default: e + mean
    of W_V past). ValueError if it stalls at a fold of the map (det J = 0).
    """
    if len(past) == 0:
        return e.copy()
    mean = past.mean(axis=0)
    x = e + (mean if W_V is None else W_V @ mean) if start is None else start.astype(float)
    gap = token_residual(x, past, W_Q, W_K, W_V) - e
    for _ in range(_MAX_STEPS):
        if np.linalg.norm(gap) <= _RESIDUAL * (1.0 + np.linalg.norm(e)):
            return x
        step = np.linalg.lstsq(token_jacobian(x, past, W_Q, W_K, W_V), -gap, rcond=None)[0]
        for halvings in range(40):
            trial = x + step / 2**halvings
            trial_gap = token_residual(trial, past, W_Q, W_K, W_V) - e
            if np.linalg.norm(trial_gap) < (1.0 - 1e-4 / 2**halvings) * np.linalg.norm(gap):
                break
        else:
            break
        x, gap = trial, trial_gap
    raise ValueError(
        f"no solution of x = mu(x) + e found (gap {np.linalg.norm(gap):.1e}): try another `start`."
    )


def draw_token(
    e: Floats, past: Floats, W_Q: Floats, W_K: Floats, W_V: Floats | None = None
) -> Floats:
    """Select one solution of x = mu(x) + e: the first that Newton reaches from the past's mean,
    then from each past value. ValueError: No start converged, although a solution exists.
    """
    values = past if W_V is None else past @ W_V.T
    for start in [None, *(e + values)]:
        try:
            return solve_token(e, past, W_Q, W_K, W_V, start=start)
        except ValueError:
            continue
    raise ValueError(
        f"no solution of x = mu(x) + e found from {len(past) + 1} starts: use a smaller coupling."
    )


def sample_sequence(
    rng: np.random.Generator,
    T: int,
    W_Q: Floats,
    W_K: Floats,
    W_V: Floats | None = None,
    *,
    s: float,
) -> Floats:
    """Draw x_i = mu_i(x_i) + e_i, e_i ~ N(0, s^2 I), in turn: (T, d) (eqs. 3 and 17)."""
    check_scale(s)
    X = np.empty((0, W_Q.shape[1]))
    for _ in range(T):
        noise = s * rng.standard_normal((1, W_Q.shape[1]))
        X = np.vstack([X, draw_token(noise[0], X, W_Q, W_K, W_V)])
    return X


def find_solutions(
    e: Floats,
    past: Floats,
    W_Q: Floats,
    W_K: Floats,
    W_V: Floats | None = None,
    *,
    starts: Floats,
    apart: float = 1e-6,
) -> Floats:
    """Distinct solutions of x = mu(x) + e reached from ``starts`` (m, d): (k, d)."""
    found: list[Floats] = []
    for start in starts:
        try:
            x = solve_token(e, past, W_Q, W_K, W_V, start=start)
        except ValueError:
            continue
        if all(np.linalg.norm(x - other) > apart for other in found):
            found.append(x)
    return np.array(found).reshape(-1, len(e))
