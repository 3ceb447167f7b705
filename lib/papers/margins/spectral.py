"""Three margins to degeneracy of a Jacobian block J = I - A (003, eq. 25, Lemma B.4 and the remark
after it).

The map is singular where det J = 0, that is where 1 is an eigenvalue of A.  Three distances to that
event:

* spectral radius, 1 - rho(A): the source's example.  Positive values suffice for det J > 0 (Lemma
  B.4) and are not necessary: an eigenvalue -1 or exp(i phi) of A exhausts this margin and harms
  nothing;
* eigenvalue, 1 - max{Re z : z real eigenvalue of A}: zero exactly on the boundary det J = 0 that a
  path from A = 0 meets first.  A without real eigenvalues gives +inf: no real scaling of it is
  singular;
* singular value, sigma_min(J): the distance in operator norm to the nearest singular matrix
  (Eckart-Young).

With d = 1 and A = c Var they are 1 - |c| Var, 1 - c Var and |1 - c Var|.  Shapes: blocks (..., d,
d), of NumPy or PyTorch -> (...), of NumPy.
"""

import numpy as np
from numpy.typing import NDArray

from papers.arrays import Array, to_numpy
from softgeom.arrays import Floats

# An eigenvalue counts as real if its imaginary part is rounding: eps^(1/2) is what a double
# eigenvalue can lose.
_REAL = float(np.sqrt(np.finfo(float).eps))


def spectral_radius_margin(blocks: Array) -> Floats:
    """Compute 1 - rho(I - J): positive is sufficient for invertibility, negative proves nothing."""
    return 1.0 - np.abs(_eigenvalues(blocks)).max(axis=-1)


def eigenvalue_margin(blocks: Array) -> Floats:
    """Compute 1 - (largest real eigenvalue of I - J); inf where I - J has no real eigenvalue."""
    z = _eigenvalues(blocks)
    real = np.abs(z.imag) <= _REAL * np.maximum(1.0, np.abs(z))
    return 1.0 - np.where(real, z.real, -np.inf).max(axis=-1)


def singular_value_margin(blocks: Array) -> Floats:
    """Compute the smallest singular value of J, zero exactly at the boundary."""
    return np.asarray(np.linalg.svd(to_numpy(blocks), compute_uv=False)[..., -1], dtype=np.float64)


MARGINS = {
    "spectral_radius": spectral_radius_margin,
    "largest_real_eigenvalue": eigenvalue_margin,
    "smallest_singular_value": singular_value_margin,
}


def judge_conditions(blocks: Floats) -> list[dict[str, int | str]]:
    """Where Lemma B.4's conditions hold on blocks (n, d, d), and where det J > 0 differs."""
    determinant = np.linalg.det(blocks)
    conditions = {
        "1 - rho > 0": spectral_radius_margin(blocks) > 0,
        "1 - largest real eigenvalue > 0": eigenvalue_margin(blocks) > 0,
    }
    return [
        {
            "condition": name,
            "holds": int(holds.sum()),
            "det_not_positive_although_it_holds": int((determinant[holds] <= 0).sum()),
            "det_positive_although_it_fails": int((determinant[~holds] > 0).sum()),
        }
        for name, holds in conditions.items()
    ]


def _eigenvalues(blocks: Array) -> NDArray[np.complex128]:
    blocks = to_numpy(blocks)
    return np.asarray(np.linalg.eigvals(np.eye(blocks.shape[-1]) - blocks), dtype=np.complex128)
