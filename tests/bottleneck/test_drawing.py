"""Polygons of rankings in the plane, and what is seen of a ball of logits."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from definition import exact_logits, integer_layer
from hypothesis import given, settings
from hypothesis import strategies as st
from qhull import winners_by_hull

from papers.bottleneck.counting.rankings import feasible_rankings, rank_classes
from papers.bottleneck.counting.regions import count_regions
from papers.bottleneck.drawing.planar import (
    area,
    argmax_cells,
    bounded_rankings,
    centroid,
    crossings,
    cut,
    ranking_cells,
    square,
)
from papers.bottleneck.drawing.spatial import (
    Plane,
    feature_plane,
    look_at_ball,
    ranking_basis,
    view,
)
from softgeom.layer import SoftmaxLayer

# Classes 0, 1, 2 at the corners of a triangle, class 3 inside it: Figure 1 of the paper.
INSIDE = [[4, 1], [-3, 3], [-1, -4], [0, 1]]


def test_cutting_a_square():
    upper, lower = cut(square(1), (0, 1, Fraction(-1, 2)))
    assert (area(upper), area(lower)) == (1, 3)
    assert centroid(upper) == (0, Fraction(3, 4))
    corner, rest = cut(square(1), (1, 1, -1))
    assert (area(corner), area(rest)) == (Fraction(1, 2), Fraction(7, 2))
    assert cut(square(1), (1, 0, -1)) == ([], square(1))  # along an edge
    assert cut(square(1), (1, 1, -2)) == ([], square(1))  # through a corner
    assert cut(square(1), (1, 0, 7)) == (square(1), [])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("C", [2, 3, 4, 6])
def test_cells_tile_the_window_one_for_each_region(C, bias):
    W, b = integer_layer(C, 2, bias)
    reach = 1 + max((abs(x) for p in crossings(W, b) for x in p), default=1)
    if C == 3:  # y_0 = y_1 and y_1 = y_2 imply y_0 = y_2
        (x,) = crossings(W, b)
        assert len(set(exact_logits(SoftmaxLayer(W, b), x))) == 1
    window = square(reach)
    cells = ranking_cells(window, W, b)
    assert set(cells) == set(feasible_rankings(W, b))
    assert len(cells) == count_regions(C, 2, bias)
    assert sum(area(cell) for cell in cells.values()) == area(window)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=2, max_size=5, unique=True),
    st.integers(0, 10**6),
)
def test_random_features_lie_in_the_cell_of_their_ranking(rows, seed):
    """A point belongs to a cell iff it lies left of each edge, special positions too."""
    W, b = [row[:2] for row in rows], [row[2] for row in rows]
    cells, winners = ranking_cells(square(5), W, b), argmax_cells(square(5), W, b)
    for x in np.random.default_rng(seed).uniform(-5, 5, (20, 2)):
        ranking = rank_classes(exact_logits(SoftmaxLayer(W, b), x))
        for cell in (cells[ranking], winners[ranking[-1]]):
            for p, q in zip(cell, cell[1:] + cell[:1], strict=True):
                assert (q[0] - p[0]) * (x[1] - p[1]) >= (q[1] - p[1]) * (x[0] - p[0])


@pytest.mark.parametrize("seed", range(5))
def test_winners_without_bias_are_the_vertices_of_the_hull(seed):
    W, _ = integer_layer(8, 2, bias=False, seed=seed)
    assert set(argmax_cells(square(1), W)) == winners_by_hull(SoftmaxLayer(W))


def test_a_bias_lets_the_inner_class_win_and_equal_classes_tie():
    assert set(argmax_cells(square(9), INSIDE)) == {0, 1, 2}
    raised = argmax_cells(square(9), INSIDE, [0, 0, 0, 1])
    assert set(raised) == {0, 1, 2, 3}
    assert all(max(abs(x) for x in p) < 9 for p in raised[3])
    twins = [[1, 0], [1, 0], [0, 1]]
    assert ranking_cells(square(1), twins) == {}
    assert set(argmax_cells(square(1), twins)) == {2}
    assert set(argmax_cells(square(1), twins, [0, 1, 0])) == {1, 2}


@pytest.mark.parametrize("C", [3, 4, 5, 6])
def test_a_bias_adds_as_many_regions_as_are_bounded(C):
    W, b = integer_layer(C, 2, bias=True, seed=C, size=1000)  # general position
    assert len(bounded_rankings(W, b)) == count_regions(C, 2, True) - count_regions(C, 2, False)
    assert bounded_rankings(W) == set()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ranking_cells(square(1), [[1, 2, 3], [4, 5, 6]]), "only layers with two features"),
        (lambda: argmax_cells(square(1), [[1, 2, 3], [4, 5, 6]]), "only layers with two features"),
        (lambda: ranking_cells([(0, 0), (0, 1), (1, 0)], INSIDE), "counter-clockwise"),
        (lambda: argmax_cells([(0, 0), (1, 1), (2, 2)], INSIDE), "polygon with area"),
        (lambda: square(0), "positive half width"),
        (lambda: look_at_ball(-CUT.normal, np.eye(3)[:, :2], 1.0, CUT), "only the lower side"),
        (lambda: feature_plane(ranking_basis(4), np.array([[1, 3], [2, 3], [0, 3], [5, 3]])),
         "rank two besides the all-ones vector"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("C", [2, 3, 4, 7])
def test_basis_forgets_only_the_ones_vector_and_normals_tell_scores(C):
    B = ranking_basis(C)
    np.testing.assert_allclose(B @ B.T, np.eye(C - 1), atol=1e-14)
    np.testing.assert_allclose(B.T @ B, np.eye(C) - 1 / C, atol=1e-14)
    y = np.random.default_rng(0).normal(size=C)
    for i, j in itertools.combinations(range(C), 2):
        assert (B[:, i] - B[:, j]) @ (B @ y) == pytest.approx(y[i] - y[j])


@pytest.mark.parametrize("bias", [True, False])
def test_feature_plane_holds_the_logits_of_its_chart(bias):
    rng = np.random.default_rng(0)
    W, b = rng.normal(size=(4, 2)), rng.normal(size=4) if bias else None
    B = ranking_basis(4)
    plane, F, g = feature_plane(B, W, b)
    u = rng.normal(size=(50, 2))
    logits = (u @ F.T + g) @ W.T + (0 if b is None else b)
    points = logits @ B.T
    np.testing.assert_allclose(plane.heights(points), 0, atol=1e-12)
    foot = (0 if b is None else b) @ B.T + B @ W @ g if bias else np.zeros(3)
    np.testing.assert_allclose(np.linalg.norm(points - foot, axis=1), np.linalg.norm(u, axis=1))
    # the foot of the perpendicular
    np.testing.assert_allclose(np.cross(foot, plane.normal), 0, atol=1e-12)
    assert [rank_classes(y) for y in logits] == [rank_classes(p @ B) for p in points]


CUT = Plane(np.array([0.2, 0.5, 0.6]), 0.15)


@pytest.mark.parametrize("bias", [True, False])
def test_a_cut_ball_shows_the_rankings_of_the_layer(bias):
    W = np.array(INSIDE, dtype=float)
    b = np.array([1.0, -1.0, 0.0, 3.0]) if bias else None
    B = ranking_basis(4)
    plane, _, _ = feature_plane(B, W, b)
    seen, on_cut = look_at_ball(*view(plane, tilt=0.7), 18.0, plane, pixels=400)
    shown = {rank_classes(p @ B) for p in seen[on_cut]}
    assert shown == set(feasible_rankings(W, b))


def test_a_whole_ball_shows_every_ranking_once_it_is_turned():
    B = ranking_basis(4)
    (eye, screen), shown = view(CUT), set()
    for side in (1, -1):
        seen, _ = look_at_ball(side * eye, screen, 1.0, pixels=150)
        shown |= {rank_classes(p @ B) for p in seen[~np.isnan(seen[..., 0])]}
    assert len(shown) == 24
