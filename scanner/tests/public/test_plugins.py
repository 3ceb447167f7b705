"""A package that adds a reader and a feature set needs no edit of ours: a fake distribution."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

import softgeom as sg
from softgeom.features import FeatureSet

READER = """
import numpy as np

def read(path):
    rows = [line.split() for line in path.read_text().splitlines()]
    return {"W": np.array([row[1:] for row in rows], float)}
"""
SHELL = """
from dataclasses import dataclass
import softgeom as sg

@dataclass(frozen=True, eq=False)
class Shell(sg.Ball):
    kind = "shell"
"""
METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
TEXT = "a 1 0\nb -1 1\nc -1 -1\nd 0 0\n"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts a distribution with these entry points and modules on the path."""

    def put(name, entry_points, **modules):
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(METADATA.format(name=name))
        (info / "entry_points.txt").write_text(entry_points)
        for module, content in modules.items():
            (tmp_path / f"{module}.py").write_text(content)

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    return put


def test_an_installed_reader_opens_files_of_its_ending(install, tmp_path):
    model = tmp_path / "model.rows"
    model.write_text(TEXT)
    with pytest.raises(ValueError, match="has no known format"):
        sg.load(model)
    install("rows", "[softgeom.readers]\nrows = rows_reader:read\n", rows_reader=READER)
    assert sg.scan(model).counts["unargmaxable"] == 1
    assert sg.load(model).source.name == "model.rows"
    with pytest.raises(ValueError, match=r"there is no file or folder '.*nowhere\.rows'"):
        sg.load("nowhere.rows")
    model.write_text("a one two\n")
    with pytest.raises(ValueError, match=r"model\.rows cannot be read \(ValueError: could not"):
        sg.load(model)


def test_our_own_readers_are_never_replaced(install, tmp_path):
    install("thief", "[softgeom.readers]\nnpy = nowhere:read\n")
    np.save(tmp_path / "W.npy", np.eye(3))
    np.testing.assert_array_equal(sg.load(tmp_path / "W.npy").layer.W, np.eye(3))


def test_a_package_that_cannot_be_imported_and_two_of_one_name_are_said(install, tmp_path):
    (tmp_path / "model.rows").write_text(TEXT)
    install("first", "[softgeom.readers]\nrows = nowhere:read\n")
    with pytest.raises(ValueError, match=r"which first registers .*No module named 'nowhere'"):
        sg.load(tmp_path / "model.rows")
    install("second", "[softgeom.readers]\nrows = rows_reader:read\n", rows_reader=READER)
    with pytest.raises(ValueError, match=r"several packages register 'rows' .*first, second"):
        sg.load(tmp_path / "model.rows")


def test_a_folder_of_an_installed_set_is_verified_by_a_process_that_never_imported_it(
    install, tmp_path, monkeypatch
):
    install("shells", "[softgeom.features]\nshell = shells:Shell\n", shells=SHELL)
    monkeypatch.chdir(tmp_path)
    np.save("W.npy", np.array([[1.0, 0], [-1, 1], [-1, -1], [0, 0]]))
    with monkeypatch.context() as patch:
        patch.setattr(FeatureSet, "kinds", dict(FeatureSet.kinds))
        shells = importlib.import_module("shells")
        sg.scan("W.npy", features=shells.Shell(2.0), out="found")
    assert "shell" not in FeatureSet.kinds
    command = [sys.executable, "-m", "softgeom", "verify", "found", "W.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (tmp_path / "shells-1.0.dist-info" / "entry_points.txt").write_text("")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "'shell' is not a feature set" in done.stderr) == (1, True)
