"""Tries to break the bounds of probability: no feasible point and no solver may pass one.

    python benchmarks/bounds_tried.py --layers 1250 --solved 1000

Random layers of 40 classes and 4 features, half with a bias, of scales from 0.3 to 30, over boxes,
balls, norms and all of space. Of each layer 40 ceilings and 40 floors of random distributions (of 2
to 40 classes, even or drawn from a Dirichlet distribution) are compared with the points that the
bounds come from and 300 other feasible ones, in extended precision: probabilities less 1e-15,
divergences plus 1e-15. Some are then given to SciPy's solvers from another start. A row a feature
set in results/bench/bounds_tried.csv: targets, of each kind, how many were solved, how many bounds
a point or the solver passed (none, if all is well), and the largest distance in nats by which a
solver's ceiling stays below the bound.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from softgeom.bottleneck.ceilings import ceilings, floor
from softgeom.layer import Ball, Box, Ellipsoid, FeatureSet, SoftmaxLayer, Unbounded

OUT = Path(__file__).parents[1] / "results" / "bench" / "bounds_tried.csv"
CLASSES, DIMENSION, POINTS = 40, 4, 300
SETS: dict[str, FeatureSet] = {
    "box": Box(3.0),
    "uneven box": Box((1.0, 4.0, 0.5, 2.0), low=(-0.3, 0.0, -2.0, 0.0)),
    "ball": Ball(2.5),
    "layer norm": Ellipsoid.layer_norm([1.0, 0.5, 2.0, 1.0], [0.1, 0.0, -0.2, 0.3]),
    "rms norm": Ellipsoid.rms_norm([1.0, -0.5, 2.0, 0.7]),
    "unbounded": Unbounded(),
}


def draw_points(rng: np.random.Generator, features: FeatureSet) -> np.ndarray:
    """Feasible points in the coordinates of evidence, many of them at the border."""
    if isinstance(features, Box):
        low, high = features.bounds(DIMENSION)
        Z = rng.uniform(low, high, (POINTS, DIMENSION))
        return np.where(
            rng.random(Z.shape) < 0.3, np.where(rng.random(Z.shape) < 0.5, low, high), Z
        )
    Z = rng.normal(size=(POINTS, DIMENSION))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    radius = getattr(features, "radius", 20.0)
    return Z * radius * (1 - 1e-9) * np.minimum(1, rng.uniform(0, 1.5, (POINTS, 1)) ** 0.5)


def log_probabilities(layer: SoftmaxLayer, features: FeatureSet, Z: np.ndarray) -> np.ndarray:
    """In extended precision."""
    x = features.features_at(Z)[0].astype(np.longdouble)
    Y = x @ layer.W.T.astype(np.longdouble) + layer.bias
    Y -= Y.max(axis=1, keepdims=True)
    return Y - np.log(np.exp(Y).sum(axis=1, keepdims=True))


def solve(layer: SoftmaxLayer, features: FeatureSet, p: np.ndarray, start: np.ndarray) -> float:
    """The least divergence from p that SciPy finds."""
    there = p > 0
    entropy = -float(p[there] @ np.log(p[there]))

    def loss(z: np.ndarray) -> float:
        return -entropy - float(log_probabilities(layer, features, z[None])[0] @ p)

    if isinstance(features, Box):
        bounds = np.stack(features.bounds(DIMENSION), axis=1)
        return float(minimize(loss, start, bounds=bounds, method="L-BFGS-B").fun)
    if isinstance(features, Unbounded):
        return float(minimize(loss, start, method="BFGS").fun)
    radius = features.radius * (1 - 1e-12)
    inside = {"type": "ineq", "fun": lambda z: radius**2 - z @ z}
    found = minimize(loss, start, constraints=inside, method="SLSQP")
    # SLSQP may end a little outside
    z = found.x * min(1.0, radius / max(np.linalg.norm(found.x), 1e-300))
    return loss(z)


def draw_targets(rng: np.random.Generator) -> list[dict[int, float]]:
    """Distributions over 2 to 40 classes."""
    drawn = []
    for _ in range(CLASSES):
        k = int(rng.integers(2, CLASSES + 1))
        classes = rng.choice(CLASSES, k, replace=False).tolist()
        p = np.full(k, 1 / k) if rng.random() < 0.3 else rng.dirichlet(np.full(k, 0.7)) + 1e-9
        drawn.append(dict(zip(classes, (p / p.sum()).tolist(), strict=True)))
    return drawn


def main() -> None:
    """Try the layers that are asked for and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=1250)
    parser.add_argument("--solved", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    rows = {
        name: {"features": name, "ceilings": 0, "floors": 0, "solved": 0, "passed": 0, "apart": 0.0}
        for name in SETS
    }
    each = options.solved / options.layers
    for n in range(options.layers):
        name = list(SETS)[n % len(SETS)]
        row, features = rows[name], SETS[name]
        scale = rng.choice([0.3, 1.0, 3.0, 30.0])
        W = rng.normal(size=(CLASSES, DIMENSION)) * scale
        W[:5] = W[5:].mean(axis=0) + 0.05 * W[:5]
        layer = SoftmaxLayer(W, rng.normal(size=CLASSES) if rng.random() < 0.5 else None)
        found = ceilings(layer, features=features)
        targets = draw_targets(rng)
        floors = floor(layer, targets, features=features)
        P = np.zeros((CLASSES, CLASSES))
        for row_of, target in zip(P, targets, strict=True):
            row_of[list(target)] = list(target.values())
        log_p = log_probabilities(layer, features, draw_points(rng, features))
        best = log_p.max(axis=0)
        negative_entropy = np.where(P > 0, P * np.log(np.where(P > 0, P, 1)), 0).sum(axis=1)
        least = (negative_entropy[None] - log_p @ P.T).min(axis=0)
        row["ceilings"] += CLASSES
        row["floors"] += CLASSES
        row["passed"] += int((best > np.log(found.ceiling.astype(np.longdouble)) + 1e-15).sum())
        row["passed"] += int((least + 1e-15 < floors.floor.to_numpy()).sum())
        for _ in range(int(each * (n + 1)) - int(each * n)):
            t, start = int(rng.integers(CLASSES)), np.full(DIMENSION, 0.01)
            p = np.eye(CLASSES)[t]
            value, bound = solve(layer, features, p, start), -np.log(found.ceiling[t])
            row["solved"] += 1
            # the solver's own arithmetic: its points may lie outside by a rounding
            row["passed"] += int(value < bound - 1e-9 * max(1.0, abs(bound)))
            row["apart"] = max(row["apart"], value - bound)
            t = int(rng.integers(CLASSES))
            value, bound = solve(layer, features, P[t], start), float(floors.floor[t])
            row["solved"] += 1
            row["passed"] += int(value < bound - 1e-9 * max(1.0, abs(bound)))
    table = pd.DataFrame(rows.values())
    table.to_csv(OUT, index=False, float_format="%.4f")
    print(table.to_string(index=False))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
