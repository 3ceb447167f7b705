"""The four sources together: where each looks at a softmax, and one finding (notebook 90)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import Circle, FancyBboxPatch, Polygon

from compendium import style
from softgeom.margins import scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The parts of a transformer from below: name, height of its middle, paper that looks there (None:
# nobody).
_PARTS = (
    ("tokens", 0.35, None),
    ("attention, ever colder", 1.35, "004"),
    ("attention", 2.0, "003"),
    ("norms, feed-forward", 2.85, "002"),
    ("last layer: W x + b", 3.95, "001"),
    ("softmax: the answer", 4.6, None),
)
_PLACES = {  # paper -> colour, where its row stands, what is asked there
    "001": (style.RED, 4.35, "At the exit: which answers can it give?"),
    "002": (style.GREEN, 3.2, "Between: what do the parts compute?"),
    "003": (style.BLUE, 2.05, "Inside attention: where does it tear?"),
    "004": (style.ORANGE, 0.9, "In the cold limit: whom does it follow?"),
}
_LINE = 74  # characters of a finding


def draw_map(sentences: Mapping[str, str]) -> Figure:
    """One transformer at the left; beside it, for each source, the place that it looks at, a
    sketch, and one finding.

    Parameters
    ----------
    sentences
        By paper: what was found, in about two lines.
    """
    fig, ax = style.figure("page", height=5.4)
    ax.set(xlim=(0, 9), ylim=(0.1, 5.0), aspect="equal")
    ax.set_axis_off()
    _draw_stack(ax)
    for paper, (colour, y, question) in _PLACES.items():
        ax.text(
            3.95,
            y + 0.3,
            question,
            color=style.legible(colour),
            weight="bold",
            fontsize=10.5,
            va="center",
        )
        ax.text(
            8.95,
            y + 0.3,
            f"source {paper}",
            color=style.legible(colour),
            fontsize=9,
            va="center",
            ha="right",
        )
        ax.text(
            3.95,
            y + 0.12,
            textwrap.fill(sentences[paper], _LINE),
            color=style.INK,
            fontsize=9,
            va="top",
            linespacing=1.35,
        )
        _SKETCHES[paper](ax, 3.25, y, colour)
    style.headline(
        fig,
        "One softmax, four places in a transformer: what each of the four sources asks, and "
        "what was found",
    )
    return fig


def _draw_stack(ax: Axes) -> None:
    """The boxes of a transformer, those that a source looks at in its colour and joined to its
    row.
    """
    ax.add_patch(
        FancyBboxPatch(
            (0.1, 0.9), 2.2, 2.45, boxstyle="round,pad=0.05", fc="#f3f4f6", ec=style.GREY, lw=0.8
        )
    )
    ax.text(2.27, 3.28, "× layers", fontsize=8, color=style.INK, ha="right", va="top")
    for (below, low, _), (above, high, _) in pairwise(_PARTS):
        if (below, above) != ("attention, ever colder", "attention"):
            arrow = {"arrowstyle": "-|>", "color": style.GREY, "lw": 1}
            ax.annotate("", (1.2, high - 0.22), (1.2, low + 0.22), arrowprops=arrow)
    for words, y, paper in _PARTS:
        colour = _PLACES[paper][0] if paper else style.GREY
        box = {"boxstyle": "round,pad=0.02", "fc": "white", "ec": colour, "lw": 2 if paper else 0.8}
        ax.add_patch(FancyBboxPatch((0.25, y - 0.19), 1.9, 0.38, **box))
        ax.text(
            1.2,
            y,
            words,
            ha="center",
            va="center",
            fontsize=9,
            color=style.legible(colour) if paper else style.INK,
        )
        if paper:
            ax.plot([2.2, 2.7], [y, _PLACES[paper][1]], color=colour, lw=1.2)


def _sketch_hull(ax: Axes, x: float, y: float, colour: str) -> None:
    corners = np.array([[x - 0.42, y - 0.3], [x + 0.42, y - 0.15], [x - 0.05, y + 0.42]])
    ax.add_patch(Polygon(corners, fc=style.GREY, alpha=0.25, lw=0))
    ax.plot(*corners.T, "o", color=style.INK, ms=5)
    ax.plot(x - 0.02, y - 0.02, "X", color=colour, ms=9)


def _sketch_sphere(ax: Axes, x: float, y: float, colour: str) -> None:
    ax.add_patch(Circle((x, y), 0.36, fill=False, ec=style.INK, lw=1))
    for angle, length in ((0.3, 1.5), (1.6, 0.35), (2.6, 1.35), (4.1, 0.5), (5.2, 1.4)):
        way = 0.36 * np.array([np.cos(angle), np.sin(angle)])
        ax.plot(
            *np.array([np.add((x, y), length * way), np.add((x, y), way)]).T,
            color=style.GREY,
            lw=0.8,
        )
        ax.plot(*np.add((x, y), length * way), "o", color="white", mec=style.INK, ms=3.5)
        ax.plot(*np.add((x, y), way), "o", color=colour, ms=5)


def _sketch_fold(ax: Axes, x: float, y: float, colour: str) -> None:
    past, c = np.array([-1.0, 1.0]), 2.5
    t = np.linspace(-1.9, 1.9, 160)
    e, m = scalar.residual(t, past, c), scalar.margin(t, past, c)
    for keep, shade in ((m >= 0, style.INK), (m < 0, colour)):
        ax.plot(
            x + 0.22 * np.where(keep, t, np.nan),
            y + 0.45 * np.where(keep, e, np.nan),
            color=shade,
            lw=2,
        )
    ax.plot([x - 0.42, x + 0.42], [y, y], color=style.GREY, lw=0.8)
    roots = scalar.preimages(0.0, past, c)
    ax.plot(x + 0.22 * roots, np.full(len(roots), y), "o", color=colour, ms=4)


def _sketch_leaders(ax: Axes, x: float, y: float, colour: str) -> None:
    leaders = np.array([[-0.38, -0.3], [0.4, -0.22], [0.02, 0.4]])
    for start, goal in (
        ((-0.1, -0.15), 0),
        ((0.15, -0.05), 1),
        ((0.08, 0.1), 2),
        ((-0.12, 0.1), 2),
        ((0.2, -0.3), 1),
    ):
        arrow = {"arrowstyle": "-|>", "color": style.GREY, "lw": 0.8, "shrinkB": 4}
        ax.annotate("", np.add(leaders[goal], (x, y)), np.add(start, (x, y)), arrowprops=arrow)
        ax.plot(*np.add(start, (x, y)), "o", color=style.BLUE, ms=3.5)
    ax.plot(*np.add(leaders, (x, y)).T, "*", color=colour, ms=12, mec=style.BLACK, mew=0.5)


_SKETCHES: dict[str, Callable[[Axes, float, float, str], None]] = {
    "001": _sketch_hull,
    "002": _sketch_sphere,
    "003": _sketch_fold,
    "004": _sketch_leaders,
}
