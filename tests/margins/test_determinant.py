"""log |det| at, near and beyond singular matrices."""

import pytest
import torch

from softgeom.margins.determinant import signed_logdet


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_regular_matrices_agree_with_slogdet(dtype):
    J = torch.randn(300, 5, 5, generator=torch.Generator().manual_seed(0), dtype=dtype)
    out, wanted = signed_logdet(J), torch.linalg.slogdet(J)
    near = {"rtol": 0, "atol": 1e-4 if dtype == torch.float32 else 1e-10}
    torch.testing.assert_close(out.logabsdet, wanted.logabsdet, **near)
    assert torch.equal(out.sign, wanted.sign)
    assert {*out.sign.tolist()} == {-1.0, 1.0}
    assert not out.replaced.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_singular_matrix_gets_a_finite_cap_and_a_finite_gradient(dtype):
    J = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=dtype, requires_grad=True)
    out = signed_logdet(J)
    out.logabsdet.backward()
    eps = torch.finfo(dtype).eps
    assert out.replaced.item() == 1
    # pivots 2 and the replacement 4 eps
    assert out.logabsdet.item() == pytest.approx(torch.tensor(8 * eps).log().item(), abs=1e-4)
    assert torch.isfinite(J.grad).all()
    assert J.grad.abs().max() <= 8 / eps
    # the gradient points along the cofactors (4, -2; -2, 1): the way that opens the determinant
    slope, cofactor = J.grad.abs(), torch.tensor([[4.0, 2.0], [2.0, 1.0]], dtype=dtype)
    torch.testing.assert_close(slope / slope.max(), cofactor / 4, atol=1e-3, rtol=0)


def test_sign_flips_across_the_boundary_and_zero_and_nan_are_told():
    t = torch.tensor([0.5, 1e-3, -1e-3, -0.5], dtype=torch.float64)
    out = signed_logdet(torch.diag_embed(torch.stack([t, torch.ones_like(t)], dim=-1)))
    assert out.sign.tolist() == [1.0, 1.0, -1.0, -1.0]
    torch.testing.assert_close(out.logabsdet, t.abs().log(), atol=1e-12, rtol=0)
    zero = signed_logdet(torch.zeros(3, 3))
    assert zero.replaced.item() == 3
    assert torch.isfinite(zero.logabsdet)
    assert torch.isnan(signed_logdet(torch.full((3, 3), torch.nan)).logabsdet)
