"""Hardmax layers under semidefinite matrices, which source 004 leaves out: collapse, cells, the ODE
limit, metastability.

Literature: A. Alcalde, B. Geshkovski, D. Ruiz-Balet, "Attention's forward pass and Frank-Wolfe"
(arXiv 2508.09628, in the version of ICML 2026). With the share g = alpha / (1 + alpha)
a layer is z <- (1 - g) z + g y, where y maximises <A z, y> over the tokens: a Frank-Wolfe step for
the quadratic energy

    E(z) = -<A z, z> / 2

over their convex hull. What can be said depends on the shares g_1, g_2, ..., so each function takes
them. Symbols: tokens Z (..., n, d), attractors V (m, d), A (d, d) symmetric.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from papers.hardmax.dynamics import hardmax_step, softmax_step
from papers.hardmax.ensembles import definite_matrix
from papers.hardmax.leaders import convex_weights, distance_to_hull


def negative_matrix(rng: np.random.Generator, kind: str, d: int) -> np.ndarray:
    """A negative semidefinite matrix (d, d) of a named kind."""
    if kind == "minus identity":
        return -np.eye(d)
    if kind == "negative definite":
        return -definite_matrix(rng, d)
    M = rng.normal(size=(d, d - 1))
    return -M @ M.T


def standing_vertices(
    rng: np.random.Generator, d: int, m: int, rank: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """A semidefinite matrix (d, d) and m vertices of norm 1 that no layer moves."""
    M = rng.normal(size=(d, rank or d))
    A = M @ M.T
    unit = rng.normal(size=(m, rank or d))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    V = unit @ np.linalg.pinv(M)  # M^T v = unit, so <A v, v'> = <unit, unit'>
    if rank and rank < d:
        V = V + rng.normal(size=(m, d)) @ (np.eye(d) - M @ np.linalg.pinv(M))
    return A, V


def energy(Z: np.ndarray, A: np.ndarray) -> np.ndarray:
    """E = -<A z, z> / 2 of each token, (...) for Z (..., d)."""
    return -0.5 * ((Z @ A.T) * Z).sum(-1)


def states(Z: np.ndarray, A: np.ndarray, shares: Sequence[float]) -> Iterator[np.ndarray]:
    """The tokens before and after each layer; layer t goes the share g_t < 1 of the way."""
    yield Z
    for g in shares:
        Z = hardmax_step(Z, A, g / (1 - g), check=False)
        yield Z


@dataclass(frozen=True)
class Collapse:
    """What became of one set of tokens; one entry for each layer, the start included."""

    diameter: np.ndarray  # largest distance of two tokens, over that at the start
    energy: np.ndarray  # mean energy of the tokens
    point: np.ndarray  # (d,) where the mean token ends
    # distance of that point from the hull of the initial tokens, over their diameter
    outside: float
    excess: float  # its energy above the least one in that hull

    def rate(self, start: int, end: int) -> float:
        """Slope of log (energy - last energy) against log layer: -1 for O(1/t)."""
        t = np.unique(np.geomspace(start, end, 30).astype(int))
        return float(np.polyfit(np.log(t), np.log(self.energy[t] - self.energy[-1]), 1)[0])


def collapse(Z: np.ndarray, A: np.ndarray, shares: Sequence[float]) -> Collapse:
    """Run tokens (n, d) under a negative semidefinite A and watch them come together."""
    diameters, energies, end = [], [], Z
    for end in states(Z, A, shares):
        diameters.append(_diameter(end))
        energies.append(energy(end, A).mean())
    point = end.mean(0)
    least = least_energy(Z, A)
    outside = distance_to_hull(point, Z) / diameters[0]
    excess = float(energy(point, A)) - least
    return Collapse(np.array(diameters) / diameters[0], np.array(energies), point, outside, excess)


def least_energy(V: np.ndarray, A: np.ndarray) -> float:
    """Least energy in the hull of V (m, d), A negative semidefinite: least squares."""
    values, vectors = np.linalg.eigh(-A)
    if values[0] < -1e-10 * max(values[-1], 1e-300):
        raise ValueError(
            f"A is not negative semidefinite: its largest eigenvalue is {-values[0]:.3g}."
        )
    root = (vectors * np.sqrt(np.maximum(values, 0))).T  # root^T root = -A
    points = V @ root.T  # (m, d)
    weights = convex_weights(np.zeros(V.shape[1]), points, 1e4)
    nearest = (weights / weights.sum()) @ points
    return 0.5 * float(nearest @ nearest)


def frank_wolfe_excess(X: np.ndarray, V: np.ndarray, A: np.ndarray, layers: int) -> np.ndarray:
    """Tracers X (n, d) in the hull of standing attractors V under negative semidefinite A, g_t = 2
    / (t + 2): the largest energy above the least one in the hull of V after t = 1, 2, ... layers,
    times (t + 2) / (2 L D^2), L the largest eigenvalue of -A and D the diameter of V.

    Frank and Wolfe's bound (as in Jaggi, "Revisiting Frank-Wolfe", 2013, Theorem 1): at most 1,
    from the first layer on. Shape (layers,).
    """
    least, curvature = least_energy(V, A), float(np.linalg.eigvalsh(-A)[-1]) * _diameter(V) ** 2
    found = np.empty(layers)
    for t in range(layers):
        g = 2 / (t + 2)
        X = X + g * (V[(X @ A.T @ V.T).argmax(1)] - X)
        found[t] = (energy(X, A).max() - least) * (t + 3) / (2 * max(curvature, 1e-300))
    return found


def stand_still(V: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Which points of V (m, d) no layer moves: <A v, v> > <A v, v'> for all others, (m,)."""
    scores = V @ A.T @ V.T
    others = np.where(np.eye(len(V), dtype=bool), -np.inf, scores)
    return scores.diagonal() > others.max(1)


@dataclass(frozen=True)
class Journey:
    """How tokens travel to standing vertices under positive semidefinite A."""

    # largest distance of a token from the straight line between its start and its vertex, over the
    # largest vertex
    bend: float
    changes: int  # how often a token's farthest vertex changed
    # largest relative error of |z - v| = |z_0 - v| (1 - g_1) ... (1 - g_t), while above rounding
    factor: float
    left: np.ndarray  # largest distance to the vertices after each layer, over that at the start


def travel(X: np.ndarray, V: np.ndarray, A: np.ndarray, shares: Sequence[float]) -> Journey:
    """Send tokens X (n, d) towards vertices V (m, d) that stand still, and compare with the law: a
    cell {x : <A x, v> >= <A x, v'> for all v'} is a convex cone that contains its own vertex v,
    so that a step towards v stays in it: the path is straight, and each layer leaves the share 1 -
    g_t of the way. With vertices of one norm under A the cells are those of the Voronoi diagram in
    that norm. ValueError if a vertex moves.
    """
    if not stand_still(V, A).all():
        raise ValueError("A vertex looks to another one: it moves, and the cells with it.")
    goal = (X @ A.T @ V.T).argmax(1)
    start, scale, product = X - V[goal], np.linalg.norm(V, axis=1).max(), 1.0
    bend = factor = 0.0
    changes, left = 0, [1.0]
    length = np.linalg.norm(start, axis=1)
    for g in shares:
        looks_to = (X @ A.T @ V.T).argmax(1)
        changes += int((looks_to != goal).sum())
        X = X + g * (V[looks_to] - X)
        product *= 1 - g
        way = X - V[goal]
        along = (way * start).sum(1) / np.maximum((start * start).sum(1), 1e-300)
        bend = max(bend, float(np.linalg.norm(way - along[:, None] * start, axis=1).max() / scale))
        now = np.linalg.norm(way, axis=1)
        seen = length * product > 1e-6 * scale
        off = np.abs(now[seen] / (length[seen] * product) - 1).max(initial=0.0)
        factor = max(factor, float(off))
        left.append(float(now.max() / length.max()))
    return Journey(bend, changes, factor, np.array(left))


def ode_gap(X: np.ndarray, V: np.ndarray, A: np.ndarray, share: float, time: float) -> float:
    """Largest distance, up to a time, of the layers with a small share g from the limit dz/dt =
    v(z) - z as g -> 0; layer t stands at time g t.

    In its cell a token goes z(t) = v + exp(-t) (z_0 - v).
    """
    goal = V[(X @ A.T @ V.T).argmax(1)]
    Z, worst = X, 0.0
    for layer in range(1, round(time / share) + 1):
        Z = Z + share * (V[(Z @ A.T @ V.T).argmax(1)] - Z)
        flow = goal + np.exp(-share * layer) * (X - goal)
        worst = max(worst, float(np.linalg.norm(Z - flow, axis=1).max()))
    return worst


def collapse_time(Z: np.ndarray, A: np.ndarray, share: float, temperature: float, most: int) -> int:
    """Layers of softmax attention until two tokens (n, d) are within half the first diameter."""
    wide = _diameter(Z)
    for layer in range(most):
        if _diameter(Z) <= 0.5 * wide:
            return layer
        Z = softmax_step(Z, A, share / (1 - share), temperature)
    return most


def exit_times(
    rng: np.random.Generator, V: np.ndarray, A: np.ndarray, share: float, temperature: float,
    runs: int, most: int,
) -> np.ndarray:  # fmt: skip
    """The chain in which each token draws one token with its softmax weight and goes the share of
    the way: layers until the first leaves its vertex, (runs,).

    Tokens start at the vertices V (m, d), one each; a token has left when it is nearer to another
    vertex than to its own.
    """
    m = len(V)
    Z = np.broadcast_to(V, (runs, *V.shape)).copy()
    left = np.full(runs, most)
    on = np.arange(runs)
    for layer in range(1, most + 1):
        state = Z[on]
        scores = state @ A.T @ state.swapaxes(-1, -2) / temperature
        # The largest of scores plus Gumbel noise is a draw with softmax weights (Gumbel 1954).
        drawn = (scores + rng.gumbel(size=scores.shape)).argmax(-1)
        state = state + share * (np.take_along_axis(state, drawn[..., None], 1) - state)
        Z[on] = state
        nearest = np.linalg.norm(state[:, :, None] - V, axis=-1).argmin(-1)
        gone = (nearest != np.arange(m)).any(1)
        left[on[gone]] = layer
        on = on[~gone]
        if not len(on):
            break
    return left


def _diameter(Z: np.ndarray) -> float:
    return float(np.sqrt(((Z[:, None] - Z) ** 2).sum(-1).max()))
