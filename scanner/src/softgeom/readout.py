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
from dataclasses import asdict, dataclass, fields
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
