"""Every forgery is refused by both programs that say "proven"; every honest file is accepted."""

import itertools
import re
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import fuzz
import numpy as np
import pytest
from corpus import CORPUS
from honest import Honest, files, saved
from hypothesis import given, settings
from hypothesis import strategies as st
from judge import falsehoods
from verifiers import TOOL, VERIFIERS, tool

from softgeom.ceiling import ceilings
from softgeom.certifying import container
from softgeom.certifying.hull import certify_unargmaxable
from softgeom.certifying.verdict import BlockingClasses
from softgeom.layer import Ball, Box, Ellipsoid, SoftmaxLayer, Unbounded
from softgeom.results import write_layer
from softgeom.scanner import scan


@pytest.mark.parametrize("name", CORPUS)
def test_both_verifiers_refuse_a_forgery(name, tmp_path):
    forgery = CORPUS[name]
    content = forgery.content()
    said = {of: verify(content, files()[forgery.of], tmp_path) for of, verify in VERIFIERS.items()}
    assert [of for of, sentence in said.items() if sentence is None] == []
    assert all("\n" not in sentence for sentence in said.values())


@pytest.mark.parametrize("name", files())
def test_both_verifiers_accept_an_honest_file(name, tmp_path):
    honest = files()[name]
    again = honest.evidence
    again.put(again.claims())
    for content in {honest.content, again.bytes()}:
        for verify in VERIFIERS.values():
            assert verify(content, honest, tmp_path) is None
        assert falsehoods(honest.evidence, honest.layer, honest.evidence) == []


@settings(max_examples=200, deadline=None)
@given(st.randoms(use_true_random=True))
def test_random_forgeries_are_refused_or_true(r):
    assert fuzz.attempt(r) == []


@pytest.mark.parametrize(("name", "value"), [("counts", 2**24), ("sizes", 2**40), ("blocks", 9**9)])
def test_a_size_is_refused_before_it_is_used(name, value, tmp_path):
    honest, forged = files()["answers"], files()["answers"].evidence
    forged.arrays[name][0] = value
    tracemalloc.start()
    try:
        assert all(verify(forged.bytes(), honest, tmp_path) for verify in VERIFIERS.values())
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def test_a_sparse_file_of_a_terabyte_is_refused_at_once(tmp_path):
    """Its header may even fit."""
    honest, forged = files()["box"], files()["box"].evidence
    place = {"shape": [2**37], "data_offsets": [0, 2**40]}
    forged.header.append(lambda said: said.update(above=said["above"] | place))
    for content in (honest.content, forged.bytes()):
        large = tmp_path / "large"
        large.write_bytes(content)
        with large.open("r+b") as file:
            file.truncate(2**40 + len(content))
        assert all(verify(large, honest, tmp_path) for verify in VERIFIERS.values())


@pytest.fixture
def told(tmp_path):
    """`told(name, *options)`: what the exact checker, run as a program, says about a file."""

    def run(name: str | Honest, *options: str) -> list[str]:
        honest = files()[name] if isinstance(name, str) else name
        (tmp_path / "proofs").write_bytes(honest.content)
        write_layer(tmp_path / "layer", honest.layer)
        command = [sys.executable, "-I", "-O", str(TOOL), "proofs", "layer", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return run


def test_the_tool_says_what_it_looked_at(told):
    """No two layers and no two feature sets print alike; k is told."""
    lines = [told(name) for name in ("box", "ball", "unbounded", "intervals", "layernorm, no bias")]
    assert all(a[1] != b[1] for a, b in itertools.combinations(lines, 2))
    assert "10 classes x 3 features" in lines[0][0]
    assert "high 5.0 to 5.0, low -1.0 to -1.0" in lines[0][1]
    assert "looked at 10 of 10" in lines[0][-1]
    assert "top k = 2: 10 possible, 1 impossible" in told("experts")[1]


@pytest.mark.parametrize(
    "features",
    [
        *(Box(100.0), Ball(3.0), Unbounded(), Ellipsoid.layer_norm(np.linspace(0.5, 2.0, 6))),
        Ellipsoid.rms_norm(np.linspace(-0.5, 2.0, 6)),
    ],
    ids=lambda features: features.kind,
)
def test_mixtures_in_general_position_are_proven_by_a_simplex(features, told):
    rng = np.random.default_rng(3)
    W = rng.normal(size=(30, 6)).astype("f4")
    W[24:] = rng.dirichlet(np.ones(24), size=6) @ W[:24]
    found = scan(SoftmaxLayer(W), features=features)
    said = told(Honest(found.layer, saved(found)))[-1]
    assert "looked at 30 of 30" in said
    assert f"'simplex': {found.counts['unargmaxable']}" in said


def test_heavy_blocking_classes_may_be_dependent(told, tmp_path):
    """A cross polytope: opposite rows, whose middle is the class, cancel two by two."""
    rng = np.random.default_rng(0)
    rows = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    layer = SoftmaxLayer(np.vstack([np.zeros(4), rows, -rows]))
    found = scan(layer, [0], features=Unbounded())
    weights = np.array([4, 3, 1, 1, 4, 3, 1, 1]) / 16
    blocking = BlockingClasses(np.arange(1, 9), weights * (1 + 1e-16 * rng.normal(size=8)))
    bound = certify_unargmaxable(layer, Unbounded(), 0, blocking.rivals, blocking.weights)
    finding = replace(found.findings[0], evidence=blocking, margin=bound)
    assert told(Honest(layer, saved(replace(found, findings=[finding]))))[-1].endswith(
        "'simplex': 1}"
    )


def test_ceilings_as_small_as_floats_are_proven(told, tmp_path):
    layer = SoftmaxLayer([[1.0], [-1.0], [0.5]], [0.0, -300.0, -690.0])
    found = ceilings(layer, features=Box(1.0))
    assert 0 < found.ceiling[2] < found.ceiling[1] < 1e-120
    assert "looked at 3 of 3, proven by: {'odds': 3}" in told(Honest(layer, saved(found)))[-1]


def test_a_sample_is_drawn_afresh_and_can_be_repeated(told):
    options = ("--sample", "3", "--only", "unargmaxable")
    one, other = (told("wide", *options)[-1] for _ in range(2))
    seeds = [
        re.search(r"looked at 3 of 80 \(drawn with --seed (\d+)\)", s)[1] for s in (one, other)
    ]
    assert seeds[0] != seeds[1]
    assert told("wide", *options, "--seed", seeds[0])[-1] == one


W = np.ones((2, 2))


@pytest.mark.parametrize(
    "layer",
    [
        {"W": W.astype(int)},
        {"W": W * np.nan},
        {"W": W, "b": np.array([0.0, np.inf])},
        {"W": W, "b": np.array([0.0])},
        {"W": W[0]},
        {"W": W[:0]},
        {"W": W, "bias": np.zeros(2)},
        {"b": np.zeros(2)},
    ],
    ids=repr,
)
def test_the_sceptic_refuses_what_is_not_a_layer(layer, tmp_path):
    container.write(tmp_path / "layer", {}, layer)
    with pytest.raises(tool()["RefusedError"]):
        tool()["read_layer"](tmp_path / "layer")


def test_the_sceptic_gives_up_on_too_many_experts():
    met, refused = (tool()[name] for name in ("met", "RefusedError"))
    pairs = [set(pair) for pair in itertools.combinations(range(6), 2)]
    assert met(pairs, 5)
    assert not met(pairs, 4)
    with pytest.raises(refused, match="too many experts"):
        met(pairs, 4, iter(range(5)))
    far = [set(range(60 * n, 60 * n + 60)) for n in range(10)]
    assert not met(far, 9, iter(range(1)))  # ten disjoint ones take ten
