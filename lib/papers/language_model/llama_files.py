"""Whole Llama-type models out of files: llama2.c's format, and GGUF with its weights dequantised.

llama.cpp stores the query and key matrices of the architecture `llama` with rotary partners side by
side, as llama2.c does and as `papers.language_model.llama` turns them, so nothing is reordered. Its
runtime also rounds features to 8 bits in front of quantised matrices; here the dequantised numbers
multiply exact features.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import torch

from papers.language_model.llama import Llama, LlamaConfig
from papers.language_model.tokens import BytePairTokenizer
from softgeom.checkpoints.gguf_file import GgufStore
from softgeom.checkpoints.llama2c import read_llama2c, read_llama2c_tokenizer

logger = logging.getLogger("softgeom")

# llama2.c's name of each weight -> GGUF's
_OF_BLOCK = {
    "attention_norm": "attn_norm", "wq": "attn_q", "wk": "attn_k", "wv": "attn_v",
    "wo": "attn_output",
    "ffn_norm": "ffn_norm", "w1": "ffn_gate", "w2": "ffn_down", "w3": "ffn_up",
}  # fmt: skip
_OF_MODEL = {"tok_embeddings": "token_embd", "norm": "output_norm", "output": "output"}
_CONTROL = 3  # the kind of pieces that stand for no text
_SINGLE_DIGITS = {"smollm": True, "gpt-2": False}  # ways to split into words
_NOT_COVERED = {
    "llama.attention.sliding_window": "sliding-window attention",
    "llama.expert_count": "a mixture of experts",
    "llama.rope.scaling.type": "scaled rotary positions",
}


def load_llama2c(model: str | Path, tokenizer: str | Path) -> Llama:
    """The language model of a llama2.c file, in float64 so that identities can be exact, with its
    `tokenizer`. ValueError if a file is damaged or a weight is NaN or infinite.
    """
    sizes, weights = read_llama2c(model)
    pieces, scores = read_llama2c_tokenizer(tokenizer, sizes.vocab_size)
    config = LlamaConfig(
        d_vocab=sizes.vocab_size,
        d_model=sizes.dim,
        n_heads=sizes.n_heads,
        n_kv_heads=sizes.n_kv_heads,
        n_layers=sizes.n_layers,
        d_mlp=sizes.hidden_dim,
        n_ctx=sizes.seq_len,
        tie_embeddings=sizes.tied,
    )

    def weight(name: str, layer: int | None) -> np.ndarray:
        array = weights[name] if layer is None else weights[name][layer]
        return _finite(array, f"{Path(model).name}: {name}")

    llama = Llama(config, seed=None).double().requires_grad_(False)
    llama.fill(weight)
    llama.tokenizer = BytePairTokenizer.from_scores([p.decode() for p in pieces], scores.tolist())
    return llama


def load_gguf_llama(path: str | Path, dtype: str = "float32") -> Llama:
    """The language model of a GGUF file, with its `tokenizer` (None, with a warning, where its kind
    is not covered), in a floating-point type of torch: float32 holds every dequantised number.
    ValueError if the file is damaged, its architecture is not `llama`, or a part is not covered.
    """
    store = GgufStore(Path(path))

    def weight(name: str, layer: int | None) -> np.ndarray:
        block = layer is not None
        stored = f"blk.{layer}.{_OF_BLOCK[name]}.weight" if block else f"{_OF_MODEL[name]}.weight"
        if stored not in store.names():
            raise ValueError(f"{path} has no tensor {stored!r}, which a llama needs.")
        return _finite(store.read(stored), f"{path}: {stored}")

    llama = Llama(_gguf_config(store), seed=None).to(getattr(torch, dtype)).requires_grad_(False)
    llama.fill(weight)
    llama.tokenizer = _gguf_tokenizer(store)
    return llama


def _finite(array: np.ndarray, name: str) -> np.ndarray:
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has NaN or infinite values: fetch the file again.")
    return array


def _gguf_config(store: GgufStore) -> LlamaConfig:
    kind = store.fact("general.architecture")
    if kind != "llama":
        raise ValueError(
            f"{store.label} holds a model of architecture {kind!r}; only 'llama' is taken "
            "apart from GGUF files."
        )
    for key, what in _NOT_COVERED.items():
        if store.fact(key) not in (None, 0, "none"):
            raise ValueError(
                f"{store.label} has {what} ({key} = {store.fact(key)}), which is not covered."
            )
    blocks = (name for name in store.names() if name.startswith("blk."))
    if bias := next((name for name in blocks if name.endswith(".bias")), None):
        raise ValueError(f"{store.label} has biases in its blocks ({bias}), which are not covered.")

    def number(key: str, default: float | None = None) -> float:
        found = store.fact(f"llama.{key}", default)
        if found is None:
            raise ValueError(f"{store.label} does not say llama.{key}: it is not a whole model.")
        # what was meant where the header has single precision: 1e-5, not 9.99e-6
        return float(str(np.float32(found)))

    heads = int(number("attention.head_count"))
    config = LlamaConfig(
        d_vocab=store.shape("token_embd.weight")[0],
        d_model=int(number("embedding_length")),
        n_heads=heads,
        n_kv_heads=int(number("attention.head_count_kv", heads)),
        n_layers=int(number("block_count")),
        d_mlp=int(number("feed_forward_length")),
        n_ctx=int(number("context_length")),
        tie_embeddings="output.weight" not in store.names(),
        rotary_base=number("rope.freq_base", 10_000.0),
        rms_norm_eps=number("attention.layer_norm_rms_epsilon"),
    )
    if (turned := int(number("rope.dimension_count", config.d_head))) != config.d_head:
        raise ValueError(
            f"{store.label} turns {turned} of {config.d_head} coordinates of a head, which "
            "is not covered."
        )
    return config


def _gguf_tokenizer(store: GgufStore) -> BytePairTokenizer | None:
    pieces, merges = store.pieces(), store.fact("tokenizer.ggml.merges")
    kind, words = store.fact("tokenizer.ggml.model"), store.fact("tokenizer.ggml.pre")
    if pieces is None or merges is None or kind != "gpt2" or words not in _SINGLE_DIGITS:
        said = "%s: a tokenizer of kind %r, %r is not covered: give token ids"
        logger.warning(said, store.label, kind, words)
        return None
    kinds = store.fact("tokenizer.ggml.token_type", [])
    marks = [i for i, kind in enumerate(kinds) if kind == _CONTROL]
    return BytePairTokenizer.from_pieces(pieces, merges, marks, single_digits=_SINGLE_DIGITS[words])
