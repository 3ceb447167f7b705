"""Names that fit are taken, the two additions of CTC are made, and anything else is refused."""

import json
import pickle

import numpy as np
import pytest

from softgeom.checkpoints import load_head
from softgeom.checkpoints.labels import (
    BLANK,
    LabelsError,
    fit_labels,
    labels_beside,
    read_labels,
    read_tokens,
)

FIVE = ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("classes", "expected"),
    [(5, (*FIVE,)), (6, (BLANK, *FIVE)), (7, (BLANK, *FIVE, " ")), (8, (BLANK, *FIVE, " ", " "))],
)
@pytest.mark.parametrize("ending", ["", "\n"])
def test_a_dictionary_of_lines_fits_with_the_blank_and_the_space(
    tmp_path, classes, expected, ending
):
    (tmp_path / "keys.txt").write_text("\n".join(FIVE) + ending)
    assert read_labels(tmp_path / "keys.txt", classes)[0] == expected


@pytest.mark.parametrize(
    ("classes", "why"),
    [
        (4, "1 too many: .* leaves out the last 1"),
        (2, "3 too many: .* leaves out the last 3"),
        (9, "do not make up for 4: .*line, 'a'"),
        (40, "do not make up for 35: .*line, 'a'"),
    ],
)
def test_any_other_number_is_refused_unless_confirmed(classes, why):
    said = rf"keys has 5 names for {classes} classes, .*{why}"
    with pytest.raises(LabelsError, match=said):
        fit_labels(FIVE, classes, "keys")
    names, how = fit_labels(FIVE, classes, "keys", confirmed=True)
    assert len(names) == classes
    assert names[:5] == tuple(FIVE[:classes])
    assert "as confirmed" in how


def test_other_line_separators_are_names(tmp_path):
    (tmp_path / "keys.txt").write_text("a\n\u2028\n\x0c\n\u3000\n")
    assert read_labels(tmp_path / "keys.txt", 4)[0] == ("a", "\u2028", "\x0c", "\u3000")


@pytest.mark.parametrize(
    "content",
    [
        {"id2label": {str(n): name for n, name in enumerate(FIVE)}, "hidden": 3},
        {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4},
        {"space": {"names": FIVE, "others": ["x"]}},
        FIVE,
    ],
)
def test_json_and_pickles_of_names(tmp_path, content):
    (tmp_path / "m.json").write_text(json.dumps(content))
    assert read_labels(tmp_path / "m.json", 5)[0] == tuple(FIVE)
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(content))
    assert read_labels(tmp_path / "m.pkl", 5)[0] == tuple(FIVE)


@pytest.mark.parametrize(
    "content",
    [
        *("[" * 100_000, '{"a": ' * 5000 + "1" + "}" * 5000, '{"a": 1e999}', "{}", "[1, 2]"),
        *("{", '{"model": {}}', '{"word": "not a number"}'),
    ],
)
def test_what_holds_no_names_is_told(tmp_path, content):
    (tmp_path / "vocab.json").write_text(content)
    with pytest.raises(ValueError, match="vocabulary"):
        read_labels(tmp_path / "vocab.json", 3)
    with pytest.raises(ValueError, match="vocabulary"):
        read_tokens(tmp_path / "vocab.json", 3)


def test_names_beside_the_model_are_found_when_one_set_fits(tmp_path):
    np.savez(tmp_path / "m.npz", W=np.eye(5))
    (tmp_path / "README.txt").write_text("\n".join(FIVE))
    assert labels_beside(tmp_path / "m.npz", 5) is None
    (tmp_path / "labels.txt").write_text("\n".join(FIVE))
    (tmp_path / "config.json").write_text(json.dumps({"id2label": dict(enumerate(FIVE))}))
    head = load_head(tmp_path / "m.npz")
    assert head.layer.tokens == tuple(FIVE)
    assert any("beside the model" in note for note in head.notes)
    (tmp_path / "labels.txt").write_text("\n".join(FIVE[::-1]))
    # two that disagree: neither is trusted
    assert load_head(tmp_path / "m.npz").layer.tokens is None


def test_a_tokenizer_beside_the_model_decides_over_other_lists(tmp_path):
    (tmp_path / "model.bin").touch()
    (tmp_path / "vocabulary.json").write_text(json.dumps(["Ġa", "b"]))
    content = {"model": {"vocab": {"Ġa": 0, "b": 1}}, "decoder": {"type": "ByteLevel"}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    assert labels_beside(tmp_path / "model.bin", 2)[0] == (" a", "b")
    content["model"]["vocab"] = {"a": 0}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))  # not of this model
    assert labels_beside(tmp_path / "model.bin", 2)[0] == ("Ġa", "b")


def test_a_dictionary_that_numbers_from_one_leaves_class_0_to_the_blank(tmp_path):
    numbered = {name: n for n, name in enumerate(FIVE, start=1)}
    both = {"char2idx": numbered, "idx2char": {str(n): c for c, n in numbered.items()}}
    (tmp_path / "vocab.json").write_text(json.dumps(both))
    assert read_labels(tmp_path / "vocab.json", 6)[0] == (BLANK, *FIVE)
    (tmp_path / "model.npz").touch()
    names, how = labels_beside(tmp_path / "model.npz", 6)
    assert names == (BLANK, *FIVE)
    assert "numbered from 1: the blank comes first; they begin <blank> a b c d)" in how


def test_names_numbered_from_one_for_each_class_are_shifted_and_it_is_said(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps(dict(zip(FIVE, range(1, 6), strict=True))))
    names, how = read_labels(tmp_path / "vocab.json", 5)
    assert names == tuple(FIVE)
    assert "numbered from 1: class 0 is the first; they begin a b c d e)" in how


@pytest.mark.parametrize("own", ["<blank>", "blank", "[BLANK]", "<ctc_blank>", "<blk>"])
@pytest.mark.parametrize("missing", [1, 2])
def test_a_list_with_its_own_blank_lacks_spaces_alone(own, missing):
    fitted, how = fit_labels([own, *FIVE], 6 + missing, "list")
    assert list(fitted) == [own, *FIVE] + [" "] * missing
    assert f"they begin {own} a b c d)" in how


def test_a_blank_at_the_end_is_not_moved_and_the_last_name_may_be_empty():
    with pytest.raises(LabelsError, match="has 6 names for 7 classes"):
        fit_labels([*FIVE, "<blank>"], 7, "list")
    assert fit_labels([*FIVE, ""], 6, "list") == ((*FIVE, ""), "")


def test_a_list_in_a_python_file_is_parsed_and_not_run(tmp_path):
    source = tmp_path / "charsets.py"
    lists = f"OLD = {FIVE[::-1]}\nNEW = BETA = {FIVE}\nFEW = ['a']\nMIXED = ['a', 1, 'c', 'd', 'e']"
    source.write_text(f"raise SystemExit\n{lists}\n")
    said = "names from the list NEW of charsets.py"
    assert read_labels(f"{source}:NEW", 5) == (tuple(FIVE), said)
    told = r"OLD \(5 names\), NEW \(5 names\).*FEW \(1 names\); .* as charsets.py:NAME"
    for name, content, message in (
        ("", None, told),
        (":MIXED", None, "no list of strings 'MIXED'"),
        (":FEW", None, "FEW has 1 names for 5 classes"),
        ("", "x = " + "(" * 100_000, "Python file"),
        ("", "x = 1", "these lists of strings: none"),
    ):
        if content is not None:
            source.write_text(content)
        with pytest.raises(ValueError, match=message):
            read_labels(f"{source}{name}", 5)
