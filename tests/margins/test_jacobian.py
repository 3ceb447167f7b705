"""The closed forms of Appendices A and B against autograd and hand counts."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.margins import jacobian as J


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


def test_one_token_has_the_identity_and_huge_logits_do_not_overflow():
    X, W_Q, W_K, _ = _problem(0, 1, 3, 2)
    np.testing.assert_array_equal(J.attention_jacobian_blocks(X, W_Q, W_K)[0], np.eye(3))
    np.testing.assert_array_equal(J.residual_map(X, W_Q, W_K), X)
    X, W_Q, W_K, _ = _problem(1, 5, 3, 2)
    blocks = J.attention_jacobian_blocks(1e4 * X, W_Q, W_K)
    assert np.isfinite(blocks).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.zeros(3)}, "one sequence"),
        ({"X": np.zeros((0, 3))}, "T >= 1"),
        ({"X": np.full((2, 3), np.nan)}, "finite"),
        ({"W_K": np.zeros((2, 4))}, "d = 3"),
        ({"W_V": np.zeros((2, 3))}, r"must be \(3, 3\)"),
        ({"causal": "both"}, "causal must be"),
    ],
)
def test_bad_input_is_named(change, message):
    good = dict.fromkeys(("X", "W_Q", "W_K"), np.zeros((2, 3)))
    with pytest.raises(ValueError, match=message):
        J.attention_jacobian_blocks(**(good | change))
