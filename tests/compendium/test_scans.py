"""A kept scan is the scan: same verdicts and evidence, read back without being computed again."""

import numpy as np

from compendium import paths
from compendium.models.scans import kept_scan
from softgeom.examples import uniform_layer
from softgeom.layer import Box, SoftmaxLayer
from softgeom.scanner import scan


def test_what_is_read_back_proves_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "processed_dir", lambda: tmp_path)
    plain = uniform_layer(50, 4, seed=2)
    layer = SoftmaxLayer(plain.W, plain.b, [f"t{i}" for i in range(50)])
    fresh = scan(layer, range(0, 50, 2), features=Box(10.0))
    for _ in range(2):
        found = kept_scan(layer, np.arange(0, 50, 2), Box(10.0))
        assert found.verify()
        assert found.table.equals(fresh.table)
        assert found.layer is layer
    assert len(list(tmp_path.glob("scans/scan-*"))) == 1
    kept_scan(layer, np.arange(0, 50, 2), Box(5.0))
    assert len(list(tmp_path.glob("scans/scan-*"))) == 2
