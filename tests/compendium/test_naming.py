"""Names of lines: at their own line, in the axes, and never one on another."""

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest

from compendium.drawing.naming import name_ends, name_lines


@pytest.fixture
def ax():
    fig, ax = plt.subplots(figsize=(6, 4))
    ax.set(xlim=(0, 10), ylim=(-1.5, 6))
    yield ax
    plt.close(fig)


def boxes(ax):
    ax.figure.canvas.draw()
    return {text.get_text(): text.get_window_extent() for text in ax.texts}


@pytest.mark.parametrize("log", [False, True])
def test_each_name_stands_at_its_own_line(ax, log):
    x = np.linspace(1, 10, 60)
    if log:
        ax.set(xlim=(1, 10), xscale="log")
    lines = {
        "wave": (x, np.sin(x), "C0"),
        "higher": (x, np.sin(x) + 2.5, "C1"),
        "flat": (x, np.full(60, 5.0), "C2"),
    }
    name_lines(ax, lines)
    found, frame = boxes(ax), ax.get_window_extent()
    for name, box in found.items():
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1
        centre = np.array([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
        nearest = {
            other: np.linalg.norm(
                ax.transData.transform(np.column_stack(line[:2])) - centre, axis=1
            ).min()
            for other, line in lines.items()
        }
        assert min(nearest, key=nearest.__getitem__) == name
        assert not any(box.overlaps(other) for key, other in found.items() if key != name)


def test_a_name_leaves_other_text_alone(ax):
    x = np.linspace(0, 10, 60)
    name_lines(ax, {"flat": (x, np.zeros(60), "C0")})
    (place,) = ax.texts
    where = place.get_position()
    place.remove()
    ax.text(*where, "taken", transform=ax.transAxes, ha="center", va="center")
    name_lines(ax, {"flat": (x, np.zeros(60), "C0")})
    found = boxes(ax)
    assert not found["flat"].overlaps(found["taken"])


def test_names_of_ends_that_meet_stand_apart_in_their_order(ax):
    x = np.linspace(0, 10, 5)
    lines = {
        name: (x, x * slope, "C0")
        for name, slope in (("b", 0.501), ("a", 0.5), ("c", 0.502), ("far", 0.0))
    }
    name_ends(ax, lines)
    found = boxes(ax)
    ends = ax.transData.transform((10, 0))[0]
    assert all(box.x0 > ends for box in found.values())
    heights = sorted(found, key=lambda name: found[name].y0)
    assert heights == ["far", "a", "b", "c"]
    assert all(found[low].y1 <= found[high].y0 + 1 for low, high in itertools.pairwise(heights))
