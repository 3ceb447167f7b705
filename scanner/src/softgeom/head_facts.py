"""What a result says about the layer that it judged: where it was read, how it was chosen, over
which features, and what the model does behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from softgeom.readout import PLAIN, Readout


@dataclass(frozen=True)
class HeadFacts:
    """The layer behind a scan, answers or ceilings."""

    source: str  # the file, model or object that it was read from
    tensors: Mapping[str, str] = field(default_factory=dict)  # weight, and bias, gain, shift
    shape: tuple[int, int] = (0, 0)  # (classes, features)
    chosen: str = ""  # how it was chosen, in a sentence
    features: str = ""  # the feature set that was used
    because: str | None = None  # why that set, where the model decided it
    known_set: str | None = None  # what the model shows of its features, where another set was used
    readout: Readout = PLAIN  # what stands between the scores and the model's answer

    def lines(self) -> list[str]:
        """One line for the layer, then what a reader has to know about the result."""
        bias = f", bias {self.tensors['bias']}" if "bias" in self.tensors else ", no bias"
        said = self.chosen in ("", self.source, self.tensors.get("weight"))
        chosen = "" if said else f" ({self.chosen})"
        weight = f"{self.tensors.get('weight', 'W')} {self.shape}"
        lines = [f"layer: {weight}{bias}, of {self.source}{chosen}"]
        if self.because:
            lines.append(self.because)
        if self.known_set:
            lines.append(f'features="auto" would use another set: {self.known_set}')
        behind = self.readout.sentence()
        return [*lines, behind] if behind else lines

    def to_json(self) -> dict[str, Any]:
        """The facts as plain JSON."""
        plain = {name: value for name, value in vars(self).items() if name != "readout"}
        behind = {"readout": self.readout.to_json(), "behind": self.readout.sentence()}
        return plain | {"tensors": dict(self.tensors), "shape": list(self.shape)} | behind


def with_facts(text: str, head: HeadFacts | None) -> str:
    """The representation of a result, with the facts about its layer below it."""
    return "\n  ".join([text, *(head.lines() if head else ())])
