"""Small algebra takes one thread: several would wait for one another."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from softgeom.threads import one_thread


def _threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _two_threads():
    with threadpool_limits(2, user_api="blas"):
        if _threads() != {2}:
            pytest.skip("this BLAS takes one thread only")
        yield


def test_what_is_inside_takes_one_and_what_is_after_it_all():
    with one_thread():
        assert _threads() == {1}
    assert _threads() == {2}
