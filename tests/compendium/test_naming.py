"""Names of lines: at the ends of their own line, and never one on another."""

from __future__ import annotations

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest

from compendium.drawing.naming import name_ends


@pytest.fixture
def ax():
    fig, ax = plt.subplots(figsize=(6, 4))
    ax.set(xlim=(0, 10), ylim=(-1.5, 6))
    yield ax
    plt.close(fig)


def boxes(ax):
    ax.figure.canvas.draw()
    return {text.get_text(): text.get_window_extent() for text in ax.texts}


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
