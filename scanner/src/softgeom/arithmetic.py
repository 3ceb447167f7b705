"""Does a witness still win when the layer runs in narrow arithmetic?

A verdict is about real numbers. A device that holds W, b and x in float16 or bfloat16 rounds them
first, and may round the logits too: then a class whose best margin is small can lose, or tie, in
practice. Here inputs are rounded to the format, products are summed in float32 (as accelerators do)
and logits are rounded to the format again.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from softgeom.arrays import Singles
from softgeom.certifying.verdict import Witness
from softgeom.scan_result import Scan

Format = Literal["float32", "bfloat16", "float16"]


def round_to(values: NDArray[np.floating], form: Format) -> Singles:
    """Round to the nearest number of a format (ties to even), returned as float32."""
    with np.errstate(over="ignore"):
        narrow = np.asarray(values, dtype=np.float32)
        if form == "float32":
            return narrow
        if form == "float16":
            return narrow.astype(np.float16).astype(np.float32)
    if form != "bfloat16":
        raise ValueError(f"Unknown format {form!r}: use 'float32', 'bfloat16' or 'float16'.")
    bits = narrow.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def survives(scan: Scan, form: Format) -> dict[int, bool]:
    """Whether each argmaxable class still wins strictly at its witness when W, b, x and the logits
    are rounded to that format.
    """
    layer = scan.layer
    found = [(f.index, f.evidence.point) for f in scan.findings if isinstance(f.evidence, Witness)]
    W, b = round_to(layer.W, form), round_to(layer.bias, form)
    result: dict[int, bool] = {}
    for start in range(0, len(found), 512):
        part = found[start : start + 512]
        X = round_to(np.stack([scan.features.feature(point) for _, point in part]), form)
        Y = round_to(X @ W.T + b, form)
        classes = np.array([t for t, _ in part])
        own = Y[np.arange(len(part)), classes].copy()
        Y[np.arange(len(part)), classes] = -np.inf
        result |= {int(t): bool(win) for t, win in zip(classes, own > Y.max(axis=1), strict=True)}
    return result
