"""Every forgery is refused by everything that says "proven"; every honest file is accepted."""

from __future__ import annotations

import io
import itertools
import re
import subprocess
import sys
import tracemalloc
import zipfile

import fuzz
import numpy as np
import pytest
from corpus import CORPUS, other_names
from honest import Honest, files, saved
from judge import falsehoods
from verifiers import TOOLS, VERIFIERS, store
from verifiers import tool as program

from softgeom.bottleneck.certifying import evidence_file
from softgeom.bottleneck.scanner import scan
from softgeom.layer import Ball, Box, Ellipsoid, SoftmaxLayer, Unbounded


@pytest.mark.parametrize("name", CORPUS)
def test_every_verifier_refuses_a_forgery(name, tmp_path):
    forgery = CORPUS[name]
    content = forgery.content()
    said = {of: verify(content, files()[forgery.of], tmp_path) for of, verify in VERIFIERS.items()}
    accepted = [of for of, sentence in said.items() if sentence is None]
    assert not accepted
    assert all("\n" not in sentence for sentence in said.values())


@pytest.mark.parametrize("name", files())
def test_every_verifier_accepts_an_honest_file(name, tmp_path):
    honest = files()[name]
    again = honest.evidence
    again.put(again.claims())
    for content in {honest.content, again.bytes()}:
        for verify in VERIFIERS.values():
            assert verify(content, honest, tmp_path) is None
        assert falsehoods(honest.evidence, honest.layer) == []


@pytest.mark.parametrize("seed", range(6))
def test_random_forgeries_are_refused_or_true(seed):
    """Thirty at a time; `make torture` makes thousands."""
    results = [fuzz.attempt(10**12 + 30 * seed + n) for n in range(30)]
    assert [wrong for *_, wrong in results if wrong] == []
    assert sum(found["tried"] for _, found, _ in results) > 15


def test_a_size_is_refused_before_it_is_used(tmp_path):
    honest, forged = files()["box"], files()["box"].evidence
    forged.arrays["counts"][0] = 2**24
    tracemalloc.start()
    try:
        assert all(verify(forged.bytes(), honest, tmp_path) for verify in VERIFIERS.values())
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def test_archives_of_gigabytes_have_fields_of_their_own(tmp_path, monkeypatch):
    """In place of two gigabytes the size of the first member, and of some of them."""
    honest = files()["box"]
    with zipfile.ZipFile(io.BytesIO(honest.evidence.bytes())) as archive:
        first, all_ = archive.infolist()[0].file_size, archive.start_dir
    assert evidence_file.LARGE == zipfile.ZIP64_LIMIT + 1
    for size in (first, 2 * first, all_):
        with monkeypatch.context() as patch:
            patch.setattr(zipfile, "ZIP64_LIMIT", size - 1)
            content = honest.evidence.bytes()
        said = [verify(content, honest, tmp_path) for verify in VERIFIERS.values()]
        assert None not in said
        monkeypatch.setattr(evidence_file, "LARGE", size)
        monkeypatch.setitem(program("check_evidence"), "LARGE", size)
        assert [verify(content, honest, tmp_path) for verify in VERIFIERS.values()] == [None] * 3
        # a name behind the field that is allowed there
        other = other_names(content)
        assert None not in [verify(other, honest, tmp_path) for verify in VERIFIERS.values()]
        monkeypatch.undo()


@pytest.fixture
def tool(tmp_path):
    """`tool(name, *options)`: what the independent checker says about an honest file."""

    def run(name: str | Honest, *options: str) -> subprocess.CompletedProcess:
        honest = files()[name] if isinstance(name, str) else name
        (tmp_path / "evidence.npz").write_bytes(honest.content)
        store(tmp_path / "layer.npz", honest.layer)
        tool = str(TOOLS / "check_evidence.py")
        command = [sys.executable, "-I", "-O", tool, "evidence.npz", "layer.npz", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_the_tool_says_what_it_looked_at(tool):
    """No two layers and no two feature sets print alike; k is told."""
    names = ("box", "ball", "unbounded", "intervals", "layernorm, no bias")
    told = [tool(name) for name in names]
    assert [one.returncode for one in told] == [0] * 5
    lines = [one.stdout.splitlines() for one in told]
    assert all(a[1] != b[1] for a, b in itertools.combinations(lines, 2))
    assert "10 classes x 3 features" in lines[0][0]
    assert "high 5.0 to 5.0, low -1.0 to -1.0" in lines[0][1]
    assert "looked at 10 of 10" in lines[0][-1]
    assert "top k = 2: 10 possible, 1 impossible" in tool("experts").stdout


@pytest.mark.parametrize(
    "features",
    [
        *(Box(100.0), Ball(3.0), Unbounded(), Ellipsoid.layer_norm(np.linspace(0.5, 2.0, 6))),
        Ellipsoid.rms_norm(np.linspace(-0.5, 2.0, 6)),
    ],
    ids=lambda features: features.kind,
)
def test_mixtures_in_general_position_are_proven_by_a_simplex(features, tool):
    rng = np.random.default_rng(3)
    W = rng.normal(size=(30, 6)).astype("f4")
    W[24:] = rng.dirichlet(np.ones(24), size=6) @ W[:24]
    found = scan(SoftmaxLayer(W), features=features)
    said = tool(Honest(found.layer, saved(found))).stdout
    assert "looked at 30 of 30" in said
    assert f"'simplex': {found.counts['unargmaxable']}" in said


def test_a_sample_is_drawn_afresh_and_can_be_repeated(tool):
    options = ("--sample", "3", "--only", "unargmaxable")
    one, other = (tool("wide", *options).stdout.splitlines()[-1] for _ in range(2))
    seeds = [
        re.search(r"looked at 3 of 80 \(drawn with --seed (\d+)\)", s)[1] for s in (one, other)
    ]
    assert seeds[0] != seeds[1]
    assert tool("wide", *options, "--seed", seeds[0]).stdout.splitlines()[-1] == one
