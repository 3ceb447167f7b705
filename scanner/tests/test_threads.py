"""Small algebra takes one thread: several would wait for one another."""

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

from softgeom.certifying.hull import certify_unargmaxable
from softgeom.layer import SoftmaxLayer, Unbounded
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


def test_a_proof_without_slack_takes_one(monkeypatch):
    used, qr = [], scipy.linalg.qr

    def noted(*given, **how):
        used.append(_threads())
        return qr(*given, **how)

    monkeypatch.setattr(scipy.linalg, "qr", noted)
    corners = np.array([[3.0, 1.0], [-2.0, 5.0], [-1.0, -7.0]])
    layer = SoftmaxLayer(np.vstack([corners.mean(0), corners]))
    weights = np.full(3, 1 / 3)
    assert certify_unargmaxable(layer, Unbounded(), 0, np.array([1, 2, 3]), weights) <= 0
    assert used
    assert all(threads == {1} for threads in used)
