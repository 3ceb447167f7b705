"""Random layers as they grow: how hard their classes are to find, and what the search costs
(notebook 13; 001, Figure 10).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from compendium import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray


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
