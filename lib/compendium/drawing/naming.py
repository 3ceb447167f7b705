"""Names beside the lines they belong to: a reader should not have to look them up in a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from compendium import style


def name_ends(
    ax: Axes, lines: Mapping[str, tuple[Sequence[float], Sequence[float], str]], size: float = 10
) -> None:
    """Write each name at the height of the end of its line, to the right of all ends, pushed apart
    where two ends are closer than a line of type; the axes keep room to the right for the names.

    Parameters
    ----------
    ax
        Axes whose scales and limits are set.
    lines
        Name to the abscissas in increasing order, the ordinates, and the colour of the line.
    size
        Of the type, in points.
    """
    left, right = ax.get_xlim()
    ax.set_xlim(left, right + (right - left) * 0.011 * size * max(map(len, lines)) / 9)
    height = ax.get_window_extent().height
    apart = 1.15 * size * ax.figure.dpi / 72 / height
    ends = {name: _end_of(ax, x, y) for name, (x, y, _) in lines.items()}
    order = sorted(ends, key=lambda name: ends[name][1])
    heights = np.array([ends[name][1] for name in order])
    for _ in range(200):  # neighbours that are too close go half of the missing way each
        missing = np.maximum(0, apart - np.diff(heights))
        if missing.max(initial=0) < 1e-3:
            break
        heights[:-1] -= missing / 2
        heights[1:] += missing / 2
    rightmost = max(place for place, _ in ends.values())
    for name, middle in zip(order, heights, strict=True):
        ax.annotate(
            name,
            (rightmost, middle),
            (6, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            color=style.legible(lines[name][2]),
            va="center",
            fontsize=size,
        )


def _end_of(ax: Axes, x: Sequence[float], y: Sequence[float]) -> np.ndarray:
    """The last point of a line in fractions of the axes."""
    ax.get_xlim(), ax.get_ylim()
    last = np.array([[np.asarray(x)[-1], np.asarray(y)[-1]]], dtype=float)
    return ax.transAxes.inverted().transform(ax.transData.transform(last))[0]
