import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softgeom.language_model import BytePairTokenizer, train_tokenizer, windows

TEXT = (
    "the cat sat on the mat, the other cat on the other mat.\nAnd a naïve dog — 42 of them — "
    "sat there.\n"
) * 30
TOKENIZER = train_tokenizer(TEXT, 320)


@settings(max_examples=60)
@given(text=st.text(max_size=200))
def test_every_text_round_trips(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_long_texts_lose_nothing_where_they_are_cut():
    text = (
        "".join(f"line {i} without end " + ("\n" if i % 7 == 0 else "") for i in range(9000))
        + "x" * 50_000
    )
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_merges_are_learned_and_the_same_when_loaded(tmp_path):
    again = train_tokenizer(TEXT, 320)
    assert len(again) == len(TOKENIZER) <= 320
    assert again.strings() == TOKENIZER.strings()
    assert " the" in TOKENIZER.strings()
    assert len(TOKENIZER.encode(TEXT)) < len(TEXT) / 3
    assert TOKENIZER.end not in TOKENIZER.encode(TEXT)
    assert TOKENIZER.decode([TOKENIZER.end]) == "<|end|>"
    TOKENIZER.save(tmp_path / "tokenizer.json")
    loaded = BytePairTokenizer.load(tmp_path / "tokenizer.json")
    assert np.array_equal(loaded.encode(TEXT), TOKENIZER.encode(TEXT))


def test_windows_cover_each_prediction_once_and_bad_input_gets_a_sentence():
    tokens = np.arange(101, dtype=np.int32)
    cut = windows(tokens, 10)
    assert cut.shape == (10, 11)
    assert np.array_equal(cut[:, 1:].ravel(), tokens[1:])
    assert np.array_equal(windows(tokens, 10, 2)[:, 0], [0, 90])
    with pytest.raises(ValueError, match="at least 257"):
        train_tokenizer(TEXT, 256)
    with pytest.raises(ValueError, match="corpus is empty"):
        train_tokenizer("  \n", 300)


@pytest.mark.parametrize("tokens", [[], [7], list(range(10))])
def test_a_corpus_shorter_than_a_window_is_refused(tokens):
    with pytest.raises(
        ValueError, match=f"the corpus has {len(tokens)} tokens, one window needs 11"
    ):
        windows(np.array(tokens, dtype=np.int32), 10)
