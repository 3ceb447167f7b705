"""Ensembles of token sets on which the clustering theorem is tried, and what is counted on them.

Source 004, Theorem. *Random* sets: normal tokens, A = M M^T + 0.05 I with normal M, log10 alpha
uniform in [-1, 0.7]. They never reach a limit that is no vertex. *Symmetric* sets do: tokens closed
under the sign changes of their first one or two coordinates, some of them on the mirrors, with A
diagonal in these; their ties are exact in floating point. Everything is drawn from a Generator that
the caller gives.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from papers.hardmax.dynamics import TIE_TOLERANCE, hardmax_step, limit, trajectory
from papers.hardmax.leaders import (
    TOUCHING,
    TheoremCheck,
    check_theorem,
    check_theorem_on_batch,
    clusters,
    leaders,
)

NEAR_TIE = 1e-9  # relative gap between two scores below which rounding could choose for us
_SHARPER = 1e-2  # factor on the tie tolerance when a failure is judged again

Batch = tuple[np.ndarray, np.ndarray, float]  # tokens (m, n, d), matrix A (d, d), step size


def definite_matrix(rng: np.random.Generator, d: int) -> np.ndarray:
    """A random symmetric positive definite matrix M M^T + 0.05 I, (d, d)."""
    M = rng.normal(size=(d, d))
    return M @ M.T + 0.05 * np.eye(d)


def random_sets(
    rng: np.random.Generator, d: int, batches: int, sets: int, largest: int
) -> Iterator[Batch]:
    """Batches of normal token sets of 2 to `largest` tokens, each with its matrix and step size."""
    for _ in range(batches):
        Z = rng.normal(size=(sets, int(rng.integers(2, largest + 1)), d))
        yield Z, definite_matrix(rng, d), _step_size(rng)


def symmetric_sets(
    rng: np.random.Generator, d: int, signs: int, batches: int, sets: int
) -> Iterator[Batch]:
    """Batches of sets that mirror themselves in the first `signs` coordinates, matrices too."""
    for _ in range(batches):
        Z = rng.normal(size=(sets, int(rng.integers(2, 8)), d))
        Z[:, ::3, :signs] = 0.0
        for axis in range(signs):
            flipped = Z.copy()
            flipped[..., axis] *= -1
            Z = np.concatenate([Z, flipped], 1)
        # tokens on a mirror are their own images
        distinct = np.unique(np.round(Z[0], 12), axis=0, return_index=True)[1]
        A = np.zeros((d, d))
        A[:signs, :signs] = np.diag(rng.uniform(0.3, 2.0, signs))
        if d > signs:
            A[signs:, signs:] = definite_matrix(rng, d - signs)
        yield Z[:, distinct], A, _step_size(rng)


@dataclass(frozen=True)
class Trial:
    """One token set: its check, and whether the tie tolerance alone made it fail."""

    check: TheoremCheck
    shaken: bool


def try_theorem(batches: Iterator[Batch]) -> list[Trial]:
    """Check every statement on every set of the batches.

    In floating point a follower may come within the tie tolerance of its leader's score while it is
    still on its way, and then pull a leader that in exact arithmetic stands still. So a set on
    which a leader moved is judged again at a hundredth of the tolerance: when everything holds
    there, the set is *shaken*, evidence for neither side; when it fails again, it is a failure.
    """
    trials = []
    for Z, A, alpha in batches:
        for tokens, check in zip(Z, check_theorem_on_batch(Z, A, alpha), strict=True):
            moved = not check.holds and check.leader_drift > TOUCHING
            sharper = _SHARPER * TIE_TOLERANCE
            shaken = moved and check_theorem(tokens, A, alpha, tol=sharper).holds
            trials.append(Trial(check, shaken))
    return trials


def summarise(trials: list[Trial]) -> dict[str, float]:
    """What was met and what failed, by statement, over the trials that are not shaken."""
    judged = [trial.check for trial in trials if not trial.shaken]
    return {
        "inputs": len(trials),
        "shaken": len(trials) - len(judged),
        "tokens": sum(len(check.labels) for check in judged),
        "theorem_holds": sum(check.holds for check in judged),
        "near_ties": sum(check.gap < NEAR_TIE for check in judged),
        "leaders": sum(int(check.leaders.sum()) for check in judged),
        "late_leaders": sum(int((check.first_layer > 0).sum()) for check in judged),
        "last_leader_layer": max(int(check.first_layer.max()) for check in judged),
        "limits_without_leader": sum(int((~check.is_vertex).sum()) for check in judged),
        "leaderless": sum(not check.leaders.any() for check in judged),
        "shared": sum(not check.leaders_are_apart for check in judged),
        "inside": sum(not check.leaders_are_extreme for check in judged),
        "moved": sum(check.leader_drift > TOUCHING for check in judged),
        "unequal": sum(not check.polytope_has_a_vertex_per_leader for check in judged),
        "interior": sum(max(check.outside, check.projection) > TOUCHING for check in judged),
        "unsettled": sum(not check.limit.converged for check in judged),
        "least_extreme": min(float(c.extremeness[c.is_vertex].min(initial=np.inf)) for c in judged),
        "outside_polytope": max(check.outside for check in judged),
        "projection_error": max(check.projection for check in judged),
    }


def step_by_loops(
    Z: np.ndarray, A: np.ndarray, alpha: float, tol: float = TIE_TOLERANCE
) -> tuple[np.ndarray, float]:
    """Equations (1a), (1b) word by word: the next state, the largest shortfall in a C_i."""
    following, shortfall = np.empty_like(Z), 0.0
    reach = np.linalg.norm(Z, axis=1).max()
    for i, z in enumerate(Z):
        scores = [float(A @ z @ other) for other in Z]
        scale = np.linalg.norm(A @ z) * reach
        C = [j for j, score in enumerate(scores) if score >= max(scores) - tol * scale]
        shortfall = max(shortfall, *((max(scores) - scores[j]) / (scale or 1.0) for j in C))
        following[i] = z + alpha / (1 + alpha) * sum(Z[j] - z for j in C) / len(C)
    return following, shortfall


def compare_steps(rng: np.random.Generator, batches: int = 20) -> tuple[float, float]:
    """Largest relative difference of `hardmax_step` and `step_by_loops`, and largest shortfall."""
    worst = shortfall = 0.0
    batches_of = (random_sets(rng, 3, batches, 1, 20), symmetric_sets(rng, 3, 2, batches, 1))
    for Z, A, alpha in chain(*batches_of):
        expected, short = step_by_loops(Z[0], A, alpha)
        off = np.abs(hardmax_step(Z[0], A, alpha) - expected).max() / np.abs(expected).max()
        worst = max(worst, float(off))
        shortfall = max(shortfall, short)
    return worst, shortfall


def approach(
    rng: np.random.Generator, alpha: float, sets: int = 20, tokens: int = 40, layers: int = 60
) -> np.ndarray:
    """Largest distance from the limit after each layer, relative: (layers + 1, sets); A = I."""
    Z = rng.normal(size=(sets, tokens, 2))
    states = trajectory(Z, np.eye(2), alpha, layers)
    distance = np.linalg.norm(states - limit(Z, np.eye(2), alpha).points, axis=-1).max(-1)
    return distance / distance[0]


def pace_of_followers(rng: np.random.Generator, alpha: float, layers: int = 12) -> float:
    """Largest relative error of the factor 1 / (1 + alpha) at which followers come near."""
    Z = rng.normal(size=(20, 40, 2))
    worst = 0.0
    states = trajectory(Z, np.eye(2), alpha, layers)
    standing = np.asarray(leaders(Z, np.eye(2)))
    for state, following in pairwise(states):
        winners = (state @ state.swapaxes(-1, -2)).argmax(-1)  # (sets, tokens)
        goal = np.take_along_axis(state, winners[..., None], 1)
        before, after = (np.linalg.norm(Z - goal, axis=-1) for Z in (state, following))
        follows = np.take_along_axis(standing, winners, 1) & (before > 1e-6)
        factor = after[follows] / before[follows] * (1 + alpha)
        worst = max(worst, float(np.abs(factor - 1).max(initial=0.0)))
    return worst


def count_leaders(
    rng: np.random.Generator, n: int, d: int, alpha: float, sets: int
) -> dict[str, float]:
    """Means over normal token sets (A = I) of leaders, clusters, and the leaders' spread."""
    checks = check_theorem_on_batch(rng.normal(size=(sets, n, d)), np.eye(d), alpha)
    led = [int(check.leaders.sum()) for check in checks]
    return {
        "n": n,
        "d": d,
        "alpha": alpha,
        "leaders_at_start": float(np.mean([(check.first_layer == 0).sum() for check in checks])),
        "leaders": float(np.mean(led)),
        "clusters": float(np.mean([len(check.sites) for check in checks])),
        "spread": float(np.std(led)),
    }


def other_matrices(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """One random 3 x 3 matrix of each kind that the theorem leaves out, and a definite one."""
    M = rng.normal(size=(3, 3))
    Q = np.linalg.qr(M)[0]
    return {
        "positive definite": M @ M.T + 0.05 * np.eye(3),
        "rank 2, semidefinite": M[:, :2] @ M[:, :2].T,
        "rank 1, semidefinite": M[:, :1] @ M[:, :1].T,
        "indefinite, symmetric": Q @ np.diag([1.0, 0.5, -0.7]) @ Q.T,
        "negative definite": -(M @ M.T + 0.05 * np.eye(3)),
        "skew": M - M.T,
        "general": M,
    }


def run_outside(
    rng: np.random.Generator, A: np.ndarray, tokens: int = 20, layers: int = 300
) -> tuple[bool, int, int]:
    """Normal tokens under any 3 x 3 matrix, alpha = 1: did they stop, places left, leaders."""
    state = rng.normal(size=(tokens, 3))
    scale, ever = np.abs(state).max(), leaders(state, A)
    moved = np.inf
    for _ in range(layers):
        before, state = state, hardmax_step(state, A, 1.0, check=False)
        moved = np.abs(state - before).max()
        ever = ever | leaders(state, A) if moved > 1e-6 * scale else ever
    return bool(moved < 1e-9 * scale), int(clusters(state, 1e-6).max()) + 1, int(ever.sum())


def _step_size(rng: np.random.Generator) -> float:
    return float(10 ** rng.uniform(-1, 0.7))
