"""Independent blocks of work on all cores, or on a Dask cluster.

One function, one list of argument tuples, one list of results in the same order. The default is
joblib's ``loky`` (processes of this machine); ``backend="dask"`` sends the same blocks to the
scheduler at ``address``, or to a cluster that it starts for the occasion. ``JOBS``, ``BACKEND`` and
``SCHEDULER`` of the environment choose when nothing is said.
"""

from __future__ import annotations

import logging
import mmap
import os
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from softgeom.errors import LostWorkerError
from softgeom.orphans import end_with_parent, shared_folder, sweep_shared_memory
from softgeom.progress import track

Backend = Literal["loky", "dask", "threading"]
CONNECT_SECONDS = 30  # until a Dask scheduler must have answered
KEPT_BYTES = 2**30  # that a Dask worker's malloc may hold free
MALLOC = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
ALIGNED = 64  # bytes: the width of a vector register


def run_blocks(
    function: Callable[..., Any],
    jobs: Iterable[Sequence[Any]],
    n_jobs: int | None = None,
    backend: Backend | None = None,
    address: str | None = None,
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
    address : str, optional
        Dask scheduler, such as ``tcp://host:8786``; default: the environment variable
        ``SCHEDULER``, else a local cluster. An address that is given means the backend
        "dask".
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
    n_jobs = _workers(n_jobs)
    if not blocks:
        return []
    sizes = [len(job[0]) if unit else 1 for job in blocks]
    bar = track(None, description or "", sum(sizes), quiet=description is None, unit=unit or "it")
    if chosen == "dask":
        address = address or os.environ.get("SCHEDULER")
        done = _run_on_dask(function, blocks, shared, n_jobs, address)
    else:
        done = _run_here(function, blocks, shared, n_jobs, chosen)
    results: list[Any] = [None] * len(blocks)
    with bar:
        for n, result in done:
            results[n] = result
            bar.update(sizes[n])
    return results


def _run_here(
    function: Callable[..., Any],
    jobs: list[tuple[Any, ...]],
    shared: Any,
    n_jobs: int,
    backend: str,
) -> Iterator[tuple[int, Any]]:
    first = () if shared is None else (shared,)
    if n_jobs == 1 or len(jobs) == 1:
        yield from ((n, function(*first, *job)) for n, job in enumerate(jobs))
        return
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # One BLAS thread per worker: several workers with several threads each would fight for the same
    # cores.
    inner = (
        {"inner_max_num_threads": 1, "initializer": end_with_parent, "initargs": (os.getpid(),)}
        if backend == "loky"
        else {}
    )
    sweep_shared_memory()
    with (
        ExitStack() as opened,
        joblib.parallel_config(backend, n_jobs=n_jobs, **inner),
        warnings.catch_warnings(),
    ):
        if first and backend == "loky":
            first = (opened.enter_context(_in_a_file(shared)),)
        # loky replaces a worker whose memory has grown, and no block is lost
        warnings.filterwarnings(
            "ignore", "A worker stopped while some jobs were given", UserWarning
        )
        try:
            yield from enumerate(
                joblib.Parallel(return_as="generator")(
                    joblib.delayed(function)(*first, *job) for job in jobs
                )
            )
        except TerminatedWorkerError as error:
            if "SIGKILL" not in str(error):
                raise
            raise LostWorkerError from error


@contextmanager
def one_cluster(
    n_jobs: int | None, backend: Backend | None, address: str | None
) -> Iterator[str | None]:
    """The scheduler's address for several calls of `run_blocks`: where they would each start a
    local cluster, it is that of one which lasts as long as this context; else what was given.
    """
    known = address or os.environ.get("SCHEDULER")
    if known or _chosen(backend, address) != "dask":
        yield address
        return
    with _local_cluster(_workers(n_jobs)) as cluster:
        yield cluster.scheduler_address


def _chosen(backend: Backend | None, address: str | None) -> str:
    said = "dask" if address else os.environ.get("BACKEND")
    return backend or said or ("dask" if os.environ.get("SCHEDULER") else "loky")


def _local_cluster(workers: int) -> Any:
    """Processes of this machine as a Dask cluster: a worker that dies is replaced without a word,
    and one that is lost for good is told in a sentence.
    """
    distributed = _distributed()
    import dask

    # nobody looks at what is taken fifty times a second and more, while a block is computed
    options = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}
    # Dask has workers give an array's memory back at once, and the system clears it for the next:
    # a fifth of a scan's time
    options |= {f"distributed.nanny.pre-spawn-environ.{name}": KEPT_BYTES for name in MALLOC}
    with dask.config.set(options), warnings.catch_warnings():
        # another cluster of this machine has the page that tells how a cluster fares
        warnings.filterwarnings("ignore", "Port .* is already in use", UserWarning)
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )


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


def _run_on_dask(
    function: Callable[..., Any],
    jobs: list[tuple[Any, ...]],
    shared: Any,
    n_jobs: int,
    address: str | None,
) -> Iterator[tuple[int, Any]]:
    distributed = _distributed()
    with ExitStack() as opened, warnings.catch_warnings():
        # the shared task is sent once, whatever its size
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        cluster = address or opened.enter_context(_local_cluster(n_jobs))
        try:
            client = opened.enter_context(distributed.Client(cluster, timeout=CONNECT_SECONDS))
        except (OSError, ValueError) as error:
            raise ValueError(f"no Dask scheduler answers at {cluster} ({error}).") from error
        # A task, not scattered data: the scheduler keeps what it needs to make it again when
        # workers die, even when all do.
        # Unpickled by each worker that needs it; named at random, for naming 2 GB by their contents
        # takes longer than sending them.
        work, first = function, []
        if shared is not None:
            work, first = _call, [function, client.submit(_itself, _InOnePiece(shared), pure=False)]
        place = {client.submit(work, *first, *job, pure=False): n for n, job in enumerate(jobs)}
        try:
            for future, result in distributed.as_completed(place, with_results=True):
                yield place[future], result
                future.release()  # what is here need not be kept there
        except distributed.KilledWorker as error:  # so often that Dask gave up
            raise LostWorkerError from error


@contextmanager
def _in_a_file(shared: Any) -> Iterator[_Filed]:
    """`shared` for other processes of this machine: its arrays in a file that all of them map.

    joblib would do that too, but it waits a second at the end of each call for workers to let go of
    what they are meant to keep.
    """
    import cloudpickle

    arrays: list[pickle.PickleBuffer] = []
    pickled = cloudpickle.dumps(shared, protocol=5, buffer_callback=arrays.append)
    places = []
    with TemporaryDirectory(prefix=shared_folder(), ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "arrays"
        with path.open("wb") as file:
            for array in arrays:
                file.write(bytes(-file.tell() % ALIGNED))
                places.append((file.tell(), array.raw().nbytes))
                file.write(array.raw())
            file.write(b"end")  # an empty file cannot be mapped
        yield _Filed(str(path), pickled, places)


@dataclass(frozen=True)
class _Filed:
    """Unpickled as what was shared: the same for all jobs of a worker, until another file comes."""

    path: str
    pickled: bytes
    places: list[tuple[int, int]]  # of each array: where it begins, bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return _mapped, (self.path, self.pickled, self.places)


_LAST: dict[str, Any] = {}  # of a worker


def _mapped(path: str, pickled: bytes, places: list[tuple[int, int]]) -> Any:
    if path not in _LAST:
        _LAST.clear()
        with open(path, "rb") as file:
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        _LAST[path] = pickle.loads(pickled, buffers=[view[a : a + n] for a, n in places])
    return _LAST[path]


@dataclass(frozen=True)
class _InOnePiece:
    """Pickled as one string: Dask leaves arrays that travel beside a pickle where they arrive, not
    aligned, and every product would copy them.
    """

    value: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened, (pickle.dumps(self.value, pickle.HIGHEST_PROTOCOL),)


def _opened(sent: bytes) -> _InOnePiece:
    return _InOnePiece(pickle.loads(sent))


def _itself(shared: _InOnePiece) -> _InOnePiece:
    return shared


def _call(function: Callable[..., Any], shared: _InOnePiece, *job: Any) -> Any:
    return function(shared.value, *job)
