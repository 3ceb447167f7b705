"""Names that fit are taken; a layout that changes names is asked for; anything else is refused."""

import json
import pickle

import numpy as np
import pytest
from safetensors.numpy import save_file

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
NUMBERED = {name: n for n, name in enumerate(FIVE, start=1)}
SIGNS = [chr(n) for n in (*range(33, 127), *range(161, 173), *range(174, 256))]
SIGNS += [chr(256 + n) for n in range(256 - len(SIGNS))]
BYTE_LEVEL = [*SIGNS, "Ġthe", "æĹ¥", "<|end|>"]
TEXT = [*map(str, range(256)), " the", "日", "<|end|>"]  # the last three count
UNIGRAM = {"model": {"type": "Unigram", "vocab": [["<unk>", 0.0], ["▁да", -1.0]]}}
WORDPIECE = {"model": {"vocab": {"[UNK]": 0, "##ing": 1}},
             "added_tokens": [{"id": 2, "content": "<new>"}]}  # fmt: skip


# names, classes, blank, what they become
LAYOUTS = [
    (FIVE, 5, None, FIVE), (FIVE, 5, "none", FIVE), (FIVE, 6, "first", [BLANK, *FIVE]),
    (FIVE, 6, "last", [*FIVE, BLANK]), (FIVE, 6, "none", [*FIVE, "<unused 5>"]),
    (FIVE, 7, "first", [BLANK, *FIVE, " "]), (FIVE, 8, "first", [BLANK, *FIVE, " ", " "]),
    (FIVE, 4, "none", FIVE[:4]), (["[BLANK]", *FIVE], 6, "first", ["[BLANK]", *FIVE]),
    (["<blk>", *FIVE], 7, "first", ["<blk>", *FIVE, " "]),
    (["<ctc_blank>", *FIVE], 8, "first", ["<ctc_blank>", *FIVE, " ", " "]),
    ([*FIVE, "blank"], 6, "last", [*FIVE, "blank"]), ([*FIVE, ""], 6, None, [*FIVE, ""]),
]  # fmt: skip


@pytest.mark.parametrize(("names", "classes", "blank", "expected"), LAYOUTS)
def test_a_list_is_laid_out_as_the_caller_says(tmp_path, names, classes, blank, expected):
    (tmp_path / "keys.txt").write_text("\n".join(names) + "\n")
    found, how = read_labels(tmp_path / "keys.txt", classes, blank)
    assert found == tuple(expected)
    assert how == "names from keys.txt" or f"(blank {blank}: 0 {expected[0]!r}, 1 " in how


@pytest.mark.parametrize(
    ("names", "classes", "blank", "shown"),
    [
        (FIVE, 4, None, r"\(--blank none: 0 'a', 1 'b', 2 'c', 3 'd'\)"),
        (FIVE, 6, None,
         r"first: 0 '<blank>', 1 'a', 2 'b', 5 'e'; --blank last: 0 'a', .* 5 '<blank>'"),
        (FIVE, 7, None, r"first: 0 '<blank>', .* 6 ' '; --blank none: 0 'a', .* 6 '<unused 6>'\)"),
        (FIVE, 9, None, r"has \(--blank none: 0"),
        (FIVE, 5, "first", "5 names for 5 classes, not a blank first"),
        (FIVE, 7, "last", "7 classes, not a blank last"),
        (FIVE, 4, "first", "4 classes, not a blank first"),
        ([BLANK, *FIVE], 7, "last", "6 names for 7 classes"),
        ([*FIVE, BLANK], 7, "first", "6 names for 7 classes"),
    ],
)  # fmt: skip
def test_any_other_number_is_refused_with_the_possible_layouts(names, classes, blank, shown):
    with pytest.raises(LabelsError, match=shown):
        fit_labels(names, classes, "keys", blank)


# file, content, classes, the last names that are read, what is said of it
FILES = [
    ("m.json", {"id2label": dict(enumerate(FIVE)), "hidden": 3}, 5, FIVE, ""),
    ("m.json", {name: n for n, name in enumerate(FIVE)}, 5, FIVE, ""),
    ("m.json", {"space": {"names": FIVE, "others": ["x"]}}, 5, FIVE, ""),
    ("m.json", FIVE, 5, FIVE, ""),
    ("m.json", {"few": ["x"], "fitting": FIVE}, 5, FIVE, ""),
    ("m.json", NUMBERED, 5, FIVE, "numbered from 1: 0 'a', 1 'b', 2 'c', 4 'e')"),
    ("m.json", {"char2idx": NUMBERED}, 6, [BLANK, *FIVE],
     "numbered from 1, blank first: 0 '<blank>', 1 'a', 2 'b', 5 'e')"),
    ("vocab.json", {token: n for n, token in enumerate(BYTE_LEVEL)}, 259, TEXT[-3:], ""),
    ("m.json", BYTE_LEVEL, 259, TEXT[-3:], ""),
    ("m.txt", BYTE_LEVEL, 259, TEXT[-3:], ""),
    ("dict.txt", SIGNS, 256, SIGNS, ""),  # has all signs of bytes, and no word of several
    ("keys.txt", ["a\r", "\u2028", "\x0c", "\u3000"], 4, ["a", "\u2028", "\x0c", "\u3000"], ""),
    ("tokenizer.json", UNIGRAM, 3, ["<unk>", "▁да", "<unused 2>"], ""),
    ("tokenizer.json", WORDPIECE, 3, ["[UNK]", "##ing", "<new>"], ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "classes", "expected", "said"), FILES)
def test_a_file_of_names_is_read(tmp_path, name, content, classes, expected, said):
    file, pickled = tmp_path / name, tmp_path / "m.pkl"
    text = "\n".join(content) if name.endswith(".txt") else json.dumps(content)
    file.write_text(text, encoding="utf-8", newline="")
    names, how = read_labels(file, classes)
    assert names[-len(expected) :] == tuple(expected)
    assert said in how
    if name == "m.json":
        pickled.write_bytes(pickle.dumps(json.loads(text)))
        assert read_labels(pickled, classes)[0] == names


@pytest.mark.parametrize(
    "content",
    [
        *("[" * 100_000, '{"a": ' * 5000 + "1" + "}" * 5000, '{"a": 1e999}', "{}", "[1, 2]"),
        *("{", '{"model": {}}', '{"word": "not a number"}'),
    ],
)
def test_what_holds_no_names_is_refused(tmp_path, content):
    (tmp_path / "vocab.json").write_text(content)
    for read in (read_labels, read_tokens):
        with pytest.raises(ValueError, match="vocabulary"):
            read(tmp_path / "vocab.json", 3)


def test_names_with_numbers_beyond_the_classes_are_refused_unless_they_are_left_out(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps({name: n for n, name in enumerate(FIVE)}))
    with pytest.raises(LabelsError, match="names class 4, but the layer has 4 classes, from 0 on"):
        read_labels(tmp_path / "m.json", 4)
    assert read_labels(tmp_path / "m.json", 4, "none")[0] == tuple(FIVE[:4])


def test_a_blank_is_in_a_place_that_has_a_name():
    with pytest.raises(ValueError, match="blank must be one of first, last, none"):
        load_head(np.eye(3), tokens=["a", "b"], blank="front")


VOCAB = {"vocab": {c: n for n, c in enumerate(FIVE)}}
ADDED = {"5": {"content": "<user>"}, "6": {"content": "<bot>"}}
CAUSAL = {"architectures": ["LlamaForCausalLM"], "tie_word_embeddings": True}
BERT = {"architectures": ["BertForSequenceClassification"]}
WITH_ADDED = (*FIVE, "<user>", "<bot>", "<unused 7>")


@pytest.mark.parametrize(
    ("config", "files", "expected"),
    [
        (CAUSAL, VOCAB | {"added_tokens": {"<user>": 5, "<bot>": 6}}, WITH_ADDED),
        (CAUSAL, VOCAB | {"tokenizer_config": {"added_tokens_decoder": ADDED}}, WITH_ADDED),
        (BERT | {"id2label": {"0": "bad", "1": "so-so", "2": "good"}}, VOCAB,
         ("bad", "so-so", "good")),
        (BERT | {"id2label": {"0": "bad", "1": "good"}}, VOCAB, None),
        (BERT | {"id2label": {"1": "bad", "2": "so-so", "3": "good"}}, VOCAB, None),
        (BERT, VOCAB, None),
    ],
)  # fmt: skip
def test_a_folder_names_its_classes_and_a_vocabulary_names_no_labels(
    tmp_path, config, files, expected
):
    name = "model.embed_tokens.weight" if config is CAUSAL else "classifier.weight"
    W = np.eye(8 if config is CAUSAL else 3, 8, dtype=np.float32)
    save_file({name: W}, tmp_path / "model.safetensors")
    for file, content in {"config": config, **files}.items():
        (tmp_path / f"{file}.json").write_text(json.dumps(content))
    head = load_head(tmp_path, weight=None if config is CAUSAL else name)
    assert head.layer.tokens == expected
    assert config is CAUSAL or any("id2label" in note for note in head.notes)


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


def test_a_shorter_list_beside_the_model_is_taken_only_when_asked_for(tmp_path):
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


def test_byte_level_bpe_is_decoded_as_its_own_library_does(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = byte_level(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=byte_level.alphabet(), special_tokens=["<end>"]
    )
    tokenizer.train_from_iterator(["the naïve café, the cafés; the end"] * 3, trainer)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    size = tokenizer.get_vocab_size()
    tokens = read_tokens(tmp_path / "tokenizer.json", size)
    assert " the" in tokens
    assert list(tokens) == [tokenizer.decode([i], skip_special_tokens=False) for i in range(size)]
