"""All heads of a model as cells of a grid, layers across and heads down: a panel for each thing
that is known of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from compendium import style

_NUMBERED = 40  # cells up to which each has room for its number


def head_grid(
    table: pd.DataFrame, panels: Mapping[str, str]
) -> tuple[Figure, dict[str, tuple[Axes, np.ndarray]]]:
    """The figure, and for each of four columns of the table its axes and its cells (heads, layers),
    yet to be drawn.
    """
    L, H = int(table["layer"].max()) + 1, int(table["head"].max()) + 1
    fig, axes = style.figure(
        "page", height=1.9 + 0.36 * max(H, 4), nrows=2, ncols=2, sharex=True, sharey=True
    )
    for ax in axes.flat:
        ax.tick_params(length=0)
        ax.set_xticks(range(0, L, max(1, L // 6)))
        ax.set_yticks(range(0, H, max(1, H // 4)))
    for ax in axes[1]:
        ax.set_xlabel("layer")
    for ax in axes[:, 0]:
        ax.set_ylabel("head")
    return fig, {
        column: (ax, table[column].to_numpy().reshape(L, H).T)
        for ax, column in zip(axes.flat, panels, strict=True)
    }


def number_cells(ax: Axes, picture: AxesImage) -> None:
    """Write its value into each cell of a small grid, black or white as the colour wants it."""
    cells = np.asarray(picture.get_array())
    if cells.size > _NUMBERED:
        return
    for (head, layer), value in np.ndenumerate(cells):
        light = style.luminance(picture.cmap(picture.norm(value))[:3]) > 0.18
        ax.text(
            layer,
            head,
            f"{value:.2f}",
            ha="center",
            va="center",
            fontsize=9,
            color="black" if light else "white",
        )
