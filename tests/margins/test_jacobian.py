"""The closed forms of Appendices A and B against autograd and hand counts."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.margins import (
    attention_jacobian_blocks,
    eigenvalue_margin,
    singular_value_margin,
    spectral,
    spectral_radius_margin,
)
from papers.margins import jacobian as J


def _residual_by_torch(X: torch.Tensor, W_Q, W_K, W_V, causal: str) -> torch.Tensor:
    """The layer as anybody would write it, position by position."""
    W_Q, W_K, W_V = (torch.as_tensor(W) for W in (W_Q, W_K, W_V))
    rows = []
    for i in range(len(X)):
        context = X[: i if causal == "strict" else i + 1]
        if len(context) == 0:
            rows.append(X[i])
            continue
        a = torch.softmax((context @ W_K.T) @ (W_Q @ X[i]), dim=0)
        rows.append(X[i] - W_V @ (a @ context))
    return torch.stack(rows)


def _problem(seed: int, T: int, d: int, r: int):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(shape) for shape in ((T, d), (r, d), (r, d), (d, d)))


@pytest.mark.parametrize("causal", ["strict", "inclusive"])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31), T=st.integers(1, 6), d=st.integers(1, 4), r=st.integers(1, 3))
def test_whole_jacobian_is_that_of_autograd(causal, seed, T, d, r):
    X, W_Q, W_K, W_V = _problem(seed, T, d, r)
    wanted = torch.autograd.functional.jacobian(
        lambda Z: _residual_by_torch(Z, W_Q, W_K, W_V, causal), torch.as_tensor(X)
    ).numpy()
    full = J.residual_jacobian(X, W_Q, W_K, W_V, causal=causal)
    scale = max(1.0, np.abs(wanted).max())
    assert np.abs(full - wanted).max() <= 1e-10 * scale
    # so the determinant is the product of those of the blocks below
    assert (full.transpose(0, 2, 1, 3)[np.triu(np.ones((T, T), bool), 1)] == 0).all()
    blocks = J.attention_jacobian_blocks(X, W_Q, W_K, W_V, causal=causal)
    assert np.abs(blocks - np.einsum("icie->ice", wanted)).max() <= 1e-10 * scale
    residual = _residual_by_torch(torch.as_tensor(X), W_Q, W_K, W_V, causal)
    found = J.residual_map(X, W_Q, W_K, W_V, causal=causal)
    np.testing.assert_allclose(found, residual, atol=1e-12)


def test_printed_appendix_lacks_exactly_the_key_term():
    X, W_Q, W_K, W_V = _problem(3, 5, 3, 2)
    a, mean, _ = J.attend(X, W_Q, W_K, causal="inclusive")
    outer = np.einsum("ic,ie->ice", X - mean, X @ (W_K.T @ W_Q).T)
    key_term = np.diag(a)[:, None, None] * (W_V @ outer)
    right = J.attention_jacobian_blocks(X, W_Q, W_K, W_V, causal="inclusive")
    gap = J.appendix_a_blocks(X, W_Q, W_K, W_V) - right
    np.testing.assert_allclose(gap, key_term, atol=1e-12)
    assert np.abs(gap[1:]).max() > 1e-2
    # position 1 attends to itself alone: x_1 - xbar_1 = 0, the printed form is right there
    np.testing.assert_allclose(gap[0], 0.0, atol=1e-15)


def test_softmax_jacobian_and_covariance_on_a_case_done_by_hand():
    a = np.array([0.25, 0.75])
    assert J.softmax_jacobian(a).tolist() == [[0.1875, -0.1875], [-0.1875, 0.1875]]
    points = np.array([[0.0, 0.0], [4.0, 8.0]])  # variance a(1-a) = 3/16 of the gap (4, 8)
    assert J.weighted_covariance(points, a).tolist() == [[3.0, 6.0], [6.0, 12.0]]


def test_huge_logits_do_not_overflow():
    X, W_Q, W_K, _ = _problem(1, 5, 3, 2)
    blocks = J.attention_jacobian_blocks(1e4 * X, W_Q, W_K)
    assert np.isfinite(blocks).all()


@pytest.mark.parametrize("c", [-3.0, -1.0, 0.5, 2.0])
def test_on_the_line_they_are_functions_of_c_var(c):
    X = np.array([[-1.0], [1.0], [0.0]])  # position 3 sees -1 and 1 with equal weights: Var = 1
    block = attention_jacobian_blocks(X, np.array([[c]]), np.array([[1.0]]))[2:]
    assert spectral_radius_margin(block)[0] == pytest.approx(1 - abs(c))
    assert eigenvalue_margin(block)[0] == pytest.approx(1 - c)
    assert singular_value_margin(block)[0] == pytest.approx(abs(1 - c))


def test_rotation_exhausts_the_spectral_radius_and_harms_nothing():
    """A = 2 * quarter turn: rho = 2, det(I - A) = 5: Lemma B.4 is not necessary."""
    block = np.eye(2) - 2.0 * np.array([[0.0, -1.0], [1.0, 0.0]])
    assert np.linalg.det(block) == pytest.approx(5.0)
    assert spectral_radius_margin(block) == pytest.approx(-1.0)
    assert eigenvalue_margin(block) == np.inf
    assert singular_value_margin(block) == pytest.approx(np.sqrt(5.0))


def test_conditions_are_judged_by_the_determinant():
    eigenvalues = np.array([[0.5, 0.5], [-3.0, 0.0], [2.0, 3.0], [2.0, 0.0]])
    radius, real = spectral.judge_conditions(np.stack([np.diag(1 - pair) for pair in eigenvalues]))
    # an eigenvalue -3 exhausts the first margin and not the second
    assert (radius["holds"], real["holds"]) == (1, 2)
    assert [row["det_not_positive_although_it_holds"] for row in (radius, real)] == [0, 0]
    # diag(4, 1) and diag(-1, -2)
    assert [row["det_positive_although_it_fails"] for row in (radius, real)] == [2, 1]
