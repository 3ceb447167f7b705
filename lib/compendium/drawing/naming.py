"""Names beside the lines they belong to: a reader should not have to look them up in a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from compendium import style

_INSET = 0.06  # of the width of the axes: no name begins nearer to an end of its line
_LINE = 0.055  # of the height of the axes: one line of type and a little air


def name_lines(
    ax: Axes, lines: Mapping[str, tuple[Sequence[float], Sequence[float], str]], size: float = 10
) -> None:
    """Write each name above or below its line, where the least of the other lines is in its way and
    no other text.

    Call it last: places are measured in the axes as they are then.

    Parameters
    ----------
    ax
        Axes whose scales and limits are set.
    lines
        Name to the abscissas in increasing order, the ordinates, and the colour of the line.
    size
        Of the type, in points.
    """
    places = np.linspace(_INSET, 1 - _INSET, 45)
    heights = {name: _height_at(ax, x, y, places) for name, (x, y, _) in lines.items()}
    width, height = ax.get_window_extent().size
    boxes = [text.get_window_extent().transformed(ax.transAxes.inverted()) for text in ax.texts]
    # ends and middle of what stands already
    written = [(box.x0, box.x1, (box.y0 + box.y1) / 2) for box in boxes]
    for name, (_, _, colour) in lines.items():
        half = 0.31 * len(name) * size * ax.figure.dpi / 72 / width
        gap = 0.75 * size * ax.figure.dpi / 72 / height + 0.012
        best: tuple[float, float, float] = (-np.inf, 0.5, 0.5)
        for place in places[(places > half) & (places < 1 - half)]:
            under = np.abs(places - place) <= half + 0.01
            own = heights[name][under]
            if np.isnan(own).any():
                continue
            for middle in (own.max() + gap, own.min() - gap):
                clear = min(
                    (
                        float(np.nanmin(np.abs(curve[under] - middle)))
                        for curve in heights.values()
                        if not np.isnan(curve[under]).all()
                    ),
                    default=1.0,
                )  # fmt: skip
                taken = any(
                    place + half > left
                    and place - half < right
                    and abs(middle - other) < 1.3 * _LINE
                    for left, right, other in written
                )
                inside = _LINE / 2 < middle < 1 - _LINE / 2
                away = float(np.ptp(own))  # a name beside a steep part hangs in the air
                score = min(clear, 2 * gap) - 0.5 * away - (0 if inside and not taken else 10)
                best = max(best, (score, float(place), float(middle)))
        _, place, middle = best
        written.append((place - half, place + half, middle))
        ax.text(
            place,
            middle,
            name,
            transform=ax.transAxes,
            color=style.legible(colour),
            ha="center",
            va="center",
            fontsize=size,
            path_effects=style.halo(),
        )


def name_ends(
    ax: Axes, lines: Mapping[str, tuple[Sequence[float], Sequence[float], str]], size: float = 10
) -> None:
    """Write each name at the height of the end of its line, to the right of all ends, pushed apart
    where two ends are closer than a line of type.

    Parameters as of `name_lines`; the axes keep room to the right for the names.
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


def _height_at(ax: Axes, x: Sequence[float], y: Sequence[float], places: np.ndarray) -> np.ndarray:
    """Heights of a line in fractions of the axes at such places; NaN where it does not run."""
    ax.get_xlim(), ax.get_ylim()  # transData knows of the limits only once they were asked for
    points = ax.transAxes.inverted().transform(
        ax.transData.transform(np.column_stack([x, y]).astype(float))
    )
    return np.interp(places, points[:, 0], points[:, 1], left=np.nan, right=np.nan)
