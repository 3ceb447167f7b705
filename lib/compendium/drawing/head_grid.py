"""All heads of a model as cells of a grid, layers across and heads down: a panel for each thing
that is known of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from compendium import style

_NUMBERED = 40  # cells up to which each has room for its number


def head_grid(
    table: pd.DataFrame, panels: Sequence[str]
) -> tuple[Figure, list[tuple[Axes, np.ndarray]]]:
    """The figure, and side by side for each of some columns of the table its axes and its cells
    (heads, layers), yet to be drawn.
    """
    L, H = int(table["layer"].max()) + 1, int(table["head"].max()) + 1
    height = 1.5 + 0.2 * max(H, 6)
    fig, axes = style.figure("page", height, ncols=len(panels), sharey=True, squeeze=False)
    for ax in axes.flat:
        ax.tick_params(length=0)
        ax.set_xticks(range(0, L, max(1, L // 6)))
        ax.set_yticks(range(0, H, max(1, H // 4)))
        ax.set_xlabel("layer")
    axes[0, 0].set_ylabel("head")
    cells = (table[column].to_numpy().reshape(L, H).T for column in panels)
    return fig, list(zip(axes.flat, cells, strict=True))


def frame_cell(ax: Axes, layer: int, head: int) -> None:
    """Draw a frame around the cell of one head."""
    corner = (layer - 0.5, head - 0.5)
    ax.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=style.RED, lw=2))


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
