"""The step against the literal formula, its invariances, its soft version, its padding."""

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

SEEDS = st.integers(0, 10**6)


def random_input(seed, d, n=None):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40)) if n is None else n
    M = rng.normal(size=(d, d))
    return rng.normal(size=(n, d)), M @ M.T + 0.1 * np.eye(d), 10 ** rng.uniform(-1, 1)


@given(seed=SEEDS, d=st.sampled_from([1, 2, 3, 5]), definite=st.booleans())
@settings(max_examples=60)
def test_step_is_the_literal_formula_and_attention_gives_it(seed, d, definite):
    Z, A, alpha = random_input(seed, d)
    if not definite:  # any matrix is computed when the check is off
        A = np.random.default_rng(seed).normal(size=(d, d))
    literal, _ = step_by_loops(Z, A, alpha)
    np.testing.assert_allclose(hardmax_step(Z, A, alpha, check=definite), literal, atol=1e-12)
    P = attention(Z, A)
    np.testing.assert_allclose(P.sum(1), 1.0, atol=1e-14)
    np.testing.assert_allclose(Z + alpha / (1 + alpha) * (P @ Z - Z), literal, atol=1e-12)


@given(
    seed=SEEDS, d=st.sampled_from([2, 3, 4]), scale=st.floats(1e-6, 1e6),
    tol=st.sampled_from([None, 0.1]),
)  # fmt: skip
@settings(max_examples=40)
def test_rotation_scaling_and_permutation_commute_with_the_step(seed, d, scale, tol):
    Z, A, alpha = random_input(seed, d)
    rng = np.random.default_rng(seed + 1)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    order = rng.permutation(len(Z))
    expected = hardmax_step(Z, A, alpha, tol=tol)
    turned = hardmax_step(Z @ Q.T, Q @ (A + A.T) @ Q.T / 2, alpha, tol=tol)
    np.testing.assert_allclose(turned, expected @ Q.T, atol=1e-11)
    scaled = hardmax_step(scale * Z, scale * A, alpha, tol=tol) / scale
    np.testing.assert_allclose(scaled, expected, rtol=1e-9, atol=1e-10)
    permuted = hardmax_step(Z[order], A, alpha, tol=tol)
    np.testing.assert_allclose(permuted, expected[order], atol=1e-12)


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
@pytest.mark.parametrize("library", [np.array, torch.tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("power", [-0.9, -0.5, 0.25, 0.5, 0.9])
def test_tokens_of_any_size_have_the_same_sets(dtype, library, power):
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
    np.testing.assert_array_equal(limit(Z, A, 1.0).points, limit(Z * 1.0, A * 1.0, 1.0).points)
    np.testing.assert_array_equal(trajectory(Z, A, 1.0, 3), trajectory(Z * 1.0, A, 1.0, 3))
    np.testing.assert_array_equal(attention(Z, A), attention(Z * 1.0, A))


@given(seed=SEEDS)
@settings(max_examples=40)
def test_counts_are_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    # small integers: exact ties, where multiplicities matter, collinear points and zero tokens
    Z = np.unique(rng.integers(-4, 5, size=(60, 2)), axis=0).astype(float)
    counts = rng.integers(1, 4, len(Z))
    repeated = hardmax_step(np.repeat(Z, counts, axis=0), np.eye(2), 1.0)
    counted = np.repeat(hardmax_step(Z, np.eye(2), 1.0, counts=counts), counts, axis=0)
    np.testing.assert_allclose(counted, repeated, atol=1e-12)


@pytest.mark.parametrize("d", [2, 3])
def test_softmax_tends_to_hardmax_away_from_ties_for_arrays_and_tensors(d):
    Z, A, alpha = random_input(11, d, n=20)
    top = np.sort(Z @ A @ Z.T, axis=1)[:, -2:]
    gap = (top[:, 1] - top[:, 0]).min()
    assert gap > 1e-3  # no tie in this input
    diameter = np.linalg.norm(Z[:, None] - Z, axis=-1).max()
    counts = np.arange(1.0, 21.0)
    for numbers in (None, counts):
        hard = hardmax_step(Z, A, alpha, counts=numbers)
        for temperature in gap * np.array([1.0, 0.3, 0.1, 0.03]):
            soft = softmax_step(Z, A, alpha, temperature, counts=numbers)
            bound = diameter * (1 if numbers is None else 20) * 20 * np.exp(-gap / temperature)
            assert np.abs(soft - hard).max() <= bound + 1e-13
    tensors = [torch.tensor(x) for x in (Z, A)], torch.tensor(counts)
    for step, more in ((hardmax_step, ()), (softmax_step, (0.1,))):
        found = step(*tensors[0], alpha, *more, counts=tensors[1]).numpy()
        np.testing.assert_allclose(found, step(Z, A, alpha, *more, counts=counts), atol=1e-12)
    with pytest.raises(ValueError, match="temperature must be positive"):
        softmax_step(Z, A, alpha, 0.0)


def test_gradient_holds_the_argmax_fixed():
    Z, A, _ = random_input(4, 3, n=8)
    A = torch.tensor(A)

    def four_layers(Z, alpha):
        for _ in range(4):
            Z = hardmax_step(Z, A, alpha, check=False)
        return Z

    inputs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (Z, 0.7)]
    assert torch.autograd.gradcheck(four_layers, inputs)


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
        ({"A": np.diag([1.0, np.inf])}, "A holds NaN or infinite"),
        ({"A": np.eye(3)}, r"shape \(2, 2\)"),
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"alpha": -1.0}, "alpha must be positive"),
        ({"Z": np.array([[1.0, np.nan], [0.0, 1.0]])}, "NaN"),
        ({"Z": np.zeros((0, 2))}, "at least one token"),
        (
            {"Z": torch.eye(2).double(), "A": torch.eye(2)},
            "is torch.float64 and A is torch.float32",
        ),
        ({"counts": np.zeros(2)}, "no positive count"),
        ({"counts": np.array([1.0, -1.0])}, "negative"),
        ({"counts": np.ones(3)}, "shape"),
    ],
)
def test_bad_arguments_are_refused_with_the_reason(change, message):
    arguments = {"Z": np.eye(2), "A": np.eye(2), "alpha": 1.0} | change
    with pytest.raises(ValueError, match=message):
        hardmax_step(**arguments)


def test_broken_hypotheses_are_named_and_computed():
    Z = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [-1.0, 1.0]])
    zero, repeated = violated_hypotheses(Z)
    assert "nonzero tokens; 1 of them" in zero
    assert "distinct tokens; 1 repeat" in repeated
    with pytest.warns(HypothesisWarning, match="zero"), pytest.warns(match="repeat another"):
        states = trajectory(Z, np.eye(2), 1.0, 3)
    np.testing.assert_allclose(states[1], step_by_loops(Z, np.eye(2), 1.0)[0])


N, WORDS = 12, 7


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


def gradients(Z, counts, layers):
    """The mean token after the layers, and its slopes in the tokens and in alpha."""
    Z = Z.clone().requires_grad_()
    alpha = torch.tensor(0.7, dtype=Z.dtype, requires_grad=True)
    eye, state = torch.eye(Z.shape[-1], dtype=Z.dtype), Z
    for _ in range(layers):
        state = hardmax_step(state, eye, alpha, counts=counts, tol=0.0, check=False)
    mean = (counts[..., None] * state).sum(1) / counts.sum(1)
    mean.sum().backward()
    return mean.detach(), Z.grad, alpha.grad


@given(
    seed=SEEDS,
    d=st.sampled_from([1, 2, 3, 5, 8, 9, 16]),
    kind=st.sampled_from([torch.float32, torch.float64]),
    layers=st.integers(1, 6),
    garbage=st.sampled_from([0.0, 1e6, float("inf"), float("nan")]),
)
@settings(max_examples=60)
def test_padding_changes_no_layer_no_leader_and_no_gradient(seed, d, kind, layers, garbage):
    """WORDS words of counts 1 to 3, and garbage of count 0 behind them."""
    rng, eye = np.random.default_rng(seed), torch.eye(d, dtype=kind)
    Z = torch.from_numpy(rng.normal(size=(1, N, d))).to(kind)
    Z[:, 0] *= 10  # the others look to a long first word, and so to its copies
    Z[:, WORDS:] = garbage
    counts = torch.from_numpy(rng.integers(1, 4, (1, N)).astype(float)).to(kind)
    counts[:, WORDS:] = 0
    alone, alone_counts = Z[:, :WORDS], counts[:, :WORDS]
    with RoughProducts(seed):
        # Without a tolerance nothing but the words themselves can be chosen.
        whole = hardmax_step(Z, eye, 1.0, counts=counts, tol=0.0, check=False)
        P = attention(alone.repeat(1, 2, 1)[:, :N], eye, counts=counts, tol=0.0)  # copies
        led = leaders(Z, eye, counts=counts, tol=0.0)
    words = hardmax_step(alone, eye, 1.0, counts=alone_counts, tol=0.0, check=False)
    torch.testing.assert_close(whole[:, :WORDS], words)
    assert (P[..., WORDS:] == 0).all()
    assert not led[:, WORDS:].any()
    assert torch.equal(led[:, :WORDS], leaders(alone, eye, counts=alone_counts))
    Z = torch.where(counts[..., None] > 0, Z, 0)  # garbage times 0 would spoil any mean
    with RoughProducts(seed):
        found = gradients(Z, counts, layers)
        soft = softmax_step(Z, eye, 1.0, 0.1, counts=counts)[:, :WORDS]
    expected = gradients(alone, alone_counts, layers)
    assert (found[1][:, WORDS:] == 0).all()
    near = {"rtol": 0.0, "atol": 100 * torch.finfo(kind).eps * float(Z.abs().max()) ** 2}
    for one, other in zip((found[0], found[1][:, :WORDS], found[2]), expected, strict=True):
        torch.testing.assert_close(one, other, **near)
    if kind == torch.float64:
        cold = softmax_step(alone, eye, 1.0, 0.1, counts=alone_counts)
        torch.testing.assert_close(soft, cold, rtol=1e-9, atol=1e-9)
