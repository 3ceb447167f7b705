"""Tokens: every text round-trips, windows cover it once, tables of pairs against loops."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papers.language_model import BytePairTokenizer, table_losses, train_tokenizer, windows

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
    lines = (f"line {i} without end " + "\n" * (i % 7 == 0) for i in range(9000))
    text = "".join(lines) + "x" * 50_000
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


def test_windows_cover_each_prediction_once():
    tokens = np.arange(101, dtype=np.int32)
    cut = windows(tokens, 10)
    assert cut.shape == (10, 11)
    assert np.array_equal(cut[:, 1:].ravel(), tokens[1:])
    assert np.array_equal(windows(tokens, 10, 2)[:, 0], [0, 90])


def test_losses_of_tables_against_loops():
    rng = np.random.default_rng(0)
    training, held_out, size = rng.integers(0, 5, 300), rng.integers(0, 6, 40), 6
    single = {t: (list(training).count(t) + 1) / (len(training) + size) for t in range(size)}
    unigram, bigram = table_losses(training, held_out, size)
    assert unigram == pytest.approx(-np.mean([np.log(single[t]) for t in held_out[1:]]))
    pairs = list(itertools.pairwise(training))

    def mixed(w):
        p = []
        for s, t in itertools.pairwise(held_out):
            after = [b for a, b in pairs if a == s]
            p.append(w * (after.count(t) / len(after) if after else 0) + (1 - w) * single[t])
        return -np.mean(np.log(p))

    assert bigram == pytest.approx(min(mixed(w) for w in np.linspace(0.05, 0.95, 19)))
