"""Ranks, narrow arithmetic, interior classes and prevention."""

import numpy as np
import pytest

from softgeom.arithmetic import round_to, survives
from softgeom.certifying.checker import Checker
from softgeom.certifying.verdict import Captors, Witness
from softgeom.examples import uniform_layer
from softgeom.layer import Box, SoftmaxLayer, Unbounded
from softgeom.prevention import power, repair
from softgeom.scanner import scan
from softgeom.unargmaxable import bound_rank

SQUARE, TRIANGLE = [[2, 2], [2, -2], [-2, 2], [-2, -2]], [[1, 0], [-0.5, 1], [-0.5, -1]]
NESTED = np.array([*SQUARE, *TRIANGLE, [0, 0]])


def test_rank_of_a_class_behind_two_fences():
    """The origin inside a triangle inside a square: one of each is always ahead, so rank >= 3."""
    bounds = bound_rank(SoftmaxLayer(NESTED), 7)
    assert bounds.at_least >= 3
    assert bounds.at_most >= bounds.at_least
    y = SoftmaxLayer(NESTED).logits(bounds.point)
    assert 1 + int((np.delete(y, 7) >= y[7]).sum()) <= bounds.at_most
    assert bound_rank(SoftmaxLayer(NESTED), 0).at_most == 1


def test_rank_bounds_contain_the_best_rank_of_a_dense_sample():
    layer = uniform_layer(40, 2, seed=1)
    X = np.random.default_rng(0).uniform(-100, 100, (20000, 2))
    Y = layer.logits(np.vstack([X, X / 100]))
    lost = [f.index for f in scan(layer).findings if isinstance(f.evidence, Captors)]
    for t in lost[::6]:
        seen = int(1 + (np.delete(Y, t, axis=1) > Y[:, [t]]).sum(axis=1).min())
        assert bound_rank(layer, t).at_least <= seen


def test_a_rank_is_no_better_than_its_point_shows_where_logits_hide_what_is_between_them():
    """Both logits are equal in float64, in which the second class is ahead by less than a unit."""
    layer = SoftmaxLayer([[2.0**60], [2.0**60]], [0.0, 2.0**-20])
    bounds = bound_rank(layer, 0, Box(1.0, low=0.5))
    assert (bounds.at_least, bounds.at_most) == (2, 2)


def test_whoever_is_ahead_or_level_but_for_rounding_counts_and_outside_everybody():
    layer = SoftmaxLayer(np.ones((4, 1)), [0.0, 1.0, -(2.0**-52), -(2.0**-20)])
    checker = Checker(layer, Box(1.0))
    assert checker.ahead(0, np.array([1.0])) == 2
    assert checker.ahead(0, np.array([2.0])) == 3


def test_narrow_formats_round_to_nearest_even_and_lose_narrow_wins():
    values = np.array([1.0, 1 + 2**-9, 1 + 3 * 2**-9, -np.pi, 3e38], np.float32)
    assert round_to(np.array([1 + 2**-8], np.float32), "bfloat16")[0] == 1.0  # a tie goes to even
    assert round_to(np.array([1 + 3 * 2**-8], np.float32), "bfloat16")[0] == 1 + 2**-6
    assert round_to(np.array([1 + 2**-11]), "float16")[0] == 1.0
    assert round_to(np.array([1e6]), "float16")[0] == np.inf
    with pytest.raises(ValueError, match="Unknown format 'int8'"):
        round_to(values, "int8")  # type: ignore[arg-type]
    layer = SoftmaxLayer([[1.0, 0.0], [1.0, 1e-4], [0.0, 1.0]])
    found = scan(layer, features=Box(1.0, low=(0.5, -1.0)))
    assert isinstance(found.evidence(0), Witness)
    assert survives(found, "float32")[0]
    assert not survives(found, "bfloat16")[0]


@pytest.mark.parametrize("method", ["unit-norm", "bias"])
def test_repaired_layers_free_every_class(method):
    sick = uniform_layer(80, 2, seed=0)
    assert scan(sick).counts["unargmaxable"] > 40
    well = repair(sick, method)
    assert scan(well, features=Unbounded()).counts["argmaxable"] == 80
    assert np.ptp(power(well)) < 1e-5
    X = well.W.astype(float)
    assert (well.logits(X).argmax(axis=1) == np.arange(80)).all(), "each class wins at its own row"


def test_repair_says_what_it_cannot_do():
    with pytest.raises(ValueError, match="Row 1 is zero"):
        repair(SoftmaxLayer([[1.0], [0.0]]))
    with pytest.raises(ValueError, match="Unknown repair"):
        repair(SoftmaxLayer([[1.0]]), "prayer")  # type: ignore[arg-type]
