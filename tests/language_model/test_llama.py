"""The Llama-type model against transformers', its continuation, its file format."""

import re
import shutil

import pytest
import torch

from compendium.models.subjects import load_released_llama
from papers.language_model import BytePairTokenizer, Llama, LlamaConfig, generate
from papers.language_model.llama_files import load_llama2c

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
    assert (
        model.tokenizer.encode(text).tolist() == ids
    )  # and reading the text gives the same tokens back


PIECES = [
    "<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), " ", "a", "b", "ab", "bb", " a",
]  # fmt: skip


@pytest.mark.parametrize("pieces", [PIECES, [*PIECES, "b a"]], ids=["words apart", "over a blank"])
def test_pieces_merge_by_score_and_unknown_characters_become_bytes(pieces):
    scores = [0.0] * len(pieces)
    # "ab" before " a" before "bb"
    scores[262:] = [-1.0, -3.0, -2.0, -4.0][: len(pieces) - 262]
    tokenizer = BytePairTokenizer.from_scores(pieces, scores)
    for text, ids in {
        "": [1],
        "abb": [1, 259, 262, 261],
        "a\u00e9": [1, 264, 3 + 0xC3, 3 + 0xA9],
    }.items():
        assert tokenizer.encode(text).tolist() == ids
        assert tokenizer.decode(ids).lstrip() == text
    assert (265 in tokenizer.encode("b a")) == (len(pieces) > 265)
    assert tokenizer.decode([3, 3 + ord("A"), 259, 258]) == "\0A \ufffd"
    assert tokenizer.strings() == pieces
    with pytest.raises(ValueError, match=r"token 999 is outside the vocabulary 0\.\."):
        tokenizer.decode([999])


def test_without_file_and_network_the_second_model_is_absent(compendium, asked_anew):
    assert load_released_llama() == (None, None)


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
