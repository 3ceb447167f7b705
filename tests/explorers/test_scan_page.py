"""The page's scan (JavaScript) against the library's: its verdicts are the same or undecided, and its folder passes both checkers."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from softgeom.bottleneck.certifying.folder import verify_folder
from softgeom.bottleneck.scanner import scan
from softgeom.layer import Ball, Box, SoftmaxLayer

SCAN = """
const file = new File([Uint8Array.from(atob(argument.bytes), (c) => c.charCodeAt(0))], argument.name);
const { choices } = await m.answers.open({ file });
const choice = { weight: choices[0].name, bias: choices[0].biases.likely, transposed: choices[0].transposed };
const found = await m.answers.scan({ choice, set: argument.set, labels: null, file: file.name });
const coded = async (ask) => btoa(Array.from((await m.answers[ask]()).bytes, (byte) => String.fromCharCode(byte)).join(""));
return { ...found, folder: await coded("folder"), layer: await coded("layerFile") };
"""
OPEN = """
const file = new File([Uint8Array.from(atob(argument.bytes), (c) => c.charCodeAt(0))], argument.name);
try {
  const { choices } = await m.answers.open({ file });
  const choice = { weight: choices[0].name, bias: choices[0].biases.likely, transposed: false };
  await m.answers.scan({ choice, set: { kind: "box", low: -1, high: 1 }, labels: null, file: file.name });
  return { choices };
} catch (error) {
  return { problem: error.message };
}
"""


@pytest.fixture
def scanned(javascript, tmp_path, repository):
    """`scanned(layer, features)`: what the page finds; its folder has passed `verify_folder` and tools/check_evidence.py."""

    def scanned_(layer: SoftmaxLayer, features: Box | Ball) -> dict:
        found = javascript("scan_worker", SCAN, {"bytes": npz(layer), "name": "head.npz", "set": stated(features)})
        for name in ("folder", "layer"):
            content = base64.b64decode(found.pop(name))
            (tmp_path / f"{name}.{'zip' if name == 'folder' else 'npz'}").write_bytes(content)
        with zipfile.ZipFile(tmp_path / "folder.zip") as archive:
            archive.extractall(tmp_path)
        report = verify_folder(tmp_path / "scan", layer)
        assert report.counts["undecided"] == 0
        assert report.scanned == layer.classes - found["counts"]["undecided"]
        command = [sys.executable, repository / "tools" / "check_evidence.py", tmp_path / "scan" / "evidence.npz"]
        done = subprocess.run([*command, tmp_path / "layer.npz"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return found

    return scanned_


def npz(layer: SoftmaxLayer) -> str:
    with io.BytesIO() as file:
        np.savez(file, W=layer.W, **({} if layer.b is None else {"b": layer.b}))
        return base64.b64encode(file.getvalue()).decode()


def stated(features: Box | Ball) -> dict:
    if isinstance(features, Ball):
        return {"kind": "ball", "radius": features.radius}
    low, high = features.bounds(1)
    return {"kind": "box", "low": float(low[0]), "high": float(high[0])}


def planted(rng: np.random.Generator, classes: int, dimension: int, *, bias: bool, dtype=np.float32) -> SoftmaxLayer:
    """A random layer with captives, a twin, a dominated copy, a midpoint, and one that misses the hull by a hair."""
    W = rng.normal(size=(classes, dimension))
    b = rng.normal(size=classes) * 0.3
    W[1] = W[0]
    W[2], b[2] = W[0], b[0] - 1
    b[1] = b[0]
    for t in range(3, 7):
        share = rng.dirichlet(np.ones(classes - 7))
        W[t], b[t] = share @ W[7:], share @ b[7:] - 0.01 * rng.random()
    W, b = W.astype(dtype), b.astype(dtype)
    far = np.argsort(-np.linalg.norm(W, axis=1))[:2]
    W[5] = (W[far[0]] + W[far[1]]) / 2
    W[6] = W[far[0]] * dtype(1 + 1e-6)
    return SoftmaxLayer(W, b if bias else None)


@pytest.mark.parametrize("features", [Box(100.0), Box(6.0, low=-0.2785), Ball(3.0)], ids=["box", "lopsided", "ball"])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("dimension", [2, 5])
def test_verdicts_are_the_library_s_or_undecided(scanned, features, bias, dimension):
    rng = np.random.default_rng(dimension)
    for dtype in (np.float16, np.float32, np.float64):
        layer = planted(rng, 40, dimension, bias=bias, dtype=dtype)
        found = scanned(layer, features)
        ours = {f.index: f.evidence.verdict for f in scan(layer, features=features).findings}
        theirs = {row["t"]: row["verdict"] for row in found["dead"]}
        contrary = {t: (v, ours[t]) for t, v in theirs.items() if v not in ("undecided", ours[t])}
        assert not contrary
        assert all(ours[t] == "argmaxable" for t in set(range(40)) - set(theirs))
        assert found["counts"]["undecided"] <= 2
