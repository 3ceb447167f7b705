"""The Llama-type model against transformers', its continuation, its file format."""

import re
import shutil

import pytest
import torch

from compendium.models.subjects import ABSENT, load_released_llama
from papers.language_model import Llama, LlamaConfig, PieceTokenizer, generate
from papers.language_model.llama2c import load_llama2c

SIZES = LlamaConfig(19, 24, 4, 2, n_layers=2, d_mlp=20, n_ctx=12, tie_embeddings=False)


@pytest.fixture(scope="module")
def llama() -> Llama:
    return Llama(SIZES, seed=1).double().requires_grad_(False)


def test_it_is_transformers_llama(llama, as_transformers):
    tokens = torch.randint(0, SIZES.d_vocab, (2, 12), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = as_transformers(llama)(tokens).logits
    # Its rotary angles are computed in single precision whatever the model's type.
    torch.testing.assert_close(llama(tokens), expected, rtol=0, atol=2e-6)


def test_internals_end_in_the_logits(llama):
    tokens = torch.arange(10)[None]
    internals = llama.run_with_internals(tokens)
    torch.testing.assert_close(internals.logits, llama(tokens), rtol=1e-12, atol=1e-12)
    keys = internals.layers[1].k
    assert keys.shape == internals.layers[1].q.shape == (1, 4, 10, 6)
    assert torch.equal(keys[:, 0], keys[:, 1])  # a pair of heads shares its keys


def test_greedy_decoding_gives_the_published_text_token_for_token(dreams, real_data):
    model = load_llama2c(*dreams)
    published = (real_data / "README.md").read_text(encoding="utf-8")
    told = r"started from token 1 continues greedily with ` (.*?)`\s*\(first ids ([\d, ]+)\)"
    found = re.search(told, published, re.DOTALL)
    if not found:
        pytest.skip("the data folder's README gives no continuation")
    first, text = [int(i) for i in found[2].split(",")], " ".join(found[1].split())
    ids = [1]
    while len(model.tokenizer.decode(ids).strip()) < len(text):
        ids = generate(model, torch.tensor(ids), 1, temperature=0).tolist()
    assert ids[1 : 1 + len(first)] == first
    assert model.tokenizer.decode(ids).strip() == text
    assert model.tokenizer.encode(text) == ids  # and reading the text gives the same tokens back


PIECES = (
    b"<unk>", b"<s>", b"</s>", *(f"<0x{i:02X}>".encode() for i in range(256)), b" ", b"a", b"b",
    b"ab", b"bb", b" a",
)  # fmt: skip


def test_pieces_merge_by_score_and_unknown_characters_become_bytes():
    scores = [0.0] * len(PIECES)
    scores[262], scores[263], scores[264] = -1.0, -3.0, -2.0  # "ab" before " a" before "bb"
    tokenizer = PieceTokenizer(PIECES, tuple(scores))
    assert tokenizer.encode("abb") == [1, 259, 262, 261]
    assert tokenizer.encode("a\u00e9", beginning=False) == [264, 3 + 0xC3, 3 + 0xA9]
    assert tokenizer.decode(tokenizer.encode("a\u00e9 bab")) == " a\u00e9 bab"
    assert tokenizer.encode("") == [1]
    assert tokenizer.decode([3, 3 + ord("A"), 258]) == "\0A\ufffd"  # the first byte and the last
    with pytest.raises(ValueError, match=r"token 265 is outside the vocabulary 0\.\.264"):
        tokenizer.decode([265])


def test_words_merge_apart_where_no_piece_reaches_over_a_blank():
    """The same ids as merging the whole text, also where a piece reaches over."""
    text = "abb ab  b a  abb"
    for pieces in (PIECES, (*PIECES, b"b a")):
        tokenizer = PieceTokenizer(pieces, tuple(-float(i % 7) for i in range(len(pieces))))
        assert tokenizer._words_are_apart == (pieces is PIECES)
        assert tokenizer.encode(text) == [1, *tokenizer._merge(" " + text)]
    tokenizer = PieceTokenizer((*PIECES, b"b a"), (*[-9.0] * len(PIECES), 0.0))
    assert tokenizer.encode("b a", beginning=False) == [259, 265]


def test_without_file_and_network_the_second_model_is_absent(compendium, asked_anew):
    model, source = load_released_llama()
    assert model is None
    assert source is ABSENT
    assert source.stand_in


def test_the_local_file_comes_first_and_a_damaged_one_is_an_error(compendium, dreams):
    folder = compendium / "data" / "raw" / "models"
    folder.mkdir(parents=True)
    for file in dreams:
        shutil.copy(file, folder)
    model, source = load_released_llama()
    assert model is not None
    assert (source.kind, source.detail) == ("local", "models/aidreams260K.bin")
    (folder / "aidreams260K.bin").write_bytes(b"cut")
    with pytest.raises(ValueError, match=r"aidreams260K\.bin is truncated"):
        load_released_llama()
