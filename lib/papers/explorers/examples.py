"""The states in which the explorers start, and their presets (`static/presets.yaml`): plain lists
and numbers, for Python and JavaScript alike.
"""

import copy
from typing import Any

import yaml

from papers.explorers import scripts

State = dict[str, Any]

PRESETS: dict[str, list[State]] = yaml.safe_load(scripts.text("presets.yaml"))

# of each explorer the preset that it starts at, and what presets leave as it is
_STARTS: dict[str, tuple[int, State]] = {
    "softmax": (0, {"names": None, "among": None, "first": 1}),
    "fold": (0, {}),
    "attention": (0, {}),
    # leaders emerge while one steps through it
    "hardmax": (3, {"temperature": 0.0, "layers": 12, "layer": 0}),
}


def settings(preset: State) -> State:
    """A preset without its words."""
    return {key: value for key, value in preset.items() if key not in ("name", "note")}


def initial_state(name: str) -> State:
    """A fresh copy of the state in which the explorer `name` starts."""
    presets, (start, more) = PRESETS[name], _STARTS[name]
    state = {**settings(presets[start]), **more, "presets": presets, "hidden": False}
    return copy.deepcopy(state)
