"""Padding decides nothing, however a processor rounds."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402 - after importorskip
from hypothesis import strategies as st  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

from softgeom.hardmax.dynamics import attention, hardmax_step, softmax_step  # noqa: E402
from softgeom.hardmax.leaders import leaders  # noqa: E402

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
