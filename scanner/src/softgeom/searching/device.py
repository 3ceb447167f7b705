"""The search's matrix products on a PyTorch device, such as a CUDA GPU.

``climb`` (ascent.py) plans on the host: which classes still lose, and to whom. What costs is done
where W' lies: a look at every rival, and steps of ascent against gathered rivals. Each of them is
one upload and one download; the rows, and the region's corners, stay there.

What a look found is certified by its own logits. A device sums in its own order, with or without
fused multiply-add, and may flush what is below the normal range to zero; in IEEE single precision
(no TF32, which PyTorch is told for the time of a product) each logit is then off by at most
``gamma_{d+2} (|w||x| + |b|)`` and what underflows, the bound of checker.py. Only what that bound
leaves open is multiplied again on the host, and a sample, since a device can also be broken: one
that contradicts the host is not believed at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from softgeom.arrays import Array, Ints
from softgeom.problem import BLOCK_BYTES, Problem
from softgeom.searching.look import Look, polyak_ascent

SINGLE = ("cpu", "cuda")  # kinds of devices whose single precision is IEEE's


class Device:
    """W' and b' of a problem on a device; ``look`` and ``ascend`` as in look.py, ascent.py."""

    group_bytes = BLOCK_BYTES  # a device wants larger products than a cache does

    def __init__(self, problem: Problem, name: str) -> None:
        self.torch, self.place = open_device(name)
        self.problem = problem
        # A plain layer stays as narrow as it is: it is widened tile by tile.
        narrow = problem.plain and problem.layer.W.dtype == np.float16
        dtype = np.float16 if narrow else np.float32
        blocks = (problem.rows(block, dtype) for block in problem.row_blocks(dtype))
        self.W = self.torch.cat([self._put(rows) for rows in blocks])
        self.b = self._put(problem.b.astype(np.float32))

    @property
    def rounds_like_ieee(self) -> bool:
        """Whether the bound of this module's text holds for what ``look`` gives."""
        return self.place.type in SINGLE

    def look(self, Z: Array, classes: Ints, *, strongest: int) -> Look:
        """Margins of ``classes`` (n,) at ``Z`` (n, D), and the losers' strongest rivals."""
        torch, C = self.torch, self.problem.classes
        X, t = self._put(Z), self._put(classes)
        each = torch.arange(len(Z), device=self.place)
        own = X.new_empty(len(Z))
        logit, index = X.new_empty((len(Z), 0)), t.new_empty((len(Z), 0))
        k, width = max(1, min(strongest, C - 1)), max(256, BLOCK_BYTES // (4 * max(1, len(Z))))
        with self._single_precision():
            for start in range(0, C, width):
                Y = X @ self.W[start : start + width].float().T + self.b[start : start + width]
                # Which classes lie in this tile is not asked: an answer would have to come to the
                # host first.
                place = (t - start).clamp(0, Y.shape[1] - 1)
                inside = (t >= start) & (t < start + Y.shape[1])
                here = Y[each, place]
                own = torch.where(inside, here, own)
                Y[each, place] = torch.where(inside, -torch.inf, here)
                top = Y.topk(min(k, Y.shape[1]), dim=1)
                logit = torch.cat([logit, top.values], 1)
                index = torch.cat([index, top.indices + start], 1)
                best = logit.topk(min(k, logit.shape[1]), dim=1)
                logit, index = best.values, index.gather(1, best.indices)
        # Logits travel as the integers of their bits, in one array with the rivals.
        bits = torch.column_stack([own, logit[:, 0]]).contiguous().view(torch.int32)
        found = self._get(torch.column_stack([bits, index.int()]))
        logits = np.ascontiguousarray(found[:, :2]).view(np.float32).astype(np.float64)
        own_logit, best_logit = logits.T
        margin = own_logit - best_logit
        losers = np.flatnonzero(~(margin > 0))
        return Look(margin, found[losers, 2 : 2 + min(strongest, C - 1)].astype(np.intp), losers)

    def ascend(self, Z: Array, classes: Ints, index: Ints, steps: int) -> tuple[Array, Array]:
        """Climb with g classes from ``Z`` (g, D) against their rivals ``index`` (g, k)."""
        there = self._put(np.column_stack([classes, index]))
        t, i = there[:, 0], there[:, 1:]
        A = self.W[i].float() - self.W[t].float()[:, None]
        c = self.b[i] - self.b[t][:, None]
        point, lead = polyak_ascent(self.torch, A, c, self._put(Z), self._project, steps)
        found = self._get(self.torch.column_stack([point, lead]))
        return found[:, :-1], found[:, -1]

    def _put(self, array: Array) -> Any:
        return self.torch.from_numpy(np.require(array, requirements=["C", "W"])).to(self.place)

    def _get(self, tensor: Any) -> Array:
        """Waits for the device: once a look, once a climb."""
        return np.asarray(tensor.cpu().numpy())

    @cached_property
    def _corners(self) -> tuple[Any, Any]:
        low, high = self.problem.corners(np.float32)
        return self._put(low), self._put(high)

    def _project(self, Z: Any) -> Any:
        if self.problem.is_box:
            low, high = self._corners
            return self.torch.maximum(self.torch.minimum(Z, high), low)
        norms = Z.norm(dim=-1, keepdim=True).clip(1e-30)
        return Z * (self.problem.inner_radius / norms).clip(max=1.0)

    @contextmanager
    def _single_precision(self) -> Iterator[None]:
        before = self.torch.get_float32_matmul_precision()
        self.torch.set_float32_matmul_precision("highest")
        try:
            yield
        finally:
            self.torch.set_float32_matmul_precision(before)


def open_device(name: str) -> tuple[Any, Any]:
    """PyTorch and the device of that name; ValueError if there is no such."""
    try:
        import torch
    except ImportError:
        raise ValueError(
            f"device={name!r} needs PyTorch: pip install torch, or leave device out."
        ) from None
    try:
        place = torch.device(name)
        torch.zeros(1, device=place)  # a device can have a name and not be there
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        where = f"PyTorch has no device {name!r} here ({reason})"
        raise ValueError(f"{where}: leave device out to search with NumPy.") from None
    return torch, place
