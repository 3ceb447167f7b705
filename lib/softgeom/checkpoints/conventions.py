"""Which tensors of a model are its softmax layer: the names that model families use.

The logits of a language model are `W x + b` with W (C, d) the unembedding: a head of its own, or
the token embedding where the two are tied. The bias has family-specific names (`final_logits_bias`
(1, C) in MarianMT, the prediction head's bias in BERT) and is often absent. x is what the last
normalisation gives, x = gain * u + shift, which confines it to an ellipsoid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from softgeom.checkpoints.tensors import TensorStore, describe

HEADS = (
    "lm_head.weight",
    "lm_head.decoder.weight",  # RoBERTa
    "cls.predictions.decoder.weight",  # BERT
    "predictions.decoder.weight",  # ALBERT
    "vocab_projector.weight",  # DistilBERT
    "generator_lm_head.weight",  # ELECTRA
    "embed_out.weight",  # GPT-NeoX
    "output.weight",  # original Llama, torchtune, GGUF
    "W",
    "weight",
)
EMBEDDINGS = (
    "transformer.wte.weight",  # GPT-2
    "wte.weight",
    "model.decoder.embed_tokens.weight",  # MarianMT, OPT
    "decoder.embed_tokens.weight",
    "model.embed_tokens.weight",  # Llama
    "embed_tokens.weight",
    "model.shared.weight",  # BART, MarianMT with one vocabulary
    "shared.weight",  # T5
    "tok_embeddings.weight",
    "bert.embeddings.word_embeddings.weight",
    "roberta.embeddings.word_embeddings.weight",
    "distilbert.embeddings.word_embeddings.weight",
    "electra.embeddings.word_embeddings.weight",
    "embeddings.word_embeddings.weight",
    "transformer.word_embeddings.weight",  # BLOOM
    "word_embeddings.weight",
    "token_embd.weight",  # GGUF
)
BIASES = (
    "final_logits_bias",
    "model.final_logits_bias",
    "cls.predictions.bias",
    "cls.predictions.decoder.bias",
    "predictions.bias",
    "vocab_projector.bias",
    "generator_lm_head.bias",
    "lm_head.bias",
    "lm_head.decoder.bias",
    "output.bias",
    "b",
    "bias",
)
NORMS = (
    "cls.predictions.transform.LayerNorm",  # BERT's head normalises after its own dense layer
    "lm_head.layer_norm",  # RoBERTa
    "vocab_layer_norm",  # DistilBERT
    "predictions.LayerNorm",
    "generator_predictions.LayerNorm",
    "transformer.ln_f",  # GPT-2
    "ln_f",
    "model.norm",  # Llama
    "norm",
    "output_norm",  # GGUF
    "model.decoder.layer_norm",  # pre-norm encoder-decoders
    "model.decoder.final_layer_norm",  # OPT
    "decoder.final_layer_norm",  # T5
    "gpt_neox.final_layer_norm",
    "model.final_layernorm",
)
_LAST_LAYER_NORM = re.compile(r"(?:model\.)?decoder\.layers\.(\d+)\.final_layer_norm")
# a norm that has no shift is an RMSNorm everywhere else
_LAYER_NORM_WITHOUT_SHIFT = {"cohere", "cohere2", "mpt"}
# models that store the gains of their last norm less one, as Transformers 5.23 has them
_GAINS_LESS_ONE = {
    "gemma", "gemma2", "gemma3", "gemma3_text", "minimax_m3_vl", "minimax_m3_vl_text", "nemotron",
    "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next", "step3p7",
    "vaultgemma",
}  # fmt: skip
# what stands between layer and softmax, by its name in config.json
_BEHIND = (
    "final_logit_softcapping", "lm_head_multiplier", "logit_scale", "logits_scaling",
    "logits_soft_cap", "output_multiplier",
)  # fmt: skip


@dataclass(frozen=True)
class NormNames:
    """The final normalisation: names of gain and shift (or None); whether the mean is taken off;
    what the gains are stored less.
    """

    gain: str
    shift: str | None
    kind: str  # "layernorm" | "rmsnorm"
    less: int = 0


def find_weight(store: TensorStore, config: Mapping[str, Any] | None = None) -> str:
    """The name of W, where `tie_word_embeddings` of `config.json` allows it (the format's default)
    an embedding's. ValueError lists the matrices of a model without any known name.
    """
    present = set(store.names())
    tied = (config or {}).get("tie_word_embeddings", True)
    for name in HEADS + (EMBEDDINGS if tied else ()):
        if name in present and len(store.shape(name)) == 2:
            return name
    reason = "" if tied else " (config.json says that the embedding is not tied to the output)"
    raise ValueError(
        f"{store.label} has no tensor that is known to be a softmax layer{reason}; name one "
        "(weight=, or --weight): "
        f"{describe(store, _matrices(store)) or 'it holds no matrices at all'}."
    )


def find_bias(store: TensorStore, classes: int) -> str | None:
    """The name of b, or None: the first known name that holds `classes` numbers."""
    present = set(store.names())
    for name in BIASES:
        if name in present and store.shape(name) in {(classes,), (1, classes)}:
            return name
    return None


def find_norm(store: TensorStore, config: Mapping[str, Any] | None = None) -> NormNames | None:
    """The final normalisation in front of the softmax layer; None without one of a known name."""
    present = set(store.names())
    stems = [stem for stem in NORMS if f"{stem}.weight" in present]
    last = max(
        (name for name in present if _LAST_LAYER_NORM.match(name)), key=_layer_number, default=None
    )
    if last is not None:
        # post-norm decoders (MarianMT, BART) end with their last layer's norm
        stems.append(last.rsplit(".", 1)[0])
    if not stems:
        return None
    shift = f"{stems[0]}.bias" if f"{stems[0]}.bias" in present else None
    family = str((config or {}).get("model_type"))
    kind = "layernorm" if shift or family in _LAYER_NORM_WITHOUT_SHIFT else "rmsnorm"
    return NormNames(f"{stems[0]}.weight", shift, kind, int(family in _GAINS_LESS_ONE))


def behind(config: Mapping[str, Any]) -> str | None:
    """What `config.json` puts between layer and softmax: it keeps verdicts, not probabilities."""
    inner = config.get("text_config")  # of a model that sees, too
    config = {**inner, **config} if isinstance(inner, Mapping) else config
    found = [f"{name} {config[name]}" for name in _BEHIND if config.get(name) not in (None, 1)]
    if not found:
        return None
    return (
        f"behind the layer logits are scaled or capped ({', '.join(found)}): no verdict depends on "
        "it, but probabilities are those of a softmax right behind the layer, not of the model"
    )


def require(store: TensorStore, name: str, dimensions: tuple[int, ...]) -> str:
    """`name`, after a check that the store has it with one of these numbers of dimensions.
    ValueError otherwise: the tensors that would fit are listed with their shapes.
    """
    if name in store.names() and len(store.shape(name)) in dimensions:
        return name
    fitting = [other for other in store.names() if len(store.shape(other)) in dimensions]
    wanted = "a vector (classes)" if 1 in dimensions else "a matrix (classes, features)"
    problem = f"has no tensor {name!r}"
    if name in store.names():
        problem = f"has tensor {name!r} in shape {store.shape(name)}, not as {wanted}"
    raise ValueError(f"{store.label} {problem}; candidates: {describe(store, fitting) or 'none'}.")


def _matrices(store: TensorStore) -> list[str]:
    """Matrices with more rows than columns first: most layers have more classes than features."""
    shapes = {name: store.shape(name) for name in store.names()}
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    return sorted(matrices, key=lambda name: shapes[name][1] - shapes[name][0])


def _layer_number(name: str) -> int:
    match = _LAST_LAYER_NORM.match(name)
    return int(match.group(1)) if match else -1
