"""Braid Reflect in the plane: one step, and a whole search (notebook 11; 001, Figure 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compendium import style
from compendium.drawing.bottleneck.polygons import draw_polygons, tint
from softgeom.bottleneck.drawing.planar import argmax_cells, square

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from softgeom.bottleneck.paper001 import Search


def draw_reflection_step(search: Search) -> Figure:
    """Left, x mirrored across the line on which the class sought ties with the winner; right, all
    steps until the class wins.
    """
    t, winner, path = search.index, search.winners[0], search.points
    reach = 1.3 * float(np.abs(path).max())
    fig, axes = style.figure("page", 5.0, ncols=2)
    fig.get_layout_engine().set(h_pad=0.12)
    for ax in axes:
        _draw_regions(ax, search, reach)
    _draw_first(axes[0], path[0], path[1], t, 3 * reach)
    axes[0].set_title(
        f"One step across the tie $y_{t + 1} = y_{winner + 1}$ (orange: class {t + 1} wins)"
    )
    axes[1].plot(*path.T, color=style.RED, linewidth=1.2, marker="o", markersize=4)
    axes[1].plot(*path[-1], "*", color=style.RED, markersize=13)
    for k, x in enumerate(path):
        side = -11 if x[0] < path[:, 0].mean() else 7
        axes[1].annotate(
            str(k), x, (side, 3), textcoords="offset points", fontsize=9, path_effects=style.halo()
        )
    axes[1].set_title(f"All steps from $x = w_{t + 1}$ on")
    style.headline(
        fig,
        f"Looking for features at which class {t + 1} wins: mirror x wherever another class "
        f"is ahead; {len(path) - 1} mirrors suffice here",
    )
    return fig


def _draw_regions(ax: Axes, search: Search, reach: float) -> None:
    cells = argmax_cells(square(reach), search.W, search.b)
    grey = {c: tint(style.GREY, 0.15 + 0.5 * k / len(search.W)) for k, c in enumerate(cells)}
    draw_polygons(
        ax,
        cells,
        lambda c: tint(style.ORANGE, 0.55) if c == search.index else grey[c],
        lambda c: f"$c_{{{c + 1}}}$" if c != search.index else "",
        (11,),
    )
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="$x_1$", ylabel="$x_2$")


def _draw_first(ax: Axes, x: np.ndarray, mirrored: np.ndarray, t: int, reach: float) -> None:
    step = mirrored - x
    along = np.array([-step[1], step[0]]) / np.linalg.norm(step) * reach
    foot = (x + mirrored) / 2
    ax.plot(*np.array([foot - along, foot + along]).T, color=style.BLACK, linewidth=1.2)
    arrow = {"arrowstyle": "-|>", "color": style.RED, "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", mirrored, x, arrowprops=arrow)
    ax.plot(*x, "o", color=style.RED)
    ax.annotate(f"$x = w_{t + 1}$", x, (6, -12), textcoords="offset points")
    ax.annotate("$x'$", mirrored, (6, 5), textcoords="offset points")
