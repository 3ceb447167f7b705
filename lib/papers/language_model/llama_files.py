"""A whole Llama-type model out of a GGUF file: weights dequantised, sizes and tokenizer from the
header.

llama.cpp stores the query and key matrices of the architecture `llama` with rotary partners side by
side, which is how `papers.language_model.llama` turns them, so nothing is reordered. Its runtime
also rounds features to 8 bits in front of quantised matrices; here the dequantised numbers multiply
exact features.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.checkpoints.gguf_file import GgufStore

logger = logging.getLogger("softgeom")

# llama2.c's name of each weight -> GGUF's
_OF_BLOCK = {
    "attention_norm": "attn_norm", "wq": "attn_q", "wk": "attn_k", "wv": "attn_v",
    "wo": "attn_output",
    "ffn_norm": "ffn_norm", "w1": "ffn_gate", "w2": "ffn_down", "w3": "ffn_up",
}  # fmt: skip
_OF_MODEL = {"tok_embeddings": "token_embd", "norm": "output_norm", "output": "output"}
# kinds of pieces, ways to split into words
_CONTROL, _SINGLE_DIGITS = 3, {"smollm": True, "gpt-2": False}
_NOT_COVERED = {
    "llama.attention.sliding_window": "sliding-window attention",
    "llama.expert_count": "a mixture of experts",
    "llama.rope.scaling.type": "scaled rotary positions",
}


def load_gguf_llama(path: str | Path, dtype: str = "float32") -> Any:
    """The language model of a GGUF file, with its `tokenizer` (None, with a warning, where its kind
    is not covered), in a floating-point type of torch: float32 holds every dequantised number.
    ValueError if the file is damaged, its architecture is not `llama`, or a part is not covered.
    """
    # imported here: a softmax layer alone needs no language model
    from papers.language_model import llama

    store = GgufStore(Path(path))
    config = _config(store, llama.LlamaConfig)

    def weight(name: str, layer: int | None) -> np.ndarray:
        block = layer is not None
        stored = f"blk.{layer}.{_OF_BLOCK[name]}.weight" if block else f"{_OF_MODEL[name]}.weight"
        if stored not in store.names():
            raise ValueError(f"{path} has no tensor {stored!r}, which a llama needs.")
        values = store.read(stored)
        if not np.isfinite(values).all():
            raise ValueError(f"{path}: {stored} has NaN or infinite values: fetch the file again.")
        return values

    model = llama.filled(config, weight, dtype)
    model.tokenizer = _tokenizer(store)
    return model


def _config(store: GgufStore, make: Any) -> Any:
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
        return found

    heads = int(number("attention.head_count"))
    config = make(
        d_vocab=store.shape("token_embd.weight")[0],
        d_model=int(number("embedding_length")),
        n_heads=heads,
        n_kv_heads=int(number("attention.head_count_kv", heads)),
        n_layers=int(number("block_count")),
        d_mlp=int(number("feed_forward_length")),
        n_ctx=int(number("context_length")),
        tie_embeddings="output.weight" not in store.names(),
        rotary_base=_meant(number("rope.freq_base", 10_000.0)),
        rms_norm_eps=_meant(number("attention.layer_norm_rms_epsilon")),
    )
    if (turned := int(number("rope.dimension_count", config.d_head))) != config.d_head:
        raise ValueError(
            f"{store.label} turns {turned} of {config.d_head} coordinates of a head, which "
            "is not covered."
        )
    return config


def _meant(single: float) -> float:
    """The number that was meant where the header has it in single precision: 1e-5, not 9.99e-6."""
    return float(str(np.float32(single)))


def _tokenizer(store: GgufStore) -> Any:
    from papers.language_model.tokens import BytePairTokenizer

    pieces, merges = store.pieces(), store.fact("tokenizer.ggml.merges")
    kind, words = store.fact("tokenizer.ggml.model"), store.fact("tokenizer.ggml.pre")
    if pieces is None or merges is None or kind != "gpt2" or words not in _SINGLE_DIGITS:
        said = "%s: a tokenizer of kind %r, %r is not covered: give token ids"
        logger.warning(said, store.label, kind, words)
        return None
    kinds = store.fact("tokenizer.ggml.token_type", [])
    marks = [i for i, kind in enumerate(kinds) if kind == _CONTROL]
    return BytePairTokenizer.from_pieces(pieces, merges, marks, single_digits=_SINGLE_DIGITS[words])
