"""A whole vocabulary in one picture, and the road that each of its classes takes to a verdict
(notebook 12; 001, Figure 4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import ListedColormap

from compendium import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

PALE = "#dfe4e8"


def draw_vocabulary(
    imprisoned: NDArray[np.bool_], distance: NDArray[np.float64], copies: int
) -> Figure:
    """Left, one cell per output in the order of the layer, those that can never win coloured;
    right, how close their rows lie to other rows.

    Parameters
    ----------
    imprisoned : (n,) array
        Whether an output can never win.
    distance : (n,) array
        From its row to the nearest other row of the layer.
    copies : int
        Imprisoned outputs whose row is a copy of another up to rounding.
    """
    fig, (left, right) = style.figure("page", 4.1, ncols=2, width_ratios=[1.2, 1])
    columns = int(np.ceil(np.sqrt(len(imprisoned) * 1.35)))
    cells = np.full(int(np.ceil(len(imprisoned) / columns)) * columns, np.nan)
    cells[: len(imprisoned)] = imprisoned
    left.imshow(
        cells.reshape(-1, columns), cmap=ListedColormap([PALE, style.RED]), interpolation="nearest"
    )
    left.set(xticks=[], yticks=[], title=f"One cell for each of {len(imprisoned):,} outputs")
    left.set_xlabel(
        f"orange: the {imprisoned.sum():,} that can never win",
        color=style.legible(style.RED),
        fontsize=10,
    )
    left.spines[:].set_visible(False)
    _draw_distances(right, np.maximum(distance, 1e-9), imprisoned)
    style.headline(
        fig,
        f"{imprisoned.sum():,} of {len(imprisoned):,} outputs of a text recogniser in use "
        f"can never be its answer; {copies} of these rows are copies of one another",
    )
    return fig


def _draw_distances(ax: Axes, distance: NDArray[np.float64], imprisoned: NDArray[np.bool_]) -> None:
    bins = np.geomspace(distance.min() / 1.5, distance.max() * 1.5, 34)
    for chosen, colour, words, place in (
        (~imprisoned, style.GREY, "can win", (0.98, 0.93)),
        (imprisoned, style.RED, "can never win", (0.03, 0.93)),
    ):
        share = np.full(chosen.sum(), 1 / max(1, chosen.sum()))
        ax.hist(distance[chosen], bins, weights=share, color=colour, alpha=0.85)
        side = "right" if place[0] > 0.5 else "left"
        ax.text(
            *place,
            words,
            transform=ax.transAxes,
            color=style.legible(colour),
            ha=side,
            weight="bold",
        )
    ax.set(
        xscale="log",
        xlabel="distance of an output's row to the nearest other row",
        ylabel="share of these outputs",
        ylim=(0, 1.05),
    )
    ax.set_title("Rows that can never win crowd together")
