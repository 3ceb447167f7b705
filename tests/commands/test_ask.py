"""``softgeom ask`` as a new user tries it: every question, what is written, what is refused."""

import itertools
import json

import numpy as np
import pytest

from softgeom.bottleneck.asking.experts import Router, ask_experts
from softgeom.bottleneck.asking.label_sets import changes, fourier_layer
from softgeom.bottleneck.certifying.evidence_file import save_groups
from softgeom.cli import main
from softgeom.commands import boundary
from softgeom.commands.answers_folder import write_answers
from softgeom.layer import SoftmaxLayer

SQUARE = [[2, 2], [2, -2], [-2, 2], [-2, -2], [1, 0]]


def saved(path, W, b=None, tokens=None):
    """An .npz of a layer."""
    arrays = {"W": np.asarray(W, float)}
    np.savez(
        path,
        **arrays,
        **({} if b is None else {"b": b}),
        **({} if tokens is None else {"tokens": np.array(tokens)}),
    )
    return str(path)


@pytest.fixture
def square(tmp_path):
    """Four corners and one class inside, as a model."""
    return saved(tmp_path / "square.npz", SQUARE, tokens=["a", "b", "c", "d", "inside"])


def replies(capsys, *command: str) -> dict[str, str]:
    """The verdict on each order (or expert) that a command answers, from its JSON."""
    assert main(["ask", *command, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["answers"]
    return {next(iter(row.values())): row["verdict"] for row in rows}


@pytest.fixture
def recheck(tool):
    """`recheck(folder)`: what tools/check_evidence.py says about its answers."""
    return lambda folder: tool("check_evidence", folder / "answers.npz", folder / "layer.npz")


@pytest.mark.parametrize(
    ("question", "option"),
    [("--among a c", "--seed"), ("--experts 2", "--jobs"), ("--blocked-by inside", "--jobs")],
)
def test_what_a_question_has_no_use_for_is_refused(square, capsys, question, option):
    assert main(["ask", square, *question.split(), option, "2"]) == boundary.REFUSED
    assert option in capsys.readouterr().err


def test_among_fewer_rivals_a_captive_wins_and_blocking_classes_are_named(square, tmp_path, capsys):
    assert replies(capsys, square, "--among", "a", "c", "4") == {
        "a > c, inside": "possible",
        "c > a, inside": "possible",
        "inside > a, c": "possible",
    }
    (tmp_path / "all.txt").write_text("a\nb\nc\nd\ninside\n", encoding="utf-8")
    said = replies(capsys, square, "--among", f"@{tmp_path / 'all.txt'}")
    assert [verdict for order, verdict in said.items() if order.startswith("inside")] == [
        "impossible"
    ]
    assert main(["ask", square, "--blocked-by", "inside"]) == 0
    assert (
        "inside cannot win against these 3, and none of them can be spared: a, b, "
        in capsys.readouterr().out
    )
    assert main(["ask", square, "--blocked-by", "inside", "--among", "a", "c", "d"]) == 0
    assert "nothing blocks it" in capsys.readouterr().out


def test_orders_and_pairs_among_everybody_and_among_candidates(square, tmp_path, capsys):
    (tmp_path / "orders.tsv").write_text("a\tb\na\td\n", encoding="utf-8")
    said = replies(
        capsys, square, "--order", f"@{tmp_path / 'orders.tsv'}", "--order", "a", "inside"
    )
    assert said == {
        "a > b > others": "possible",
        "a > d > others": "impossible",
        "a > inside > others": "possible",
    }
    assert replies(capsys, square, "--order", "a", "d", "--among", "a", "d") == {
        "a > d": "possible"
    }
    said = replies(capsys, square, "--together", "a", "b", "--together", "a", "d")
    assert said == {"a, b > others": "possible", "a, d > others": "impossible"}
    drawn = replies(capsys, square, "--together", "--sample", "40", "--seed", "1")
    assert set(drawn) <= {f"{a}, {b} > others" for a, b in itertools.permutations("abcd", 2)} | {
        name for name in drawn if "inside" in name
    }
    assert set(drawn.values()) == {"possible", "impossible"}


def test_label_sets_follow_the_changes_around_the_circle(tmp_path, capsys):
    model = saved(tmp_path / "labels.npz", fourier_layer(6, 1).W)
    for on in ([0], [1, 2], [0, 2], [0, 3], [0, 2, 4]):
        pattern = np.isin(np.arange(6), on)
        (verdict,) = replies(capsys, model, "--on", *map(str, on)).values()
        assert (verdict == "possible") == (changes(pattern) <= 2)
    assert list(replies(capsys, model, "--on").values()) == ["possible"]  # none of them


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
    square, recheck, tmp_path, capsys, question
):
    out = tmp_path / "out"
    assert main(["ask", square, *question, "--out", str(out), "--with-layer"]) == 0
    assert f"softgeom verify {out} {square}" in capsys.readouterr().out
    assert main(["verify", str(out), square]) == 0
    assert "answers re-checked without a solver" in capsys.readouterr().out
    said = recheck(out)
    assert "None" not in said
    assert ("experts: " in said) == (question[0] == "--experts")
    column = '"class"' if question[0] == "--experts" else '"classes"'
    assert column in (out / "answers.csv").read_text(encoding="utf-8").splitlines()[0]
    honest = (out / "layer.npz").read_bytes()
    for forged in ({"W": np.eye(3)}, {"W": np.zeros((999, 999))}, {"V": np.eye(3)}):
        np.savez(out / "layer.npz", **forged)
        assert main(["verify", str(out), square]) == boundary.REFUSED
        assert "layer.npz" in capsys.readouterr().err
    (out / "layer.npz").write_bytes(honest)
    table = (out / "answers.csv").read_text(encoding="utf-8")
    (out / "answers.csv").write_text(
        table.replace("impossible", "possible", 1).replace("possible", "impossible", 1)[:-2],
        "utf-8",
    )
    assert main(["verify", str(out), square]) == boundary.REFUSED
    assert "differs from the evidence in row" in capsys.readouterr().err


def test_verify_says_of_some_experts_how_many_there_are(square, tmp_path, capsys):
    layer = SoftmaxLayer(np.asarray(SQUARE, float), tokens=["a", "b", "c", "d", "inside"])
    write_answers(tmp_path / "out", ask_experts(layer, 1, [2, 4]), with_layer=False)
    assert main(["verify", str(tmp_path / "out"), square]) == 0
    assert "2 answers re-checked without a solver of a layer of 5" in capsys.readouterr().out


def test_a_verdict_on_an_expert_that_does_not_follow_is_refused(square, recheck, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["ask", square, "--experts", "1", "--out", str(out), "--with-layer"]) == 0
    layer = SoftmaxLayer(np.asarray(SQUARE, float), tokens=["a", "b", "c", "d", "inside"])
    router = Router.load(out / "answers.npz", layer)
    groups = [(e.expert, e.verdict, e.method, e.answers) for e in router.experts]
    save_groups(out / "answers.npz", layer, router.features, 2, groups)  # in the top 2 it can be
    assert main(["verify", str(out), square]) == boundary.REFUSED
    assert "may be enough to let it be chosen" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="does not follow from its orders"):
        recheck(out)


def test_a_forged_margin_is_noticed(square, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["ask", square, "--order", "a", "b", "--out", str(out)]) == 0
    (out / "ceilings.csv").write_text("all is proven")
    assert main(["verify", str(out), square]) == 0
    assert "or not at all: ceilings.csv" in capsys.readouterr().out
    with np.load(out / "answers.npz") as file:
        arrays = dict(file)
    np.savez(out / "answers.npz", **arrays | {"margins": arrays["margins"] * 2})
    assert main(["verify", str(out), square]) == boundary.REFUSED
    assert "the stored margin is" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ([], "nothing is asked"),
        (["--among"], "--among: no class is named"),
        (["--among", "a", "a"], "duplicate: 'a'"),
        (
            ["--among", "a", "nobody"],
            "no class 'nobody': pass a token of its vocabulary or a number below 5",
        ),
        (["--among", "a", "5"], "no class '5'"),
        (["--order"], "--order: no class is named"),
        (["--blocked-by", "@list"], "no class '@list'"),
        (["--order", "a", "a"], "duplicate: 'a'"),
        (["--order", "a", "--together", "b"], "are two questions"),
        (
            ["--order", "--sample", "3", "--size", "6"],
            "--size 6 is more than the 5 classes that compete",
        ),
        (
            ["--together", "--sample", "3", "--size", "3", "--among", "a", "b"],
            "more than the 2 classes that compete",
        ),
        (["--experts", "6"], "5 experts chooses 1 to 5 of them, not 6"),
        (["--experts", "1", "--among", "a"], "--among has no meaning with --experts"),
        (["--experts", "1", "--sample", "3"], "--sample draws sets"),
        (["--order", "a", "--size", "3"], "pass --sample, too"),
        (["--order", "a", "--with-layer"], "pass --out, too"),
        (["--order", "a", "--out", ""], "--out is empty"),
        (["--on", "rain", "snow"], "no class 'rain'"),
        (["--order", "a", "--low", "0", "--features", "ball"], "--low has no meaning"),
    ],
)
def test_bad_questions_are_refused_in_a_sentence(square, capsys, question, message):
    assert main(["ask", square, *question]) == boundary.REFUSED
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_length_zero_misfit_labels_and_folders_of_others_are_refused(square, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["ask", square, "--together", "a", "b", "--features", "ball", "--bound", "0"])
    assert stopped.value.code == boundary.WRONG
    assert "must be above zero" in capsys.readouterr().err
    (tmp_path / "names.txt").write_text("rain\nsnow\n" * 4, encoding="utf-8")
    bare = saved(tmp_path / "bare.npz", SQUARE)
    assert (
        main(["ask", bare, "--on", "rain", "--tokens", str(tmp_path / "names.txt")])
        == boundary.REFUSED
    )
    assert "8" in (said := capsys.readouterr().err)
    assert "5" in said
    assert main(["scan", square, "--out", str(tmp_path / "scan"), "--quiet"]) == 0
    assert (
        main(["ask", square, "--order", "a", "--out", str(tmp_path / "scan")]) == boundary.REFUSED
    )
    assert "name another folder" in capsys.readouterr().err
    assert main(["ask", square, "--order", "a", "--out", square]) == boundary.REFUSED
    assert "is a file" in capsys.readouterr().err
