"""The explorers' geometry (JavaScript) against the library's, random and special."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from papers.bottleneck import count_regions
from papers.bottleneck.counting.arrangement import braid_arrangement, count_arrangement_regions
from papers.bottleneck.counting.rankings import effective_shape
from papers.bottleneck.drawing.planar import argmax_cells, square
from softgeom.asking import ask_together
from softgeom.ceiling import ceilings
from softgeom.layer import Box, SoftmaxLayer, Unbounded
from softgeom.scanner import scan

RUN = """
return argument.map(({W, b, half}) => {
  const layer = m.makeLayer(W, b);
  const cells = W.map((_, t) => m.argmaxCell(layer, t, half));
  return {
    verdicts: m.verdicts(layer),
    rankings: m.countRankings(layer).regions,
    shape: m.effectiveShape(layer),
    areas: cells.map((cell) => (cell.length > 2 ? m.centroid(cell).area : 0)),
    onHull: W.map((_, t) => m.onHull(layer, t)),
  };
});
"""


def _random_layers(seed: int, number: int) -> list[dict]:
    """Layers of 2 to 7 classes, on doubles and on a coarse grid where lines meet."""
    rng = np.random.default_rng(seed)
    layers = []
    for k in range(number):
        C = int(rng.integers(2, 8))
        W, b = rng.normal(size=(C, 2)), rng.normal(size=C) * 0.5
        if k % 2:
            W, b = rng.integers(-2, 3, size=(C, 2)) * 1.0, rng.integers(-1, 2, size=C) * 1.0
        if k % 5 == 4:
            W = np.round(W * 64) / 64
            W[:, 1] = 1 - W[:, 0]  # all on one line: no triangle blocks a class, segments do
        layers.append({"W": W.tolist(), "b": None if k % 3 == 0 else b.tolist(), "half": 4096.0})
    return layers


@pytest.fixture(scope="module")
def compared(javascript):
    layers = _random_layers(seed=7, number=120)
    return list(zip(layers, javascript("geometry", RUN, layers), strict=True))


def test_ceilings_in_the_window_are_those_of_the_library(javascript):
    """What a point reaches and what no point exceeds, from both sides of the library's bounds."""
    body = "return argument.W.map((_, t) => m.ceiling(m.makeLayer(argument.W, argument.b), t, 4));"
    for given in _random_layers(7, 6):
        drawn = javascript("geometry", body, given)
        layer = SoftmaxLayer(given["W"], given["b"])
        proven = ceilings(layer, range(layer.classes), features=Box(4.0), gap=1e-3)
        reached, ceiling = (np.array([d[key] for d in drawn]) for key in ("reached", "ceiling"))
        assert (reached <= proven.ceiling * (1 + 1e-9)).all()
        assert (ceiling >= proven.reached * (1 - 1e-9)).all()
        np.testing.assert_allclose(ceiling, reached, rtol=2e-5)


def test_the_kernel_gives_the_same_verdicts(compared):
    """On the plane, features unbounded, `scan` must agree class by class."""
    for layer, seen in compared:
        table = scan(SoftmaxLayer(layer["W"], layer["b"]), features=Unbounded()).table
        drawn = [verdict["verdict"] for verdict in seen["verdicts"]]
        assert table["verdict"].tolist() == drawn, layer


def test_blocking_classes_prove_what_they_are_shown_for(compared):
    """Convex weights with mean w_t and the largest mean bias."""
    for layer, seen in compared:
        W = np.array(layer["W"])
        b = np.zeros(len(W)) if layer["b"] is None else np.array(layer["b"])
        for t, verdict in enumerate(seen["verdicts"]):
            if verdict["verdict"] != "unargmaxable":
                continue
            rivals, weights = verdict["rivals"], np.array(verdict["weights"])
            assert t not in rivals
            assert len(rivals) <= 3
            assert min(weights) > 0
            assert math.isclose(weights.sum(), 1, rel_tol=1e-12)
            np.testing.assert_allclose(weights @ W[rivals], W[t], atol=1e-12 * (1 + abs(W).max()))
            assert verdict["excess"] == pytest.approx(_largest_excess(W, b, t), abs=1e-7)


def _largest_excess(W, b, t: int) -> float:
    others = np.delete(np.arange(len(W)), t)
    means = np.vstack([W[others].T, np.ones(len(others))])
    return -linprog(-b[others], A_eq=means, b_eq=[*W[t], 1]).fun - b[t]


def test_rankings_and_shapes_are_those_of_exact_arithmetic(compared):
    for layer, seen in compared:
        lines = braid_arrangement(layer["W"], layer["b"])
        assert seen["rankings"] == (0 if lines is None else count_arrangement_regions(lines)), layer
        exact = effective_shape(layer["W"], layer["b"])
        assert (seen["shape"]["dimension"], seen["shape"]["biased"]) == exact, layer


def test_regions_have_the_areas_of_the_exact_polygons(javascript):
    layers = [layer | {"half": 3.0} for layer in _random_layers(seed=8, number=40)]
    for layer, seen in zip(layers, javascript("geometry", RUN, layers), strict=True):
        cells = argmax_cells(square(3.0), layer["W"], layer["b"])
        for t, verdict in enumerate(seen["verdicts"]):
            if verdict["verdict"] == "argmaxable":  # what a tied class would share is not drawn
                exact = float(_area(cells.get(t, [])))
                assert seen["areas"][t] == pytest.approx(exact, abs=1e-9)


def _area(polygon) -> Fraction:
    """By the shoelace formula."""
    pairs = zip(polygon, [*polygon[1:], *polygon[:1]], strict=True)
    return sum((p[0] * q[1] - q[0] * p[1] for p, q in pairs), Fraction(0)) / 2


def test_the_formula_is_the_library_s(javascript):
    body = "return argument.map(([C, d, bias]) => m.rankingFormula(C, d, bias));"
    cases = list(itertools.product(range(2, 17), (1, 2), (False, True)))
    assert javascript("geometry", body, cases) == [count_regions(*case) for case in cases]


def test_a_change_of_the_last_digit_decides(javascript):
    """w_4 on the edge from w_1 to w_2, and one ulp to either side."""
    layers, W = [], [[0.1, 0.7], [0.9, 0.3], [-1.0, -1.0]]
    for x in np.linspace(0.2, 0.8, 40):
        y = 0.7 - (x - 0.1) / 2
        for height in (np.nextafter(y, 0), y, np.nextafter(y, 1)):
            layers.append({"W": [*W, [x, height]], "b": None, "half": 1.0})
    seen = [result["verdicts"][3]["verdict"] for result in javascript("geometry", RUN, layers)]
    exact = [_turn(*layer["W"][:2], layer["W"][3]) < 0 for layer in layers]
    assert [verdict == "argmaxable" for verdict in seen] == exact
    assert len(set(exact)) == 2


def _turn(p, q, r) -> Fraction:
    """Negative when r lies outside the edge from p to q; zero on it."""
    (px, py), (qx, qy), (rx, ry) = (map(Fraction, map(float, point)) for point in (p, q, r))
    return (px - qx) * (ry - qy) - (py - qy) * (rx - qx)


@pytest.mark.parametrize(
    ("W", "b", "told"),
    [
        ([], None, "at least one row"),
        ([[1, 2], [3, None]], None, "Row 2 of W has an entry that is not a finite number"),
        ([[1, 2], [3, 4]], [1], "one entry for each of the 2 classes"),
        ([[1, 2]] * 17, None, "at most 16"),
        ([[1, 2], [3, 4]], [1, 2], ""),
    ],
)
def test_a_bad_layer_gets_one_sentence(javascript, W, b, told):
    sentence = javascript("geometry", "return m.problemWith(...argument);", [W, b])
    assert told in sentence
    assert bool(sentence) == bool(told)


PAIRS = """
return argument.map(({W, half}) => {
  const layer = m.makeLayer(W, null);
  const corners = (pair) => m.pairCell(layer, pair, half).length;
  return m.pairsTogether(layer).map(({pair, why}) => ({pair, why, corners: corners(pair)}));
});
"""


def test_pairs_that_come_first_together_are_those_of_the_library(javascript):
    """On a coarse grid twins and touching segments abound."""
    rng = np.random.default_rng(3)
    layers = [
        {"W": rng.integers(-2, 3, size=(rng.integers(2, 8), 2)).tolist(), "half": 4096.0}
        for _ in range(60)
    ]
    layers += [{"W": rng.normal(size=(6, 2)).tolist(), "half": 4096.0} for _ in range(20)]
    reasons = set()
    for layer, seen in zip(layers, javascript("geometry", PAIRS, layers), strict=True):
        found = ask_together(SoftmaxLayer(layer["W"]), [pair["pair"] for pair in seen])
        assert found.verify()
        for pair, answer in zip(seen, found.answers, strict=True):
            why = pair["why"]
            assert answer.verdict == ("impossible" if why else "possible"), layer
            if not why:
                assert pair["corners"] > 2
                continue
            reasons.add(why["how"])
            assert pair["corners"] == 0 or why["how"] != "inside"
            assert len({*pair["pair"], *why["rivals"]}) == 2 + len(why["rivals"])
    assert reasons == {"inside", "on", "across"}
