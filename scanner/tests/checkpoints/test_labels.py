"""Names that fit are taken; a layout that changes names is asked for; anything else is refused."""

import json
import pickle

import numpy as np
import pandas as pd
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


LAYOUTS = [
    (5, None, FIVE), (5, "none", FIVE), (6, "first", [BLANK, *FIVE]), (6, "last", [*FIVE, BLANK]),
    (6, "none", [*FIVE, "<unused 5>"]), (7, "first", [BLANK, *FIVE, " "]),
    (8, "first", [BLANK, *FIVE, " ", " "]), (4, "none", FIVE[:4]),
]  # fmt: skip


@pytest.mark.parametrize(("classes", "blank", "expected"), LAYOUTS)
@pytest.mark.parametrize("ending", ["", "\n"])
def test_a_list_is_laid_out_as_the_caller_says(tmp_path, classes, blank, expected, ending):
    (tmp_path / "keys.txt").write_text("\n".join(FIVE) + ending)
    names, how = read_labels(tmp_path / "keys.txt", classes, blank)
    assert names == tuple(expected)
    assert how == "names from keys.txt" or f"(blank {blank}: 0 {expected[0]!r}, 1 " in how


@pytest.mark.parametrize(
    ("classes", "blank", "shown"),
    [
        (4, None, r"\(--blank none: 0 'a', 1 'b', 2 'c', 3 'd'\)"),
        (6, None, r"first: 0 '<blank>', 1 'a', 2 'b', 5 'e'; --blank last: 0 'a', .* 5 '<blank>'"),
        (7, None, r"first: 0 '<blank>', .* 6 ' '; --blank none: 0 'a', .* 6 '<unused 6>'\)"),
        (9, None, r"has \(--blank none: 0"),
        (5, "first", "5 names for 5 classes, not a blank first"),
        (7, "last", "7 classes, not a blank last"),
        (4, "first", "4 classes, not a blank first"),
    ],
)
def test_any_other_number_is_refused_with_the_possible_layouts(classes, blank, shown):
    with pytest.raises(LabelsError, match=shown):
        fit_labels(FIVE, classes, "keys", blank)


@pytest.mark.parametrize(
    ("names", "classes", "blank", "expected"),
    [
        (["[BLANK]", *FIVE], 6, "first", ["[BLANK]", *FIVE]),
        (["<blk>", *FIVE], 7, "first", ["<blk>", *FIVE, " "]),
        (["<ctc_blank>", *FIVE], 8, "first", ["<ctc_blank>", *FIVE, " ", " "]),
        ([*FIVE, "blank"], 6, "last", [*FIVE, "blank"]),
        ([*FIVE, ""], 6, None, [*FIVE, ""]),
        (["<blank>", *FIVE], 7, "last", None),
        ([*FIVE, "<blank>"], 7, "first", None),
    ],
)
def test_a_list_with_its_own_blank_gets_no_second_one(names, classes, blank, expected):
    if expected is None:
        with pytest.raises(LabelsError, match="6 names for 7 classes"):
            fit_labels(names, classes, "list", blank)
    else:
        assert fit_labels(names, classes, "list", blank)[0] == tuple(expected)


@pytest.mark.parametrize("blank", ["first", "last", "none"])
def test_where_the_blank_is_has_no_meaning_without_a_list(blank):
    with pytest.raises(ValueError, match="--tokens"):
        load_head(np.eye(3), blank=blank)
    frame = pd.DataFrame(np.eye(3), index=list("abc"))
    if blank == "none":
        assert load_head(frame, blank=blank).layer.tokens == tuple("abc")
    else:
        with pytest.raises(LabelsError, match=f"not a blank {blank}"):
            load_head(frame, blank=blank)
    with pytest.raises(ValueError, match="blank must be one of first, last, none"):
        load_head(np.eye(3), tokens=["a", "b"], blank="front")


def folder_of(path, rows, config, **files):
    """A model folder with an embedding of 8 rows and a classifier of 3."""
    from safetensors.numpy import save_file

    tensors = {"model.embed_tokens.weight": np.eye(8, dtype=np.float32)}
    tensors |= {"classifier.weight": np.eye(3, 8, dtype=np.float32)}
    save_file(
        {name: W for name, W in tensors.items() if len(W) == rows}, path / "model.safetensors"
    )
    (path / "config.json").write_text(json.dumps(config))
    for name, content in files.items():
        (path / f"{name}.json").write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    "added",
    [
        {"added_tokens": {"<user>": 5, "<bot>": 6}},
        {"tokenizer_config": {"added_tokens_decoder": {
            "5": {"content": "<user>"}, "6": {"content": "<bot>"}}}},
    ],
    ids=["added_tokens", "tokenizer_config"],
)  # fmt: skip
def test_added_tokens_are_named(tmp_path, added):
    config = {"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": True}
    folder = folder_of(tmp_path, 8, config, vocab={c: n for n, c in enumerate(FIVE)}, **added)
    assert load_head(folder).layer.tokens == (*FIVE, "<user>", "<bot>", "<unused 7>")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"0": "bad", "1": "so-so", "2": "good"}, ("bad", "so-so", "good")),
        ({"0": "bad", "1": "good"}, None),
        ({"1": "bad", "2": "so-so", "3": "good"}, None),
        (None, None),
    ],
)
def test_classes_of_a_classifier_are_not_named_by_its_vocabulary(tmp_path, labels, expected):
    config = {"architectures": ["BertForSequenceClassification"], "id2label": labels}
    folder = folder_of(tmp_path, 3, config, vocab={c: n for n, c in enumerate("wxyz")})
    head = load_head(folder, weight="classifier.weight")
    assert head.layer.tokens == expected
    assert any("id2label" in note for note in head.notes)


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
    assert labels_beside(tmp_path / "m.npz", 5) == (None, "")
    (tmp_path / "labels.txt").write_text("\n".join(FIVE))
    (tmp_path / "config.json").write_text(json.dumps({"id2label": dict(enumerate(FIVE))}))
    head = load_head(tmp_path / "m.npz")
    assert head.layer.tokens == tuple(FIVE)
    assert any("beside the model" in note for note in head.notes)
    (tmp_path / "labels.txt").write_text("\n".join(FIVE[::-1]))
    # two that disagree: neither is trusted
    assert load_head(tmp_path / "m.npz").layer.tokens is None


def test_a_shorter_list_beside_the_model_is_told_and_taken_only_when_asked_for(tmp_path):
    np.savez(tmp_path / "m.npz", W=np.eye(6))
    (tmp_path / "keys.txt").write_text("\n".join(FIVE))
    head = load_head(tmp_path / "m.npz")
    assert head.layer.tokens is None
    assert "5 names for 6 classes" in head.notes[-1]
    assert load_head(tmp_path / "m.npz", blank="last").layer.tokens == (*FIVE, BLANK)


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
    assert "numbered from 1, blank first: 0 '<blank>', 1 'a', 2 'b', 5 'e')" in how


def test_names_numbered_from_one_for_each_class_are_shifted_and_it_is_said(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps(dict(zip(FIVE, range(1, 6), strict=True))))
    names, how = read_labels(tmp_path / "vocab.json", 5)
    assert names == tuple(FIVE)
    assert "numbered from 1: 0 'a', 1 'b', 2 'c', 4 'e')" in how


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
