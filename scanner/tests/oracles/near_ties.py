"""An attack on every rounding bound: near ties, at which float64 alone would prove falsehoods.

Unargmaxable classes are mixtures of others to the last bit, witnesses beat a rival that differs by
units in the last place. What a checker accepts is then decided again in fractions.
``without_bounds`` shows that the attack has teeth: it sets every bound on rounding to zero.
"""

import itertools
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from unittest import mock

import numpy as np
from definition import exact_margin
from numpy.typing import NDArray

from softgeom.certifying.checker import Checker, wins
from softgeom.certifying.hull import certify_unargmaxable
from softgeom.certifying.slack import slack_bounds
from softgeom.certifying.verdict import BlockingClasses, Witness
from softgeom.layer import Ball, Box, Ellipsoid, FeatureSet, SoftmaxLayer, Unbounded
from softgeom.proving.exact import decide_exactly
from softgeom.proving.simplex import TooLargeError

# the functions that bound rounding, by the names under which the checkers import them
BOUNDS = ("gamma", "underflow")


def near_tie(rng: np.random.Generator) -> tuple[SoftmaxLayer, FeatureSet, NDArray[np.float64]]:
    """A layer whose last class is a mixture of its d + 1 others to the last bit, its bias beside
    theirs by some units in the last place.

    Rows and weights are dyadic, so that v = 0 and rounding decides in the biases alone; the weights
    (d + 1,) are the only ones.
    """
    d = int(rng.integers(1, 7))
    W = rng.integers(-32, 33, (d + 2, d)).astype(float)
    cuts = np.sort(rng.choice(np.arange(1, 64), d, replace=False))
    weights = np.diff(cuts, prepend=0, append=64) / 64
    W[-1] = weights @ W[:-1]
    b = rng.normal(size=d + 2) * 2.0 ** rng.integers(-6, 1, d + 2)
    b[-1] = weights @ b[:-1]
    b[-1] += rng.integers(-2, 3) * np.spacing(b[-1])
    scale = int(rng.choice([0, 0, -300, 300]))
    sets = [Box(1.0), Ball(1.0), Unbounded(), Ellipsoid(np.ones(d), radius=1.0)]
    features = sets[rng.integers(4)]
    return SoftmaxLayer(np.ldexp(W, scale), np.ldexp(b, scale)), features, weights


def false_proofs(attempts: int, seed: int) -> int:
    """How many weights are accepted of classes that win somewhere, in fractions."""
    rng, wrong = np.random.default_rng(seed), 0
    for _ in range(attempts):
        layer, features, weights = near_tie(rng)
        t, rivals = layer.classes - 1, np.arange(layer.classes - 1)
        alone = certify_unargmaxable(layer, features, t, rivals, weights)
        (batch,) = slack_bounds(layer, features, [t], [BlockingClasses(rivals, weights)])
        if min(alone, batch) <= 0:
            with suppress(TooLargeError):  # without bounds its own checker is deceived
                checker = Checker(layer, features)
                evidence, _ = decide_exactly(checker, wins(t), t * layer.classes + rivals)
                wrong += isinstance(evidence, Witness)
    return wrong


def false_witnesses(attempts: int, seed: int) -> int:
    """How many points are accepted at which the class does not win in fractions."""
    rng, wrong = np.random.default_rng(seed), 0
    for _ in range(attempts):
        d, power = int(rng.integers(3, 30)), int(rng.choice([0, 0, -560, -1000]))
        dtype = rng.choice(["float32", "float64"]) if not power else "float64"
        w, x = rng.normal(size=d), rng.normal(size=d)
        rival = w + rng.integers(-1, 2, d) * np.spacing(w.astype(dtype)).astype(float)
        layer = SoftmaxLayer(np.array([w, rival]).astype(dtype))
        point = np.ldexp(x, power).astype(dtype)
        certified = Checker(layer, Unbounded()).certify(point[None], np.array([0]))[0]
        wrong += bool(certified > 0 and not exact_margin(layer, 0, point) > 0)
    return wrong


@contextmanager
def without_bounds() -> Iterator[None]:
    """Every bound on rounding and underflow is zero, in the checkers and in the feature sets."""
    homes = ("softgeom.certifying.", "softgeom.features.")
    modules = [module for name, module in sys.modules.items() if name.startswith(homes)]
    with ExitStack() as patches:
        for module, bound in itertools.product(modules, BOUNDS):
            if hasattr(module, bound):
                patches.enter_context(mock.patch.object(module, bound, return_value=0.0))
        yield
