"""Planes of space: coordinates that keep rankings, pieces uncut, a painter's order."""

import itertools

import numpy as np
import pytest

from softgeom.bottleneck.counting.rankings import rank_classes
from softgeom.bottleneck.drawing.spatial import (
    Piece,
    Plane,
    braid_normals,
    cut_pieces,
    disc,
    feature_plane,
    paint_order,
    ranking_basis,
)


def size(corners: np.ndarray) -> float:
    """Area of a convex polygon of space."""
    fan = np.cross(corners[1:-1] - corners[0], corners[2:] - corners[0])
    return float(np.linalg.norm(fan, axis=1).sum() / 2)


@pytest.mark.parametrize("C", [2, 3, 4, 7])
def test_basis_forgets_only_the_ones_vector_and_normals_tell_scores(C):
    B = ranking_basis(C)
    np.testing.assert_allclose(B @ B.T, np.eye(C - 1), atol=1e-14)
    np.testing.assert_allclose(B.T @ B, np.eye(C) - 1 / C, atol=1e-14)
    B = ranking_basis(4)
    y = np.array([0.3, -1.0, 2.0, 0.1])
    for (i, j), normal in braid_normals(B).items():
        assert normal @ (B @ y) == pytest.approx(y[i] - y[j])


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


def test_disc_lies_in_its_plane_and_a_plane_needs_two_directions():
    with pytest.raises(ValueError, match="rank two besides the all-ones vector"):
        feature_plane(ranking_basis(4), np.array([[1, 3], [2, 3], [0, 3], [5, 3]]))
    plane = Plane(np.array([1.0, 2.0, -2.0]), 1.5)
    corners = disc(plane, 2.0)
    np.testing.assert_allclose(plane.heights(corners), 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(corners, axis=1), 2.0)
    with pytest.raises(ValueError, match="misses the ball"):
        disc(plane, 0.5)


@pytest.fixture
def braid() -> list[Plane]:
    return [Plane(normal) for normal in braid_normals(ranking_basis(4)).values()]


def test_pieces_of_the_braid_arrangement(braid):
    """y_i = y_j carries the rankings of three items, two of them glued: 6 times 6 sectors."""
    discs = [Piece(disc(plane, 1.0), k) for k, plane in enumerate(braid)]
    pieces = cut_pieces(discs, braid)
    assert len(pieces) == 6 * 6
    assert sum(size(p.corners) for p in pieces) == pytest.approx(6 * size(discs[0].corners))
    for piece, plane in itertools.product(pieces, braid):
        heights = plane.heights(piece.corners)
        assert heights.max() <= 1e-9 or heights.min() >= -1e-9


@pytest.mark.parametrize("eye", [(1.0, 0.3, 0.5), (-0.2, 1.0, -0.7)])
def test_nothing_is_painted_over_what_lies_before_it(braid, eye):
    """Rays towards the eye meet the pieces in the order in which they were painted."""
    planes = [*braid, Plane(np.array([0.2, 0.5, 0.6]), 0.2)]
    pieces = [Piece(disc(plane, 1.0), plane) for plane in planes]
    towards = np.array(eye) / np.linalg.norm(eye)
    ordered = paint_order(cut_pieces(pieces, planes), planes, towards)
    sideways = np.linalg.svd(towards[None])[2][1:]
    crossed = 0
    for start in np.random.default_rng(0).uniform(-0.6, 0.6, (100, 2)) @ sideways:
        depths = []
        for piece in ordered:
            slope = piece.label.normal @ towards
            depth = (piece.label.offset - piece.label.normal @ start) / slope
            edges = np.roll(piece.corners, -1, axis=0) - piece.corners
            turns = np.cross(edges, start + depth * towards - piece.corners) @ piece.label.normal
            if turns.min() > 1e-9 or turns.max() < -1e-9:
                depths.append(depth)
        assert depths == sorted(depths)
        crossed += len(depths)
    assert crossed > 200
