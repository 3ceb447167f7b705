"""Independent blocks of work on all cores, or on a Dask cluster, through joblib; and progress that
reads well everywhere.

One function, one list of argument tuples, one list of results in the same order. The default is
joblib's ``loky`` (processes of this machine); ``backend="dask"`` sends the same blocks to the
scheduler at ``address``, or to a cluster that it starts for the occasion. ``JOBS``, ``BACKEND`` and
``SCHEDULER`` of the environment choose when nothing is given.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from numbers import Integral
from typing import Any, Literal, TypeVar

from tqdm import tqdm

from softgeom.errors import LostWorkerError

Backend = Literal["loky", "dask", "threading"]
PLAIN_PROGRESS = "SOFTGEOM_PLAIN_PROGRESS"  # in the environment: notebooks run to be logged
CONNECT_SECONDS = 30  # until a Dask scheduler must have answered
_LOOK_SECONDS = 1.0  # between two looks of a worker whether its parent is there
_SECONDS_BETWEEN_LINES = 10.0  # a log with a line each ten seconds shows life and stays short
_Item = TypeVar("_Item")


def run_blocks(
    function: Callable[..., Any],
    jobs: Iterable[Sequence[Any]],
    n_jobs: int | None = None,
    backend: Backend | None = None,
    address: Any = None,
    description: str | None = None,
    shared: Any = None,
    unit: str | None = None,
) -> list[Any]:
    """Call ``function(*job)``, or ``function(shared, *job)``, for every job and return the results
    in order.

    Parameters
    ----------
    function : callable
        Must be importable by the workers (a function of a module) for ``loky`` and ``dask``.
    jobs : iterable of tuples
        The arguments of each call.
    n_jobs : int, optional
        Workers; default: the environment variable ``JOBS``, else one per core that this process may
        use. With 1 and no cluster nothing is started.
    backend : "loky", "dask" or "threading", optional
        Default: the environment variable ``BACKEND``, else "loky".
    address : str or dask Client, optional
        Dask scheduler, such as ``tcp://host:8786``, or a client of it; default: the environment
        variable ``SCHEDULER``, else the process's current client, else a local cluster. An address
        means the backend "dask".
    description : str, optional
        Show progress under this heading; silent without one.
    shared : optional
        First argument of every call. A worker keeps it for all of its jobs, with what it has
        computed of itself.
    unit : str, optional
        What the first argument of each job is a list of: progress counts these instead of jobs.

    Raises
    ------
    ValueError
        If the backend is unknown, ``n_jobs`` or ``JOBS`` is no number of workers, or no scheduler
        answers at the address.
    LostWorkerError
        If a worker process was killed, on Dask again and again.
    """
    blocks = [tuple(job) for job in jobs]
    chosen = _chosen(backend, address)
    if chosen not in ("loky", "dask", "threading"):
        raise ValueError(f"Unknown backend {chosen!r}: use 'loky', 'dask' or 'threading'.")
    if address is not None and chosen != "dask":
        raise ValueError(f"address is a Dask scheduler's: it has no meaning with {chosen}.")
    workers = _workers(n_jobs)
    if not blocks:
        return []
    first = () if shared is None else (shared,)
    if chosen != "dask" and (workers == 1 or len(blocks) == 1):
        done: Iterable[Any] = (function(*first, *job) for job in blocks)
    else:
        done = _run_on(chosen, function, blocks, first, workers, address)
    sizes = [len(job[0]) if unit else 1 for job in blocks]
    quiet, title = description is None, description or ""
    results = []
    with track(None, title, sum(sizes), quiet=quiet, unit=unit or "it") as bar:
        for size, result in zip(sizes, done, strict=True):
            results.append(result)
            bar.update(size)
    return results


def _run_on(
    backend: str,
    function: Callable[..., Any],
    jobs: list[tuple[Any, ...]],
    first: tuple[Any, ...],
    n_jobs: int,
    address: Any,
) -> Iterator[Any]:
    """The results, in order, as they come."""
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    how: dict[str, Any] = {"n_jobs": n_jobs}
    lost: tuple[type[BaseException], ...] = (TerminatedWorkerError,)
    with ExitStack() as opened:
        if backend == "dask":
            client = opened.enter_context(_client(n_jobs, address))
            lost += (_distributed().KilledWorker,)  # one that died so often that Dask gave up
            how = {"n_jobs": -1, "client": client, "scatter": list(first)}
        elif backend == "loky":
            # one BLAS thread per worker: more of them would fight for the same cores
            how |= {"inner_max_num_threads": 1}
            how |= {"initializer": end_with_parent, "initargs": (os.getpid(),)}
        opened.enter_context(joblib.parallel_config(backend, **how))
        opened.enter_context(warnings.catch_warnings())
        # loky replaces a worker whose memory has grown, and no block is lost
        stopped = "A worker stopped while some jobs were given"
        warnings.filterwarnings("ignore", stopped, UserWarning)
        call, key = function, ()
        if first:
            call, key = _with_shared, (uuid.uuid4().hex, function)  # type: ignore[assignment]
        calls = (joblib.delayed(call)(*key, *first, *job) for job in jobs)
        try:
            yield from joblib.Parallel(return_as="generator", batch_size=1)(calls)
        except lost as error:
            if isinstance(error, TerminatedWorkerError) and "SIGKILL" not in str(error):
                raise
            raise LostWorkerError from error


_KEPT: dict[str, Any] = {}  # of a worker


def _with_shared(key: str, function: Callable[..., Any], shared: Any, *job: Any) -> Any:
    """The call with the argument that came with this worker's first job of a run."""
    if key not in _KEPT:
        _KEPT.clear()
        _KEPT[key] = shared
    return function(_KEPT[key], *job)


def end_with_parent(parent: int) -> None:
    """Let this process leave interrupts to the process `parent`, whose message a traceback of its
    own would bury, and end within a second or two of its end.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    watch(parent)


def watch(parent: int) -> None:
    """Let this process end within a second or two of its parent's end: one that is killed cannot
    tell its workers.
    """

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=look, daemon=True, name="softgeom-parent-watch").start()


@contextmanager
def one_cluster(n_jobs: int | None, backend: Backend | None, address: Any) -> Iterator[str | None]:
    """The scheduler's address for several calls of `run_blocks`: where they would each start a
    local cluster, it is that of one which lasts as long as this context.
    """
    if _chosen(backend, address) != "dask" or _scheduler(address):
        yield address and _scheduler(address)
        return
    with _local_cluster(_workers(n_jobs)) as cluster:
        yield cluster.scheduler_address


def _scheduler(address: Any) -> str | None:
    """The address of the scheduler that is named, or that the current client has; None for none."""
    if address is None:
        address = os.environ.get("SCHEDULER")
    if address is None and "distributed" in sys.modules:
        with suppress(ValueError):  # no client is open
            address = _distributed().Client.current()
    scheduler = getattr(address, "scheduler", None)
    return address if scheduler is None else str(scheduler.address)


def _chosen(backend: Backend | None, address: Any) -> str:
    said = "dask" if address else os.environ.get("BACKEND")
    return backend or said or ("dask" if os.environ.get("SCHEDULER") else "loky")


@contextmanager
def _client(n_jobs: int, address: Any) -> Iterator[Any]:
    """A client of the scheduler that is named, else of a cluster of this machine."""
    with ExitStack() as opened:
        where = _scheduler(address)
        cluster = where or opened.enter_context(_local_cluster(n_jobs))
        try:
            client = _distributed().Client(cluster, timeout=CONNECT_SECONDS)
        except (OSError, ValueError, TypeError) as error:
            raise ValueError(f"no Dask scheduler answers at {cluster} ({error}).") from error
        yield opened.enter_context(client)


def _local_cluster(workers: int) -> Any:
    how: Any = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
    return _distributed().LocalCluster(n_workers=workers, threads_per_worker=1, **how)


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise ValueError(
            "backend='dask' needs the package 'distributed': pip install 'softgeom[dask]'."
        ) from None
    return distributed


def available_cores() -> int:
    """Cores that this process may use (the affinity mask where the system has one)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _workers(n_jobs: int | None) -> int:
    """The number of workers that is asked for, here or in the environment."""
    if n_jobs is not None:
        if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs < 1:
            raise ValueError(f"n_jobs is a number of workers, 1 or more, not {n_jobs!r:.40}.")
        return int(n_jobs)
    said = os.environ.get("JOBS", "").strip()
    if said and not (said.isdecimal() and int(said)):
        raise ValueError(
            f"JOBS in the environment is {said!r:.40}: give a number of workers, such as JOBS=2."
        )
    return int(said) if said else available_cores()


def track(
    iterable: Iterable[_Item] | None,
    description: str,
    total: int | None = None,
    *,
    quiet: bool = False,
    unit: str = "it",
) -> tqdm:
    """Iterate with progress: a bar in a notebook and on a terminal's standard error, one plain line
    at intervals in a log, none there for short work. Without an iterable the caller moves the bar
    by `update`; bytes (`"B"`) are shown with prefixes.
    """
    bar, interactive = tqdm, sys.stderr.isatty()
    if _in_notebook() and not os.environ.get(PLAIN_PROGRESS):
        from tqdm.auto import tqdm as bar  # a widget, where the front end has widgets

        interactive = True
    return bar(
        iterable,
        desc=description,
        total=total,
        disable=quiet,
        unit=unit,
        unit_scale=unit == "B",
        file=sys.stderr,
        ascii=True,
        mininterval=0.2 if interactive else _SECONDS_BETWEEN_LINES,
        maxinterval=_SECONDS_BETWEEN_LINES,
        delay=0.0 if interactive else _SECONDS_BETWEEN_LINES,
        leave=not interactive,
    )


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this process."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")
