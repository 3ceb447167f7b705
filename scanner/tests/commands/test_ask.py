"""``softgeom ask`` as a new user tries it: every question, what is written, what is refused."""

import json
import re

import numpy as np
import pytest

import softgeom as sg
from softgeom.asking.experts import Router, ask_experts
from softgeom.certifying import container
from softgeom.certifying.evidence_file import save_answers
from softgeom.results import write_answers

SQUARE = [[2, 2], [2, -2], [-2, 2], [-2, -2], [1, 0]]


def saved(path, W, **more):
    """An .npz of a layer."""
    np.savez(path, W=np.asarray(W, float), **more)
    return str(path)


@pytest.fixture
def square(tmp_path):
    """Four corners and one class inside, as a model."""
    return saved(tmp_path / "square.npz", SQUARE, tokens=["a", "b", "c", "d", "inside"])


@pytest.fixture
def replies(told):
    """The verdict on each order (or expert) that a command answers, from its JSON."""

    def replies_(*command) -> dict[str, str]:
        rows = json.loads(told("ask", *command, "--json"))["answers"]
        return {next(iter(row.values())): row["verdict"] for row in rows}

    return replies_


@pytest.fixture
def recheck(tool):
    """`recheck(folder)`: what scanner/tools/check_proofs.py says about its answers."""
    files = ("answers.safetensors", "layer.safetensors")
    return lambda folder: tool("check_proofs", *(folder / name for name in files))


def test_among_fewer_rivals_a_lost_class_wins_and_blocking_classes_are_named(
    square, tmp_path, replies, told
):
    orders = ("a > c, inside", "c > a, inside", "inside > a, c")
    assert replies(square, "--among", "a", "c", "4") == dict.fromkeys(orders, "possible")
    (tmp_path / "all.txt").write_text("a\nb\nc\nd\ninside\n", encoding="utf-8")
    said = replies(square, "--among", f"@{tmp_path / 'all.txt'}")
    assert {order: v for order, v in said.items() if v == "impossible"} == {
        "inside > a, b, c, d": "impossible"
    }
    alone = told("ask", square, "--blocked-by", "inside")
    assert "against these 3, and none of them can be spared: a, b, " in alone
    some = told("ask", square, "--blocked-by", "inside", "--among", "a", "c", "d")
    assert "nothing blocks it" in some


def test_orders_and_pairs_among_everybody_and_among_candidates(square, tmp_path, replies):
    (tmp_path / "orders.tsv").write_text("a\tb\na\td\n", encoding="utf-8")
    said = replies(square, "--order", f"@{tmp_path / 'orders.tsv'}", "--order", "a", "inside")
    assert said == {
        "a > b > others": "possible",
        "a > d > others": "impossible",
        "a > inside > others": "possible",
    }
    assert replies(square, "--order", "a", "d", "--among", "a", "d") == {"a > d": "possible"}
    said = replies(square, "--together", "a", "b", "--together", "a", "d")
    assert said == {"a, b > others": "possible", "a, d > others": "impossible"}
    drawn = replies(square, "--together", "--sample", "40", "--seed", "1")
    named = [re.fullmatch(r"(\w+), (\w+) > others", pair).groups() for pair in drawn]
    assert all(one != other for one, other in named)
    assert set(drawn.values()) == {"possible", "impossible"}


@pytest.mark.parametrize(
    "question",
    [
        ["--among", "a", "b", "c", "d", "inside"],
        ["--blocked-by", "inside"],
        ["--order", "--sample", "12"],
        ["--together", "a", "d", "--together", "a", "b"],
        ["--on", "a", "d", "--on"],
        ["--experts", "1"],
        ["--experts", "2"],
    ],
)
def test_what_is_written_is_verified_and_checked_by_others(
    square, recheck, tmp_path, told, refused, question
):
    out = tmp_path / "out"
    written = told("ask", square, *question, "--out", out, "--with-layer")
    assert f"softgeom verify {out} {square}" in written
    assert "answers re-checked without a solver" in told("verify", out, square)
    said = recheck(out)
    assert "None" not in said
    assert ("experts: " in said) == (question[0] == "--experts")
    column = '"class"' if question[0] == "--experts" else '"classes"'
    assert column in (out / "answers.csv").read_text(encoding="utf-8").splitlines()[0]
    for forged in ({"W": np.eye(3)}, {"W": np.zeros((999, 999))}, {"V": np.eye(3)}):
        container.write(out / "layer.safetensors", {}, forged)
        refused("layer.safetensors", "verify", out, square)
    (out / "layer.safetensors").write_text("all is well")
    refused("layer.safetensors is not a layer", "verify", out, square)


def test_verify_says_of_some_experts_how_many_there_are(square, tmp_path, told):
    found = ask_experts(sg.load(square).layer, 1, [2, 4])
    write_answers(tmp_path / "out", found, with_layer=False)
    said = told("verify", tmp_path / "out", square)
    assert "2 answers re-checked without a solver of a layer of 5" in said


def test_a_verdict_on_an_expert_that_does_not_follow_is_refused(
    square, recheck, tmp_path, told, refused
):
    out, layer = tmp_path / "out", sg.load(square).layer
    told("ask", square, "--experts", 1, "--out", out, "--with-layer")
    path = out / "answers.safetensors"
    router = Router.load(path, layer)
    answers = [answer for e in router.experts for answer in e.answers]
    save_answers(path, layer, router.features, answers, 2)  # in the top 2 it can be
    refused("may be enough to let it be chosen", "verify", out, square)
    with pytest.raises(SystemExit, match="does not follow from its orders"):
        recheck(out)


def test_equal_rows_are_tied_in_a_text_and_not_absent(tmp_path, told, recheck):
    """Four classes of one row: each is a most probable text of one frame, beside the others."""
    model, out = saved(tmp_path / "ctc.npz", [[1, 0], *[[0, 1]] * 4]), tmp_path / "out"
    said = told("ask", model, "--in-text", "1", "--ctc-blank", "0", "--out", out, "--with-layer")
    assert "0 never in the text, 1 tied at best" in said
    assert "0 of them are never in a most probable text of CTC" in recheck(out)


def test_what_is_never_in_a_text_is_checked_twice(tmp_path, told, recheck):
    """Three triangles around the origin, where t lies lower, and a blank that is far out."""
    t = np.linspace(0, 2 * np.pi, 10)[:-1]
    W = np.vstack([[[2, 0], [0, 0]], np.stack([np.cos(t), np.sin(t)], axis=1)])
    b, tokens = [0, -1, *[0] * 9], ["<blank>", *"tabcdefghi"]
    model, out = saved(tmp_path / "ctc.npz", W, b=b, tokens=tokens), tmp_path / "out"
    said = told("ask", model, "--in-text", "--out", out, "--with-layer")
    assert "1 never in the text" in said
    assert "of all but the blank, class 0" in told("verify", out, model)
    assert "1 of them are never in a most probable text of CTC" in recheck(out)
    found = told("ask", model, "--in-text", "a", "t", "--ctc-blank", "0", "--json")
    assert json.loads(found)["counts"] == {"possible": 1, "impossible": 1, "undecided": 0}


def test_a_forged_margin_is_noticed(square, tmp_path, told, refused):
    out = tmp_path / "out"
    told("ask", square, "--order", "a", "b", "--out", out)
    (out / "ceilings.csv").write_text("all is proven")
    assert "not checked: answers.csv, ceilings.csv" in told("verify", out, square)
    texts, arrays = container.read(out / "answers.safetensors")
    doubled = {"margins": arrays["margins"] * 2}
    container.write(out / "answers.safetensors", texts, arrays | doubled)
    refused("the stored margin is", "verify", out, square)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ([], "nothing is asked"),
        (["--among", "a", "nobody"], "no class 'nobody'"),
        (["--among", "a", "5"], "no class '5'"),
        (["--blocked-by", "@list"], "no class '@list'"),
        (["--order", "a", "a"], "duplicate: 'a'"),
        (["--order", "a", "--together", "b"], "are two questions"),
        (["--order", "--sample", "3", "--size", "6"], "--size 6 is more than the 5 classes"),
        ("--together --sample 3 --size 3 --among a b".split(), "more than the 2 classes"),
        (["--experts", "6"], "5 experts chooses 1 to 5 of them, not 6"),
        (["--experts", "1", "--among", "a"], "--among has no meaning with --experts"),
        (["--experts", "1", "--sample", "3"], "--sample draws sets"),
        (["--in-text"], "no classes are called <blank>: name the decoder's blank"),
        (["--in-text", "--ctc-blank", "nobody"], "the blank: the model has no class 'nobody'"),
        (["--order", "a", "--ctc-blank", "a"], "--ctc-blank has no meaning with --order"),
        (["--order", "a", "--size", "3"], "pass --sample, too"),
        (["--order", "a", "--with-layer"], "pass --out, too"),
        (["--order", "a", "--out", ""], "--out is empty"),
        (["--on", "rain", "snow"], "no class 'rain'"),
        (["--order", "a", "--bound", "0", "--features", "ball"], "must be above zero"),
        (["--among", "a", "c", "--seed", "2"], "--seed"),
        (["--experts", "2", "--jobs", "2"], "--jobs"),
        (["--blocked-by", "inside", "--jobs", "2"], "--jobs"),
    ],
)
def test_bad_questions_are_refused_in_a_sentence(square, refused, question, message):
    refused(message, "ask", square, *question)


def test_misfit_labels_and_folders_of_others_are_refused(square, tmp_path, told, refused):
    names, scan = tmp_path / "names.txt", tmp_path / "scan"
    names.write_text("rain\nsnow\n" * 4, encoding="utf-8")
    bare = saved(tmp_path / "bare.npz", SQUARE)
    refused("names.txt", "ask", bare, "--on", "rain", "--tokens", names)
    told("scan", square, "--out", scan, "--quiet")
    refused("name another folder", "ask", square, "--order", "a", "--out", scan)
    refused("is a file", "ask", square, "--order", "a", "--out", square)
