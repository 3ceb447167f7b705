"""The key covers function, arguments and code; an entry is whole or not there."""

import errno
import json
import logging
import sys

import numpy as np
import pytest

from compendium import cache, paths
from compendium.cache import Cache

calls: list[tuple] = []


def compute(x, factor, *, checkpoint=None):
    calls.append((factor, checkpoint))
    return {"y": x * factor}


def _write(folder, thing):
    np.savez(folder / "arrays.npz", **thing)


def _read(folder):
    with np.load(folder / "arrays.npz") as arrays:
        return dict(arrays)


@pytest.fixture
def keep(tmp_path, monkeypatch):
    (tmp_path / "lib" / "part").mkdir(parents=True)
    (tmp_path / "lib" / "part" / "a.py").write_text("A = 1\n")
    (tmp_path / "lib" / "one.py").write_text('"""What it is."""\nB = 1\n')
    monkeypatch.setattr(cache, "LIB", tmp_path / "lib")
    calls.clear()
    kept = Cache(tmp_path / "kept", _write, _read, ("part", "one.py"))

    def keep(x=(1.0, 2.0), factor=3, label="demo", **options):
        return kept.keep(compute, np.array(x), factor, label=label, **options)["y"].tolist()

    keep.cache, keep.lib = kept, tmp_path / "lib"
    keep.entries = lambda: sorted(path.name for path in kept.folder.iterdir() if path.is_dir())
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


def test_what_is_damaged_is_computed_again(keep, caplog):
    keep()
    (entry,) = keep.entries()
    (keep.cache.folder / entry / "arrays.npz").write_bytes(b"PK")
    with caplog.at_level(logging.WARNING, "softgeom"):
        assert keep() == [3.0, 6.0]
    assert "cannot be read" in caplog.text
    assert len(calls) == 2
    assert keep() == [3.0, 6.0]
    assert len(calls) == 2


def test_a_full_disk_leaves_nothing_half_written(keep, monkeypatch):
    keep()

    def full(folder, thing):
        (folder / "arrays.npz").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    broken = Cache(keep.cache.folder, full, _read, keep.cache.code)
    with pytest.raises(OSError, match=r"could not be kept.*what was kept before is untouched"):
        broken.keep(compute, np.ones(2), 5, label="demo")
    assert len(keep.entries()) == 1
    assert keep.cache.recall("demo", "01_x")["y"].tolist() == [3.0, 6.0]


def test_a_killed_run_goes_on_from_its_checkpoint(keep):
    def killed(x, factor, *, checkpoint):
        checkpoint.write_text("half way")
        raise KeyboardInterrupt

    killed.__module__, killed.__qualname__ = compute.__module__, compute.__qualname__
    with pytest.raises(KeyboardInterrupt):
        keep.cache.keep(killed, np.array([1.0, 2.0]), 3, label="demo", resumes=True)
    assert keep(resumes=True) == [3.0, 6.0]
    ((_, checkpoint),) = calls
    assert not checkpoint.exists(), "the state goes when the thing is kept"
    assert checkpoint.name == f"{keep.entries()[0]}.checkpoint"


def test_every_place_that_a_cache_names_exists():
    pytest.importorskip("torch")
    from compendium.models import arms, classifiers, encoded, margin_run, store

    named = [*margin_run.CODE, *classifiers._CODE, *store.gpts("default").code]
    named += encoded._cache().code
    assert [name for name in named if not (paths.LIB / name).exists()] == []
    assert arms.margin_run is margin_run


def test_keys_do_not_depend_on_the_process(keep, tmp_path):
    keep()
    pointer = json.loads((keep.cache.folder / "demo.json").read_text())["key"]
    import joblib

    assert keep.entries() == [f"demo-{pointer}"]
    first = joblib.hash((np.arange(3), {"b": 1, "a": "x"}), hash_name="sha1")
    import subprocess

    code = "import joblib, numpy as np\n"
    code += "print(joblib.hash((np.arange(3), {'a': 'x', 'b': 1}), hash_name='sha1'))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == first
