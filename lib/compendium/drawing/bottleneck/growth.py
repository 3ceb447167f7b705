"""Random layers as they grow: how hard their classes are to find, and what the search costs
(notebook 13; 001, Figure 10).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from compendium import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

KINDS = {
    "normal": (style.BLUE, "o", "standard normal rows"),
    "hard": (style.RED, "s", "hard: a fifth of the rows squeezed\ntogether, some inside the hull"),
}


def draw_iterations(
    curves: Mapping[int, tuple[NDArray[np.intp], NDArray[np.bool_]]], patience: int
) -> Figure:
    """One panel a dimension: classes sorted by the steps that Braid Reflect needs, those that can
    never win in red (001, Figure 10).

    Parameters
    ----------
    curves
        By dimension: steps (C,), with `patience` where it gave up or won outside the box only, and
        whether a class is proven captive (C,).
    patience
        The steps after which it gives up, drawn as the ceiling.
    """
    fig, axes = style.figure("page", 3.2, ncols=len(curves), sharey=True, squeeze=False)
    for ax, (d, (steps, captive)) in zip(axes[0], curves.items(), strict=True):
        _draw_sorted(ax, steps, captive)
        ax.axhline(patience, color=style.GREY, linewidth=0.8, linestyle=":")
        ax.set_yscale("symlog", linthresh=1, linscale=0.5)
        few = 0 < captive.mean() < 0.005
        ax.set(
            title=f"d = {d}: {captive.sum() if few else f'{captive.mean():.0%}'} captive",
            xlim=(-0.03, 1.03),
            ylim=(-0.4, 2.2 * patience),
        )
        ax.set_xticks([0, 1], ["0", "1"])
    fig.supxlabel("")
    axes[0, 0].set_ylabel("steps of Braid Reflect")
    axes[0, len(curves) // 2].set_xlabel("share of the classes, sorted by steps")
    axes[0, -1].text(
        0.5,
        patience / 1.35,
        f"gave up after {patience}",
        color=style.INK,
        ha="center",
        va="top",
        fontsize=9,
    )
    for y, words, colour in ((0.62, "can win", style.BLUE), (0.5, "can never win", style.RED)):
        axes[0, -1].text(
            0.95,
            y,
            words,
            transform=axes[0, -1].transAxes,
            color=style.legible(colour),
            ha="right",
            weight="bold",
        )
    first, last = (next(iter(curves)), list(curves)[-1])
    style.headline(
        fig,
        f"Random weights imprison {curves[first][1].mean():.0%} of {len(curves[first][1]):,} "
        f"classes at d = {first} and "
        f"{curves[last][1].sum()} at d = {last}, where the first look finds nearly all",
    )
    return fig


def _draw_sorted(ax: Axes, steps: NDArray[np.intp], captive: NDArray[np.bool_]) -> None:
    order = np.lexsort((captive, steps))
    share = np.arange(len(steps)) / max(1, len(steps) - 1)
    for chosen, colour in ((~captive, style.BLUE), (captive, style.RED)):
        there = chosen[order]
        ax.plot(share[there], steps[order][there], ".", ms=4, color=colour, rasterized=True)


def draw_cost(cost: pd.DataFrame) -> Figure:
    """The search's cost in units of the one product W W^T that any scan needs, against classes
    (left) and features (right).

    `cost` has columns layer ("normal" or "hard"), varied ("classes" or "features"), classes,
    features, looks.
    """
    fig, axes = style.figure("page", 3.6, ncols=2, sharey=True)
    fixed = {"classes": ("features", "d"), "features": ("classes", "C")}
    for ax, varied, words in zip(
        axes, ("classes", "features"), ("More classes", "More features"), strict=True
    ):
        here = cost[cost.varied == varied]
        for kind, (colour, marker, _) in KINDS.items():
            part = here[here.layer == kind]
            ax.plot(part[varied], part.looks, marker=marker, color=colour)
        ticks = sorted(here[varied].unique())
        ax.set_xscale("log")
        ax.minorticks_off()
        ax.set_xticks(ticks, [f"{v:,}" for v in ticks])
        other, letter = fixed[varied]
        ax.set(xlabel=f"{varied} ({letter} = {here[other].iloc[0]:,})", title=words)
        ax.axhline(1, color=style.BLACK, lw=1, ls=":")
    axes[0].set(ylabel="products W Wᵀ that the search costs", ylim=(0, None))
    axes[0].text(
        cost.classes.min(),
        0.9,
        "floor of any scan: one W Wᵀ",
        color=style.INK,
        va="top",
        fontsize=10,
    )
    for kind, y, lines in (("hard", 0.97, "top"), ("normal", 0.36, "bottom")):
        colour, _, words = KINDS[kind]
        axes[1].text(
            0.98,
            y,
            words,
            transform=axes[1].transAxes,
            ha="right",
            va=lines,
            color=style.legible(colour),
        )
    widest = cost.features.max()
    largest = cost[cost.varied == "features"].sort_values("features").groupby("layer").looks.last()
    style.headline(
        fig,
        f"With {widest} features the search costs {largest['normal']:.1f} products W Wᵀ, the "
        f"floor of any scan; where rows crowd, {largest['hard']:.1f}",
    )
    return fig
