"""The key covers inputs, parameters and code; what is damaged is computed again."""

import errno
import itertools
import json
import logging
import os
import sys
import time
from dataclasses import dataclass

import numpy as np
import pytest

from compendium import codebase, keeping, making
from compendium.keeping import Shelf

WORK = """
from keptdemo.middle import scale
from keptdemo import log

def compute(x, factor, *, checkpoint=None):
    log.calls.append(checkpoint)
    return {'y': scale(x) * factor}
"""
MIDDLE = "from keptdemo.far import SIGN\n\ndef scale(x):\n    return SIGN * x\n"
MODULES = {"__init__": "", "work": WORK, "middle": MIDDLE, "far": "SIGN = 1", "log": "calls = []"}


@pytest.fixture
def lib(tmp_path, monkeypatch):
    root = tmp_path / "lib"
    (root / "keptdemo").mkdir(parents=True)
    for name, text in MODULES.items():
        _change(root / "keptdemo" / f"{name}.py", text)
    monkeypatch.syspath_prepend(root)
    monkeypatch.setattr(codebase, "LIB", root)
    yield root
    _forget()


def _forget():
    for name in [name for name in sys.modules if name.split(".")[0] == "keptdemo"]:
        del sys.modules[name]


_MOMENTS = itertools.count(1_000_000_000)  # long ago, each later than the one before


def _change(path, text):
    """Change a module as if it had been another one before this process started."""
    path.write_text(text)
    os.utime(path, (moment := next(_MOMENTS), moment))
    _forget()


def _write(folder, thing):
    np.savez(folder / "arrays.npz", **thing)


def _read(folder):
    with np.load(folder / "arrays.npz") as arrays:
        return dict(arrays)


@pytest.fixture
def keep(lib, tmp_path):
    shelf = Shelf(tmp_path / "kept", _write, _read)

    def keep(x=(1.0, 2.0), factor=3, **options):
        from keptdemo.work import compute

        return shelf.keep(compute, np.array(x), factor, label="demo", **options)["y"].tolist()

    keep.shelf = shelf
    keep.entries = lambda: sorted(path for path in shelf.folder.iterdir() if path.is_dir())
    return keep


def _calls():
    from keptdemo import log

    return len(log.calls)


def test_equal_computations_are_read(keep):
    assert keep() == keep() == [3.0, 6.0]
    assert _calls() == 1
    assert keep(factor=4) == [4.0, 8.0]
    assert keep(x=[1.0, 2.5]) == [3.0, 7.5]
    assert _calls() == 3
    assert not [path for path in keep.shelf.folder.iterdir() if path.name.startswith(".")]


def test_code_two_imports_away_gives_a_new_key_and_new_numbers(keep, lib, caplog):
    assert keep() == [3.0, 6.0]
    _change(lib / "keptdemo" / "far.py", "SIGN = -1\n")
    with caplog.at_level(logging.WARNING, "softgeom"):
        assert keep() == [-3.0, -6.0]
        _change(lib / "keptdemo" / "middle.py", MIDDLE.replace("SIGN * x", "x * SIGN"))
        assert keep() == [-3.0, -6.0]
    said = "demo: computed again, since code changed: keptdemo."
    assert caplog.messages == [f"{said}far", f"{said}middle"]  # since it was last computed
    made = [json.loads((entry / "made.json").read_text()) for entry in keep.entries()]
    assert len(made) == 3
    assert len({one["code"]["keptdemo.far"] for one in made}) == 2, "which code made it"


def test_code_that_changed_under_a_running_process_is_computed_and_not_kept(keep, lib, caplog):
    keep()
    (lib / "keptdemo" / "far.py").write_text("SIGN = 5\n")
    future = time.time() + 5
    os.utime(lib / "keptdemo" / "far.py", (future, future))
    assert keep() == [3.0, 6.0], "the code that runs is the one that was loaded"
    assert "keptdemo.far changed after this process started" in caplog.text
    assert _calls() == 2
    assert len(keep.entries()) == 1


@pytest.mark.parametrize("harm", ["cut", "flipped", "gone", "unreadable"])
def test_damage_is_set_aside_computed_again_and_said(keep, caplog, harm):
    keep()
    (entry,) = keep.entries()
    arrays = entry / "arrays.npz"
    content = bytearray(arrays.read_bytes())
    if harm == "cut":
        arrays.write_bytes(content[:-20])
    elif harm == "flipped":
        content[60] ^= 255
        arrays.write_bytes(content)
    elif harm == "gone":
        arrays.unlink()
    else:
        (entry / "made.json").write_text("{")
    with pytest.raises(FileNotFoundError, match="missing or damaged: run notebook 01_x"):
        keep.shelf.recall("demo", "01_x")
    assert keep() == [3.0, 6.0]
    assert _calls() == 2
    assert f"{entry.name} is damaged" in caplog.text
    assert (keep.shelf.folder / f"{entry.name}.damaged").is_dir()


def test_recall_gives_the_last_and_refuses_what_other_code_made(keep, lib):
    keep(), keep(factor=4), keep()
    assert keep.shelf.recall("demo", "01_x")["y"].tolist() == [3.0, 6.0]
    with pytest.raises(FileNotFoundError, match=r"kept/other is not kept.*: run notebook 01_x"):
        keep.shelf.recall("other", "01_x")
    _change(lib / "keptdemo" / "middle.py", MIDDLE.replace("* x", "* x * 2"))
    with pytest.raises(FileNotFoundError, match=r"other code than keptdemo\.middle.*run notebook"):
        keep.shelf.recall("demo", "01_x")


def test_a_full_disk_names_the_place_and_leaves_nothing(keep):
    keep()

    def full(folder, thing):
        (folder / "arrays.npz").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    from keptdemo.work import compute

    with pytest.raises(OSError, match=r"could not be kept in .*kept \(No space left"):
        Shelf(keep.shelf.folder, full, _read).keep(compute, np.array([9.0]), 1, label="demo")
    assert not [path for path in keep.shelf.folder.iterdir() if path.name.startswith(".")]
    assert keep() == [3.0, 6.0]


def test_a_checkpoint_carries_the_key_and_what_has_no_content_is_refused(keep, tmp_path):
    keep(resumes=True)
    from keptdemo import log

    (path,) = log.calls
    assert path.parent == tmp_path / "kept"
    assert path.name.startswith("demo-")
    assert not path.exists()
    from keptdemo.work import compute

    with pytest.raises(TypeError, match=r"a PosixPath cannot be part of a key"):
        keep.shelf.keep(compute, tmp_path, 1, label="demo")
    with pytest.raises(TypeError, match=r"what is kept must be computed by a module in lib/"):
        keep.shelf.keep(_read, 1, label="demo")
    with pytest.raises(ValueError, match="label 'a b'"):
        keep.shelf.keep(compute, 1, 1, label="a b")


@dataclass(frozen=True)
class Settings:
    rate: float
    sizes: tuple[int, ...]


def test_descriptions_tell_values_apart():
    things = [0, 0.0, "0", False, None, [0], "a" * 300, "b" * 300, {"a": 1}, {"a": 2}]
    things += [np.zeros(1), np.zeros(1, np.float32), np.zeros((1, 1))]
    things += [Settings(0.1, (1,)), Settings(0.1, (2,)), Settings(0.2, (1,))]
    texts = [json.dumps(making.describe(thing)) for thing in things]
    assert len(set(texts)) == len(texts)
    assert making.describe(np.float64(0.5)) == making.describe(0.5)


def test_a_log_says_what_was_read_and_what_was_computed(keep, tmp_path, monkeypatch, lib):
    monkeypatch.setenv("SOFTGEOM_KEEPING_LOG", str(tmp_path / "log"))
    keep(), keep()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["how"] for line in lines] == ["computed", "read"]
    assert keeping.changed_code(lines[0]["code"]) == []
    _change(lib / "keptdemo" / "far.py", "SIGN = -1\n")
    assert keeping.changed_code(lines[0]["code"]) == ["keptdemo.far"]
