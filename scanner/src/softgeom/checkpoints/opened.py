"""A model that is open: its tensors by name, before any number of them is read, and what its kind
says of the last layer by itself.

Most formats hold named tensors and nothing else; `choosing` then finds the layer by the names. A
graph (ONNX, TFLite), a file with names of its own (`.npz`) and an object in memory show more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softgeom.checkpoints.activation import Activation
from softgeom.checkpoints.choosing import Choice, choose
from softgeom.checkpoints.composed import Composed
from softgeom.checkpoints.tensors import TensorStore
from softgeom.layer import Ellipsoid
from softgeom.readout import Readout
from softgeom.source import Source

# names of C classes that the model holds itself, and a sentence about them; asked with C and
# where the blank is, as `labels.BLANKS`, where the caller says it
NamesOf = Callable[[int, str | None], tuple[Sequence[str] | None, str | None]]


# what `formats` replaces by the file's name and format
_A_FILE = Source("", "local")


@dataclass(frozen=True)
class Asked:
    """What the caller says about the layer: names of its tensors, and whether its bias counts."""

    weight: str | None = None
    bias: str | None = None
    without_bias: bool = False


@dataclass(frozen=True)
class Shown:
    """The layer that a format shows: its tensors, which they are and why, the step in front of
    them, and where that lets the features lie, when no name in the store tells it; what stands
    behind the layer, where the format shows that.
    """

    store: TensorStore
    choice: Choice
    activation: Activation | None = None
    features: Ellipsoid | None = None
    readout: Readout | None = None


def shown(
    store: TensorStore,
    asked: Asked,
    own: tuple[str, str | None, str] | None = None,
    config: Mapping[str, Any] | None = None,
) -> Shown:
    """The layer that is asked for by name; else the format's ``own``, a weight, a bias or none, and
    why; else the one that names show.
    """
    if asked.weight is not None or own is None:
        store = Composed(store)
        named = (asked.weight, asked.bias)
        return Shown(store, choose(store, config or {}, *named, without_bias=asked.without_bias))
    weight, bias, why = own
    kept = None if asked.without_bias else asked.bias or bias
    return Shown(store, Choice(weight, kept, False, (why,)))


@dataclass(frozen=True)
class Opened:
    """A model of any format: its tensors, their origin, `config.json` or nothing; where the format
    itself shows them, the layer for what is asked, and class names; the file in whose folder class
    names may lie; the step in front of the layer, where it is known from elsewhere; what happened
    to tensors as they were read; what stands behind the layer, where `config` does not say it.
    """

    store: TensorStore
    source: Source = _A_FILE
    config: Mapping[str, Any] = field(default_factory=dict)
    show: Callable[[Asked], Shown] | None = None
    names: NamesOf | None = None
    beside: Path | None = None
    activation: Activation | None = None
    notes: Sequence[str] = ()
    readout: Readout | None = None
