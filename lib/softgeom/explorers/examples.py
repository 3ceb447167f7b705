"""The states in which the explorers start, and their presets: plain lists and numbers, for Python and JavaScript alike.

The sources print pictures, not coordinates: those here are ours, chosen to show what the figure shows. They are multiples of
1/64, the grid on which points are dragged, so that three vectors that look collinear are so exactly.
"""

from __future__ import annotations

import copy
from typing import Any

State = dict[str, Any]

_TRIANGLE = [[0.0, 2.0], [-1.75, -1.0], [1.75, -1.0], [0.25, 0.0]]
_RING = [[1.75, 0.0], [0.875, 1.5], [-0.875, 1.5], [-1.75, 0.125], [-0.875, -1.5], [0.875, -1.625]]

SOFTMAX_PRESETS: list[State] = [
    {
        "name": "Figures 1 and 2: an unargmaxable class",
        "W": _TRIANGLE,
        "b": None,
        "note": "c₄ lies inside the triangle of the other three, so no direction of features favours it.",
    },
    {
        "name": "Figure 3: three classes, all 6 rankings",
        "W": [[1.5, 0.75], [-1.25, 1.25], [-0.25, -1.75]],
        "b": None,
        "note": "With d = |C| − 1 nothing is lost: all orders of the classes are realised.",
    },
    {
        "name": "Figure 7, left: no bias, 12 rankings",
        "W": [[1.5, 1.0], [-1.25, 1.5], [-1.5, -1.0], [0.75, -1.75]],
        "b": None,
        "note": "Every tie line passes through the origin, so every region is a wedge: 12 of 24 orders.",
    },
    {
        "name": "Figure 7, right: bias, 18 rankings",
        "W": [[1.5, 1.0], [-1.25, 1.5], [-1.5, -1.0], [0.75, -1.75]],
        "b": [0.5, -0.75, 1.0, 0.25],
        "note": "The bias moves the tie lines off the origin; where they cross, 6 bounded regions appear.",
    },
    {
        "name": "Figure 8: building the lines of three classes",
        "W": [[1.75, 0.25], [-0.5, 1.75], [-1.0, -1.25]],
        "b": None,
        "note": "Press “All rankings”: each line is perpendicular to the difference of two class vectors.",
    },
    {
        "name": "A bias sets the prisoner free",
        "W": _TRIANGLE,
        "b": [0.0, 0.0, 0.0, 1.0],
        "note": "The same four vectors: with a bias of 1, c₄ wins a bounded region. Lower its bias and watch it vanish.",
    },
    {
        "name": "A bias imprisons a corner of nobody's hull",
        "W": [*_RING, [0.0, 0.0]],
        "b": [0.0, 0.25, 0.0, 0.25, 0.0, 0.25, -1.0],
        "note": "With a bias the hull that counts is the upper hull of the points (w, b); its edges are dashed.",
    },
    {
        "name": "A square: special position, 8 rankings",
        "W": [[1.5, 1.5], [-1.5, 1.5], [-1.5, -1.5], [1.5, -1.5]],
        "b": None,
        "note": "Equal sides give equal tie lines, so the count falls below the formula, which needs general position.",
    },
    {
        "name": "Twelve classes",
        "W": [*_RING, [0.5, 0.25], [-0.5, 0.75], [0.25, -0.75], [-0.625, -0.375], [1.125, 0.5], [0.0, 1.625]],
        "b": None,
        "note": "Six corners and six prisoners: in two features a crowd has few winners.",
    },
]

_SOFTMAX: State = {"W": _TRIANGLE, "b": None, "names": None, "presets": SOFTMAX_PRESETS}

_STATES: dict[str, State] = {"softmax": _SOFTMAX}


def initial_state(name: str) -> State:
    """A fresh copy of the state in which the explorer `name` starts."""
    return copy.deepcopy(_STATES[name])
