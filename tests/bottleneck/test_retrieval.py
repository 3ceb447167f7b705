"""Retrieval: documents never first, sets never together, the moment curve."""

import itertools

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from softgeom.bottleneck.asking.retrieval import (
    ask_together,
    largest_safe_set,
    make_index,
    moment_index,
    never_first,
)
from softgeom.layer import SoftmaxLayer


def test_documents_inside_the_hull_are_never_first():
    W = np.random.default_rng(0).normal(size=(40, 3))
    found = never_first(make_index(W))
    assert found.verify()
    won = {f.index for f in found.findings if f.evidence.verdict == "argmaxable"}
    assert won == set(ConvexHull(W).vertices.tolist())
    unit = W / np.linalg.norm(W, axis=1, keepdims=True)
    assert never_first(make_index(unit)).counts["argmaxable"] == 40


@pytest.mark.parametrize("dimension", [2, 4])
def test_the_moment_curve_returns_every_set_of_half_its_dimension(dimension):
    index, k = moment_index(8, dimension), largest_safe_set(dimension)
    assert np.allclose(np.linalg.norm(index.W, axis=1), 1)
    found = ask_together(index, itertools.combinations(range(8), k))
    assert found.counts["possible"] == len(found)
    assert found.verify()
    more = ask_together(index, itertools.combinations(range(8), k + 1))
    assert more.counts["impossible"] > 0
    assert more.verify()


def test_pairs_never_together_in_the_plane_are_those_that_are_no_neighbours():
    """On a circle a query returns two documents together iff they are next to each other."""
    t = np.sort(np.random.default_rng(2).uniform(0, 2 * np.pi, 7))
    index = make_index(np.stack([np.cos(t), np.sin(t)], axis=1))
    pairs = list(itertools.combinations(range(7), 2))
    found = ask_together(index, pairs)
    expected = [(j - i) % 7 in (1, 6) for i, j in pairs]
    assert [answer.verdict == "possible" for answer in found.answers] == expected


def test_what_is_no_index_is_refused():
    index = make_index(np.eye(3), ["a", "b", "c"])
    with pytest.raises(ValueError, match="has no bias"):
        never_first(SoftmaxLayer(np.eye(3), np.ones(3)))
    with pytest.raises(ValueError, match="documents of a set: no class is named"):
        ask_together(index, [[]])
    with pytest.raises(ValueError, match=r"documents of a set: .* no class 'd'"):
        ask_together(index, [["a", "d"]])
    with pytest.raises(ValueError, match="even number of dimensions"):
        moment_index(5, 3)
    with pytest.raises(ValueError, match="at least one dimension"):
        largest_safe_set(0)
