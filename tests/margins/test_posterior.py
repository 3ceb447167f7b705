"""The negative log-posterior against library distributions and automatic differentiation."""

from __future__ import annotations

import pytest
import torch

from compendium.second_routes import compare_objectives, compare_stack_densities
from softgeom.margins.posterior import joint_terms


@pytest.mark.parametrize(("T", "d", "classes"), [(1, 1, 1), (2, 3, 5), (6, 2, 3)])
def test_terms_add_up_to_the_joint_law(T, d, classes):
    found = compare_objectives(0, T, d, classes, 0.6)
    assert found.value_gap < 1e-12
    assert found.gradient_gap < 1e-11


def test_hierarchy_by_two_routes():
    assert compare_stack_densities(3, 0.8) < 1e-10


def test_no_noise_has_no_density():
    X = torch.zeros(2, 2, dtype=torch.float64)
    with pytest.raises(ValueError, match="noise scale s must be positive"):
        joint_terms(X, torch.tensor([0, 0]), X, X, X, s=-1.0)
