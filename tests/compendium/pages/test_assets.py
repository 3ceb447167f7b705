"""What comes from npm is what was published, or is not used."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace

import pytest

from compendium.pages import assets

CONTENT = b"console.log(1)\n"


@pytest.fixture
def asset(tmp_path):
    """An asset whose tarball lies in the cache folder already."""
    entry = tarfile.TarInfo("package/es5/a.js")
    entry.size = len(CONTENT)
    with tarfile.open(tmp_path / "demo-1.0.0.tgz", "w:gz") as archive:
        archive.addfile(entry, io.BytesIO(CONTENT))
    return assets.Asset(
        "demo", "1.0.0", assets.integrity(tmp_path / "demo-1.0.0.tgz"), "package/es5/a.js"
    )


def test_a_published_tarball_is_unpacked(asset, tmp_path):
    path = assets.fetch(asset, tmp_path)
    assert path is not None
    assert path.read_bytes() == CONTENT


def test_another_tarball_is_refused_and_removed(asset, tmp_path):
    with pytest.raises(
        ValueError, match=r"demo-1\.0\.0\.tgz from npm is not the published demo 1\.0\.0"
    ):
        assets.fetch(replace(asset, integrity=assets.MATHJAX.integrity), tmp_path)
    assert not list(tmp_path.rglob("*.tgz"))
    assert not list(tmp_path.rglob("*.js"))


def test_without_npm_there_is_nothing(asset, tmp_path, monkeypatch):
    monkeypatch.setattr(assets.shutil, "which", lambda _: None)
    assert assets.fetch(asset, tmp_path / "empty") is None


def test_integrity_is_written_as_npm_writes_it(tmp_path):
    (tmp_path / "empty").touch()
    empty = (
        "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="
    )
    assert assets.integrity(tmp_path / "empty") == f"sha512-{empty}"
