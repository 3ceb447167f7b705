"""What the verbs print, write and refuse, with which exit code."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import softgeom as sg
from softgeom import scanning, widening
from softgeom.asking import find_blocking_set
from softgeom.card import card
from softgeom.certifying.verdict import Finding, Unknown, Witness
from softgeom.cli import main
from softgeom.commands import EXAMPLES, VERBS, boundary, parse
from softgeom.commands.ask import about_blocking_set
from softgeom.commands.scan import parse_classes
from softgeom.errors import LostWorkerError
from softgeom.explaining import explanation
from softgeom.layer import Ball, Box, Ellipsoid, SoftmaxLayer
from softgeom.parallel import run_blocks
from softgeom.pruning import cut, rounding_errors
from softgeom.scan_result import Scan
from softgeom.scanner import scan

ULP, NEAR = 2.0**-24, 1 - 2.0**-9  # half a unit in the last place of a float32 above 1


def _rounds_up(n):
    """A number just above the middle of two neighbours of float32."""
    return 1 + 2 * (n - 1) * ULP + ULP * (1 + 2.0**-20)


def _rounds_down(n):
    return 1 + 2 * n * ULP + ULP * (1 - 2.0**-20)


@pytest.fixture
def scanned(npz, tmp_path, told):
    """A finished folder of results."""
    told("scan", npz, "--out", tmp_path / "out", "--quiet")
    return tmp_path / "out"


def test_results_of_another_model_are_not_overwritten_nor_verified(
    scanned, tmp_path, npz, told, refused
):
    other = tmp_path / "other.npz"
    np.savez(other, W=np.eye(3))
    refused("holds the results of another layer", "scan", other, "--out", scanned)
    said = told("verify", scanned, npz)
    assert "40 verdicts re-checked without a solver" in said
    assert f"|x| <= 100, SHA-256 {Box(100.0).digest()}\n" in said
    refused("belongs to another layer", "verify", scanned, other)


def test_fail_on_counts_what_is_not_expected(npz, tmp_path, capsys):
    command = ["scan", str(npz), "--out", str(tmp_path / "out"), "--quiet", "--fail-on"]
    assert main([*command, "unargmaxable"]) == boundary.TOO_MANY
    assert main([*command, "undecided"]) == 0
    table = sg.read_verdicts(tmp_path / "out")
    lost = table.token[table.verdict == "unargmaxable"]
    assert main([*command, f"unargmaxable={len(lost)}"]) == 0
    assert main([*command, f"unargmaxable={len(lost) - 1}"]) == boundary.TOO_MANY
    (tmp_path / "known.txt").write_text("\n".join(lost))
    assert main([*command, "unargmaxable", "--expected", str(tmp_path / "known.txt")]) == 0


@pytest.mark.parametrize(
    ("buffered", "streams"), [("", ""), ("1", "2>&1")], ids=["buffered", "both"]
)
def test_a_reader_that_goes_away_stops_no_scan_and_hides_no_exit_code(
    npz, tmp_path, buffered, streams
):
    command = (
        f"{sys.executable} -m softgeom scan {npz} --out {tmp_path / 'out'} --fail-on unargmaxable"
    )
    command = f"{command} {streams} | true; exit ${{PIPESTATUS[0]}}"
    environment = os.environ | {"PYTHONUNBUFFERED": buffered}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment)
    assert done.returncode == boundary.TOO_MANY
    assert streams or "are unargmaxable and not expected" in done.stderr
    assert (tmp_path / "out" / "summary.json").is_file()


def test_a_name_that_is_also_a_number_excuses_its_own_class_alone(tmp_path):
    """Classes 3 and 5 can never win; class 5 is called 3."""
    W = np.array([[4, 0], [-4, 4], [-4, -4], [0, 0], [4, 5], [0.5, 0]])
    np.savez(tmp_path / "m.npz", W=W, tokens=np.array(["a", "b", "c", "d", "e", "3"]))
    command = ["scan", str(tmp_path / "m.npz"), "--out", str(tmp_path / "out"), "--quiet"]
    command += ["--fail-on", "unargmaxable", "--expected", str(tmp_path / "known.txt")]
    for excused, code in (("3", boundary.TOO_MANY), ("3\nd", 0), ("5\nd", 0), ("5\n3", 4)):
        (tmp_path / "known.txt").write_text(excused)
        assert main(command) == code


def test_an_earlier_scan_says_what_is_expected(tmp_path):
    """Token by token, each class once: a second one of the same name is news."""
    ring = [[np.cos(a), np.sin(a)] for a in np.linspace(0, 6, 8)]
    gate = ["--quiet", "--fail-on", "unargmaxable", "--expected", str(tmp_path / "before")]

    def scanned(name: str, inside: list[str], *more: str) -> int:
        W = np.array([*ring, *([0.1, 0.01 * n] for n in range(len(inside)))])
        np.savez(tmp_path / f"{name}.npz", W=W, tokens=np.array([*"abcdefgh", *inside]))
        command = ["scan", str(tmp_path / f"{name}.npz"), "--out", str(tmp_path / name)]
        return main([*command, *(more or ["--quiet"])])

    assert scanned("before", ["x", "y"]) == 0
    assert scanned("fewer", ["y"], *gate) == 0
    assert scanned("other", ["y", "z"], *gate) == boundary.TOO_MANY
    assert scanned("twice", ["y", "x", "x"], *gate) == boundary.TOO_MANY


def test_a_finished_scan_is_not_told_how_to_scan(npz, scanned, tmp_path, refused):
    prune = ["prune", npz, "--out", tmp_path / "p.npz", "--results", scanned]
    for option, value in (("--features", "box"), ("--low", 0), ("--seed", 1), ("--after", "relu")):
        refused("leave out how to scan", *prune, option, value)


def test_json_alone_nothing_when_quiet_and_some_classes(npz, tmp_path, capfd):
    # by the solver neither, which writes to the descriptor
    assert main(["scan", str(npz), "--out", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["classes"] == 40
    assert (
        main(["scan", str(npz), "--verdicts-only", "--quiet", "--out", str(tmp_path / "out")]) == 0
    )
    assert capfd.readouterr() == ("", "")
    assert main(["scan", str(npz), "--classes", "3,5-7", "--out", str(tmp_path / "out")]) == 0
    assert sg.read_verdicts(tmp_path / "out")["class"].tolist() == [3, 5, 6, 7]


def test_auto_takes_what_the_step_before_allows_and_inspect_says_so(network, tmp_path, told):
    said = told("scan", network, "--features", "auto", "--out", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["feature_set"] == "|x| <= 1"
    assert "tanh in front of the layer" in said
    command = told("inspect", network).strip().splitlines()[-1]
    assert command == f"softgeom scan {network} --features auto"


def test_inspect_lists_what_could_be_meant(tmp_path, told):
    file = tmp_path / "many.npz"
    np.savez(file, **{f"m{n}": np.ones((n + 3, 2)) for n in range(20)})
    shown = told("inspect", file)
    assert "--weight m19  # (22, 2)" in shown
    assert shown.count("softgeom scan") == 8
    assert "12 more matrices: --all lists them" in shown
    assert told("inspect", file, "--all").count("softgeom scan") == 20
    listed = json.loads(told("inspect", file, "--json"))["candidates"]
    assert listed[0] == {"weight": "m19", "shape": [22, 2], "bias": None}


def test_a_token_of_two_classes_is_asked_for_by_number():
    layer = sg.SoftmaxLayer([[1.0, 0], [-1, 1], [-1, -1], [0, 0]], tokens=["a", "b", "b", "0"])
    assert [sg.explain(layer, name).finding.index for name in ("a", "0", 3)] == [0, 3, 3]
    asked = (
        lambda: sg.explain(layer, "b"),
        lambda: sg.scan(layer, ["b"]),
        lambda: sg.ceilings(layer, ["b"]),
        lambda: sg.floor(layer, [{"b": 1.0}]),
        lambda: sg.ask(layer, blocked_by="b"),
    )
    for ask in asked:
        with pytest.raises(ValueError, match=r"classes \[1, 2\] are all called 'b'"):
            ask()


def test_explain_names_blocking_classes_or_an_input(npz, scanned, told, refused):
    tokens = sg.read_verdicts(scanned).groupby("verdict").token.first()
    said = told("explain", npz, tokens["unargmaxable"])
    assert "weighted mean of" in said
    assert "best rank that it reaches" in said
    assert "frees it (solved for, not proven)" in said
    assert "it wins by" in told("explain", npz, tokens["argmaxable"])
    refused("nothing", "explain", npz, "nothing")


def test_no_sentence_says_more_than_is_proven():
    """Numbers that the nearest three or four digits would make larger."""
    layer = SoftmaxLayer([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [0.0, 0.99996, 0.0])
    assert "by at least 0.9999\n" in str(sg.explain(layer, 0)) + "\n"
    blocking = find_blocking_set(layer, 0, [0, 1])
    assert about_blocking_set(blocking)[1].endswith("by at least 0.9999")
    won = Finding(2, Witness(np.array([1.0, 0.0])), "look", 0, 0.99996, 0.49996)
    said = "\n".join(explanation(Scan(layer, Box(1.0), [won]), 2))
    assert "it wins by 0.9999 at" in said
    assert "anywhere within 0.4999 of" in said
    lost = sg.scan(layer, [0])
    page = card(lost.table, lost.counts, "it", ceiling=lost.ceiling)
    assert "<td>-0.9999</td>" in page


@pytest.mark.parametrize("name", ["a b'c é\\n", "red \x1b[31m\n\u202e$(x)"])
def test_a_command_to_paste_is_one_line_and_means_the_folder(npz, tmp_path, told, name):
    out = tmp_path / name
    said = told("ask", npz, "--among", "t0", "t1", "--out", out)
    assert not any(c in said for c in "\x1b\u202e")
    command = said.rstrip("\n").rpartition(": softgeom verify ")[2]
    assert command.isprintable()
    pasted = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, text=True, check=True
    )
    assert pasted.stdout.split("\0")[:2] == [str(out), str(npz)]
    told("scan", npz, "--out", out.with_name(f"{name} 2"), "--quiet")
    page = (tmp_path / f"{name} 2" / "card.html").read_text(encoding="utf-8")
    assert "\x1b" not in page


def test_a_fault_in_what_is_asked_besides_loses_no_scan(npz, tmp_path, monkeypatch, caplog):
    def fails(*_, **__):
        raise MemoryError

    monkeypatch.setattr(widening, "scan", fails)
    monkeypatch.setattr(scanning, "up_to", fails)
    assert main(["scan", str(npz), "--out", str(tmp_path / "out")]) == 0
    assert caplog.text.count("the scan itself is whole") == 2
    assert main(["verify", str(tmp_path / "out"), str(npz)]) == 0


def test_classes_that_a_norm_makes_equal_are_not_said_to_have_equal_rows():
    layer = SoftmaxLayer([[1.0, 5.0], [1.0, -5.0], [-1.0, 0.0]])
    same, other = sg.explain(layer, 0, features=Ellipsoid([1.0, 0.0])), sg.explain(layer, 0)
    assert "has the same score everywhere in the set: they always tie" in str(same)
    assert other.finding.verdict == "argmaxable"
    assert "the same row and bias" in str(sg.explain(SoftmaxLayer([[1.0], [1.0], [-1.0]]), 0))


def test_a_class_that_ties_did_not_come_to_win():
    lost = [[1, 0], [-1, 1], [-1, -1], [0, 0]], [0, 0, 0, -1]
    tied = [[1, 0], [-1, 1], [-1, -1], [1, 0]], [0, 0, 0, 0]
    scans = [sg.scan(SoftmaxLayer(*each, tokens=list("abcd"))) for each in (lost, tied)]
    changes = sg.diff(*scans)
    assert changes["lost, then tied or undecided"] == ["d"]
    assert changes["lost, then can win"] == []
    assert sg.diff(*scans[::-1])["tied or undecided, then lost"] == ["d"]


def test_diff_tells_what_happened_to_each_token(scanned, layer, tmp_path, told):
    # no class is unargmaxable
    bias, tokens = -0.5 * (layer.W.astype(float) ** 2).sum(1), np.array([*layer.tokens[:38], "new"])
    np.savez(tmp_path / "b.npz", W=layer.W[:39], b=bias[:39], tokens=tokens)
    told("scan", tmp_path / "b.npz", "--out", tmp_path / "b", "--quiet")
    changes = json.loads(told("diff", scanned, tmp_path / "b", "--json"))
    table = sg.read_verdicts(scanned)
    lost = set(table.token[(table.verdict == "unargmaxable") & (table["class"] < 38)])
    assert set(changes["lost, then can win"]) == lost
    assert changes["lost in both"] == changes["can win, then lost"] == []
    assert changes["new"] == ["new"]


def test_a_pruned_network_answers_alike_and_names_its_classes(
    network, layer, tmp_path, told, refused
):
    onnxruntime = pytest.importorskip("onnxruntime")
    out = tmp_path / "small.onnx"
    (tmp_path / "labels.txt").write_text("\n".join(layer.tokens))
    assert "cut off" in told("prune", network, "--features", "auto", "--out", out)
    listing = json.loads((tmp_path / "small.onnx.classes.json").read_text())
    assert len(listing) < 40
    assert all(entry["token"] == layer.tokens[entry["was"]] for entry in listing)
    x = np.random.default_rng(0).normal(0, 3, (20_000, 2)).astype(np.float32)
    sessions = (onnxruntime.InferenceSession(str(file)) for file in (network, out))
    old, new = (session.run(None, {"x": x})[0].argmax(1) for session in sessions)
    np.testing.assert_array_equal(old, np.array([entry["was"] for entry in listing])[new])
    refused("small.onnx", "prune", network, "--out", out)  # the file is there


def test_layers_and_networks_are_pruned_and_repaired(npz, layer, tmp_path, network, told):
    out = tmp_path / "small.npz"
    told("prune", npz, "--out", out)
    kept = [e["was"] for e in json.loads((tmp_path / "small.npz.classes.json").read_text())]
    small = sg.load(out).layer
    np.testing.assert_array_equal(small.W, layer.W[kept])
    np.testing.assert_array_equal(small.b, layer.b[kept])
    assert small.tokens == tuple(layer.token(t) for t in kept)
    for model, repaired in ((npz, tmp_path / "free.npz"), (network, tmp_path / "free.onnx")):
        told("repair", model, "--out", repaired)
        assert sg.scan(repaired).counts["argmaxable"] == 40


def test_undecided_classes_stop_a_pruning(layer):
    unknown = [Finding(t, Unknown(1.0, "given up"), "programme", 0, 1.0, np.nan) for t in range(40)]
    with pytest.raises(ValueError, match="40 classes are undecided"):
        cut(Scan(layer, Box(100.0), unknown))


def test_the_rounding_bound_is_at_least_that_of_the_largest_products(layer):
    """``(d + 2) u (|w|.|x| + |b|)``, each row at the point of the set that is worst for it."""
    W, b = 9 * np.abs(layer.W.astype(float)), np.abs(layer.bias.astype(float))
    gain, shift = np.array([2.0, 0.5]), np.array([1.0, 3.0])
    along, scaled = (V / np.linalg.norm(V, axis=1, keepdims=True) for V in (W, W * gain))
    worst = (
        (Box(3.0, low=-5.0), np.full_like(W, 5.0)),
        (Ball(5.0), 5 * along),
        (Ellipsoid(gain, shift, radius=2.0), shift + 2 * gain * scaled),
    )
    for features, x in worst:
        least = (layer.dimension + 2) * 2.0**-24 * ((W * x).sum(axis=1) + b)
        assert (rounding_errors(SoftmaxLayer(W, b), features) >= (1 - 1e-9) * least).all()


@pytest.mark.parametrize(
    ("W", "b", "features"),
    [
        # beyond float32's range: the runtime sees two infinite logits, and takes the first
        ([[9e36], [1e37], [-1e37]], [-1e34, 0, 0], Box(100.0)),
        # below it: each product of class 0 is rounded up to the smallest number
        ([[2.0**-149] * 10, [0.0] * 10], [0.0, 8 * 2.0**-149], Box(0.6, low=0.51)),
        # float64 weights: weight, input, product and two additions each round the wrong way
        (
            [[_rounds_up(2048), -ULP * NEAR], [ULP * NEAR, _rounds_down(1984)]],
            [-ULP * NEAR, ULP * NEAR],
            Box((_rounds_up(2049), np.nextafter(_rounds_down(2114), 2)), (0, _rounds_down(2114))),
        ),
        # a number that float32 does not hold, beside features that make up for it
        ([[1e39], [-1e39], [0]], [0, 0, -1e-3], Box(1e-36)),
    ],
)
def test_what_float32_cannot_hold_is_never_cut_off(W, b, features):
    found = scan(SoftmaxLayer(np.array(W), np.array(b)), features=features)
    assert found.verify()
    lost = [f.index for f in found.findings if f.verdict == "unargmaxable"]
    chosen = cut(found)
    assert lost == chosen.close.tolist()
    assert not len(chosen.dropped)


def test_a_survey_says_what_it_could_not_read(npz, tmp_path, monkeypatch, capsys, refused):
    monkeypatch.chdir(tmp_path)
    assert main(["survey", str(npz), "absent.npz", "--json"]) == boundary.REFUSED
    captured = capsys.readouterr()
    good, absent = json.loads(captured.out)
    assert 0 < good["unconditionally"] <= good["unargmaxable"]
    assert absent == {"model": "absent.npz", "refused": absent["refused"]}
    assert "there is no file or folder" in absent["refused"]
    assert "absent.npz" in captured.err
    assert main(["survey", str(npz), "absent.npz"]) == boundary.REFUSED
    shown = capsys.readouterr().out
    assert " 40 " in shown  # classes as whole numbers beside a row without them
    assert "nan" not in shown.lower()
    (results,) = (tmp_path / "scans").iterdir()
    refused("is what a scan left: give the model that was scanned", "inspect", results)


@pytest.mark.parametrize("verb", VERBS)
def test_help_ends_with_an_example_that_parses(verb, capsys):
    program, *arguments = shlex.split(EXAMPLES[verb])
    assert (program, parse(arguments).command) == ("softgeom", verb)
    with pytest.raises(SystemExit):
        parse([verb, "--help"])
    assert EXAMPLES[verb] in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(28, "No space left on device", "/x/verdicts.csv"), boundary.NO_FILE),
        (FileNotFoundError(2, "", "bad\x1b[31m name\nsecond line"), boundary.NO_FILE),
        (LostWorkerError(), boundary.NO_MEMORY),
        (RuntimeError("surprise"), boundary.FAULT),
        (KeyboardInterrupt(), boundary.STOPPED),
    ],
)
def test_any_failure_is_one_printable_sentence(capsys, error, code):
    def work():
        raise error

    assert boundary.guarded(work) == code
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.strip().isprintable()
    if code == boundary.FAULT:
        traceback = Path(said.split("traceback in ")[1].split(")")[0])
        assert f"{type(error).__name__}: surprise" in traceback.read_text()
        traceback.unlink()


@pytest.mark.parametrize(
    ("work", "given", "code", "said"),
    [
        (parse_classes, ("x", 3), boundary.REFUSED, "softgeom: --classes 'x'"),
        (int, ("none",), boundary.FAULT, "softgeom: ValueError: invalid literal"),
    ],
)
def test_our_own_raise_is_a_refusal_all_else_a_fault(
    capsys, monkeypatch, tmp_path, work, given, code, said
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert boundary.guarded(lambda: len(run_blocks(work, [given] * 2, n_jobs=1))) == code
    assert capsys.readouterr().err.startswith(said)
    assert len(list(tmp_path.glob("*-traceback.txt"))) == (code == boundary.FAULT)


def test_every_failure_leaves_its_traceback_where_it_is_asked_for(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("SOFTGEOM_TRACEBACKS", str(tmp_path / "kept"))
    assert boundary.guarded(lambda: parse_classes("x", 3)) == boundary.REFUSED
    (kept,) = (tmp_path / "kept").iterdir()
    assert f"(traceback in {kept})\n" in capsys.readouterr().err
    assert "in parse_classes" in kept.read_text()
    (tmp_path / "file").touch()
    monkeypatch.setenv("SOFTGEOM_TRACEBACKS", str(tmp_path / "file"))
    assert boundary.guarded(lambda: parse_classes("x", 3)) == boundary.REFUSED
    assert "traceback in no file, for none could be written" in capsys.readouterr().err


def test_warnings_and_terminals_without_unicode_get_escapes(capsys, npz, tmp_path):
    """A process of its own: pytest's handlers take the library's warnings in this one."""
    code = (
        "import logging, softgeom.commands as c; c._log_to_terminal(); "
        "logging.getLogger('softgeom').warning('a\\x1b[2Jb\\nc')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "softgeom: a\\x1b[2Jb c\n"
    np.savez(tmp_path / "m.npz", W=np.eye(3), tokens=np.array(["\u0416", "b", "c"]))
    command = [sys.executable, "-m", "softgeom.cli", "explain", str(tmp_path / "m.npz"), "0"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u0416" in done.stdout


@pytest.mark.parametrize(
    ("closing", "code", "told"),
    [
        (">&-", boundary.NO_FILE, "softgeom: cannot write: standard output is closed.\n"),
        ("2>&-", boundary.REFUSED, ""),
    ],
)
def test_closed_streams_are_no_fault(tmp_path, closing, code, told):
    command = f"exec {sys.executable} -m softgeom.cli inspect absent.npz {closing}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, told)
