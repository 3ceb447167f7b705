"""The normalisation in front of the softmax layer of a language model, by name.

x is what the last normalisation gives, x = gain * u + shift, which confines it to an ellipsoid. It
is claimed only where a model's description says which family it is of: a family may keep its gains
less one, end with another norm than its names suggest, or have none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from softgeom.checkpoints.matrices import canonical
from softgeom.checkpoints.tensors import TensorStore

# canonical names; the first that is there
NORMS = (
    "cls.predictions.transform.LayerNorm",  # BERT's head normalises after its own dense layer
    "lm_head.layer_norm",  # RoBERTa
    "vocab_layer_norm",  # DistilBERT
    "predictions.LayerNorm",
    "generator_predictions.LayerNorm",
    "transformer.ln_f",  # GPT-2
    "ln_f",
    "norm",  # Llama
    "language_model.norm",
    "output_norm",  # GGUF
    "decoder.layer_norm",  # pre-norm encoder-decoders
    "decoder.final_layer_norm",  # OPT, T5
    "gpt_neox.final_layer_norm",
    "final_layernorm",
)
# what ends otherwise: its norm, or None where none feeds the layer directly
_OTHERWISE = {"bigbird_pegasus": "decoder.layernorm_embedding"}
_LAST_LAYER_NORM = re.compile(r"decoder\.layers\.(\d+)\.final_layer_norm")
# a norm that has no shift is an RMSNorm everywhere else; the second half are names of GGUF
_LAYER_NORM_WITHOUT_SHIFT = {"cohere", "cohere2", "mpt", "dbrx", "command-r"}
# models that store the gains of their last norm less one, as Transformers 5.23 has them
_GAINS_LESS_ONE = {
    "gemma", "gemma2", "gemma3", "gemma3_text", "minimax_m3_vl", "minimax_m3_vl_text", "nemotron",
    "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next", "step3p7",
    "vaultgemma",
}  # fmt: skip


@dataclass(frozen=True)
class NormNames:
    """The final normalisation: names of gain and shift (or None); whether the mean is taken off;
    what the gains are stored less.
    """

    gain: str
    shift: str | None
    kind: str  # "layernorm" | "rmsnorm"
    less: int = 0


def find_norm(store: TensorStore, config: Mapping[str, Any]) -> NormNames | None:
    """The final normalisation in front of a language model's head; None where none is certain."""
    family = str(config.get("model_type") or "")
    if not family:
        return None
    stems = {
        canonical(name).removesuffix(".weight"): name
        for name in store.names()
        if name.endswith(".weight")
    }
    found = _OTHERWISE.get(family) or next((stem for stem in NORMS if stem in stems), None)
    if found is None:
        # post-norm decoders (MarianMT, BART) end with their last layer's norm
        layers = {int(m[1]): m[0] for stem in stems if (m := _LAST_LAYER_NORM.fullmatch(stem))}
        found = layers[max(layers)] if layers else None
    if found not in stems:
        return None
    gain = stems[found]
    shift = f"{gain.removesuffix('weight')}bias"
    has_shift = shift in store.names()
    kind = "layernorm" if has_shift or family in _LAYER_NORM_WITHOUT_SHIFT else "rmsnorm"
    # converters to GGUF add the one
    less = int(family in _GAINS_LESS_ONE and "gguf" not in store.provenance.get("format", ""))
    return NormNames(gain, shift if has_shift else None, kind, less)
