"""Token sets on which the statements about semidefinite matrices (`general_matrices`) and written
classifiers (`construction`) are tried.

Everything is drawn from a Generator that the caller gives. Shares g_t are those of
`general_matrices`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pandas as pd
from scipy.spatial import ConvexHull

from softgeom.hardmax.construction import classify_exactly
from softgeom.hardmax.dynamics import softmax_step
from softgeom.hardmax.ensembles import definite_matrix
from softgeom.hardmax.general_matrices import (
    collapse,
    collapse_time,
    exit_times,
    stand_still,
    travel,
)

COLLAPSED = 1e-9  # diameter over that at the start after the layers of constant shares
DEPARTING = 0.6  # share at which a token that draws another vertex is nearer to it at once

Kind = tuple[str, int, float, int]  # matrix, dimension, shift of the tokens from the origin, sets


def negative_kinds(sets: int) -> list[Kind]:
    """Minus the identity, negative definite and singular matrices, and where tokens lie."""
    named = {"minus identity": 2, "negative definite": 3, "rank 1 in the plane": 2}
    named |= {"rank 2 in space": 3}
    return [(name, d, shift, sets) for name, d in named.items() for shift in (0.0, 5.0)]


def negative_matrix(rng: np.random.Generator, kind: str, d: int) -> np.ndarray:
    """A negative semidefinite matrix (d, d) of a named kind."""
    if kind == "minus identity":
        return -np.eye(d)
    if kind == "negative definite":
        return -definite_matrix(rng, d)
    M = rng.normal(size=(d, d - 1))
    return -M @ M.T


def collapse_row(
    rng: np.random.Generator,
    kind: str,
    d: int,
    shift: float,
    sets: int,
    constant: Sequence[float],
    falling: Sequence[float],
) -> dict[str, float | str]:
    """What 12 tokens do: collapse and its factor a layer, the energy's rate as shares fall."""
    short, rates, factors, distances, outside = 0, [], [], [], []
    for _ in range(sets):
        A, Z = negative_matrix(rng, kind, d), rng.normal(size=(12, d)) + shift * np.eye(d)[0]
        fast, slow = collapse(Z, A, constant), collapse(Z, A, falling)
        short += int(fast.diameter[-1] < COLLAPSED)
        rates.append(slow.rate(len(falling) // 30, len(falling) // 6))
        factors.append(fast.diameter[30] ** (1 / 30))
        distances += [float(np.linalg.norm(one.point)) for one in (fast, slow)]
        outside += [fast.outside, slow.outside]
    return {
        "A": kind,
        "d": d,
        "shift": shift,
        "sets": sets,
        "collapsed": short,
        "outside": max(outside),
        "from_origin": float(np.mean(distances)),
        "least_from_origin": min(distances),
        "factor": max(factors),
        "rate": max(rates),
    }


def standing_attractors(
    rng: np.random.Generator, sets: int
) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
    """Dimension, shift, negative definite matrix, 12 attractors: Frank and Wolfe's bound."""
    for _ in range(sets):
        for d in (2, 3):
            yield d, 2.0 * np.eye(d)[0], -definite_matrix(rng, d), rng.normal(size=(12, d))


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


def journey_row(
    rng: np.random.Generator, name: str, shares: Sequence[float], sets: int
) -> dict[str, float | str]:
    """Tokens drawn inside hulls of standing vertices, d = 2, 3, 5: how they travel."""
    trips, tokens = [], 0
    for d, rank in ((2, 2), (3, 3), (5, 5), (3, 2)):
        for _ in range(sets):
            A, V = standing_vertices(rng, d, 8, rank)
            X = rng.dirichlet(np.ones(len(V)), 40) @ V
            trips.append(travel(X, V, A, shares))
            tokens += len(X)
    return {
        "shares": name,
        "tokens": tokens,
        "bend": max(trip.bend for trip in trips),
        "changes": sum(trip.changes for trip in trips),
        "factor_error": max(trip.factor for trip in trips),
        "left": max(trip.left[-1] for trip in trips),
        "product": float(np.prod([1 - g for g in shares])),
    }


def share_of_standing_corners(rng: np.random.Generator, sets: int) -> float:
    """Share of the corners of hulls of 12 normal tokens that A = I leaves standing."""
    still = corners = 0
    for _ in range(sets):
        Z = rng.normal(size=(12, 2))
        hull = ConvexHull(Z).vertices
        still += int(stand_still(Z, np.eye(2))[hull].sum())
        corners += len(hull)
    return still / corners


def picture_of_cells(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A definite matrix in the plane, six vertices of norm 1, 60 tokens in their hull."""
    M = np.array([[1.0, 0.15], [0.15, 0.75]])
    angles = np.array([0.1, 1.2, 2.0, 3.3, 4.3, 5.4])
    V = np.stack([np.cos(angles), np.sin(angles)], 1) @ np.linalg.inv(M)
    return M @ M, V, rng.dirichlet(np.ones(6), 60) @ V


def waiting_times(
    rng: np.random.Generator, betas: np.ndarray, runs: int, most: int = 200_000
) -> pd.DataFrame:
    """Three vertices at 120 degrees, A = I: layers until interior tokens arrive, until all
    collapse, and until the first departure in the random chain.

    In the chain a vertex draws one of the other two with probability q = 2 x / (1 + 2 x), x =
    exp(-3 beta / 2), so the first of three departs after 1 / (1 - (1 - q)^3) layers on average.
    """
    angles = 2 * np.pi * np.arange(3) / 3
    V, A = np.stack([np.cos(angles), np.sin(angles)], 1), np.eye(2)
    inner = 0.3 * V + 0.05 * rng.normal(size=V.shape)
    rows = []
    for beta in betas:
        x, left = np.exp(-1.5 * beta), exit_times(rng, V, A, DEPARTING, 1 / beta, runs, most)
        row = {"beta": float(beta), "arrival": _arrival(V, inner, A, 1 / beta)}
        row |= {"collapse": collapse_time(V, A, 0.5, 1 / beta, most)}
        row |= {"departure": float(left.mean()), "expected": float(1 / (1 - (1 + 2 * x) ** -3.0))}
        rows.append(row)
    return pd.DataFrame(rows)


def _arrival(
    V: np.ndarray, inner: np.ndarray, A: np.ndarray, temperature: float, near: float = 0.25
) -> int:
    """Layers of softmax attention (alpha = 1) until the inner tokens are near some vertex."""
    Z, most = np.concatenate([V, inner]), 1000
    for layer in range(most):
        distance = np.linalg.norm(Z[len(V) :, None] - Z[: len(V)], axis=-1).min(1)
        if distance.max() <= near:
            return layer
        Z = softmax_step(Z, A, 1.0, temperature)
    return most


def sequences_with_one_hull(
    rng: np.random.Generator, number: int
) -> tuple[list[list[tuple[int, ...]]], list[int]]:
    """Sequences of the plane on a grid with one hull, told apart by what lies inside."""
    corners, inner = [(-6, -4), (6, -3), (0, 6)], [(0, 0), (-2, -1), (2, -1), (1, 2), (-1, 1)]
    chosen = [sorted(rng.choice(5, 3, replace=False)) for _ in range(50)]
    sequences = [[*corners, *(inner[i] for i in places)] for places in chosen]
    distinct = list({frozenset(s): s for s in sequences}.values())[: number - 1]
    distinct.append([*corners[:2], *inner])
    return distinct, [i % 2 for i in range(len(distinct))]


def written_row(rng: np.random.Generator, number: int, d: int, tasks: int) -> dict[str, float]:
    """Tasks of sequences from few tokens: errors, blocks, parameters of their classifiers."""
    wrong = sequences = 0
    blocks, parameters = [], []
    for _ in range(tasks):
        pool = [
            tuple(map(int, z)) for z in {tuple(z) for z in rng.integers(-9, 10, (12, d)).tolist()}
        ]
        lengths = (int(rng.integers(1, 15)) for _ in range(number))
        drawn = [[pool[i] for i in rng.integers(0, len(pool), n)] for n in lengths]
        given = list({frozenset(sequence): sequence for sequence in drawn}.values())
        labels = [int(x) for x in rng.integers(0, 3, len(given))]
        classifier = classify_exactly(given, labels, Fraction(int(rng.integers(1, 40)), 10))
        wrong += sum(classifier.label(s) != label for s, label in zip(given, labels, strict=True))
        sequences += len(given)
        blocks.append(classifier.blocks / len(given))
        parameters.append(classifier.parameters / (len(given) * d))
    return {
        "N": number,
        "d": d,
        "tasks": tasks,
        "sequences": sequences,
        "wrong": wrong,
        "blocks_per_sequence": max(blocks),
        "parameters_per_Nd": max(parameters),
    }
