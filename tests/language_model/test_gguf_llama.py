"""Llama-type models in GGUF against transformers: a tiny one and the released one."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
gguf = pytest.importorskip("gguf")

from papers.circuits import dissect  # noqa: E402
from papers.language_model import Llama, LlamaConfig  # noqa: E402
from papers.language_model.llama_files import load_gguf_llama  # noqa: E402
from softgeom.checkpoints import RELEASED  # noqa: E402

SIZES = LlamaConfig(
    d_vocab=40, d_model=64, n_heads=4, n_kv_heads=2, n_layers=2, d_mlp=96, n_ctx=24, rotary_base=5e4
)
PIECES = [*"abcdefghijklmnopqrstuvwxyz0123456789", "\u0120", "ab", "abc", "<|end|>"]


@pytest.fixture
def written(tmp_path):
    return lambda *given, **facts: _write(tmp_path / "m.gguf", *given, **facts)


def _write(path: Path, model: Llama | None = None, quantised: bool = False, **facts) -> Path:
    """A file as llama.cpp writes them; matrices in Q8_0 when `quantised`."""
    model = model or Llama(SIZES).requires_grad_(False)
    model.blocks[1].ln2.w[0] = facts.pop("gain", 1.0)
    bias = facts.pop("bias", False)
    c = model.config
    writer = gguf.GGUFWriter(path, facts.pop("architecture", "llama"))
    for name, value in {
        "block_count": c.n_layers, "context_length": c.n_ctx, "embedding_length": c.d_model,
        "feed_forward_length": c.d_mlp, "head_count": c.n_heads, "head_count_kv": c.n_kv_heads,
        "rope_freq_base": c.rotary_base, "layer_norm_rms_eps": c.rms_norm_eps,
        "rope_dimension_count": facts.pop("turned", c.d_head),
        "tokenizer_model": "gpt2", "tokenizer_pre": facts.pop("words", "smollm"),
        "token_list": PIECES, "token_types": [1] * 39 + [3], "token_merges": ["a b", "ab c"],
    }.items():  # fmt: skip
        getattr(writer, f"add_{name}")(value)
    for key, value in facts.items():
        writer.add_uint32(key.replace("__", "."), value)

    def tensor(name: str, W: torch.Tensor) -> None:
        array = np.ascontiguousarray(W.float().numpy())
        if quantised and array.ndim == 2:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(f"{name}.weight", gguf.quantize(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(f"{name}.weight", array)

    if bias:
        writer.add_tensor("blk.0.attn_q.bias", np.zeros(64, np.float32))
    tensor("token_embd", model.W_E)
    tensor("output_norm", model.ln_final.w)
    for i, block in enumerate(model.blocks):
        attn, mlp = block.attn, block.mlp
        for name, W in {"attn_q": attn.W_Q, "attn_k": attn.W_K, "attn_v": attn.W_V}.items():
            tensor(f"blk.{i}.{name}", W.transpose(1, 2).flatten(0, 1))
        tensor(f"blk.{i}.attn_output", attn.W_O.flatten(0, 1).T)
        for name, W in {"ffn_gate": mlp.W_gate, "ffn_up": mlp.W_in, "ffn_down": mlp.W_out}.items():
            tensor(f"blk.{i}.{name}", W.T)
        tensor(f"blk.{i}.attn_norm", block.ln1.w)
        tensor(f"blk.{i}.ffn_norm", block.ln2.w)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("quantised", [False, True])
def test_a_file_gives_the_model_that_was_written(written, quantised, as_transformers):
    original = Llama(SIZES, seed=3).requires_grad_(False)
    loaded = load_gguf_llama(written(original, quantised), "float64")
    assert loaded.config == SIZES
    tokens = torch.arange(20)[None]
    if quantised:
        assert not torch.equal(loaded.W_E, original.W_E.double())
    else:
        expected = original.double()(tokens)
        torch.testing.assert_close(loaded(tokens), expected, rtol=1e-12, atol=1e-12)
    with torch.no_grad():
        expected = as_transformers(loaded)(tokens).logits
    assert (loaded(tokens) - expected).abs().max() < 1e-6 * expected.abs().max()


def test_its_tokenizer_merges_splits_digits_and_keeps_marks(written):
    tokenizer = load_gguf_llama(written()).tokenizer
    assert tokenizer.encode("abc ab").tolist() == [38, 36, 37]
    assert tokenizer.encode("12<|end|>").tolist() == [27, 28, 39]
    assert tokenizer.decode([38, 36, 37]) == "abc ab"


def test_a_tokenizer_of_another_kind_is_said_to_be_absent(written, caplog):
    model = load_gguf_llama(written(words="llama-bpe"))
    assert model.tokenizer is None
    assert "'llama-bpe' is not covered: give token ids" in caplog.text


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"architecture": "mamba"}, "architecture 'mamba'; only 'llama'"),
        ({"llama__expert_count": 8}, "a mixture of experts"),
        ({"llama__attention__sliding_window": 512}, "sliding-window attention"),
        ({"turned": 8}, "turns 8 of 16 coordinates"),
        ({"gain": np.inf}, r"blk\.1\.ffn_norm\.weight has NaN or infinite"),
        ({"bias": True}, r"biases in its blocks \(blk\.0\.attn_q\.bias\)"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(written, facts, message):
    with pytest.raises(ValueError, match=message):
        load_gguf_llama(written(**facts))


def test_smollm2_has_the_logits_of_transformers(as_transformers):
    if not RELEASED["smollm2"].available():
        pytest.skip("the file of SmolLM2 is not here: softgeom inspect smollm2 fetches it (93 MB)")
    model = load_gguf_llama(RELEASED["smollm2"].fetch()[0])
    ids = model.tokenizer.encode("When Mary and John went to the store, John gave a drink to")
    tokens = torch.as_tensor(ids, dtype=torch.long)[None]
    with torch.no_grad():
        found, expected = model(tokens), as_transformers(model)(tokens).logits
    assert (found - expected).abs().max() < 1e-5 * expected.abs().max()
    assert model.tokenizer.decode([int(found[0, -1].argmax())]) == " Mary"
    assert dissect(model, "SmolLM2", torch.float32).sizes == {
        "V": 49152, "D": 576, "H": 9, "K": 64, "F": 1536, "L": 30, "T": 8192,
    }  # fmt: skip
