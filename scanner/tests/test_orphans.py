"""Workers and shared memory of a parent that was ended are gone within seconds."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from softgeom import orphans

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")

PARENT = """
import os, signal, sys, time
from softgeom.parallel import run_blocks

# a shell's background jobs inherit that it is ignored
signal.signal(signal.SIGINT, signal.default_int_handler)

if __name__ == "__main__":
    run_blocks(time.sleep, [(60,)] * 4, n_jobs=2)
"""


def members(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path, within, how):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    apart = {"stderr": subprocess.DEVNULL, "start_new_session": True}
    parent = subprocess.Popen([sys.executable, script], **apart)
    try:
        assert within(60, lambda: len(members(parent.pid)) >= 4), "it, two workers and a tracker"
        time.sleep(1.0)  # until both have begun to sleep
        parent.send_signal(how)
        parent.wait(20)
        assert within(20, lambda: not members(parent.pid)), "still there after 20 seconds"
    finally:
        for pid in members(parent.pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("kind", ["joblib_memmapping_folder", "softgeom_shared"])
def test_shared_memory_of_the_dead_is_swept_and_of_the_living_is_not(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(orphans.tempfile, "gettempdir", lambda: str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    names = (f"{ended.pid}_abc", f"{os.getpid()}_abc", "x")
    dead, living, other = (tmp_path / f"{kind}_{name}" for name in names)
    for folder in (dead, living, other):
        folder.mkdir()
    # the machine's own shared memory is swept, too: another run may have left some there
    assert [path for path in orphans.sweep_shared_memory() if path.parent == tmp_path] == [dead]
    assert living.is_dir()
    assert other.is_dir()
    assert orphans.shared_folder() == f"softgeom_shared_{os.getpid()}_"
