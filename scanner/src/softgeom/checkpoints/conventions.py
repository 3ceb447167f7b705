"""What a family of models puts right before its softmax layer, and behind it.

Before: x is what the last normalisation gives, x = gain * u + shift, which confines it to an
ellipsoid. It is claimed only where a model's description says which family it is of: a family may
keep its gains less one, end with another norm than its names suggest, or have none. Behind: scales
and caps of the scores, as `config.json` or the header of a GGUF file has them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from softgeom.checkpoints import head_table as table
from softgeom.checkpoints.description import described
from softgeom.checkpoints.matrices import called, canonical
from softgeom.checkpoints.tensors import TensorStore
from softgeom.readout import Readout

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

# What a key of a configuration does, and in which families (None: in all that have it). The
# families' names are those of `model_type` and of GGUF's `general.architecture`.
MEANINGS: tuple[tuple[str, frozenset[str] | None, str], ...] = (
    ("final_logit_softcapping", None, "cap"),
    ("logits_soft_cap", None, "cap"),  # RecurrentGemma
    ("output_logit_soft_cap", None, "cap"),  # xLSTM
    ("lm_head_multiplier", None, "times"),  # Falcon-H1
    ("output_multiplier", None, "times"),  # Muse
    ("output_multiplier_scale", None, "times"),  # Grok
    ("logits_mup_width_multiplier", None, "features over"),  # Inkling
    ("logit_scale", frozenset({
        "cohere", "cohere2", "cohere2_moe", "cohere2_vision", "cohere_compass", "aya_vision",
        "command-r", "grok", "falcon-h1",
    }), "times"),
    ("logit_scale", frozenset({"granite", "granitemoe", "granitehybrid", "minicpm"}), "over"),
    ("logits_scaling", frozenset({
        "granite", "granitemoe", "granitemoeshared", "granitemoehybrid", "granite_swa",
        "granitemoe_swa", "granite4_vision", "granite_docling", "granite_speech",
    }), "over"),
    ("logits_scaling", frozenset({"hyperclovax", "hyperclovax_vision_v2"}), "times"),
    ("d_model", frozenset({"t5", "longt5", "pop2piano", "umt5", "switch_transformers", "udop"}),
     "features over root"),
    ("dim_model_base", frozenset({"minicpm", "minicpm3"}), "features over share"),
)  # fmt: skip
# keys of this kind in a family that the table does not know make a caveat
TOLD = {key for key, _, _ in MEANINGS} - {"d_model", "dim_model_base"} | {"mup_output_alpha"}
# what a family takes where its configuration says nothing (Transformers 5.23)
_CAPPED_AT_30 = (
    "gemma2", "gemma3n", "gemma3n_text", "vaultgemma", "t5gemma", "beam", "inkling2",
    "inkling2_text", "mistral_large4",
)  # fmt: skip
DEFAULTS: dict[str, dict[str, float]] = {
    **{family: {"final_logit_softcapping": 30.0} for family in _CAPPED_AT_30},
    "nanochat": {"final_logit_softcapping": 15.0},
    "recurrent_gemma": {"logits_soft_cap": 30.0},
    "xlstm": {"output_logit_soft_cap": 30.0},
    "cohere": {"logit_scale": 0.0625},
    "cohere2": {"logit_scale": 0.0625},
    "minicpm3": {"dim_model_base": 256},
    "muse_spark": {"final_logit_softcapping": 20.0, "output_multiplier": 0.1767766952966369},
    "muse_glimmer": {"final_logit_softcapping": 20.0, "output_multiplier": 0.19611613513818404},
    "inkling": {"logits_mup_width_multiplier": 24.0},
}
_INNER = ("text_config", "decoder", "llm_config", "language_config")


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


def readout_of(config: Mapping[str, Any]) -> Readout:
    """What a configuration, or a GGUF header under such names, puts behind the layer; a caveat for
    each key whose use is not known.
    """
    within = (config.get(key) for key in _INNER)
    inner: Mapping[str, Any] = next((each for each in within if isinstance(each, Mapping)), {})
    families = [str(each.get("model_type")) for each in (config, inner)]
    merged = {**inner, **config}
    problem = merged.get("problem_type")
    if problem == "multi_label_classification":
        return Readout("threshold", probability="sigmoid")
    if problem == "regression":
        caveat = "the model is a regression: its outputs are numbers, and no class is chosen"
        return Readout(probability="none", caveats=(caveat,))
    if described(merged)[1] not in (table.LANGUAGE, None):
        return Readout()  # a head of its own, behind which the family's scales do not stand
    for family in families:
        merged = {**DEFAULTS.get(family, {}), **merged}
    found, known = Readout(), set()
    for key, meant, effect in MEANINGS:
        if key in merged and (meant is None or meant.intersection(families)):
            known.add(key)
            found = _with(found, key, effect, merged)
    unknown = [key for key in sorted(TOLD - known) if merged.get(key) not in (None, 0, 1)]
    caveats = tuple(f"{key} is {merged[key]}, and its use is not known here" for key in unknown)
    return replace(found, caveats=found.caveats + caveats)


def _with(found: Readout, key: str, effect: str, config: Mapping[str, Any]) -> Readout:
    """The readout with what one key does to it; a caveat for a value that is no number."""
    value = config[key]
    if effect == "features over root":
        value = _root(config)
    elif effect == "features over share":
        width = config.get("hidden_size")
        if value:
            number = isinstance(width, int | float)
            value = width / value if number else "hidden_size / dim_model_base"
    if value is None or value == 0:  # llama.cpp writes 0 for none
        return found
    if isinstance(value, bool) or not isinstance(value, int | float):
        return replace(found, caveats=(*found.caveats, f"{key} is {value!r}, which is no number"))
    value = float(value)
    match effect:
        case "cap":
            return replace(found, soft_cap=value)
        case "times":
            return replace(found, scale=found.scale * value)
        case "over":
            return replace(found, scale=found.scale / value)
        case _:
            return replace(found, feature_scale=found.feature_scale / value)


def _root(config: Mapping[str, Any]) -> float | None:
    """What T5's features are divided by: sqrt(d_model), where the embedding is tied (T5 writes
    `scale_decoder_outputs` since it ties always).
    """
    scaled = config.get("scale_decoder_outputs", config.get("tie_word_embeddings") is not False)
    d = config["d_model"]
    return math.sqrt(d) if scaled and isinstance(d, int) and d > 0 else None
