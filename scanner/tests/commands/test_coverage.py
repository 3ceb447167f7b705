"""Which characters of a text a model can never write: by words, by command, on real models."""

import json
import unicodedata

import numpy as np
import pytest

import softgeom as sg
from softgeom.characters import cut
from softgeom.checkpoints import RELEASED
from softgeom.commands import main
from softgeom.verdict_table import unescape_token

# a ring of classes that win, and one inside it that never does: the last
RING = np.array([[np.cos(a), np.sin(a)] for a in np.linspace(0, 6, 8)])
W = np.vstack([RING, [0.1, 0.0]])
NAMES = ["<blank>", "a", "é", "e", "\u0301", "\u212b", "🇩🇪", " ", "Ğ"]

# characters of reports that a text recogniser never reads them, from PaddleOCR issues 17554,
# 13736, 12161, 10825, 6826, 12952, 14861, 15457, 16339, 11465 and 17706, and RapidOCR 493, 166, 604
REPORTED = "亖☑€$-纡μ±&槲咲℃Óóäöüß§ạảậčřЈез"


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.npz"
    np.savez(path, W=W, tokens=NAMES)
    return path


def status(text: str, **options) -> dict[str, tuple[str, str]]:
    found = sg.coverage(W, text, tokens=NAMES, **options)
    assert found.verify()
    return {each.text: (each.status, each.form) for each in found.characters}


def test_a_text_is_cut_into_what_a_reader_calls_characters():
    assert cut("aé\u0301x\n\u0301🇩🇪🇫") == ["a", "é\u0301", "x", "\n", "\u0301", "🇩🇪", "🇫"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a", ("fine", "")),
        ("Ğ", ("can never win", "")),
        ("G\u0306", ("can never win", "NFC")),  # the same letter, taken apart
        ("ж", ("missing from the list", "")),
        ("e\u0301", ("fine", "NFC")),
        ("\u00c5", ("fine", "NFD")),  # the list has the sign for the unit, an equivalent
        ("a\u0301", ("fine", "")),  # no such class: a letter and a mark, both there
        ("Ğ\u0301", ("can never win", "")),  # the letter never, the mark may: the worst decides
        ("a\u0306", ("missing from the list", "")),
        ("🇩🇪", ("fine", "")),
        ("🇩", ("missing from the list", "")),
        (" ", ("fine", "")),
        ("\u3000", ("missing from the list", "")),
    ],
)
def test_each_character_has_its_status_and_its_form(text, found):
    assert status(text) == {text: found}


def test_what_is_no_character_is_passed_over_unless_the_list_has_it():
    found = sg.coverage(W, "\ufeffa\r\na\t\u200d\ufe0f", tokens=NAMES)
    assert [(c.text, c.count) for c in found.characters] == [("a", 2)]
    over = {"U+FEFF": 1, "line breaks": 2, "U+0009": 1, "U+200D U+FE0F": 1}
    assert found.passed_over == over
    assert found.ok
    listed = sg.coverage(W, "a\n", tokens=[*NAMES[:-1], "\n"])
    assert listed["\n"].status == "can never win"


def test_of_two_classes_with_one_name_the_better_one_counts():
    names = [*NAMES[:-1], "a"]
    assert sg.coverage(W, "a", tokens=names)["a"].classes == (1, 8)
    assert sg.coverage(W, "a", tokens=names).ok


def test_a_probability_that_is_never_reached_is_capped():
    bounds = sg.ceilings(W, [1, 2], tokens=NAMES, bound=1)
    assert (bounds.ceiling < 0.9).all()
    found = sg.coverage(W, "aéĞ", tokens=NAMES, bound=1, below=0.9)
    assert [each.status for each in found.characters] == ["capped", "capped", "can never win"]
    assert found["a"].ceiling == bounds.ceiling[0]
    assert sg.coverage(W, "aé", tokens=NAMES, bound=1, below=float(min(bounds.reached))).ok
    between = float(bounds.reached[0] + bounds.ceiling[0]) / 2
    assert bounds.reached[0] < between <= bounds.ceiling[0]
    assert sg.coverage(W, "a", tokens=NAMES, bound=1, below=between)["a"].status == "undecided"


def test_tokens_and_class_numbers_are_asked_about_as_they_are():
    pieces = [f"piece{n}" for n in range(len(W))]
    found = sg.coverage(W, ["piece8", 1, 1, "none"], tokens=pieces)
    listed = [(each.text, each.count, each.status) for each in found.characters]
    never, missing = ("piece8", 1, "can never win"), ("none", 1, "missing from the list")
    assert listed == [never, ("piece1", 2, "fine"), missing]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a", {"tokens": None}, "pass --tokens"),
        ("a", {"tokens": [f"piece{n}" for n in range(9)]}, "only its own tokenizer"),
        ("\n", {}, "the text is empty"),
        ([], {}, "the list is empty"),
        ([9], {}, "no class 9"),
        ([1.5], {}, "no class 1.5"),
        ("a", {"below": 0}, "--below 0"),
        ("a", {"rule": "threshold"}, "decides each label by itself"),
    ],
)
def test_what_has_no_answer_is_refused(text, options, message):
    with pytest.raises(ValueError, match=message):
        sg.coverage(W, text, **{"tokens": NAMES} | options)


def test_the_command_is_a_gate(model, tmp_path, capsys):
    text = tmp_path / "text.txt"
    text.write_text("aé a\n", encoding="utf-8")
    assert main(["coverage", str(model), "--text", str(text)]) == 0
    text.write_text("Ğa ж\nG\u0306", encoding="utf-8")
    out = tmp_path / "out"
    command = ["coverage", str(model), "--text", str(text), "--out", str(out), "--below", ".5"]
    assert main(command) == 4
    said = capsys.readouterr().out
    for line in ("can never win: 2  Ğ", "missing from the list: 1  ж", "(NFC): 1", "breaks (1)"):
        assert line in said
    assert main([*command[:4], "--json"]) == 4
    told = json.loads(capsys.readouterr().out)
    assert told["counts"]["can never win"] == 2
    rows = (out / "coverage.csv").read_text(encoding="utf-8").splitlines()
    assert rows[1] == "Ğ,U+011E,1,can never win,8,,"
    assert [unescape_token(row.split(",")[0]) for row in rows[1:]] == [*"Ğa ж", "G\u0306"]
    assert main(["verify", str(out), str(model)]) == 0
    text.write_bytes(b"\xff\xfe")
    assert main(command[:4]) == 1
    assert "UTF-8 (byte 0)" in capsys.readouterr().err


def undecided_exit(monkeypatch):
    """A scan that decides nothing."""
    from softgeom import scan_result, scanner
    from softgeom.certifying.verdict import Finding, Unknown

    def nothing(layer, classes, *, features, **_):
        open_ = [Finding(int(t), Unknown(1.0, "told so"), "none", 0, 1.0, np.nan) for t in classes]
        return scan_result.Scan(layer, features, open_)

    monkeypatch.setattr(scanner, "scan", nothing)


def test_an_open_question_has_the_exit_code_of_one(model, tmp_path, monkeypatch):
    undecided_exit(monkeypatch)
    text = tmp_path / "text.txt"
    text.write_text("a", encoding="utf-8")
    assert main(["coverage", str(model), "--text", str(text)]) == 3
    text.write_text("aж", encoding="utf-8")
    assert main(["coverage", str(model), "--text", str(text)]) == 4


@pytest.mark.parametrize("name", ["ppocr-v5", "ppocr-v6"])
def test_characters_of_real_reports_are_answered_rightly(name):
    """Each answer by a second route: the model's list, the logits at a point, a weighted mean."""
    if not RELEASED[name].available():
        pytest.skip(f"{name} is neither installed nor in the cache")
    head = sg.load(name)
    found = sg.coverage(head, REPORTED + "Ğ")
    assert len(found.characters) == len(REPORTED) + 1 > 20
    W, b, tokens = head.layer.W.astype(float), head.layer.bias.astype(float), head.layer.tokens
    for each in found.characters:
        if each.status == "missing from the list":
            assert unicodedata.normalize("NFC", each.text) not in tokens
            continue
        (t,) = each.classes
        assert tokens[t] == each.text
        evidence = found.scan.evidence(t)
        if each.status == "fine":
            assert np.abs(evidence.point).max() <= 100
            assert np.argmax(W @ evidence.point.astype(float) + b) == t
        else:  # at any |x| <= 100 the class is below a mean of others
            assert each.status == "can never win"
            p = evidence.weights / evidence.weights.sum()
            lead = W[t] - p @ W[evidence.rivals], b[t] - p @ b[evidence.rivals]
            assert 100 * np.abs(lead[0]).sum() + lead[1] < 0
    assert (found["Ğ"].status == "can never win") == (name == "ppocr-v6")
    assert found["亖"].status == "missing from the list"
    assert found["€"].status == "fine"
