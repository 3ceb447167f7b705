"""Ceilings of probability behind a scale, a soft cap or sigmoids, against many points by brute
force.
"""

import numpy as np
import pytest
from safetensors import safe_open

from softgeom.ceiling import Ceilings, ceilings, floor
from softgeom.ceiling.bound import Certifier
from softgeom.layer import Ball, Box, Ellipsoid, SoftmaxLayer
from softgeom.readout import Readout

READOUTS = {
    "scale": Readout(scale=0.3),
    "large scale": Readout(scale=4.0),
    "cap": Readout(soft_cap=3.0),
    "scale and cap": Readout(scale=2.5, soft_cap=1.5),
    "sigmoid": Readout("threshold", probability="sigmoid"),
    "scaled sigmoid": Readout("threshold", scale=0.5, soft_cap=4.0, probability="sigmoid"),
}
SETS = {
    "box": Box(2.0),
    "ball": Ball(2.0),
    "norm": Ellipsoid.layer_norm(np.array([1.0, 0.5, 2.0]), np.array([0.1, 0.0, -0.3])),
}


@pytest.fixture(scope="module")
def layer():
    rng = np.random.default_rng(5)
    W = rng.standard_normal((9, 3)).astype(np.float32)
    W[8] = W[:8].mean(axis=0)  # a class inside the others
    return SoftmaxLayer(W, rng.standard_normal(9).astype(np.float32))


def samples(features, rng):
    """Points of the set, most of them on its edge, in the coordinates of evidence."""
    Z = rng.uniform(-2, 2, (20_000, 3))
    if isinstance(features, Box):
        return np.concatenate([Z, np.sign(Z) * 2])
    radius = features.region(3, has_bias=False).radius
    return Z / np.linalg.norm(Z, axis=1, keepdims=True) * radius * (1 - 1e-9)


@pytest.mark.parametrize("where", SETS)
@pytest.mark.parametrize("name", READOUTS)
def test_no_point_of_the_set_exceeds_a_ceiling(layer, name, where, tmp_path):
    readout, features = READOUTS[name], SETS[where]
    found = ceilings(layer, features=features, readout=readout)

    def probabilities(Z):
        x, _ = features.features_at(Z)
        return readout.probabilities(x @ layer.W.astype(float).T + layer.bias)

    most = probabilities(samples(features, np.random.default_rng(0))).max(axis=0)
    assert (most <= found.ceiling).all()
    own = probabilities(np.asarray(found.points, float)[found.at])
    assert (found.reached <= own[np.arange(9), np.arange(9)] * (1 + 1e-12)).all()
    if readout.soft_cap is None or readout.probability == "sigmoid":
        # what is reached and what is proven agree to the gap that was asked for
        assert (found.ceiling <= found.reached * 1.04 + 1e-12).all()
    else:
        high = found.ceiling > 0.5
        assert np.allclose(found.ceiling[~high], 0.5)
    found.save(tmp_path / "c")
    again = Ceilings.load(tmp_path / "c", layer)
    assert again.readout == readout
    assert np.array_equal(again.ceiling, found.ceiling)


def test_a_plain_readout_leaves_the_file_as_it_was(layer, tmp_path):
    found = ceilings(layer, [1], features=Box(1.0), readout=Readout())
    found.save(tmp_path / "plain")
    ceilings(layer, [1], features=Box(1.0)).save(tmp_path / "none")
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "none").read_bytes()
    ceilings(layer, [1], features=Box(1.0), readout=Readout(scale=2.0)).save(tmp_path / "scaled")
    headers = [safe_open(tmp_path / name, "np").metadata() for name in ("plain", "scaled")]
    assert ["readout" in header for header in headers] == [False, True]


def test_a_cap_can_raise_a_probability_and_not_above_one_half():
    """Five rows of a Gemma 2: at 29% without the cap, class 4 has 42% of the model's own output."""
    rows = np.array([[1, 0], [-1, 0], [0, 1], [0, -1], [0.45, 0.45]], np.float32)
    layer, norm = SoftmaxLayer(100 * rows), Ellipsoid.rms_norm(np.ones(2))
    capped = ceilings(layer, [4], features=norm, readout=Readout(soft_cap=30.0))
    plain = ceilings(layer, [4], features=norm)
    turn = np.linspace(0, 2 * np.pi, 20_001)
    X = np.sqrt(2) * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    own = Readout(soft_cap=30.0).probabilities(X @ layer.W.T)[:, 4].max()
    assert plain.ceiling[0] < own <= capped.ceiling[0]
    assert capped.reached[0] <= own


def test_captors_bound_a_scaled_softmax(layer):
    scaled = SoftmaxLayer(layer.W * np.float32(4), layer.bias * 4)
    by_hand = Certifier(scaled, Box(2.0)).ceiling_of_captors(8, [0, 3], [0.5, 0.5])
    found = Certifier(layer, Box(2.0), Readout(scale=4.0)).ceiling_of_captors(8, [0, 3], [0.5, 0.5])
    assert found == pytest.approx(by_hand, rel=1e-9)


def test_floors_follow_a_scale(layer):
    targets = [{0: 0.5, 1: 0.5}, [2, 5]]
    scaled = SoftmaxLayer(layer.W * np.float32(4), layer.bias * 4)
    by_hand = floor(scaled, targets, features=Box(0.5))
    found = floor(layer, targets, features=Box(0.5), readout=Readout(scale=4.0))
    assert found["attained"].to_numpy() == pytest.approx(by_hand["attained"].to_numpy(), abs=0.01)
    assert (found["floor"] <= by_hand["attained"]).all()


@pytest.mark.parametrize("kind", ["normalised sigmoids", "none"])
def test_other_probabilities_are_refused(layer, kind):
    with pytest.raises(ValueError, match="bounds are known for a softmax or sigmoids"):
        ceilings(layer, features=Box(1.0), readout=Readout(probability=kind))


def test_floors_behind_a_cap_are_refused(layer):
    with pytest.raises(ValueError, match="without a soft cap"):
        floor(layer, [[0, 1]], readout=Readout(soft_cap=30.0))
