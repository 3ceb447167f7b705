"""Mixtures of softmaxes free no captive; other orders they do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.bottleneck.asking.ask import ask
from softgeom.bottleneck.asking.mixtures import freed_pair, mixture, survives_mixing
from softgeom.bottleneck.certifying.order import Order
from softgeom.bottleneck.certifying.verdict import Captors
from softgeom.bottleneck.examples import uniform_layer
from softgeom.bottleneck.scanner import scan
from softgeom.layer import Box, SoftmaxLayer

LAYER = uniform_layer(30, 2, seed=1)
CAPTIVES = [
    f.index for f in scan(LAYER, features=Box(5.0)).findings if isinstance(f.evidence, Captors)
]


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_no_mixture_lets_a_captive_win(seed, components):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-5, 5, (200, components, 2)) * rng.choice(
        [0.01, 0.1, 1.0], (200, components, 1)
    )
    P = mixture(LAYER, X, rng.dirichlet(np.full(components, 0.5), 200))
    assert np.allclose(P.sum(axis=1), 1)
    others = np.delete(np.arange(LAYER.classes), CAPTIVES)
    assert (P[:, CAPTIVES].max(axis=1) <= P[:, others].max(axis=1) * (1 + 1e-12)).all()


def test_a_mixture_obeys_an_order_that_one_softmax_cannot():
    layer, order, X, priors = freed_pair()
    assert ask(layer, [order])[0].verdict == "impossible"
    assert not survives_mixing(order)
    assert order.margin(mixture(layer, X, priors)) > 0.4


def test_which_orders_a_proof_covers_and_what_is_no_mixture():
    assert survives_mixing(Order([[1]], rest=True))
    assert survives_mixing(Order([[1], [2, 3]]))
    assert not survives_mixing(Order([[1], [2]], rest=True))
    assert not survives_mixing(Order([[1, 2]], rest=True))
    layer = SoftmaxLayer(np.eye(2))
    with pytest.raises(ValueError, match="needs components"):
        mixture(layer, np.zeros((3, 2)), [1.0])
    for priors in ([0.5, 0.6], [1.5, -0.5], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="sum to one"):
            mixture(layer, np.zeros((2, 2)), priors)
