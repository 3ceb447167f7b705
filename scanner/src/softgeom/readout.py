"""What a model does between the scores ``z = W x + b`` of its last layer and its answer.

    z = W (f x) + b       f: `feature_scale`, 1 in most models
    y = c tanh(s z / c)   s: `scale`, c: `soft_cap`; y = s z without a cap
    answer                the largest score (`rule` "argmax"), or every label whose score is above 0
                          ("threshold")
    p = softmax(y)        `probability` "softmax"; or each sigmoid(y_i) by itself ("sigmoid"), or
                          these divided by their sum ("normalised sigmoids"), or "none"

s and c are positive, so y grows with z, and the order of the classes is that of z: no verdict
depends on s or c. Probabilities do. A model that first caps at c and then multiplies by s is the
same thing with a cap of s c, since ``s c tanh(z / c) = (s c) tanh(s z / (s c))``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from softgeom.arrays import Array

Rule = Literal["argmax", "threshold"]
Probability = Literal["softmax", "sigmoid", "normalised sigmoids", "none"]


@dataclass(frozen=True)
class Readout:
    """The way from scores to the answer, as in the module's formulas; `caveats` are sentences on
    what the model does besides, which no number here accounts for.

    ValueError unless the three numbers are positive and finite: another scale would reverse the
    order of the classes.
    """

    rule: Rule = "argmax"
    feature_scale: float = 1.0
    scale: float = 1.0
    soft_cap: float | None = None
    probability: Probability = "softmax"
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("feature_scale", "scale", "soft_cap"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                what = name.replace("_", " ")
                raise ValueError(f"the model's {what} is {value}: it must be positive and finite.")

    def to_json(self) -> dict[str, Any]:
        """The readout as plain JSON, exactly."""
        return {**asdict(self), "caveats": list(self.caveats)}

    @staticmethod
    def from_json(stored: Any) -> Readout:
        """What ``to_json`` gave; ValueError for other fields or values."""
        wanted = {each.name for each in fields(Readout)}
        if not isinstance(stored, dict) or set(stored) != wanted:
            raise ValueError("the stored readout has other fields")
        found = Readout(**{**stored, "caveats": tuple(map(str, stored["caveats"]))})
        if found.rule not in get_args(Rule) or found.probability not in get_args(Probability):
            raise ValueError("the stored readout has an unknown rule or kind of probability")
        return found

    def logits(self, scores: Array) -> Array:
        """y of scores z, of any shape."""
        y = self.scale * np.asarray(scores, float)
        return y if self.soft_cap is None else self.soft_cap * np.tanh(y / self.soft_cap)

    def probabilities(self, scores: Array) -> Array:
        """p of scores z (..., C), in plain floats. ValueError where the model gives none."""
        y = self.logits(scores)
        if self.probability == "none":
            raise ValueError("this model gives no probabilities.")
        if self.probability == "softmax":
            p = np.exp(y - y.max(axis=-1, keepdims=True))
        else:
            p = np.exp(-np.logaddexp(0.0, -y))
        return p if self.probability == "sigmoid" else p / p.sum(axis=-1, keepdims=True)

    def sentence(self, *, accounted: bool = True) -> str | None:
        """What stands between the scores and the answer, and what printed probabilities are of: the
        model's output, where it is known and ``accounted`` for; None for a plain softmax.
        """
        parts = list(self.caveats)
        if self.feature_scale != 1:
            parts.append(f"features are multiplied by {self.feature_scale:.6g} before the layer")
        if self.scale != 1:
            parts.append(f"scores are multiplied by {self.scale:.6g}")
        if self.soft_cap is not None:
            parts.append(f"scores are capped ({self.soft_cap:g} * tanh(score / {self.soft_cap:g}))")
        if self.rule == "threshold":
            parts.append("each label is decided by itself, and is on when its score is above 0")
        if self.probability in _NAMES:
            parts.append(f"probabilities are {_NAMES[self.probability]}")
        if not parts:
            return None
        kept = "Verdicts do not depend on it"
        if self.caveats:
            kept = "Verdicts are about the scores W x + b"
        elif self.rule == "threshold":
            kept = "Each label has a verdict of its own"
        about = "printed probabilities are the model's own"
        if self.probability in ("none", "normalised sigmoids"):
            about = "no probability is bounded"
        elif self.caveats or not accounted:
            about = "probabilities are those of a softmax of the scores, not of the model's output"
        scaled = self.scale != 1 or self.feature_scale != 1 or self.soft_cap is not None
        what = ", scores are scaled or capped" if scaled else ""
        return f"behind the layer{what}: {'; '.join(parts)}. {kept}; {about}"


PLAIN = Readout()
_NAMES = {"sigmoid": "sigmoids of the scores", "normalised sigmoids": "sigmoids over their sum"}

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
# heads of their own, behind which a family's scales do not stand
_OTHER_HEADS = ("Classification", "QuestionAnswering", "MultipleChoice", "ForCTC")


def readout_of(config: Mapping[str, Any]) -> Readout:
    """What a configuration as Transformers writes it (``config.json``), or the header of a GGUF
    file under such names (`model_type`: its architecture), puts behind the layer.
    """
    within = (config.get(key) for key in _INNER)
    inner: Mapping[str, Any] = next((each for each in within if isinstance(each, Mapping)), {})
    families = [str(each.get("model_type")) for each in (config, inner)]
    merged = {**inner, **config}
    found = _of_problem(merged.get("problem_type"))
    listed = merged.get("architectures")
    names = [str(name) for name in listed] if isinstance(listed, list | tuple) else []
    if any(kind in name for name in names for kind in _OTHER_HEADS):
        return found
    for family in families:
        merged = {**DEFAULTS.get(family, {}), **merged}
    told = set()
    for key, meant, effect in MEANINGS:
        if key in merged and (meant is None or meant.intersection(families)):
            told.add(key)
            found = _with(found, key, effect, merged)
    unknown = [key for key in sorted(TOLD - told) if merged.get(key) not in (None, 0, 1)]
    caveats = tuple(f"{key} is {merged[key]}, and its use is not known here" for key in unknown)
    return replace(found, caveats=found.caveats + caveats)


def _of_problem(problem: Any) -> Readout:
    if problem == "multi_label_classification":
        return Readout("threshold", probability="sigmoid")
    if problem == "regression":
        caveat = "the model is a regression: its outputs are numbers, and no class is chosen"
        return Readout(probability="none", caveats=(caveat,))
    return Readout()


def _with(found: Readout, key: str, effect: str, config: Mapping[str, Any]) -> Readout:
    """The readout with what one key does to it; a caveat for a value that is no number."""
    value = config[key]
    if effect == "features over root":
        value = _root(config)
    elif effect == "features over share":
        value = _share(config)
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


def _root(config: Mapping[str, Any]) -> Any:
    """What T5's features are divided by: sqrt(d_model), where the embedding is tied (T5 writes
    `scale_decoder_outputs` since it ties always).
    """
    scaled = config.get("scale_decoder_outputs", config.get("tie_word_embeddings") is not False)
    d = config["d_model"]
    return math.sqrt(d) if scaled and isinstance(d, int) and d > 0 else None


def _share(config: Mapping[str, Any]) -> Any:
    """What MiniCPM's features are divided by: hidden_size / dim_model_base."""
    width, base = config.get("hidden_size"), config["dim_model_base"]
    if base in (None, 0):
        return None
    return width / base if isinstance(width, int | float) else "hidden_size / dim_model_base"
