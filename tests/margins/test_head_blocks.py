"""Determinants of real attention in r dimensions against automatic differentiation in float64."""

import math

import pytest
import torch

from papers.language_model import rotate
from papers.margins.head_blocks import HeadWeights, head_blocks, margins

H, R, D, T, EPS = 3, 4, 14, 9, 1e-5


def _case(seed: int, centred: bool, rotary: bool):
    """Random heads, two of which share keys and values, and a text of states before the norm."""
    g = torch.Generator().manual_seed(seed)
    W_Q, W_K, W_V = (torch.randn(H, R, D, generator=g, dtype=torch.float64) for _ in range(3))
    W_K[1], W_V[1] = W_K[0], W_V[0]
    W_O = torch.randn(H, D, R, generator=g, dtype=torch.float64) / 2
    gamma = 1 + 0.3 * torch.randn(D, generator=g, dtype=torch.float64)
    heads = HeadWeights(W_Q, W_K, W_V, W_O, gamma, centred, 100.0 if rotary else None)
    return heads, torch.randn(T, D, generator=g, dtype=torch.float64)


def _norm(x, heads):
    projected = x - x.mean(-1, keepdim=True) if heads.centred else x
    s = (projected.square().mean(-1, keepdim=True) + EPS).sqrt()
    return projected / s * heads.gamma, projected / s, s[..., 0]


def _writes(x, heads, i):
    """What each head writes at position i, from its definition: (H, d)."""
    y = _norm(x, heads)[0]
    q, k, v = (y @ W.mT for W in (heads.W_Q, heads.W_K, heads.W_V))
    if heads.rotary_base is not None:
        q, k = rotate(q, heads.rotary_base), rotate(k, heads.rotary_base)
    a = (q[:, i : i + 1] @ k[:, : i + 1].mT / math.sqrt(R)).softmax(-1)
    return ((a @ v[:, : i + 1]) @ heads.W_O.mT)[:, 0]


def _derivative(x, heads, i):
    """dwrite_h / dx_i by autograd: (H, d, d)."""

    def write(x_i):
        return _writes(torch.cat((x[:i], x_i[None], x[i + 1 :])), heads, i)

    return torch.autograd.functional.jacobian(write, x[i])


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("rotary", [False, True])
def test_one_head_and_a_whole_layer_have_autograd_s_determinants(centred, rotary):
    heads, x = _case(1, centred, rotary)
    y, n, s = _norm(x, heads)
    positions = torch.tensor([0, 3, T - 1])
    B = head_blocks(heads, y, n, s, positions)
    whole = head_blocks(heads, y, n, s, positions, together=True)
    for place, i in enumerate(positions.tolist()):
        derivative = _derivative(x, heads, i)
        pairs = [(B[h, place], derivative[h]) for h in range(H)]
        for small, large in [*pairs, (whole[place], derivative.sum(0))]:
            for sign in (-1, 1):
                found, expected = (
                    torch.linalg.slogdet(torch.eye(len(A), dtype=A.dtype) + sign * A)
                    for A in (small, large)
                )
                assert found.sign == expected.sign
                assert math.isclose(found.logabsdet, expected.logabsdet, abs_tol=1e-11)


def test_margins_are_read_off_the_large_block_s_spectrum():
    heads, x = _case(2, False, True)
    y, n, s = _norm(x, heads)
    found = margins(head_blocks(heads, y, n, s, torch.arange(T)))
    for i in (2, 7):
        for h, derivative in enumerate(_derivative(x, heads, i)):
            spectrum = torch.linalg.eigvals(derivative)
            kept = spectrum[spectrum.abs().argsort(descending=True)[:R]]  # the others are zero
            real = kept[kept.imag.abs() < 1e-9].real
            largest = real[real.abs().argmax()] if len(real) else 0.0
            assert math.isclose(found["coupling"][h, i], largest, abs_tol=1e-8)
            assert math.isclose(found["residual"][h, i], (1 - kept).abs().min(), abs_tol=1e-8)
            assert math.isclose(found["stream"][h, i], (1 + kept).abs().min(), abs_tol=1e-8)
            assert bool(found["folded"][h, i]) == (torch.linalg.det(torch.eye(D) - derivative) < 0)


def test_a_fold_is_an_odd_number_of_real_eigenvalues_above_one():
    def of(*eigenvalues):
        return margins(torch.diag(torch.tensor(eigenvalues, dtype=torch.float64)))

    found = of(2.0, 0.5, -3.0)
    assert found["folded"]
    assert (found["coupling"], found["residual"], found["stream"]) == (-3, 0.5, 1.5)
    assert not of(2.0, 3.0)["folded"]
    for rounding in (-1e-15, 0.0, 1e-15):  # of opposite couplings it does not choose the sign
        assert of(-2.0, 2.0 + rounding, 0.5)["coupling"] == pytest.approx(2.0)
