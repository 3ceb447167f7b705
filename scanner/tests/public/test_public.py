"""The library as a Python user meets it: names, types, examples, and options that the commands
share.
"""

import doctest
import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import softgeom as sg
from softgeom import parallel
from softgeom.commands import main, make_parser
from softgeom.scanner import scan as scan_layer

W = np.array([[1.0, 0], [-1, 1], [-1, -1], [0, 0]])
FRAME = pd.DataFrame(W, index=list("abcd"))
# what a terminal alone needs: where results are printed, and when a run counts as failed
SHELL = {"json", "quiet", "fail_on", "expected", "exit_code", "help", "at"}
# what Python alone needs: how a command keeps blocks and shows progress is settled
EXAMPLES = "scan ask explain prune ceilings coverage watch load".split()
PYTHON = {"checkpoint", "progress", "without", "gap"}
VERBS = "scan verify explain ask ceiling coverage diff prune repair survey".split()


WORDS = {verb: ["m.npz"] for verb in ("scan", "ask", "ceiling", "survey")}
WORDS |= {"coverage": ["m.npz", "--text", "text.txt"]}
WORDS |= {"verify": ["out", "m.npz"], "explain": ["m.npz", "3"], "diff": ["a", "b"]}
WORDS |= {verb: ["m.npz", "--out", "new.npz"] for verb in ("prune", "repair")}


def test_the_stable_names_are_few_and_there():
    assert len(sg.__all__) <= 40
    assert sorted(sg.__all__) == sorted(sg._PLACES)
    assert dir(sg) == sorted([*sg.__all__, "__version__"])
    assert all(getattr(sg, name).__doc__ for name in sg.__all__)
    with pytest.raises(AttributeError, match="scann"):
        sg.scann  # noqa: B018


@pytest.mark.parametrize("verb", VERBS)
def test_a_function_has_the_options_of_its_command(verb):
    (verbs,) = make_parser()._subparsers._group_actions
    asked = {action.dest for action in verbs.choices[verb]._actions} - SHELL
    signature = inspect.signature(getattr(sg, "ceilings" if verb == "ceiling" else verb))
    assert asked == set(signature.parameters) - PYTHON
    assert "VAR_KEYWORD" not in {p.kind.name for p in signature.parameters.values()}
    assert not hasattr(make_parser().parse_args([verb, *WORDS[verb]]), "seed")  # nothing unsaid


def test_a_notebook_completes_every_option(tmp_path, monkeypatch):
    """Asked of a kernel, as JupyterLab asks it."""
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    with pytest.importorskip("jupyter_client.manager").run_kernel(startup_timeout=300) as client:
        client.execute("import softgeom as sg", reply=True, timeout=300)
        for name, function in [(name, getattr(sg, name)) for name in sg.__all__]:
            if inspect.isfunction(function):
                answer = client.complete(f"sg.{name}(", reply=True, timeout=300)["content"]
                options = inspect.signature(function).parameters
                assert {f"{option}=" for option in options} <= {*answer["matches"]}


@pytest.mark.parametrize("name", sorted(sg._PLACES))
def test_examples_of_docstrings_run(name):
    found = getattr(sg, name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder(recurse=False).find(found, name, globs={}):
        assert not runner.run(test).failed
    assert name not in EXAMPLES or runner.tries


def test_a_users_script_runs_up_to_the_names_that_are_none():
    script = Path(__file__).with_name("user_script.py")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert "unargmaxable on" in done.stdout
    assert "module 'softgeom' has no attribute 'scann'" in done.stderr


def test_a_scan_is_a_container_of_its_classes():
    found = sg.scan(FRAME, classes=["d", 1])
    assert len(repr(found)) < 200
    assert "Never an output" in found._repr_html_()
    assert list(found) == [3, 1]
    assert len(found) == 2
    asked = (3, np.int64(1), "d", 0, "a", "z", None)
    assert [name in found for name in asked] == [True] * 3 + [False] * 4
    assert found["d"].verdict == found[3].verdict == "unargmaxable"
    assert list(found[:2]) == [1]
    assert found[:2].verify()
    written = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [row["verdict"] for row in written["verdicts"]] == ["unargmaxable", "argmaxable"]
    with pytest.raises(KeyError, match="class 0 is not among the 2"):
        found[0]
    with pytest.raises(KeyError, match="no class 'z'"):
        found["z"]


def test_a_scan_by_options_is_the_scan_of_the_layer_over_the_set():
    found = sg.scan(FRAME, bound=3, low=0)
    by_hand = scan_layer(sg.SoftmaxLayer(W, tokens=list("abcd")), features=sg.Box(3, low=0))
    assert found.features == by_hand.features
    assert found.table[by_hand.table.columns].equals(by_hand.table)


@pytest.mark.parametrize(
    ("options", "point"),
    [
        ({"features": "norm"}, "no final normalisation"),
        ({"features": "sphere"}, "features must be one of"),
        ({"features": 3}, "features must be one of"),
        ({"features": "unbounded", "bound": 1}, "--bound has no meaning"),
        ({"classes": ["z"]}, "no class 'z'"),
        ({"address": "tcp://127.0.0.1:1"}, "no Dask scheduler answers|needs the package"),
        ({"address": "tcp://127.0.0.1:1", "backend": "loky"}, "address is a Dask scheduler"),
    ],
)
def test_an_option_without_meaning_is_refused(options, point, monkeypatch):
    monkeypatch.setattr(parallel, "CONNECT_SECONDS", 1)
    with pytest.raises(ValueError, match=point):
        sg.scan(FRAME, **options)


def test_of_several_classes_with_one_token_all_have_to_be_lost():
    twice = sg.scan(FRAME.set_axis(list("abdd")))
    assert sg.diff(twice, sg.scan(FRAME))["lost, then can win"] == []
    assert sg.diff(twice, sg.scan(FRAME))["can win, then lost"] == ["d"]


def test_an_index_without_a_bias_is_asked_over_the_unit_ball():
    assert sg.ask(FRAME, together=["a", "b"]).features == sg.Ball(1.0)
    assert sg.ask(FRAME, together=["a", "b"], bound=2).features == sg.Box(2.0)


def test_functions_and_commands_write_and_read_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("m.npz", W=W, tokens=list("abcd"))
    found = sg.scan("m.npz", out="here")
    assert main(["scan", "m.npz", "--out", "there", "--quiet"]) == 0
    for name in ("verdicts.csv", "evidence.safetensors"):
        assert Path("here", name).read_bytes() == Path("there", name).read_bytes()
    assert sg.verify("here", "m.npz").table.equals(found.table)
    assert sg.diff("here", found)["lost in both"] == ["d"]
    assert main(["explain", "m.npz", "d"]) == 0
    assert capsys.readouterr().out.strip() == str(sg.explain("m.npz", "d"))
    layer, cut = sg.prune("m.npz", results="here", close_too=True, out=Path("p.safetensors"))
    assert layer.tokens == ("a", "b", "c")
    assert cut.dropped.tolist() == [3]
    assert sg.load("p.safetensors").layer.classes == 3
    assert sg.repair("m.npz", out="r.safetensors").b is not None
    assert sg.survey(["m.npz", "no.npz"], n_jobs=1)["unargmaxable"].tolist()[0] == 1
    answers = sg.ask("m.npz", among=["a", 3], out="answers")
    assert sg.verify("answers", "m.npz").counts == answers.counts
    with pytest.raises(ValueError, match="two questions"):
        sg.ask("m.npz", on=["a"], order=["b"])


def test_every_result_is_one_line_and_a_piece_of_a_notebook():
    names = [f"<{name}1>" for name in "abcd"]
    results = [
        sg.load(W, tokens=names),
        sg.scan(W, tokens=names),
        sg.ask(W, tokens=names, order=[["<d1>", "<a1>"], ["<a1>", "<b1>"]]),
        sg.ask(W, tokens=names, experts=2),
        sg.explain(W, "<d1>", tokens=names),
    ]
    for found in results:
        assert "\n" not in repr(found)
        assert len(repr(found)) < 200
        page = found._repr_html_()
        assert "softgeom-card" in page
        assert not any(name in page for name in names)  # escaped
    assert "layer: W (4, 2)" in str(results[1])
    answers = results[2]._repr_html_()
    assert "<th>verdict</th>" in answers
    assert "impossible" in answers
    assert "possible" in results[3]._repr_html_()
    assert "unargmaxable" in repr(results[4])
    assert "4 classes, 2 features, no bias" in repr(results[0])
