"""The search's matrix products on a PyTorch device, such as a CUDA GPU.

``climb`` (ascent.py) plans on the host: which classes still lose, and to whom. What costs is done where W' lies: a look at every
rival, and steps of ascent against gathered rivals. A device may round in its own way, so what comes back is a proposal;
the scan certifies it on the host like any other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.problem import Problem
from softgeom.bottleneck.searching.look import Look
from softgeom.bottleneck.searching.polyak import polyak_ascent

TILE_BYTES = 256 * 2**20  # logits held at once: a device wants larger products than a cache does


class Device:
    """W' and b' of a problem, held on a device; ``look`` and ``ascend`` as in look.py and ascent.py."""

    group_bytes = 256 * 2**20

    def __init__(self, problem: Problem, name: str) -> None:
        self.torch, self.place = open_device(name)
        self.problem = problem
        # A plain layer stays as narrow as it is: it is widened tile by tile.
        narrow = problem.plain and problem.layer.W.dtype == np.float16
        dtype = np.float16 if narrow else np.float32
        self.W = self.torch.cat([self._put(problem.rows(block, dtype)) for block in problem.row_blocks(dtype)])
        self.b = self._put(problem.b.astype(np.float32))

    def look(self, Z: NDArray[Any], classes: NDArray[np.intp], *, strongest: int) -> Look:
        """Margins of ``classes`` (n,) at candidates ``Z`` (n, D), and the strongest rivals of those that lose."""
        torch, C = self.torch, self.problem.classes
        X, t = self._put(Z), self._put(classes)
        own = (X * self.W[t].float()).sum(1) + self.b[t]
        logit, index = X.new_empty((len(Z), 0)), t.new_empty((len(Z), 0))
        k, width = max(1, min(strongest, C - 1)), max(256, TILE_BYTES // (4 * max(1, len(Z))))
        for start in range(0, C, width):
            Y = X @ self.W[start : start + width].float().T + self.b[start : start + width]
            here = torch.nonzero((t >= start) & (t < start + width))[:, 0]
            Y[here, t[here] - start] = -torch.inf
            top = Y.topk(min(k, Y.shape[1]), dim=1)
            logit, index = torch.cat([logit, top.values], 1), torch.cat([index, top.indices + start], 1)
            best = logit.topk(min(k, logit.shape[1]), dim=1)
            logit, index = best.values, index.gather(1, best.indices)
        margin = (own - logit[:, 0]).double().cpu().numpy()
        losers = np.flatnonzero(~(margin > 0))
        return Look(margin, index.cpu().numpy()[losers, : min(strongest, C - 1)], losers)

    def ascend(
        self, Z: NDArray[Any], classes: NDArray[np.intp], index: NDArray[np.intp], steps: int, temperature: float
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Climb with g classes from ``Z`` (g, D) against their rivals ``index`` (g, k)."""
        i, t = self._put(index), self._put(classes)
        A = self.W[i].float() - self.W[t].float()[:, None]
        c = self.b[i] - self.b[t][:, None]
        point, lead = polyak_ascent(self.torch, A, c, self._put(Z), self._project, steps, temperature)
        return point.cpu().numpy(), lead.cpu().numpy()

    def _put(self, array: NDArray[Any]) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(array)).to(self.place)

    def _project(self, Z: Any) -> Any:
        if self.problem.is_box:
            low, high = (self._put(corner) for corner in self.problem.corners(np.float32))
            return self.torch.maximum(self.torch.minimum(Z, high), low)
        norms = Z.norm(dim=-1, keepdim=True).clip(1e-30)
        return Z * (self.problem.inner_radius / norms).clip(max=1.0)


def open_device(name: str) -> tuple[Any, Any]:
    """PyTorch and the device of that name.

    Raises
    ------
    ValueError
        If PyTorch is not installed, or sees no such device.
    """
    try:
        import torch
    except ImportError:
        raise ValueError(
            f"device={name!r} needs PyTorch: pip install 'softgeom[train]', or leave device out."
        ) from None
    try:
        place = torch.device(name)
        torch.zeros(1, device=place)  # a device can have a name and not be there
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"PyTorch has no device {name!r} here ({reason}): leave device out to search with NumPy."
        ) from None
    return torch, place
