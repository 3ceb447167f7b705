"""One thread for algebra that is too small for two: on a busy machine threads that wait for one
another at each of thousands of products take a hundred times the time of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS and LAPACK calls inside take one thread; also as a decorator, ``@one_thread()``."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


def lasting_threads() -> tuple[int, ...]:
    """How many threads each BLAS of this process takes, if the threads that there are stay until a
    fork, as OpenBLAS's own do; () if they come and go.
    """
    found = [one for one in _blas().lib_controllers if one.user_api == "blas"]
    stay = all(
        one.internal_api == "openblas" and one.threading_layer in ("pthreads", "disabled")
        for one in found
    )
    return tuple(one.num_threads for one in found) if stay else ()


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of this process: looking for them takes longer than a small scan."""
    import scipy.linalg  # noqa: F401 - brings its own

    return ThreadpoolController()
