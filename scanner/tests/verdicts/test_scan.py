"""Verdicts against Qhull, planted classes, and each other; routes that fail, blocks."""

import dataclasses
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qhull import winners_by_hull

from softgeom import blocks, routes, scanner
from softgeom.certifying import container
from softgeom.certifying.checker import Checker
from softgeom.certifying.verdict import BlockingClasses, Twin, Witness
from softgeom.examples import hard_layer, normal_layer, uniform_layer
from softgeom.layer import Ball, Box, Ellipsoid, SoftmaxLayer, Unbounded
from softgeom.scan_result import Scan
from softgeom.scanner import scan

ONE_SIDED, NORM = Box(2.0, low=-0.3), Ellipsoid([1.0, 0.5, 2.0], [0.1, 0, 0])
FEATURES = [Box(100.0), ONE_SIDED, Box(5.0, low=0.0), Ball(3.0), Unbounded(), NORM]


def verdicts_of(found: Scan) -> list[str]:
    assert found.verify()
    return found.table.verdict.tolist()


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("features", "bias"),
    [(Box(100.0), False), (Ball(2.0), False), (Unbounded(), False), (Unbounded(), True)],
    ids=["box", "ball", "unbounded", "bias"],
)
def test_the_winners_are_those_of_qhull(d, features, bias):
    """Vertices of the hull of the rows, with a bias of the hull seen from above."""
    layer = normal_layer(60, d, bias=bias, seed=d)
    verdicts = np.array(verdicts_of(scan(layer, features=features)))
    assert set(np.flatnonzero(verdicts == "argmaxable")) == winners_by_hull(layer)
    assert "undecided" not in verdicts


@given(
    st.integers(0, 10**6),
    st.sampled_from(FEATURES),
    st.booleans(),
    st.sampled_from(["twins", "rank", "zero", "grid"]),
)
@settings(max_examples=25)
def test_degenerate_layers_are_decided_or_said_to_be_ties(seed, features, bias, kind):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(12, 3))
    b = rng.normal(size=12) if bias else None
    if kind == "twins":
        W[5:8] = W[0]
        if b is not None:
            b[5] = b[0]
    elif kind == "rank":
        W[:, 2] = W[:, 0]
    elif kind == "zero":
        W[:3] = 0.0
    else:
        W = rng.integers(-1, 2, size=(12, 3)).astype(float)
        b = None if b is None else np.round(b)
    found = scan(SoftmaxLayer(W, b), features=features)
    assert found.verify()
    for row in W:
        alike = np.flatnonzero((row == W).all(axis=1))
        best = alike if b is None else alike[b[alike] == b[alike].max()]
        assert len(best) == 1 or all(isinstance(found.evidence(int(i)), Twin) for i in best)
    assert scan(SoftmaxLayer([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])).counts["tied"] == 2


def test_planted_classes_and_only_those_are_unargmaxable():
    layer = hard_layer(1500, 96, planted=30, seed=3)
    found = scan(layer, np.union1d(np.arange(0, 1500, 10), np.arange(1470, 1500)))
    unargmaxable = {f.index for f in found.findings if isinstance(f.evidence, BlockingClasses)}
    assert set(range(1470, 1500)) <= unargmaxable
    assert found.counts["undecided"] == 0
    assert found.verify()


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_table_has_its_columns_and_the_same_call_the_same_table(backend):
    layer = uniform_layer(200, 3, seed=2)
    first, second = scan(layer), scan(layer, block=64, n_jobs=2, backend=backend)
    assert list(first.table.columns) == "class token verdict method steps margin radius".split()
    assert verdicts_of(first) == verdicts_of(second)
    assert first.table.equals(scan(layer).table)


def test_nobody_reorders_the_findings_of_a_scan():
    found = scan(SoftmaxLayer([[4.0, 0], [4, 0], [-4, 4], [-4, -4]]))
    given = list(found.findings)
    copied = Scan(found.layer, found.features, given)
    given.reverse()
    assert [copied[t].index for t in range(4)] == [0, 1, 2, 3]
    assert isinstance(found.findings, tuple)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda layer: scan(layer, [10]), "between 0 and 9"),
        (lambda layer: scan(layer, [-1]), "between 0 and 9"),
        (lambda layer: scan(layer, [1, 1]), "must not repeat"),
        (lambda layer: scan(layer, [0.5]), "class numbers"),
        (lambda layer: scan(layer, features=Ellipsoid(np.ones(3))), "W has 2 columns"),
        (lambda layer: scan(layer, without=["sorround"]), "'surround'"),
        (lambda layer: scan(layer, [3, 1]).evidence(0), "Class 0 is not among the 2 scanned"),
    ],
)
def test_bad_input_gets_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call(normal_layer(10, 2))


# ---- Blocks and checkpoints

KILLED = """
import os, signal, sys
from softgeom.scanner import scan
from softgeom.examples import hard_layer
module, done = sys.modules[scan.__module__], []  # the package exports the function by that name
search = module._search

def killed(task, classes):
    if len(done) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(classes)
    return search(task, classes)

module._search = killed
scan(hard_layer(600, 12, planted=20), block=100, checkpoint=sys.argv[1])
"""


def test_a_scan_that_was_killed_goes_on(tmp_path, monkeypatch):
    """After SIGKILL finished blocks are not computed again, and the table is the same."""
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path])
    assert killed.returncode == -signal.SIGKILL
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(finished) == 3
    layer = hard_layer(600, 12, planted=20)
    whole = scan(layer, block=100).table
    assert scan(layer, block=100, checkpoint=tmp_path).table.equals(whole)
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    # everything is there: nothing is searched again
    monkeypatch.setattr(scanner, "_search", None)
    assert scan(layer, block=100, checkpoint=tmp_path).table.equals(whole)


def test_blocks_of_other_code_or_with_other_numbers_are_computed_anew(
    tmp_path, monkeypatch, caplog
):
    layer = uniform_layer(40, 3, seed=1)
    whole = scan(layer, checkpoint=tmp_path).table
    before = list(tmp_path.glob("*.safetensors"))
    for path in before:
        texts, arrays = container.read(path)
        margins = np.array(arrays["margins"])
        margins[(margins > 0) & np.isfinite(margins)] *= 1.5
        container.write(path, texts, arrays | {"margins": margins})
    assert scan(layer, checkpoint=tmp_path).table.equals(whole)
    assert "cannot be used: set aside" in caplog.text
    assert list(tmp_path.glob("*.damaged"))
    monkeypatch.setattr(blocks, "code", lambda: "another version of the proofs")
    scan(layer, checkpoint=tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) == 2 * len(before)


def test_a_worker_in_another_folder_finds_the_checkpoint(tmp_path, monkeypatch):
    def elsewhere(function, jobs, **options):
        monkeypatch.chdir(tmp_path / "worker")
        try:
            return [function(options["shared"], *job) for job in jobs]
        finally:
            monkeypatch.chdir(tmp_path)

    (tmp_path / "worker").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scanner, "run_blocks", elsewhere)
    scan(uniform_layer(20, 3, seed=1), checkpoint="blocks")
    assert list((tmp_path / "blocks").glob("block-*.safetensors"))
    assert not list((tmp_path / "worker").iterdir())


# ---- Verdicts only


@pytest.mark.parametrize("features", [Box(100.0), Ball(3.0)], ids=["box", "ball"])
def test_verdicts_only_are_the_same_verdicts_with_smaller_certified_margins(features, tmp_path):
    layer, asked = normal_layer(4200, 96, bias=True), np.arange(0, 4200, 3)
    W, b = layer.W.copy(), layer.b.copy()
    W[[3, 6]] *= 0.01
    b[[3, 6]] = -10.0  # unargmaxable
    layer = SoftmaxLayer(W, b)
    full = scan(layer, asked, features=features, checkpoint=tmp_path)
    # not the full scan's blocks
    part = scan(layer, asked, features=features, checkpoint=tmp_path, verdicts_only=True)
    assert verdicts_of(part) == full.table.verdict.tolist()
    assert (part.table.margin < 0.9 * full.table.margin).mean() > 0.9
    won = [found for found in part.findings if isinstance(found.evidence, Witness)]
    assert len(won) == len(asked) - 2
    certified = np.full(len(asked), -0.0)
    certified[part.table.verdict == "argmaxable"] = Checker(layer, features).certify_many(
        [found.evidence.point for found in won], [found.index for found in won]
    )
    # the same up to the rounding that each certifies
    assert (part.table.margin <= certified * (1 + 1e-4)).all()
    assert not (part.table.radius > full.table.radius * (1 + 1e-4)).any()


# ---- The table of routes: each is of use, none may lose a scan, and hard numbers stop none

HARD = hard_layer(300, 8, planted=30)
NAMES = [route.name for route in routes.ROUTES]


def broken(monkeypatch: pytest.MonkeyPatch, names: list[str], fault: BaseException) -> None:
    def fail(*_):
        raise fault

    table = (
        dataclasses.replace(route, run=fail) if route.name in names else route
        for route in routes.ROUTES
    )
    monkeypatch.setattr(routes, "ROUTES", tuple(table))


@pytest.mark.parametrize("name", NAMES)
def test_no_verdict_hangs_on_one_route(name, monkeypatch):
    """Whether it fails or is left out; the last one is the last resort."""
    left_out, verdicts = scan(HARD, without=[name]), scan(HARD).table.verdict.tolist()
    broken(monkeypatch, [name], ZeroDivisionError("induced"))
    failed = scan(HARD)
    assert failed.verify()
    counted = failed.table.method.isin(["ascent", "programme"])
    assert not failed.table.steps[~counted].any()
    for found in (left_out, failed):
        assert found.table.verdict.tolist() == verdicts or name == "programme"
        assert len(found) == HARD.classes


def test_classes_that_no_route_decides_say_what_failed(monkeypatch):
    broken(monkeypatch, NAMES, np.linalg.LinAlgError("induced"))
    found = scan(HARD)
    open_ = [f for f in found.findings if f.evidence.verdict == "undecided"]
    assert len(open_) >= 30
    assert all("programme failed (LinAlgError: induced)" in f.evidence.reason for f in open_)
    assert found.verify()


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), MemoryError()])
def test_an_interrupt_is_no_fault_of_a_route(fault, monkeypatch):
    broken(monkeypatch, ["surround"], fault)
    with pytest.raises(type(fault)):
        scan(HARD)
