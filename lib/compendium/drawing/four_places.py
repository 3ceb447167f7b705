"""The four sources together (notebook 90): where each looks at a softmax, and what each prints
beside what was found here.
"""

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
    import pandas as pd
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
_SHOWN = {"001": "Table 3", "002": "formulas", "003": "Figure 7.5", "004": "accuracy"}
_LINE = 74  # characters of a finding
_KIND_OF_GOOD = {
    "agree": style.GREEN,
    "holds": style.GREEN,
    "reproduced": style.GREEN,
    "holds under its hypotheses": style.ORANGE,
    "agree in medians": style.ORANGE,
    "found": style.BLUE,
    "not found": style.BLUE,
}


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
    """The boxes of a transformer, those that a source looks at in its colour and joined to its row."""
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


def draw_plates(
    regions: pd.DataFrame,
    formulas: Mapping[str, tuple[float, float]],
    degradation: pd.DataFrame,
    accuracy: pd.DataFrame,
    verdicts: Mapping[str, str],
) -> Figure:
    """One plate a source: its printed numbers in grey, ours in colour on the same axes, the verdict
    as a stamp.

    Parameters
    ----------
    regions
        classes, dimension, printed, ours: rankings of a layer with a bias (001, Table 3).
    formulas
        By name: largest relative error of a formula taken literally, and read with what the notes
        introduce before it (002).
    degradation
        level, printed, ours: ratio of perplexities with the penalty over that without, under noise
        (003, Figure 7.5).
    accuracy
        dimension, printed, ours: best test accuracy by embedding dimension (004, the authors'
        histories).
    verdicts
        By paper, of the claim that the plate shows.
    """
    fig, axes = style.figure("page", height=6.0, nrows=2, ncols=2)
    _plate_of_counts(axes[0, 0], regions)
    _plate_of_formulas(axes[0, 1], formulas)
    _plate_of_ratios(axes[1, 0], degradation)
    _plate_of_accuracy(axes[1, 1], accuracy)
    for ax, (paper, verdict) in zip(axes.flat, verdicts.items(), strict=True):
        colour = style.legible(_KIND_OF_GOOD.get(verdict.rpartition(": ")[2], style.GREY))
        stamp = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": colour, "lw": 1.8}
        words = {
            "color": colour,
            "weight": "bold",
            "fontsize": 9,
            "ha": "right",
            "va": "bottom",
            "bbox": stamp,
        }
        ax.text(0.995, 1.06, verdict, transform=ax.transAxes, **words)
        ax.text(
            0.0,
            1.06,
            f"{paper}: {_SHOWN[paper]}",
            transform=ax.transAxes,
            color=style.INK,
            va="bottom",
        )
    style.headline(
        fig,
        "Printed (grey) beside found here (colour): one plate a source, stamped with the verdict",
    )
    return fig


def _pair_of(
    ax: Axes, x: pd.Series, printed: pd.Series, ours: pd.Series, where: tuple[str, str]
) -> None:
    """Printed numbers as grey squares, ours as blue dots, each named at its last point."""
    ax.plot(x, printed, "s-", color=style.GREY, ms=7)
    ax.plot(x, ours, "o-", color=style.BLUE, ms=5)
    for values, words, colour, side in (
        (printed, "printed", style.GREY, where[0]),
        (ours, "here", style.BLUE, where[1]),
    ):
        shift = (0, 8) if side == "above" else (0, -16)
        beside = {"textcoords": "offset points", "ha": "right", "color": style.legible(colour)}
        ax.annotate(words, (x.iloc[-1], values.iloc[-1]), shift, **beside)


def _plate_of_counts(ax: Axes, regions: pd.DataFrame) -> None:
    for C in (4, 6, 8, 10):
        part = regions[regions["classes"] == C]
        ax.plot(part["dimension"], part["printed"], "s", color=style.GREY, ms=7)
        ax.plot(part["dimension"], part["ours"], "o-", color=style.BLUE, ms=3.5, lw=1)
        end = {"textcoords": "offset points", "va": "center", "fontsize": 9}
        ax.annotate(f"C = {C}", (part["dimension"].iloc[-1], part["ours"].iloc[-1]), (7, 0), **end)
    ax.set(yscale="log", xlabel="features d", ylabel="rankings (Table 3)", xlim=(0.5, 12.4))


def _plate_of_formulas(ax: Axes, formulas: Mapping[str, tuple[float, float]]) -> None:
    for y, (name, (literal, read)) in enumerate(formulas.items()):
        ax.plot([read, literal], [y, y], color="0.85", lw=1, zorder=0)
        ax.plot(literal, y, "s", color=style.GREY, ms=8)
        ax.plot(read, y, "o", color=style.BLUE, ms=7)
        ax.text(1e-8, y - 0.17, name, ha="center", fontsize=9, color=style.INK)
    ax.text(0.9, -0.62, "as printed", ha="right", color=style.legible(style.GREY), fontsize=9)
    ax.text(1e-16, -0.62, "read as meant", color=style.legible(style.BLUE), fontsize=9)
    ax.set(
        xscale="log",
        xlim=(3e-17, 8),
        ylim=(len(formulas) - 0.5, -1.0),
        yticks=[],
        xlabel="largest relative error",
    )
    ax.spines["left"].set_visible(False)


def _plate_of_ratios(ax: Axes, degradation: pd.DataFrame) -> None:
    _pair_of(
        ax, degradation["level"], degradation["printed"], degradation["ours"], ("below", "below")
    )
    ax.axhline(1, color=style.BLACK, lw=0.8)
    ax.text(degradation["level"].max(), 1.015, "no help", fontsize=9, ha="right")
    ax.set(
        xlabel="noise level", ylabel="damage with the penalty\nover damage without", ylim=(0, 1.25)
    )
    ax.set_xticks(degradation["level"])


def _plate_of_accuracy(ax: Axes, accuracy: pd.DataFrame) -> None:
    _pair_of(ax, accuracy["dimension"], accuracy["printed"], accuracy["ours"], ("above", "below"))
    ax.set(
        xscale="log",
        xlabel="embedding dimension",
        ylabel="test accuracy, pooled split",
        ylim=(0.77, 0.9),
    )
    ax.set_xticks(accuracy["dimension"], [str(d) for d in accuracy["dimension"]])
    ax.minorticks_off()
