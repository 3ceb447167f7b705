"""A full disk: the error names the file, what stood there stays, nothing half-written."""

import errno
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from softgeom import writing
from softgeom.commands import boundary
from softgeom.commands import main as softgeom
from softgeom.examples import uniform_layer
from softgeom.scanner import scan


@pytest.fixture
def full_disk(monkeypatch):
    """Let the disk be full from the n-th sync on: `full_disk(0)` lets nothing through."""

    def fill(after: int = 0) -> None:
        done = iter(range(after))

        def sync(handle):
            if next(done, None) is None:
                raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(writing.os, "fsync", sync)

    return fill


def _write_half(path: Path) -> None:
    with writing.whole(path) as fresh, fresh.open("w", encoding="ascii") as file:
        file.write("half")
        file.write("é")


def test_a_file_is_whole_or_as_it_was(tmp_path, full_disk):
    path = tmp_path / "new" / "a.txt"
    writing.write_bytes(path, memoryview(bytes(range(256))))
    assert path.read_bytes() == bytes(range(256))
    writing.write_text(path, "one")
    with pytest.raises(UnicodeEncodeError):
        _write_half(path)
    assert path.read_text() == "one"
    full_disk()
    with pytest.raises(OSError, match="No space left on device") as caught:
        writing.write_text(path, "two")
    assert caught.value.filename == str(path)
    assert path.read_text() == "one"
    assert os.listdir(path.parent) == ["a.txt"]


def test_two_threads_write_one_file_each_as_a_whole(tmp_path):
    path, both = tmp_path / "a.txt", threading.Barrier(2, timeout=60)

    def write(letter: str) -> None:
        with writing.whole(path) as fresh, fresh.open("w", encoding="ascii") as file:
            both.wait()
            file.write(letter * 9)
            file.flush()
            both.wait()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(write, "ab")) == [None, None]
    assert path.read_text() in ("a" * 9, "b" * 9)
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("before", ["nothing", "file", "folder"])
def test_what_is_damaged_is_set_aside(tmp_path, before):
    path, aside = tmp_path / "a", tmp_path / "a.damaged"
    path.write_text("damaged")
    if before == "folder":
        aside.mkdir()
    elif before == "file":
        aside.write_text("an older one")
    assert writing.set_aside(path) == aside
    assert aside.read_text() == "damaged"
    assert not path.exists()


def _parts(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if ".part" in path.name or ".tmp" in path.name]


@pytest.mark.parametrize("after", range(7))
def test_a_scan_on_a_full_disk_goes_on_later(tmp_path, full_disk, monkeypatch, capsys, after):
    """The disk fills up before each file of a scan in turn."""
    layer = uniform_layer(12, 2)
    np.savez(tmp_path / "a.npz", W=layer.W, b=layer.bias)
    command = ["scan", str(tmp_path / "a.npz"), "--out", str(tmp_path / "out"), "--quiet"]
    command += ["--block", "6"]
    full_disk(after)
    assert softgeom(command) == boundary.NO_FILE
    said = capsys.readouterr().err
    assert said.startswith(f"softgeom: {tmp_path / 'out'}/")
    assert "No space left on device; what was finished is kept" in said
    assert said.count("\n") == 1
    assert not _parts(tmp_path)
    monkeypatch.undo()
    assert softgeom(command) == boundary.DONE
    whole = scan(layer)
    assert softgeom(["verify", str(tmp_path / "out"), str(tmp_path / "a.npz")]) == boundary.DONE
    assert f"{whole.counts['unargmaxable']} unargmaxable" in capsys.readouterr().out


def test_a_layer_on_a_full_disk_is_named(tmp_path, full_disk, monkeypatch):
    from safetensors import SafetensorError, numpy

    from softgeom.checkpoints.rewriting import write_layer

    def full(*_):  # safetensors reports a full disk as an error of its own
        raise SafetensorError("I/O error: No space left on device")

    full_disk()
    for save in (numpy.save_file, full):
        monkeypatch.setattr(numpy, "save_file", save)
        with pytest.raises(OSError, match="No space left on device") as caught:
            write_layer(uniform_layer(5, 2), tmp_path / "layer.safetensors", {})
        assert caught.value.filename == str(tmp_path / "layer.safetensors")
    assert not _parts(tmp_path)


def test_one_command_at_a_time_works_into_a_folder(tmp_path, capsys):
    """A process of its own holds the folder; what it leaves stays, and a kill frees the folder."""
    np.savez(tmp_path / "m.npz", W=np.eye(3))
    scan = ["scan", str(tmp_path / "m.npz"), "--quiet", "--out", str(tmp_path / "out")]
    ask = ["ask", str(tmp_path / "m.npz"), "--among", "0", "1", "--out", str(tmp_path / "answers")]
    holds = (
        "import sys; from contextlib import ExitStack; from softgeom.writing import alone\n"
        "with ExitStack() as held:\n"
        "    [held.enter_context(alone(place)) for place in sys.argv[1:]]\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", holds, str(tmp_path / "out"), str(tmp_path / "answers")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        for arguments in (scan, ask):
            assert softgeom(arguments) == 1
            assert "another command is writing into" in capsys.readouterr().err
        assert [path.name for path in tmp_path.glob("*/*")] == [writing.LOCK] * 2
        other.kill()
    assert softgeom(scan) == 0
    assert softgeom(ask) == 0


def test_results_that_were_finished_meanwhile_are_kept(tmp_path, capsys, monkeypatch):
    """Another layer's scan ends between the first look at the folder and the lock."""
    from softgeom import results

    np.savez(tmp_path / "m.npz", W=np.eye(3))
    np.savez(tmp_path / "other.npz", W=np.eye(4))
    lock, out = results.alone, ["--quiet", "--out", str(tmp_path / "out")]

    def late(folder):
        monkeypatch.setattr(results, "alone", lock)
        assert softgeom(["scan", str(tmp_path / "other.npz"), *out]) == 0
        return lock(folder)

    monkeypatch.setattr(results, "alone", late)
    assert softgeom(["scan", str(tmp_path / "m.npz"), *out]) == 1
    assert "holds the results of another layer" in capsys.readouterr().err
    assert softgeom(["verify", str(tmp_path / "out"), str(tmp_path / "other.npz")]) == 0
