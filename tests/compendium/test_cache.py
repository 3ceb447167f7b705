"""The key covers function, arguments and code; an entry is whole or not there."""

import logging

import numpy as np
import pytest

from compendium import cache
from compendium.cache import Cache

calls: list[tuple] = []


def compute(x, factor, *, checkpoint=None):
    calls.append((factor, checkpoint))
    return {"y": x * factor}


@pytest.fixture
def keep(tmp_path, monkeypatch):
    (tmp_path / "lib" / "part").mkdir(parents=True)
    (tmp_path / "lib" / "part" / "a.py").write_text("A = 1\n")
    (tmp_path / "lib" / "one.py").write_text('"""What it is."""\nB = 1\n')
    monkeypatch.setattr(cache, "LIB", tmp_path / "lib")
    calls.clear()
    kept = Cache(tmp_path / "kept", ("part", "one.py"))

    def keep(x=(1.0, 2.0), factor=3, label="demo", **options):
        return kept.keep(compute, np.array(x), factor, label=label, **options)["y"].tolist()

    keep.cache, keep.lib = kept, tmp_path / "lib"
    keep.entries = lambda: sorted(kept.folder.glob("*.joblib"))
    return keep


def test_equal_computations_are_read(keep):
    assert keep() == keep() == [3.0, 6.0]
    assert len(calls) == 1
    assert keep(factor=4) == [4.0, 8.0]
    assert keep(x=[1.0, 2.5]) == [3.0, 7.5]
    assert len(calls) == len(keep.entries()) == 3


@pytest.mark.parametrize(
    ("file", "text", "again"),
    [
        ("part/a.py", "A = 2\n", True),
        ("part/new.py", "", True),
        ("one.py", '"""What it is."""\nB = 2\n', True),
        ("one.py", '"""Said in other words."""\n\nB = 1  # why\n', False),
        ("other.py", "C = 1\n", False),
    ],
)
def test_changed_code_that_the_cache_names_is_computed_again(keep, file, text, again):
    keep()
    (keep.lib / file).write_text(text)
    keep()
    assert len(calls) == 1 + again
    if again:
        (keep.lib / file).write_text(text + "D = 1\n")
        with pytest.raises(FileNotFoundError, match="was made by other code: run notebook 01_x"):
            keep.cache.recall("demo", "01_x")


def test_a_name_means_what_was_kept_last(keep):
    with pytest.raises(FileNotFoundError, match="kept/demo is not kept: run notebook 01_x first"):
        keep.cache.recall("demo", "01_x")
    keep(factor=3), keep(factor=4)
    assert keep.cache.recall("demo", "01_x")["y"].tolist() == [4.0, 8.0]
    keep(factor=3)
    assert keep.cache.recall("demo", "01_x")["y"].tolist() == [3.0, 6.0]
    with pytest.raises(ValueError, match="label"):
        keep(label="../up")


@pytest.mark.parametrize("damage", [b"", b"PK", b"\x80\x04"])
def test_what_is_damaged_is_computed_again(keep, caplog, damage):
    keep()
    (entry,) = keep.entries()
    entry.write_bytes(damage)
    with caplog.at_level(logging.WARNING, "softgeom"):
        assert keep() == keep() == [3.0, 6.0]
    assert "cannot be read" in caplog.text
    assert len(calls) == 2
    entry.unlink()
    with pytest.raises(FileNotFoundError, match="kept/demo is missing: run notebook 01_x again"):
        keep.cache.recall("demo", "01_x")


@pytest.mark.parametrize("folder", [False, True])
def test_a_killed_run_goes_on_from_its_checkpoint(keep, folder):
    def killed(x, factor, *, checkpoint):
        checkpoint.mkdir() if folder else checkpoint.write_text("half way")
        raise KeyboardInterrupt

    killed.__module__, killed.__qualname__ = compute.__module__, compute.__qualname__
    with pytest.raises(KeyboardInterrupt):
        keep.cache.keep(killed, np.array([1.0, 2.0]), 3, label="demo", resumes=True)
    assert keep(resumes=True) == [3.0, 6.0]
    ((_, checkpoint),) = calls
    assert not checkpoint.exists(), "the state goes when the thing is kept"
    assert checkpoint.stem == keep.entries()[0].stem
