"""The step against the literal formula, its invariances, its soft version."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode

from papers.hardmax import (
    HypothesisWarning,
    attention,
    hardmax_step,
    limit,
    softmax_step,
    trajectory,
    violated_hypotheses,
)
from papers.hardmax.ensembles import step_by_loops  # equation (1), token by token
from papers.hardmax.leaders import leaders


def random_input(seed, d, n=None):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40)) if n is None else n
    M = rng.normal(size=(d, d))
    return rng.normal(size=(n, d)), M @ M.T + 0.1 * np.eye(d), 10 ** rng.uniform(-1, 1)


def grid_input(seed, n=60):
    """Small integers: exact ties, collinear points and zero tokens in abundance; no duplicates."""
    rng = np.random.default_rng(seed)
    return np.unique(rng.integers(-4, 5, size=(n, 2)), axis=0).astype(float)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_step_is_the_literal_formula(d, seed):
    Z, A, alpha = random_input(seed, d)
    literal, _ = step_by_loops(Z, A, alpha)
    np.testing.assert_allclose(hardmax_step(Z, A, alpha), literal, atol=1e-12)


@given(seed=st.integers(0, 10**6), d=st.sampled_from([2, 3, 4]), scale=st.floats(1e-6, 1e6))
@settings(max_examples=40)
def test_rotation_scaling_and_permutation_commute_with_the_step(seed, d, scale):
    Z, A, alpha = random_input(seed, d)
    rng = np.random.default_rng(seed + 1)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    order = rng.permutation(len(Z))
    expected = hardmax_step(Z, A, alpha)
    turned = hardmax_step(Z @ Q.T, Q @ (A + A.T) @ Q.T / 2, alpha)
    np.testing.assert_allclose(turned, expected @ Q.T, atol=1e-11)
    scaled = hardmax_step(scale * Z, A, alpha) / scale
    np.testing.assert_allclose(scaled, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(hardmax_step(Z[order], A, alpha), expected[order], atol=1e-12)


def test_the_tie_tolerance_is_relative():
    Z, A, alpha = random_input(6, 3, n=30)
    wide = hardmax_step(Z, A, alpha, tol=0.1)
    assert np.abs(wide - hardmax_step(Z, A, alpha)).max() > 0.01  # so wide that other tokens tie
    for scale in (1e-4, 1e4):
        scaled = hardmax_step(scale * Z, A, alpha, tol=0.1)
        np.testing.assert_allclose(scaled, scale * wide, rtol=1e-9)
        np.testing.assert_allclose(hardmax_step(Z, scale * A, alpha, tol=0.1), wide, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [2, 64])
def test_exact_ties_are_found_in_each_precision(dtype, d):
    """Token 0 looks to two others whose entries are the same in another order."""
    rng, found = np.random.default_rng(0), 0
    A = np.eye(d, dtype=dtype) + dtype(0.5)
    for _ in range(100):
        v = np.abs(rng.standard_normal(d)).astype(dtype) * 10
        Z = np.stack([np.full(d, 0.01, dtype), v, v[rng.permutation(d)]])
        found += np.allclose(attention(Z, A)[0], [0, 0.5, 0.5])
    assert found == 100


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("library", [np.array, pytest.param("torch", id="torch")])
@pytest.mark.parametrize("power", [-0.9, -0.5, 0.25, 0.5, 0.9])
def test_tokens_of_any_size_have_the_same_sets(dtype, library, power):
    if library == "torch":
        library = pytest.importorskip("torch").tensor
    scale = 2.0 ** int(power * (127 if dtype == "float32" else 1023))
    Z, A = np.array([[0.0, 0.5], [-1.0, 0], [1.0, 0]]), np.array([[2.0, 0], [0, 1]])
    expected = np.asarray(attention(Z, A))
    for tokens, matrix in ((Z * scale, A), (Z, A * scale)):
        P = attention(library(tokens.astype(dtype)), library(matrix.astype(dtype)))
        np.testing.assert_array_equal(np.asarray(P), expected)
    end = limit(library((Z * scale).astype(dtype)), library(A.astype(dtype)), 1.0, settled=1e-5)
    assert end.converged
    np.testing.assert_allclose(np.asarray(end.points) / scale, limit(Z, A, 1.0).points, atol=1e-4)


def test_whole_numbers_are_tokens_too():
    Z, A = np.array([[1, 0], [0, 1], [1, 1]]), np.array([[2, 0], [0, 1]])
    expected = limit(Z * 1.0, A * 1.0, 1.0)
    np.testing.assert_array_equal(limit(Z, A, 1.0).points, expected.points)
    np.testing.assert_array_equal(trajectory(Z, A, 1.0, 3), trajectory(Z * 1.0, A, 1.0, 3))
    np.testing.assert_array_equal(attention(Z, A), attention(Z * 1.0, A))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_counts_are_repeated_rows(seed):
    Z = grid_input(seed)  # ties: there the multiplicities matter
    counts = np.random.default_rng(seed).integers(1, 4, len(Z))
    repeated = hardmax_step(np.repeat(Z, counts, axis=0), np.eye(2), 1.0)
    counted = np.repeat(hardmax_step(Z, np.eye(2), 1.0, counts=counts), counts, axis=0)
    np.testing.assert_allclose(counted, repeated, atol=1e-12)


@pytest.mark.parametrize("d", [2, 3])
def test_softmax_tends_to_hardmax_away_from_ties(d):
    Z, A, alpha = random_input(11, d, n=20)
    top = np.sort(Z @ A @ Z.T, axis=1)[:, -2:]
    gap = (top[:, 1] - top[:, 0]).min()
    assert gap > 1e-3  # no tie in this input
    diameter = np.linalg.norm(Z[:, None] - Z, axis=-1).max()
    for temperature in gap * np.array([1.0, 0.3, 0.1, 0.03]):
        error = np.abs(softmax_step(Z, A, alpha, temperature) - hardmax_step(Z, A, alpha)).max()
        assert error <= diameter * len(Z) * np.exp(-gap / temperature) + 1e-13
    counts = np.arange(1.0, 21.0)
    cold = softmax_step(Z, A, alpha, gap / 60, counts=counts)
    np.testing.assert_allclose(cold, hardmax_step(Z, A, alpha, counts=counts), atol=1e-12)


def test_attention_matrix_is_row_stochastic_and_gives_the_step():
    Z, A, alpha = random_input(2, 3, n=15)
    counts = np.random.default_rng(0).integers(0, 3, 15) + np.eye(15)[0]
    P = attention(Z, A, counts=counts)
    np.testing.assert_allclose(P.sum(1), 1.0, atol=1e-14)
    stepped = hardmax_step(Z, A, alpha, counts=counts)
    np.testing.assert_allclose(Z + alpha / (1 + alpha) * (P @ Z - Z), stepped, atol=1e-13)


@pytest.mark.parametrize("d", [2, 3])
def test_torch_tensors_give_the_same_numbers(d):
    Z, A, alpha = random_input(8, d, n=80)
    counts = np.random.default_rng(0).integers(0, 3, 80) + np.eye(80)[0]
    tokens, matrix, numbers = (torch.tensor(x) for x in (Z, A, counts))
    hard = hardmax_step(tokens, matrix, alpha, counts=numbers).numpy()
    np.testing.assert_allclose(hard, hardmax_step(Z, A, alpha, counts=counts), atol=1e-12)
    soft = softmax_step(tokens, matrix, alpha, 0.1).numpy()
    np.testing.assert_allclose(soft, softmax_step(Z, A, alpha, 0.1), atol=1e-12)


@pytest.mark.parametrize("d", [2, 3])
def test_gradient_holds_the_argmax_fixed(d):
    Z, A, _ = random_input(4, d, n=30)
    A = torch.tensor(A)

    def eight_layers(Z, alpha):
        for _ in range(8):
            Z = hardmax_step(Z, A, alpha, check=False)
        return Z

    inputs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (Z, 0.7)]
    assert torch.autograd.gradcheck(eight_layers, inputs)


def test_limits_count_no_follower_twice_and_report_when_cut_short():
    # Token 4 ties between tokens 0 and 1 for ever; token 5 follows token 0 and reaches it, to
    # rounding, long before token 4 is at its limit.
    Z = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [1e-3, 0.0], [0.9, 0.9]])
    end = limit(Z, np.eye(2), 1.0)
    assert end.converged
    np.testing.assert_allclose(end.points[4], [1.0, 0.0], atol=1e-12)
    Z, A, alpha = random_input(7, 2, n=20)
    cut = limit(Z, A, alpha, max_layers=3)
    assert (cut.layers, cut.converged) == (3, False)
    np.testing.assert_allclose(cut.points, trajectory(Z, A, alpha, 3)[-1], atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": np.array([[1.0, 0.5], [0.0, 1.0]])}, r"not symmetric: A\[0, 1\] = 0.5"),
        ({"A": np.diag([1.0, -2.0])}, "smallest eigenvalue is -2"),
        ({"A": np.eye(3)}, r"shape \(2, 2\)"),
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"alpha": -1.0}, "alpha must be positive"),
        ({"Z": np.array([[1.0, np.nan], [0.0, 1.0]])}, "NaN"),
        ({"Z": np.zeros((0, 2))}, "at least one token"),
        ({"counts": np.zeros(2)}, "no positive count"),
        ({"counts": np.array([1.0, -1.0])}, "negative"),
        ({"counts": np.ones(3)}, "shape"),
    ],
)
def test_bad_arguments_are_refused_with_the_reason(change, message):
    arguments = {"Z": np.eye(2), "A": np.eye(2), "alpha": 1.0} | change
    with pytest.raises(ValueError, match=message):
        hardmax_step(arguments.pop("Z"), arguments.pop("A"), arguments.pop("alpha"), **arguments)


# indefinite; not symmetric, so that <A z_i, z_j> is not <A z_j, z_i>
@pytest.mark.parametrize("A", [np.diag([1.0, -1.0]), np.array([[0.2, 1.0], [-1.0, 0.3]])])
def test_any_matrix_is_computed_when_the_check_is_off(A):
    Z = np.array([[1.0, 2.0], [-1.0, 0.5], [0.3, -2.0]])
    literal, _ = step_by_loops(Z, A, 1.0)
    np.testing.assert_allclose(hardmax_step(Z, A, 1.0, check=False), literal, atol=1e-14)


def test_broken_hypotheses_are_named_and_computed():
    Z = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [-1.0, 1.0]])
    zero, repeated = violated_hypotheses(Z)
    assert "nonzero tokens" in zero
    assert "distinct tokens" in repeated
    with (
        pytest.warns(HypothesisWarning, match="1 of them are zero"),
        pytest.warns(HypothesisWarning, match="1 repeat another"),
    ):
        states = trajectory(Z, np.eye(2), 1.0, 3)
    np.testing.assert_allclose(states[1], step_by_loops(Z, np.eye(2), 1.0)[0])


def test_dynamics_imports_without_torch():
    program = (
        "import sys; sys.modules['torch'] = None\nimport numpy as np; from papers.hardmax import "
        "hardmax_step, leaders, limit\nhardmax_step(np.eye(2), np.eye(2), 1.0); leaders(np.eye(2), "
        "np.eye(2)); limit(np.eye(2), np.eye(2), 1.0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


N, WORDS = 12, 7
SIZES = st.sampled_from([1, 2, 3, 5, 8, 9, 16])
TYPES = st.sampled_from([torch.float32, torch.float64])


class RoughProducts(TorchFunctionMode):
    """Another processor: each entry of a matrix product is off by up to two units of rounding."""

    def __init__(self, seed):
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if getattr(function, "__name__", "") not in ("matmul", "__matmul__", "__rmatmul__"):
            return out
        off = torch.randint(-2, 3, out.shape, generator=self._generator)
        return out * (1 + off * torch.finfo(out.dtype).eps)


def padded(seed, d, kind, garbage=0.0):
    """One review of WORDS words of counts 1 to 3, and N - WORDS times padding behind them."""
    rng = np.random.default_rng(seed)
    Z = torch.from_numpy(rng.normal(size=(1, N, d))).to(kind)
    Z[:, WORDS:] = garbage
    # A long first word: the others look to it, and so to its copies.
    Z[:, 0] *= 10
    counts = torch.from_numpy(rng.integers(1, 4, (1, N)).astype(float)).to(kind)
    counts[:, WORDS:] = 0
    return Z, counts


def gradients(Z, counts, layers):
    Z = Z.clone().requires_grad_()
    alpha = torch.tensor(0.7, dtype=Z.dtype, requires_grad=True)
    eye, state = torch.eye(Z.shape[-1], dtype=Z.dtype), Z
    for _ in range(layers):
        state = hardmax_step(state, eye, alpha, counts=counts, tol=0.0, check=False)
    mean = (counts[..., None] * state).sum(1) / counts.sum(1)
    mean.sum().backward()
    return mean.detach(), Z.grad, alpha.grad


@given(seed=st.integers(0, 10**6), d=SIZES, kind=TYPES, layers=st.integers(1, 6))
@settings(max_examples=60)
def test_no_gradient_goes_to_padding(seed, d, kind, layers):
    Z, counts = padded(seed, d, kind)
    with RoughProducts(seed):
        mean, slope, of_alpha = gradients(Z, counts, layers)
    alone = gradients(Z[:, :WORDS], counts[:, :WORDS], layers)
    assert (slope[:, WORDS:] == 0).all()
    near = {"rtol": 0.0, "atol": 100 * torch.finfo(kind).eps * float(Z.abs().max()) ** 2}
    torch.testing.assert_close(mean, alone[0], **near)
    torch.testing.assert_close(slope[:, :WORDS], alone[1], **near)
    torch.testing.assert_close(of_alpha, alone[2], **near)


GARBAGE = st.sampled_from([0.0, 1e6, float("inf"), float("nan")])


@given(seed=st.integers(0, 10**6), d=SIZES, kind=TYPES, garbage=GARBAGE)
@settings(max_examples=60)
def test_the_layer_of_padded_words_is_the_layer_of_the_words(seed, d, kind, garbage):
    Z, counts = padded(seed, d, kind, garbage)
    eye = torch.eye(d, dtype=kind)
    # Without a tolerance nothing but the words themselves can be chosen.
    options = {"tol": 0.0, "check": False}
    with RoughProducts(seed):
        whole = hardmax_step(Z, eye, 1.0, counts=counts, **options)[:, :WORDS]
        P = attention(Z[:, :WORDS].repeat(1, 2, 1)[:, :N], eye, counts=counts, tol=0.0)
        led = leaders(Z, eye, counts=counts, tol=0.0)
    words = hardmax_step(Z[:, :WORDS], eye, 1.0, counts=counts[:, :WORDS], **options)
    torch.testing.assert_close(whole, words)
    assert (P[..., WORDS:] == 0).all()
    torch.testing.assert_close(P.sum(-1), torch.ones_like(P[..., 0]))
    assert not led[:, WORDS:].any()
    assert torch.equal(led[:, :WORDS], leaders(Z[:, :WORDS], eye, counts=counts[:, :WORDS]))


@given(seed=st.integers(0, 10**6), d=SIZES)
@settings(max_examples=30)
def test_the_soft_layer_gives_padding_no_weight(seed, d):
    Z, counts = padded(seed, d, torch.float64)
    eye = torch.eye(d, dtype=torch.float64)
    with RoughProducts(seed):
        whole = softmax_step(Z, eye, 1.0, 0.1, counts=counts)[:, :WORDS]
    words = softmax_step(Z[:, :WORDS], eye, 1.0, 0.1, counts=counts[:, :WORDS])
    torch.testing.assert_close(whole, words, rtol=1e-9, atol=1e-9)
