"""The closed forms of Appendices A and B against autograd and hand counts."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.margins import attention_jacobian_blocks, residual_map, spectral
from papers.margins import jacobian as J


def residual_by_torch(X, W_Q, W_K, W_V, causal):
    """The layer as anybody would write it, position by position."""
    W_Q, W_K, W_V = (torch.as_tensor(W) for W in (W_Q, W_K, W_V))
    rows = []
    for i, x in enumerate(X):
        context = X[: i if causal == "strict" else i + 1]
        a = torch.softmax((context @ W_K.T) @ (W_Q @ x), dim=0)
        rows.append(x - W_V @ (a @ context))
    return torch.stack(rows)


def draw(seed, T, d, r):
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(shape) for shape in ((T, d), (r, d), (r, d), (d, d)))


@pytest.mark.parametrize("causal", ["strict", "inclusive"])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31), T=st.integers(1, 6), d=st.integers(1, 4), r=st.integers(1, 3))
def test_residuals_and_blocks_are_those_of_autograd(causal, seed, T, d, r):
    X, W_Q, W_K, W_V = draw(seed, T, d, r)

    def by_torch(Z):
        return residual_by_torch(Z, W_Q, W_K, W_V, causal)

    whole = torch.autograd.functional.jacobian(by_torch, torch.as_tensor(X)).numpy()
    blocks = attention_jacobian_blocks(X, W_Q, W_K, W_V, causal=causal)
    wanted = np.einsum("icie->ice", whole)
    assert np.abs(blocks - wanted).max() <= 1e-10 * max(1.0, np.abs(whole).max())
    found = residual_map(X, W_Q, W_K, W_V, causal=causal)
    np.testing.assert_allclose(found, by_torch(torch.as_tensor(X)), atol=1e-12)


@pytest.mark.parametrize("causal", ["strict", "inclusive"])
def test_heads_add_up_and_a_batch_is_its_sequences(causal):
    """Against autograd through the sum over heads, for arrays, tensors and lists alike."""
    rng = np.random.default_rng(4)
    shapes = ((2, 5, 4), (3, 2, 4), (3, 2, 4), (3, 4, 4))
    X, W_Q, W_K, W_V = (rng.standard_normal(shape) for shape in shapes)

    def by_torch(Z):
        heads = zip(W_Q, W_K, W_V, strict=True)
        parts = [residual_by_torch(Z, *weights, causal) - Z for weights in heads]
        return Z + torch.stack(parts).sum(0)

    blocks = attention_jacobian_blocks(X, W_Q, W_K, W_V, causal=causal)
    for sequence, block in zip(X, blocks, strict=True):
        whole = torch.autograd.functional.jacobian(by_torch, torch.as_tensor(sequence)).numpy()
        np.testing.assert_allclose(block, np.einsum("icie->ice", whole), atol=1e-10)
    found = residual_map(X, W_Q, W_K, W_V, causal=causal)
    np.testing.assert_allclose(found[1], by_torch(torch.as_tensor(X[1])), atol=1e-12)
    tensors = [torch.as_tensor(W) for W in (X, W_Q, W_K, W_V)]
    tensors[0].requires_grad_()
    same = attention_jacobian_blocks(*tensors, causal=causal)
    np.testing.assert_allclose(same.detach(), blocks, atol=1e-12)
    torch.linalg.slogdet(same)[1].sum().backward()
    assert tensors[0].grad.abs().min() > 0
    of_lists = attention_jacobian_blocks(*(W.tolist() for W in (X, W_Q, W_K, W_V)), causal=causal)
    np.testing.assert_array_equal(of_lists, blocks)
    alone = attention_jacobian_blocks(X, W_Q[:1], W_K[:1], causal=causal)
    np.testing.assert_allclose(
        alone, attention_jacobian_blocks(X, W_Q[0], W_K[0], causal=causal), atol=1e-12
    )
    for margin in spectral.MARGINS.values():
        np.testing.assert_array_equal(margin(torch.as_tensor(blocks)), margin(blocks))


def test_printed_appendix_lacks_exactly_the_key_term():
    X, W_Q, W_K, W_V = draw(3, 5, 3, 2)
    a, mean, _ = J.attend(X, W_Q, W_K, causal="inclusive")
    outer = np.einsum("ic,ie->ice", X - mean, X @ (W_K.T @ W_Q).T)
    key_term = np.diag(a)[:, None, None] * (W_V @ outer)
    right = attention_jacobian_blocks(X, W_Q, W_K, W_V, causal="inclusive")
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
    X, W_Q, W_K, _ = draw(1, 5, 3, 2)
    assert np.isfinite(attention_jacobian_blocks(1e4 * X, W_Q, W_K)).all()


def on_the_line(c):
    """Position 3 sees -1 and 1 with equal weights: Var = 1."""
    X = np.array([[-1.0], [1.0], [0.0]])
    return attention_jacobian_blocks(X, np.array([[c]]), np.eye(1))[2]


QUARTER_TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("block", "radius", "eigenvalue", "singular"),
    [
        *((on_the_line(c), 1 - abs(c), 1 - c, abs(1 - c)) for c in (-3.0, -1.0, 0.5, 2.0)),
        # rho = 2 and det = 5: Lemma B.4 is not necessary
        (np.eye(2) - 2.0 * QUARTER_TURN, -1.0, np.inf, np.sqrt(5.0)),
    ],
)
def test_margins_on_the_line_and_of_a_rotation(block, radius, eigenvalue, singular):
    assert spectral.spectral_radius_margin(block) == pytest.approx(radius)
    assert spectral.eigenvalue_margin(block) == pytest.approx(eigenvalue)
    assert spectral.singular_value_margin(block) == pytest.approx(singular)


def test_conditions_are_judged_by_the_determinant():
    eigenvalues = np.array([[0.5, 0.5], [-3.0, 0.0], [2.0, 3.0], [2.0, 0.0]])
    radius, real = spectral.judge_conditions(np.stack([np.diag(1 - pair) for pair in eigenvalues]))
    # an eigenvalue -3 exhausts the first margin and not the second
    assert (radius["holds"], real["holds"]) == (1, 2)
    assert [row["det_not_positive_although_it_holds"] for row in (radius, real)] == [0, 0]
    # diag(4, 1) and diag(-1, -2)
    assert [row["det_positive_although_it_fails"] for row in (radius, real)] == [2, 1]
