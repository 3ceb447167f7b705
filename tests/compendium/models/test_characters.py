"""Reading groups, gaps and shifts on small layers computed by hand."""

import numpy as np
import pandas as pd
import pytest

from compendium.models.characters import (
    Pictures,
    matched_partners,
    own_and_other_gaps,
    shares_under_shift,
)
from softgeom.layer import SoftmaxLayer


@pytest.fixture
def read():
    """Three classes, one a blank; class 2 lags class 1 by 0.5 on its own picture, else by 2."""
    layer = SoftmaxLayer(np.eye(3), np.zeros(3), ["", "a", "b"])
    features = [np.array([[3.0, 2.0, 0.0], [0.0, 4.0, 2.0]]), np.array([[0.0, 1.0, 0.5]])]
    table = pd.DataFrame(
        {"group": ["free", "lost"], "class": [1, 2], "token": ["a", "b"], "font": "f", "size": 9}
    )
    return layer, Pictures(table.assign(reading=["a", "a"], read=[True, False]), features)


def test_gaps_are_the_least_over_the_positions(read):
    layer, pictures = read
    own, others = own_and_other_gaps(pictures, layer, [2])
    assert own.tolist() == [0.5]
    assert others.tolist() == [[2.0]]


def test_a_shift_frees_the_held_and_spoils_others_in_turn(read):
    layer, pictures = read
    shares = shares_under_shift(pictures, layer, [2], np.array([0.0, 0.4, 0.6, 2.5]))
    assert shares["lost"].tolist() == [0, 0, 1, 1]
    assert shares["free"].tolist() == [1, 1, 1, 0]


def test_partners_have_the_same_kind_and_are_not_used_twice():
    kinds = np.array(["x", "x", "y", "x", "y", "x"])
    ink = {0: 0.50, 1: 0.30, 2: 0.9, 3: 0.49, 4: 0.1, 5: 0.31}
    assert matched_partners([0, 1, 2], [3, 4, 5], kinds, ink).tolist() == [3, 5, 4]
    assert matched_partners([0, 1], [3], kinds, ink).tolist() == [3]  # the kind has run out
