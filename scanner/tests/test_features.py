"""Feature sets: what they print, store, contain and support, in floats and fractions."""

import hashlib
import json
from fractions import Fraction

import numpy as np
import pytest
from definition import dot, exact
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.features import Ball, Box, Ellipsoid, FeatureSet, Unbounded
from softgeom.features.ellipsoid import format_of
from softgeom.layer import SoftmaxLayer
from softgeom.rounding import as_floats, underflow
from softgeom.scanner import scan

BOXES = [Box(100.0), Box(100.0001), Box(2.0, low=-0.2785), Box(5.0, low=0.0)]
BOXES += [Box((1.0, 2.0, 3.0)), Box((1.0, 2.0, 3.0000000000000004))]
GAIN, UNSCALABLE = [1.0, 0.5, 2.0], Ellipsoid([1.0, 0.5, 2.0], [0.1, 0, 5e-324])
NORMS = [Ellipsoid(GAIN, [0.1, 0, 0]), UNSCALABLE, Ellipsoid(GAIN, [0.1, 0, 0], centred=True)]
SETS = [*BOXES, Ball(3.0), Ball(3.0000000000000004), Unbounded(), *NORMS]
ids = pytest.mark.parametrize("features", SETS, ids=lambda f: f.describe())


def test_no_two_sets_print_alike():
    assert len({features.describe() for features in SETS}) == len(SETS)
    assert len(set(SETS)) == len(SETS)
    assert Box(100).describe() == "|x| <= 100"
    assert Box(100.0001).describe() == "|x| <= 100.0001"
    assert Box(1.0).condition() == "up to 1"
    assert Box(2.0, low=-0.5).condition() == "from -0.5 to 2"
    for mixed in (Box((1.0, 2.0), low=0.0), Box(1.0, low=(0.0, 0.5))):
        assert mixed.describe() == f"box of 2 intervals ({mixed.digest()[:12]})"
        assert mixed.condition() == f"over {mixed.describe()}"
    for norm, name in ((NORMS[0], "RMSNorm"), (NORMS[2], "LayerNorm")):
        assert norm.describe() == f"{name} ellipsoid of 3 features ({norm.digest()[:12]})"
    numbers = '{"high": ["0x1.0000000000000p+0", "0x1.0000000000000p+1"], "low": "0x0.0p+0"'
    text = f'{numbers}, "set": "box"}}'
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert Box((1.0, 2.0), low=0.0).digest() == digest


@ids
def test_a_set_survives_json_to_the_last_bit(features):
    assert FeatureSet.from_json(json.loads(json.dumps(features.to_json()))) == features


@ids
@given(seed=st.integers(0, 10**6), power=st.sampled_from([0, 0, -900, -500, 500, 900]))
@settings(max_examples=20)
def test_what_is_certainly_inside_is_inside(features, seed, power):
    if power < 0 and features == UNSCALABLE:  # its bias cannot be scaled
        return
    rng = np.random.default_rng(seed)
    there = features.scaled(-power)
    sizes = (features.extent or 1.0) * 10.0 ** rng.uniform(-1.5, 0.3, (6, 1))
    Z = np.ldexp(rng.normal(size=(6, 3)) * sizes, power)
    for z, inside in zip(Z, there.contains(Z), strict=True):
        truth = there.contains_exactly(exact(z))
        assert truth or not inside
        if inside != truth:  # only rounding may turn a point away
            assert not there.contains_exactly([Fraction(v) * Fraction(1 + 1e-9) for v in z])


@pytest.mark.parametrize("d", [2, 3, 100])
def test_a_point_just_outside_a_ball_is_not_certainly_inside(d):
    """The largest radius below the norm of ``(v, ..., v)``, whose squares are all rounded alike."""
    for v in np.random.default_rng(0).uniform(1, 2, 100):
        square = d * Fraction(v) ** 2
        radius = float(np.sqrt(d)) * v * (1 - 2e-15)
        while Fraction(float(np.nextafter(radius, 99))) ** 2 < square:
            radius = float(np.nextafter(radius, 99))
        assert not Ball(radius).contains(np.full((1, d), v))[0]


@ids
def test_effective_rows_are_the_exact_ones_rounded(features):
    w, b = np.array([0.3, -1.7, 2.9]), 0.7
    row, shift = features.reduce_exactly(exact(w), Fraction(b))
    rows = features.effective_rows(w[None, None], np.float64)[0, 0]
    np.testing.assert_allclose(rows, [float(v) for v in row], rtol=1e-14)
    bias = features.effective_bias(w[None], np.array([b]))[0]
    assert bias == pytest.approx(float(shift), rel=1e-14)
    z = [Fraction(1, 3), Fraction(-1, 5), Fraction(2, 7)]
    x = features.features_exactly(z)
    assert dot(exact(w), x) + Fraction(b) == dot(row, z) + shift
    at, moved = features.features_at(np.array([[float(v) for v in z]]))
    assert np.linalg.norm(at[0] - [float(v) for v in x]) <= moved[0] + 1e-15


INTEGERS = [2**53 + 1, np.int64(2**53 + 1), np.uint64(2**64 - 1), 10**30 + 1, [1, 2**53 + 1]]
BEYOND = [*INTEGERS, np.nextafter(np.longdouble(1), np.longdouble(2)), Fraction(1, 3)]


@pytest.mark.parametrize("given", BEYOND, ids=str)
def test_conversions_that_change_a_number_are_refused(given):
    if np.finfo(np.longdouble).nmant == 52 and isinstance(given, np.longdouble):
        pytest.skip("longdouble is float64 here")
    with pytest.raises(ValueError, match=r"bias holds .* which float64 would round to"):
        as_floats(given, "bias")


def test_conversions_that_change_nothing_are_made():
    np.testing.assert_array_equal(as_floats([2**53, -(2**60), 3], "x"), [2.0**53, -(2.0**60), 3.0])
    assert as_floats(np.longdouble("0.5"), "x") == 0.5
    assert as_floats(Fraction(1, 4), "x") == 0.25
    with pytest.raises(ValueError, match="not complex"):
        as_floats(1j, "x")
    with pytest.raises(ValueError, match="x must be an array of real numbers, not text"):
        as_floats([["0.1"], ["9007199254740993"]], "x")
    error = np.array([0.0, 1e-300])
    assert Unbounded().support_bound(np.zeros(2), error) == (np.inf, np.inf)
    assert Unbounded().region(2, True).high.tolist() == [1, 1, 1]


def test_an_error_as_large_as_what_underflow_takes_is_no_smaller_for_that():
    lost = underflow(3)
    assert Ellipsoid([1.0], radius=1.0).support_bound(np.zeros(1), np.array([lost]))[0] >= lost


def test_where_no_corner_of_a_box_rises_nothing_is_lost():
    """A support of exactly 0 stays 0: a proof without slack rests on it."""
    for features, v in ((Box(9.0, low=0.0), [-1.0, 0.0]), (Box(0.0, low=-9.0), [1.0, 0.0])):
        assert features.support_bound(np.array(v), np.zeros(2))[0] == 0
        assert features.support_bound(-np.array(v), np.zeros(2))[0] == pytest.approx(9)


@ids
def test_nobody_changes_a_set_or_its_region(features):
    regions = [features.region(3, True) for _ in range(2)]
    assert len(set(regions)) == 2  # arrays have no hash: each region is itself
    changes = [(features, name) for name in ("kind", *features.fields())]
    for owner, name in [*changes, (regions[0], "radius")]:
        with pytest.raises(AttributeError):
            setattr(owner, name, None)


def test_a_set_of_ones_own_needs_its_own_kind_and_takes_no_other_set_s():
    class Narrow(Box):
        pass

    with pytest.raises(ValueError, match="Narrow has no kind of its own"):
        scan(SoftmaxLayer(np.eye(3)), features=Narrow(1.0))
    with pytest.raises(ValueError, match="kind 'box' belongs to the feature set Box"):
        type("Other", (Box,), {"kind": "box"})
    assert FeatureSet.from_json(Box(1.0).to_json()) == Box(1.0)
    for _ in range(2):  # a notebook's cell is run again

        class Wide(Box):
            kind = "wide"

        assert isinstance(FeatureSet.from_json(Wide(1.0).to_json()), Wide)


@pytest.mark.parametrize(
    ("features", "holds"),
    [
        (Ellipsoid.rms_norm([1.0, -2.0]), True),
        (Ellipsoid.rms_norm([1.0, 0.0]), False),
        (Ellipsoid([1.0, 2.0], [0.0, 1.0]), False),
        (Ellipsoid.layer_norm([1.0, 2.0]), False),
    ],
)
def test_only_a_norm_around_zero_in_every_direction_holds_a_ball(features, holds):
    assert features.holds_a_ball == holds


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("d", [4, 60])
def test_rounded_outputs_of_a_norm_lie_in_its_rounded_set(kind, centred, d):
    """Each step in float32 and rounded; the set is asked in the coordinates u' = (x - s) / g."""
    form = getattr(pytest.importorskip("ml_dtypes"), kind, None) or np.dtype(kind)
    rng = np.random.default_rng(d)
    gain, shift = (np.array(rng.uniform(0.5, 2, d), form) for _ in range(2))
    shift = shift if centred else np.zeros(d, form)
    z = (rng.standard_normal((4000, d)) * 10.0 ** rng.uniform(0, 3, (4000, 1))).astype(form)
    z = z.astype(np.float32)
    z -= z.mean(axis=1, keepdims=True) * centred
    u = (z / np.sqrt((z**2).mean(axis=1, keepdims=True) + np.float32(1e-6))).astype(form)
    x = (u * gain + shift).astype(np.float64)
    g, s = gain.astype(float), shift.astype(float)
    assert format_of(g, s) == kind
    wide = (
        Ellipsoid.layer_norm(g, s, rounded=True) if centred else Ellipsoid.rms_norm(g, rounded=True)
    )
    sizes = np.linalg.norm((x - s) / g, axis=1)
    assert np.sqrt(d) < sizes.max() <= wide.radius
