"""The states in which the explorers start, and their presets: plain lists and numbers, for Python
and JavaScript alike.

The sources print pictures, not coordinates: those here are ours, chosen to show what the figure
shows. They are multiples of 1/64, the grid on which points are dragged, so that three vectors that
look collinear are so exactly.
"""

from __future__ import annotations

import copy
from typing import Any

State = dict[str, Any]

_TRIANGLE = [[0.0, 2.0], [-1.75, -1.0], [1.75, -1.0], [0.25, 0.0]]
# A hexagon with some 64ths added at random: regular ones are in special position, and their
# rankings fewer.
_RING = [
    [1.734375, 0.0625], [0.84375, 1.515625], [-0.828125, 1.453125], [-1.8125, 0.171875],
    [-0.875, -1.4375], [0.859375, -1.640625],
]  # fmt: skip
_INSIDE = [
    [0.484375, 0.296875], [-0.546875, 0.796875], [0.296875, -0.765625], [-0.625, -0.359375],
    [1.15625, 0.5], [0.03125, 1.296875],
]  # fmt: skip

SOFTMAX_PRESETS: list[State] = [
    {
        "name": "Figures 1 and 2: an unargmaxable class",
        "W": _TRIANGLE,
        "b": None,
        "note": (
            "c₄ lies inside the triangle of the other three, so no direction of features favours "
            "it."
        ),
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
        "note": (
            "Every tie line passes through the origin, so every region is a wedge: 12 of 24 orders."
        ),
    },
    {
        "name": "Figure 7, right: bias, 18 rankings",
        "W": [[1.5, 1.0], [-1.25, 1.5], [-1.5, -1.0], [0.75, -1.75]],
        "b": [0.5, -0.75, 1.0, 0.25],
        "note": (
            "The bias moves the tie lines off the origin; where they cross, 6 bounded regions "
            "appear."
        ),
    },
    {
        "name": "Figure 8: building the lines of three classes",
        "W": [[1.75, 0.25], [-0.5, 1.75], [-1.0, -1.25]],
        "b": None,
        "note": (
            "Press “All rankings”: each line is perpendicular to the difference of two class "
            "vectors."
        ),
    },
    {
        "name": "A bias lets the inner class win",
        "W": _TRIANGLE,
        "b": [0.0, 0.0, 0.0, 1.0],
        "note": (
            "The same four vectors: with a bias of 1, c₄ wins a bounded region. Lower its bias "
            "and watch it vanish."
        ),
    },
    {
        "name": "The upper hull decides",
        "W": [*_RING, [0.015625, 0.03125], [0.78125, 0.390625], [-0.484375, -0.515625]],
        "b": [
            -0.015625,
            0.234375,
            0.03125,
            0.265625,
            -0.03125,
            0.21875,
            0.734375,
            0.28125,
            0.71875,
        ],
        "note": (
            "With a bias the hull that counts is the upper hull of the points (w, b). Its dashed "
            "edges join classes whose regions touch."
        ),
    },
    {
        "name": "A square: special position, 8 rankings",
        "W": [[1.5, 1.5], [-1.5, 1.5], [-1.5, -1.5], [1.5, -1.5]],
        "b": None,
        "note": (
            "Equal sides give equal tie lines, so the count falls below the formula, which needs "
            "general position."
        ),
    },
    {
        "name": "Twelve classes",
        "W": [*_RING, *_INSIDE],
        "b": None,
        "note": "Six corners win, six inner classes never do: of many in two features few can.",
    },
    {
        "name": "Candidates: fewer rivals",
        "W": _TRIANGLE,
        "b": None,
        "among": [1, 1, 1, 1],
        "note": (
            "Press a corner's name to leave it out, as a mask or a dictionary does: c₄ comes "
            "alive, and no rival that is left can stop it."
        ),
    },
    {
        "name": "Retrieval: which pairs come back?",
        "W": [
            [1.953125, 0.421875],
            [0.84375, 1.8125],
            [-1.3125, 1.515625],
            [-1.984375, -0.25],
            [-0.71875, -1.859375],
            [1.09375, -1.671875],
        ],
        "b": None,
        "first": 2,
        "note": (
            "Six documents, all first for some query x; but in two dimensions only neighbours "
            "are returned together. Drag one, and press “Why?”."
        ),
    },
]

_PAST = [[-1.25, -0.25], [-0.5, 1.25], [1.0, 0.875], [1.125, -0.875]]

ATTENTION_PRESETS: list[State] = [
    {
        "name": "A past that pulls apart",
        "X": [*_PAST, [0.5, -0.25]],
        "coupling": 0.9375,
        "turn": 0.0,
        "note": "Between the tokens the weights change quickly with x, and use the margin up.",
    },
    {
        "name": "Two tokens: a fold",
        "X": [[-1.25, 0.0], [1.25, 0.0], [0.5, 0.75]],
        "coupling": 1.0,
        "turn": 0.0,
        "note": (
            "Two tokens farther apart than 2 / √c fold the plane along a strip between them: the "
            "scalar case, widened."
        ),
    },
    {
        "name": "Close together: no fold",
        "X": [[-0.75, 0.0], [0.75, 0.25], [0.0, -0.75], [0.5, 0.75]],
        "coupling": 0.75,
        "turn": 0.0,
        "note": "A past with little spread leaves margin everywhere.",
    },
    {
        "name": "Negative coupling: never torn",
        "X": [*_PAST, [0.25, -0.25]],
        "coupling": -0.75,
        "turn": 0.0,
        "note": "With c < 0 the block is I + |c| S: every determinant is at least one.",
    },
    {
        "name": "A turned coupling",
        "X": [*_PAST, [0.25, -0.25]],
        "coupling": 2.0,
        "turn": 45.0,
        "note": "M need not be symmetric: the curve bends, and eigenvalues of S M become complex.",
    },
]

FOLD_PRESETS: list[State] = [
    {
        "name": "Two tokens, about to fold",
        "past": [-1.0, 1.0],
        "coupling": 0.5,
        "level": 0.125,
        "note": "Turn c up: the slope at the middle is 1 − c, as both tokens weigh the same there.",
    },
    {
        "name": "A fold: three tokens, one residual",
        "past": [-1.0, 1.0],
        "coupling": 2.0,
        "level": 0.125,
        "note": (
            "The dashed line meets the curve three times. Move it: outside the fold it meets it "
            "once."
        ),
    },
    {
        "name": "A token in the middle",
        "past": [-2.0, 0.0, 2.0],
        "coupling": 3.0,
        "level": 0.125,
        "note": (
            "The token at 0 never leads, but its share of the attention makes the fold less "
            "steep. Remove it."
        ),
    },
    {
        "name": "Negative coupling: never folded",
        "past": [-1.0, 1.0],
        "coupling": -2.0,
        "level": 0.125,
        "note": "With c < 0 the slope is 1 + |c| Var: at least one everywhere.",
    },
]

_EIGHT = [
    [2.0, 0.5], [-1.5, 1.5], [-0.5, -2.0], [0.75, 0.5], [-0.5, 0.75], [0.25, -0.75],
    [-0.75, -0.25], [1.0, -0.5],
]  # fmt: skip

HARDMAX_PRESETS: list[State] = [
    {
        "name": "Three leaders",
        "Z": _EIGHT,
        "alpha": 0.5,
        "ratio": 1.0,
        "angle": 0.0,
        "note": "Every follower runs to the leader that lies farthest in its own direction.",
    },
    {
        "name": "A square: four leaders",
        "Z": [[1.5, 1.5], [-1.5, 1.5], [-1.5, -1.5], [1.5, -1.5], [0.5, 0.25], [-0.25, 0.75],
        [-0.5, -0.5]],
        "alpha": 1.0,
        "ratio": 1.0,
        "angle": 0.0,
        "note": "All corners of the square lead, and the tokens inside go to a corner each.",
    },
    {
        "name": "A limit on an edge",
        "Z": [[1.5, 1.0], [1.5, -1.0], [-1.5, 0.0], [0.5, 0.0], [1.0, 0.0]],
        "alpha": 1.0,
        "ratio": 1.0,
        "angle": 0.0,
        "note": (
            "z₄ and z₅ score two leaders alike, so they end between them: the projection of the "
            "origin on the edge."
        ),
    },
    {
        "name": "An emerging leader",
        "Z": [[1.5, 0.75], [1.125, -2.25], [-0.75, -0.1875], [-0.5625, -0.9375], [-0.75, -0.5625]],
        "alpha": 0.5,
        "ratio": 1.0,
        "angle": 0.0,
        "note": (
            "Nobody leads on the left at first. The tokens there pull on each other until one is "
            "alone in front."
        ),
    },
    {
        "name": "A stretched A changes the leaders",
        "Z": _EIGHT,
        "alpha": 0.5,
        "ratio": 16.0,
        "angle": 30.0,
        "note": (
            "Questions A z bend towards the long axis of A: now z₂ finds z₃ farther than itself, "
            "and follows."
        ),
    },
]  # fmt: skip


def _state(start: State, presets: list[State], **more: Any) -> State:
    """Where an explorer starts: at one of its presets, with more that these leave as it is."""
    shown = {key: value for key, value in start.items() if key not in ("name", "note")}
    return {**shown, **more, "presets": presets, "veiled": False}


_STATES: dict[str, State] = {
    "softmax": _state(SOFTMAX_PRESETS[0], SOFTMAX_PRESETS, names=None, among=None, first=1),
    "fold": _state(FOLD_PRESETS[0], FOLD_PRESETS),
    "attention": _state(ATTENTION_PRESETS[0], ATTENTION_PRESETS),
    # leaders emerge while one steps through it
    "hardmax": _state(HARDMAX_PRESETS[3], HARDMAX_PRESETS, temperature=0.0, layers=12, layer=0),
}


def initial_state(name: str) -> State:
    """A fresh copy of the state in which the explorer `name` starts."""
    return copy.deepcopy(_STATES[name])
