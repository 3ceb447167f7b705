"""Blocks come back in order from every backend."""

import contextlib
import operator
import os
import signal
import socket
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pytest

from softgeom.errors import LostWorkerError
from softgeom.parallel import KEPT_BYTES, MALLOC, available_cores, run_blocks

JOBS = [(n, 10) for n in range(5)]


def test_workers_leave_interrupts_to_the_parent():
    found = run_blocks(signal.getsignal, [(signal.SIGINT,)] * 2, n_jobs=2, backend="loky")
    assert found == [signal.SIG_IGN] * 2


class Sent:
    """Counts how often it is pickled: each time it travels."""

    count = 0

    def __reduce__(self) -> tuple:
        Sent.count += 1
        return (int, (10,))


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_shared_argument_comes_first(backend):
    jobs = [(n,) for n in range(5)]
    for n_jobs in (1, 2):
        found = run_blocks(operator.sub, jobs, n_jobs=n_jobs, backend=backend, shared=10)
        assert found == [10, 9, 8, 7, 6]


def tally(shared: dict[str, int], n: int) -> int:
    shared["jobs"] += 1
    return shared["jobs"]


def test_a_worker_keeps_the_shared_argument_for_all_of_its_jobs():
    for _ in range(2):  # a second call has its own
        found = run_blocks(tally, [(n,) for n in range(12)], n_jobs=2, shared={"jobs": 0})
        assert 1 <= found.count(1) <= 2
        assert max(found) >= 6


def where_it_lies(shared: list[np.ndarray], n: int) -> list[tuple[bool, int, str]]:
    return [(a.flags.writeable, a.ctypes.data % 64, a.tobytes().hex()) for a in shared]


def test_workers_map_one_copy_of_the_shared_arrays(tmp_path, monkeypatch):
    """Read-only, each at the width of a vector register; the file is gone with the call."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shared = [np.arange(3.0), np.zeros(0), np.asfortranarray(np.arange(6, dtype=np.int8)[:5])]
    found = run_blocks(where_it_lies, [(n,) for n in range(4)], n_jobs=2, shared=shared)
    assert found == [[(False, 0, a.tobytes().hex()) for a in shared]] * 4
    assert not list(tmp_path.glob("softgeom_shared_*"))


WAITS = """
import time
import numpy as np
from softgeom.parallel import run_blocks

class Mine:  # what a notebook defines goes to workers too
    numbers = np.arange(3.0)

def first(mine, n):
    return mine.numbers[n]

if __name__ == "__main__":
    print([float(x) for x in run_blocks(first, [(0,), (1,)], n_jobs=2, shared=Mine())])
    waited = []
    sleep, time.sleep = time.sleep, lambda s: (waited.append(s) if s >= 0.1 else None, sleep(s))
    shared = np.zeros(10**6)
    run_blocks(np.dot, [(2.0,), (3.0,)], n_jobs=2, shared=shared)
    print(len(waited))
"""


def test_what_a_script_defines_is_shared_and_nobody_waits_for_its_release(tmp_path):
    """joblib looks for a second whether workers have let go of an array: they keep it."""
    script = tmp_path / "script.py"
    script.write_text(WAITS)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[0.0, 1.0]", "0"]


def said(name: str) -> str | None:
    return os.environ.get(name)


def test_workers_of_a_local_dask_cluster_keep_an_array_s_memory():
    assert run_blocks(said, [(name,) for name in MALLOC], 1, "dask") == [str(KEPT_BYTES)] * 2


def less(shared: tuple[int, np.ndarray], n: int) -> tuple[int, bool]:
    return shared[0] - n, shared[1].flags.aligned


def test_two_dask_workers_give_the_same_and_get_the_shared_argument_once_and_aligned():
    jobs, shared = [(n,) for n in range(20)], (Sent(), np.arange(10.0**5))
    with warnings.catch_warnings(record=True) as told, socket.socket() as other:
        warnings.simplefilter("always")
        with contextlib.suppress(OSError):
            other.bind(("127.0.0.1", 8787))  # as another cluster's page would
            other.listen()
        found = run_blocks(less, jobs, n_jobs=2, backend="dask", shared=shared)
    assert not [str(warning.message) for warning in told if warning.category is UserWarning]
    assert found == [(10 - n, True) for n in range(20)]
    assert Sent.count <= 4, "sent with every job"


def test_a_killed_worker_is_told_with_the_cure_and_a_crash_is_none():
    with pytest.raises(LostWorkerError, match=r"memory ran out.*--jobs.*--block"):
        run_blocks(signal.raise_signal, [(signal.SIGKILL,)] * 2, n_jobs=2, backend="loky")
    found = run_blocks(operator.mul, JOBS, n_jobs=2, backend="loky")
    assert found == [0, 10, 20, 30, 40], "the next run has workers"
    with pytest.raises(Exception, match="SIGSEGV") as caught:
        run_blocks(signal.raise_signal, [(signal.SIGSEGV,)] * 2, n_jobs=2, backend="loky")
    assert not isinstance(caught.value, MemoryError)


def test_environment_chooses_backend_and_scheduler(monkeypatch):
    monkeypatch.setenv("BACKEND", "nonsense")
    with pytest.raises(ValueError, match="Unknown backend 'nonsense'"):
        run_blocks(operator.mul, JOBS)
    pytest.importorskip("distributed")
    monkeypatch.setattr("softgeom.parallel.CONNECT_SECONDS", 1)
    monkeypatch.delenv("BACKEND", raising=False)
    monkeypatch.setenv("SCHEDULER", "tcp://127.0.0.1:1")
    with pytest.raises(ValueError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        run_blocks(operator.mul, JOBS, n_jobs=1)
    assert run_blocks(operator.mul, JOBS, n_jobs=1, backend="loky") == [a * b for a, b in JOBS]


def test_environment_chooses_workers_one_starts_nothing_and_errors_come_through(monkeypatch):
    with pytest.raises(ZeroDivisionError):
        run_blocks(operator.truediv, [(1, 0)], n_jobs=1)
    assert available_cores() >= 1
    monkeypatch.setenv("JOBS", "1")
    assert run_blocks(os.getpid, [()] * 3) == [os.getpid()] * 3  # nothing is started
    monkeypatch.setenv("JOBS", "2")
    assert os.getpid() not in run_blocks(os.getpid, [()] * 3)
    for nonsense in ("0", "-1", "two"):
        monkeypatch.setenv("JOBS", nonsense)
        with pytest.raises(ValueError, match="JOBS in the environment is"):
            run_blocks(os.getpid, [()] * 3)


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True])
def test_what_is_no_number_of_workers_is_refused(workers):
    with pytest.raises(ValueError, match="n_jobs is a number of workers, 1 or more"):
        run_blocks(operator.mul, JOBS, n_jobs=workers)
