"""Vocabularies read as data, and the paper's filter of target-language tokens."""

import json

import pytest

from softgeom.checkpoints import classes_in_script
from softgeom.checkpoints.labels import read_tokens


def test_byte_level_bpe_is_decoded_as_its_own_library_does(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=alphabet, special_tokens=["<end>"]
    )
    tokenizer.train_from_iterator(["the naïve café, the cafés; the end"] * 3, trainer)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    tokens = read_tokens(tmp_path / "tokenizer.json", tokenizer.get_vocab_size())
    assert " the" in tokens
    expected = [
        tokenizer.decode([i], skip_special_tokens=False) for i in range(tokenizer.get_vocab_size())
    ]
    assert list(tokens) == expected


@pytest.mark.parametrize("name", ["vocab.json", "vocabulary.json", "vocabulary.txt"])
def test_a_plain_list_of_byte_level_tokens_is_decoded(tmp_path, name):
    printable = [chr(n) for n in (*range(33, 127), *range(161, 173), *range(174, 256))]
    signs = printable + [chr(256 + n) for n in range(256 - len(printable))]
    tokens = [*signs, "Ġthe", "æĹ¥", "<|end|>"]
    numbered = {token: n for n, token in enumerate(tokens)}
    said = {"vocab.json": json.dumps(numbered), "vocabulary.json": json.dumps(tokens)}
    (tmp_path / name).write_text(said.get(name, "\n".join(tokens)), encoding="utf-8")
    assert read_tokens(tmp_path / name, len(tokens))[-3:] == (" the", "日", "<|end|>")
    # a dictionary of letters that has all of these signs, and no word of several
    (tmp_path / "dict.txt").write_text("\n".join(signs), encoding="utf-8")
    assert list(read_tokens(tmp_path / "dict.txt", len(signs))) == signs


def test_unigram_wordpiece_and_plain_lists(tmp_path):
    unigram = {
        "model": {"type": "Unigram", "vocab": [["<unk>", 0.0], ["▁да", -1.0]]},
        "added_tokens": [],
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(unigram))
    assert read_tokens(tmp_path / "tokenizer.json", 3) == ("<unk>", "▁да", "<unused 2>")
    wordpiece = {
        "model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "##ing": 1}},
        "added_tokens": [{"id": 2, "content": "<new>"}],
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(wordpiece))
    assert read_tokens(tmp_path / "tokenizer.json", 3) == ("[UNK]", "##ing", "<new>")
    (tmp_path / "vocab.txt").write_text("a\nb\n")
    assert read_tokens(tmp_path / "vocab.txt", 2) == ("a", "b")


def test_the_target_language_filter_of_the_paper():
    tokens = [
        "▁Предварительны", "erecti", "да", "да1", "да,", "▁", "<unk>", "fда", "й", "ре\u0301", "字",
        "ひらがな",
    ]  # fmt: skip
    assert classes_in_script(tokens, "cyrillic").tolist() == [0, 2, 8, 9]
    assert classes_in_script(tokens, "LATIN").tolist() == [1]
    assert classes_in_script(tokens, "HAN").tolist() == [10]
    assert classes_in_script(tokens, "JAPANESE").tolist() == [10, 11]
    # A comma of the script itself is still punctuation.
    assert classes_in_script(["سلام", "سلام،"], "ARABIC").tolist() == [0]
    with pytest.raises(
        ValueError, match=r"no token is written in 'GREEK' alone; scripts that occur: CJK, CYRILLIC"
    ):
        classes_in_script(tokens, "GREEK")
