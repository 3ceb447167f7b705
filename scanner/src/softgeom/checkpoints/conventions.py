"""The normalisation right before the softmax layer, by name.

x is what the last normalisation gives, x = gain * u + shift, which confines it to an ellipsoid. It
is claimed only where a model's description says which family it is of: a family may keep its gains
less one, end with another norm than its names suggest, or have none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from softgeom.checkpoints import head_table as table
from softgeom.checkpoints.description import described
from softgeom.checkpoints.matrices import called, canonical
from softgeom.checkpoints.tensors import TensorStore

# families that end otherwise: the norm, or None where another step stands between it and the layer
_OTHERWISE = {"bigbird_pegasus": "decoder.layernorm_embedding", "imagegpt": None}
_LAST_LAYER_NORM = re.compile(r"decoder\.layers\.(\d+)\.final_layer_norm")
# a norm that has no shift is an RMSNorm everywhere else; the second half are names of GGUF
_LAYER_NORM_WITHOUT_SHIFT = {
    "cohere", "cohere2", "cohere2_moe", "cohere2_vision", "mpt", "dbrx", "command-r",
}  # fmt: skip
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


def find_norm(store: TensorStore, config: Mapping[str, Any], weight: str) -> NormNames | None:
    """The normalisation right before the layer of the matrix ``weight``; None where none is
    certain.
    """
    family, ends = str(config.get("model_type") or ""), described(config)[1] or table.LANGUAGE
    heads, norms = table.NORMS.get(ends, ((), ()))
    if not family or not called(canonical(weight), heads):
        return None
    stems = {
        canonical(name).removesuffix(".weight"): name
        for name in store.names()
        if name.endswith(".weight")
    }
    found = _OTHERWISE.get(family, next((stem for stem in norms if stem in stems), None))
    if found is None and family not in _OTHERWISE and ends == table.LANGUAGE:
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
