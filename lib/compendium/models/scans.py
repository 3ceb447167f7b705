"""Scans of whole vocabularies, kept: several notebooks ask about the same head. What is read back
is the evidence, which every notebook verifies again.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np

from compendium import paths
from compendium.cache import Cache
from softgeom.features import Box
from softgeom.layer import SoftmaxLayer
from softgeom.scan_result import Scan
from softgeom.scanner import scan


def kept_scan(layer: SoftmaxLayer, classes: np.ndarray, features: Box) -> Scan:
    """`scan(layer, classes, features=features)`, read where the same code has made it from the same
    layer before; a run that was killed goes on.
    """
    computed = [
        layer.W,
        layer.b,
        np.asarray(layer.tokens or (), dtype=str),
        np.asarray(classes),
        features,
    ]
    code = ("../scanner/src/softgeom",)
    cache = Cache(paths.processed_dir() / "scans", _write, _read, code)
    made = cache.keep(_scan, *computed, label="scan", resumes=True)
    return Scan(layer, made.features, made.findings)


def _scan(
    W: np.ndarray,
    b: np.ndarray | None,
    tokens: np.ndarray,
    classes: np.ndarray,
    features: Box,
    checkpoint: Path | None = None,
) -> Scan:
    layer = SoftmaxLayer(W, b, tuple(tokens.tolist()) or None)
    workers = int(os.environ.get("JOBS") or 1)  # other notebooks run beside
    found = scan(
        layer, classes, features=features, n_jobs=workers, checkpoint=checkpoint, progress=True
    )
    if checkpoint is not None:
        # a folder of blocks, which the cache does not know
        shutil.rmtree(checkpoint, ignore_errors=True)
    return found


def _write(folder: Path, found: Scan) -> None:
    arrays = {"W": found.layer.W} | ({} if found.layer.b is None else {"b": found.layer.b})
    np.savez(folder / "layer.npz", allow_pickle=False, **arrays)
    found.save(folder / "scan.npz")


def _read(folder: Path) -> Scan:
    with np.load(folder / "layer.npz", allow_pickle=False) as f:
        layer = SoftmaxLayer(f["W"], f.get("b"))
    return Scan.load(folder / "scan.npz", layer)
