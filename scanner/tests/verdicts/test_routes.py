"""The table of routes: each is of use, none may lose a scan, and hard numbers stop none."""

from dataclasses import replace

import numpy as np
import pytest

from softgeom import routes
from softgeom.certifying.checker import Checker, wins
from softgeom.examples import hard_layer
from softgeom.features import Ball, Box, Unbounded
from softgeom.layer import SoftmaxLayer
from softgeom.problem import FEW, make_problem
from softgeom.proving.decide import decide
from softgeom.scanner import scan

NAMES = [route.name for route in routes.ROUTES]


def broken(monkeypatch: pytest.MonkeyPatch, names: list[str], fault: BaseException) -> None:
    def fail(*_):
        raise fault

    table = tuple(
        replace(route, run=fail) if route.name in names else route for route in routes.ROUTES
    )
    monkeypatch.setattr(routes, "ROUTES", table)


@pytest.fixture(scope="module")
def verdicts() -> list[str]:
    return scan(hard_layer(300, 8, planted=30)).table.verdict.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_no_verdict_hangs_on_one_route(name, verdicts, monkeypatch):
    """Whether it fails or is left out; the last one is the last resort."""
    layer = hard_layer(300, 8, planted=30)
    left_out = scan(layer, without=[name])
    broken(monkeypatch, [name], ZeroDivisionError("induced"))
    failed = scan(layer)
    assert failed.verify()
    counted = failed.table.method.isin(["ascent", "programme"])
    assert not failed.table.steps[~counted].any()
    for found in (left_out, failed):
        assert found.table.verdict.tolist() == verdicts or name == "programme"
        assert len(found) == layer.classes


def test_classes_that_no_route_decides_say_what_failed(monkeypatch):
    layer = hard_layer(300, 8, planted=30)
    broken(monkeypatch, NAMES, np.linalg.LinAlgError("induced"))
    found = scan(layer)
    open_ = [f for f in found.findings if f.evidence.verdict == "undecided"]
    assert len(open_) >= 30
    assert all("programme failed (LinAlgError: induced)" in f.evidence.reason for f in open_)
    assert found.verify()


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), MemoryError()])
def test_an_interrupt_is_no_fault_and_unknown_routes_are_named(fault, monkeypatch):
    broken(monkeypatch, ["surround"], fault)
    with pytest.raises(type(fault)):
        scan(hard_layer(300, 8, planted=30))
    with pytest.raises(ValueError, match="'surround'"):
        scan(hard_layer(300, 8, planted=30), without=["sorround"])


@pytest.mark.parametrize("features", [Box(1.0, low=-0.5), Ball(1.0)])
def test_programmes_decide_in_floats_what_is_no_near_tie(features, monkeypatch):
    monkeypatch.setattr("softgeom.proving.decide.decide_exactly", None)
    rng = np.random.default_rng(0)
    layer = SoftmaxLayer(rng.standard_normal((40, 3)), rng.standard_normal(40))
    problem, checker = make_problem(layer, features), Checker(layer, features)
    none, verdicts = np.zeros(0, np.intp), scan(layer, features=features).table.verdict
    assert set(verdicts) == {"argmaxable", "unargmaxable"}
    for t, verdict in enumerate(verdicts):
        _, margin, rounds = decide(problem, checker, wins(t), problem.anchor, none)
        assert (margin > 0) == (verdict == "argmaxable")
        assert rounds <= 6


def test_the_interior_method_is_for_many_classes_in_few_features():
    rng = np.random.default_rng(0)
    layers = [SoftmaxLayer(rng.standard_normal((C, 3)), np.ones(C)) for C in (FEW, FEW + 1)]
    asked = [make_problem(W, features) for features in (Box(1.0), Unbounded()) for W in layers]
    assert list(map(routes.is_narrow, asked)) == [False, True, False, False]


SETS = {
    "box": Box(100.0),
    "one ulp wide": Box((1.0, 1.0, 1.0), low=(float(np.nextafter(1, 0)),) * 3),
    "smallest box": Box(5e-324),
    "smallest ball": Ball(5e-324),
    "largest ball": Ball(1.7e308),
    "unbounded": Unbounded(),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("scale", [1.0, 5e-324, 1e-160, 1e160, 1e300])
def test_sizes_at_the_ends_of_float64_stop_no_scan_of_many_classes(name, scale):
    rng = np.random.default_rng(7)
    for bias in (None, 1.0, 5e-324):
        W = rng.integers(-4, 5, (66, 3)) * scale
        b = None if bias is None else rng.integers(-2, 3, 66) * bias
        # every second class suffices: it competes with all
        found = scan(SoftmaxLayer(W, b), np.arange(0, 66, 2), features=SETS[name])
        assert found.verify()
        assert found.counts["undecided"] == 0
