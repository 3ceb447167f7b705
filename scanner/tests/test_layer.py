"""Layers and feature sets name what is wrong with them, and keep what they are given."""

import numpy as np
import pytest

from softgeom.layer import Ball, Box, Ellipsoid, SoftmaxLayer, Unbounded


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_narrow_weights_stay_narrow(dtype):
    W = np.ones((3, 2), dtype)
    layer = SoftmaxLayer(W, np.zeros(3, dtype))
    assert layer.W.dtype == layer.bias.dtype == dtype
    W[0, 0] = 7  # the layer has a copy of its own, which nobody can write to
    np.testing.assert_array_equal(layer.W, np.ones((3, 2)))
    assert not layer.W.flags.writeable
    assert SoftmaxLayer(layer.W).W is layer.W
    assert (layer.classes, layer.dimension) == (3, 2)


def test_integers_become_float64_and_tokens_name_classes():
    layer = SoftmaxLayer([[1, 2], [3, 4]], [[5, 6]])
    assert layer.W.dtype == np.float64
    np.testing.assert_array_equal(layer.bias, [5.0, 6.0])
    np.testing.assert_array_equal(layer.logits([1.0, 1.0]), [8.0, 13.0])
    assert SoftmaxLayer(np.eye(2), tokens=["no", "yes"]).token(1) == "yes"
    assert SoftmaxLayer(np.eye(2)).token(1) == "1"


@pytest.mark.parametrize(
    ("W", "b", "tokens", "message"),
    [
        (np.zeros(3), None, None, "must be a .classes, features. matrix"),
        (np.zeros((0, 3)), None, None, "must be a .classes, features. matrix"),
        (np.zeros((3, 0)), None, None, "must be a .classes, features. matrix"),
        ([[1.0, np.nan]], None, None, r"W has a NaN or infinite entry, the first at \[0, 1\]"),
        (np.ones((2, 2)), [0, np.inf], None, r"b has a NaN or infinite entry, the first at \[1\]"),
        (np.ones((2, 2)), [0.0], None, r"b must have one entry per class \(2\)"),
        (np.ones((2, 2)), None, ["a"], "tokens must name all 2 classes, not 1"),
        ([["x"]], None, None, "W must be an array of real numbers"),
    ],
)
def test_bad_layers_are_told_apart(W, b, tokens, message):
    with pytest.raises(ValueError, match=message):
        SoftmaxLayer(W, b, tokens)


@pytest.mark.parametrize("row", [4095, 4096, 4097, 4999])
def test_first_bad_entry_is_found_in_every_block(row):
    W = np.zeros((5000, 1))
    W[row] = np.inf
    with pytest.raises(ValueError, match=rf"\[{row}, 0\]"):
        SoftmaxLayer(W)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box(0.0), "low < high"),
        (lambda: Box(1.0, low=2.0), "low < high"),
        (lambda: Box((1.0, 1.0), low=(0.0, 1.0)), "low < high"),
        (lambda: Box(np.inf), "must be finite"),
        (lambda: Box(1.0, low=-np.inf), "must be finite"),
        (lambda: Box((1.0, np.inf), low=0.0), "must be finite"),
        (lambda: Box(1.0, low=(0.0, -np.inf)), "must be finite"),
        (lambda: Box([[1.0]]), "numbers or vectors"),
        (lambda: Box((1.0, 2.0), low=(0.0, 0.0, 0.0)), "3 lower bounds but 2 upper"),
        (lambda: Ball(-1.0), "positive"),
        (lambda: Ball(np.nan), "positive"),
        (lambda: Ellipsoid([[1.0]]), "gain must be a vector"),
        (lambda: Ellipsoid([1.0, 2.0], [0.0]), "differ in shape"),
        (lambda: Ellipsoid([1.0, np.nan]), r"gain has a NaN .*, the first at \[1\]"),
        (lambda: Ellipsoid([1.0], radius=0.0), "radius of an Ellipsoid"),
    ],
)
def test_bad_feature_sets_are_told_apart(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_boxes_are_symmetric_and_normalisations_have_radius_root_d():
    np.testing.assert_array_equal(Box(2.0).bounds(3)[0], [-2.0] * 3)
    np.testing.assert_array_equal(Box((1.0, 2.0), low=-0.25).bounds(2), [[-0.25] * 2, [1.0, 2.0]])
    assert Box(3.0) == Box(3.0, low=-3.0)
    assert Ellipsoid.rms_norm(np.ones(16)).radius == 4.0
    told = [f.describe() for f in (Unbounded(), Ball(2.0), Box())]
    assert told == ["unbounded", "||x|| <= 2", "|x| <= 100"]
