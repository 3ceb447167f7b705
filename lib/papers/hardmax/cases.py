"""Constructed configurations in the plane whose limits are known by hand: the four kinds of source
004's longer version (coordinates are ours).

Each case carries its answer: which tokens become leaders and where every token ends. A = identity,
alpha = 1.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Case:
    """Initial tokens and what becomes of them."""

    name: str
    shows: str
    tokens: np.ndarray  # (n, 2)
    leaders: tuple[int, ...]  # over all layers
    ends: np.ndarray  # (n, 2), the limits


def _case(name: str, shows: str, tokens: list, leaders: tuple[int, ...], ends: list) -> Case:
    return Case(name, shows, np.array(tokens, dtype=float), leaders, np.array(ends, dtype=float))


def constructed_cases() -> tuple[Case, ...]:
    """Triangle, square, emerging leader, clusters without a leader."""
    left, right, top = [-0.9, -0.5], [0.9, -0.5], [0, 1]
    inside = [[0.1, 0.4], [0.2, -0.1], [-0.3, 0.1], [-0.2, -0.3], [0.3, 0.2]]
    square = [[1, 1], [-1, 1], [-1, -1], [1, -1]]
    within = [[0.3, 0.1], [-0.2, 0.5], [-0.4, -0.1], [0.1, -0.6], [0.5, 0.2]]
    oblong = [[2, 1], [-2, 1], [-2, -1], [2, -1]]
    on_axes = [[0.4, 0], [-0.3, 0], [0, 0.1], [0, -0.5], [0.5, 0.2]]
    return (
        _case(
            "triangle",
            "three leaders; every other token follows one of them",
            [top, right, left, *inside],
            (0, 1, 2),
            [top, right, left, top, right, left, left, top],
        ),
        _case(
            "square",
            "four leaders at one distance from the origin",
            [*square, *within],
            (0, 1, 2, 3),
            [*square, *square, square[0]],
        ),
        # token 3 first looks to token 1 and goes half the way; then token 1 has left for token 2,
        # and token 3 is alone in its direction
        _case(
            "emerging leader",
            "a token becomes a leader when the one that it followed has moved away",
            [[0.5, -0.5], [1.2, 0.1], [1.2, 2.3], [0.8, -0.5], [-0.4, 0.6], [0.3, -0.8]],
            (2, 3, 5),
            [[1.0, -0.2], [1.2, 2.3], [1.2, 2.3], [1.0, -0.2], [1.2, 2.3], [0.3, -0.8]],
        ),
        _case(
            "clusters without a leader",
            "tokens on an axis of symmetry tie between two leaders and end on the face between",
            [*oblong, *on_axes],
            (0, 1, 2, 3),
            [*oblong, [2, 0], [-2, 0], [0, 1], [0, -1], [2, 1]],
        ),
    )
