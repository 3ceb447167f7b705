"""Blocks come back in order from every backend, and workers do not outlive their parent."""

import operator
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from softgeom import parallel
from softgeom.errors import LostWorkerError
from softgeom.parallel import available_cores, run_blocks, track

JOBS = [(n, 10) for n in range(5)]
PLACES = [("loky", 1), ("loky", 2), ("threading", 2), ("dask", 2)]


def less(shared: list, n: int) -> tuple[float, int]:
    """A difference, and how often this copy of the shared argument was used."""
    shared[1] += 1
    return float(shared[0][0]) - n, shared[1]


@pytest.mark.parametrize(("backend", "n_jobs"), PLACES)
def test_results_come_in_order_and_a_worker_keeps_the_shared_argument(backend, n_jobs):
    if backend == "dask":
        pytest.importorskip("distributed")
    for _ in range(2):  # a second call has its own
        jobs, shared = [(n,) for n in range(12)], [np.full(200_000, 10.0), 0]
        found = run_blocks(less, jobs, n_jobs=n_jobs, backend=backend, shared=shared)
        assert [difference for difference, _ in found] == [10 - n for n in range(12)]
        assert max(used for _, used in found) >= 6
        assert run_blocks(operator.mul, JOBS, n_jobs, backend) == [a * b for a, b in JOBS]


def test_a_client_of_ones_own_or_the_current_one_is_used(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(parallel, "_local_cluster", None)  # none is started
    how = {"n_workers": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**how) as cluster, distributed.Client(cluster) as client:
        for given in ({"address": client}, {"address": cluster}, {"backend": "dask"}):
            assert run_blocks(operator.mul, JOBS, **given) == [a * b for a, b in JOBS]
            with parallel.one_cluster(1, given.get("backend"), given.get("address")) as at:
                assert at in (None, cluster.scheduler_address)
        assert distributed.Client.current() is client
    with pytest.raises(ValueError, match="no Dask scheduler answers at 3"):
        run_blocks(operator.mul, JOBS, address=3)


SCRIPT = """
import signal, sys, time
import numpy as np
from softgeom.parallel import run_blocks

# a shell's background jobs inherit that it is ignored
signal.signal(signal.SIGINT, signal.default_int_handler)

class Mine:  # what a notebook defines goes to workers too
    numbers = np.arange(3.0)

def first(mine, n):
    return mine.numbers[n]

if __name__ == "__main__":
    print([float(x) for x in run_blocks(first, [(0,), (1,)], n_jobs=2, shared=Mine())], flush=True)
    run_blocks(time.sleep, [(int(sys.argv[1]),)] * 4, n_jobs=2)
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


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path, within, how):
    script = tmp_path / "parent.py"
    script.write_text(SCRIPT)
    apart = {"stderr": subprocess.DEVNULL, "stdout": subprocess.PIPE, "start_new_session": True}
    with subprocess.Popen([sys.executable, script, "60"], **apart) as parent:
        try:
            assert parent.stdout.readline() == b"[0.0, 1.0]\n"
            time.sleep(1.0)  # until both have begun to sleep
            parent.send_signal(how)
            parent.wait(20)
            assert within(20, lambda: not members(parent.pid)), "still there after 20 seconds"
        finally:
            for pid in members(parent.pid):
                os.kill(pid, signal.SIGKILL)


def test_workers_leave_interrupts_to_the_parent():
    found = run_blocks(signal.getsignal, [(signal.SIGINT,)] * 2, n_jobs=2, backend="loky")
    assert found == [signal.SIG_IGN] * 2


def test_a_killed_worker_is_told_with_the_cure_and_a_crash_is_none():
    with pytest.raises(LostWorkerError, match=r"memory ran out.*--jobs.*--block"):
        run_blocks(signal.raise_signal, [(signal.SIGKILL,)] * 2, n_jobs=2, backend="loky")
    found = run_blocks(operator.mul, JOBS, n_jobs=2, backend="loky")
    assert found == [0, 10, 20, 30, 40], "the next run has workers"
    with pytest.raises(Exception, match="SIGSEGV") as caught:
        run_blocks(signal.raise_signal, [(signal.SIGSEGV,)] * 2, n_jobs=2, backend="loky")
    assert not isinstance(caught.value, MemoryError)


@pytest.mark.parametrize(
    ("environment", "options", "refusal"),
    [
        ({"BACKEND": "nonsense"}, {}, "Unknown backend 'nonsense'"),
        ({"SCHEDULER": "tcp://127.0.0.1:1"}, {"n_jobs": 1}, "no Dask scheduler answers|needs the"),
        *(({"JOBS": jobs}, {}, "JOBS in the environment is") for jobs in ("0", "-1", "two")),
        *(({}, {"n_jobs": n}, "n_jobs is a number of workers") for n in (0, -1, 1.5, "2", True)),
        ({}, {"backend": "loky", "address": "tcp://x:1"}, "address is a Dask scheduler"),
    ],
    ids=repr,
)
def test_what_cannot_be_meant_is_refused(monkeypatch, environment, options, refusal):
    monkeypatch.setattr(parallel, "CONNECT_SECONDS", 1)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=refusal):
        run_blocks(operator.mul, JOBS, **options)


def test_one_worker_starts_nothing_and_errors_come_through(monkeypatch):
    with pytest.raises(ZeroDivisionError):
        run_blocks(operator.truediv, [(1, 0)], n_jobs=1)
    assert available_cores() >= 1
    monkeypatch.setenv("JOBS", "1")
    assert run_blocks(os.getpid, [()] * 3) == [os.getpid()] * 3
    monkeypatch.setenv("JOBS", "2")
    assert os.getpid() not in run_blocks(os.getpid, [()] * 3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, []),
        ({"description": "sums"}, ["sums", "2/2"]),
        ({"description": "sums", "unit": "numbers"}, ["sums: 100%", "4/4", "numbers/s"]),
    ],
)
@pytest.mark.parametrize(("n_jobs", "backend"), [(1, "loky"), (2, "threading")])
def test_progress_is_shown_when_asked_for(capsys, monkeypatch, n_jobs, backend, options, said):
    assert list(track(range(3), "short")) == [0, 1, 2]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(parallel, "_SECONDS_BETWEEN_LINES", 0.0)
    jobs, how = [([1, 2, 3],), ([4],)], {"n_jobs": n_jobs, "backend": backend}
    assert run_blocks(sum, jobs, **how, **options) == [6, 4]
    shown = capsys.readouterr().err
    assert shown.isascii()
    assert bool(shown) == bool(said)
    assert all(words in shown for words in said)
