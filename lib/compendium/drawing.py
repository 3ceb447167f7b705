"""What several notebooks draw alike: all heads of a model as cells of a grid, and panels of two
features with exact polygons and their names.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from compendium import style
from papers.bottleneck.drawing.planar import centroid

_NUMBERED = 40  # cells up to which each has room for its number
Ranking = tuple[int, ...]
CLASS_COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE)
# under labels on lines
PLATE = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}


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
        how = {"ha": "center", "va": "center", "fontsize": 9}
        ax.text(layer, head, f"{value:.2f}", color="black" if light else "white", **how)


def name(ranking: Ranking) -> str:
    """The paper's way of writing a ranking: classes from 1, increasing in probability."""
    return "".join(str(c + 1) for c in ranking)


def tint(colour: str, strength: float) -> tuple[float, ...]:
    """The colour mixed with white."""
    return tuple(1 - strength * (1 - channel) for channel in to_rgb(colour))


def ranking_colour(ranking: Ranking) -> tuple[float, ...]:
    """The colour of the winner, in a strength that tells the orders of the others apart."""
    others = sorted(itertools.permutations(sorted(ranking[:-1])))
    place = others.index(ranking[:-1]) / max(1, len(others) - 1)
    return tint(CLASS_COLOURS[ranking[-1]], 0.3 + 0.45 * place)


def floats(polygon: Iterable[Sequence[Any]]) -> NDArray[np.float64]:
    """Corners (n, 2) in floating point."""
    return np.array([[float(x) for x in point] for point in polygon])


def draw_polygons(
    ax: Axes,
    cells: dict[Any, Any],
    colour: Callable[[Any], Any],
    label: Callable[[Any], str],
    sizes: Sequence[float] = (9, 7),
) -> None:
    """Fill the cells; name each at its centre of mass in the largest size that has room there."""
    corners = [floats(cell) for cell in cells.values()]
    faces = [colour(key) for key in cells]
    ax.add_collection(PolyCollection(corners, facecolors=faces, edgecolors="white", linewidths=0.8))
    # one point of type, in the units of a panel of half a page
    point = 0.0045 * np.ptp(np.vstack(corners)[:, 0])
    for key, cell in cells.items():
        for size in sizes:  # a cell that has no room even for small type stays without a name
            if _has_room(cell, 0.7 * len(label(key)) * size * point, 0.8 * size * point):
                middle = map(float, centroid(cell))
                ax.text(*middle, label(key), ha="center", va="center", fontsize=size)
                break
    ax.set_aspect("equal")
    ax.margins(0)
    ax.autoscale_view()


def draw_vectors(
    ax: Axes, vectors: NDArray[Any], labels: Sequence[str], colours: Sequence[str]
) -> None:
    """Arrows from the origin, each named at its head."""
    for vector, label, colour in zip(vectors, labels, colours, strict=False):
        arrow = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0, "linewidth": 1.6}
        ax.annotate("", vector, (0, 0), arrowprops=arrow)
        beside = 7 * vector / np.linalg.norm(vector)
        side = "left" if vector[0] > 0 else "right"
        words = {"textcoords": "offset points", "ha": side, "va": "center"}
        ax.annotate(label, vector, beside, color=style.legible(colour), **words)
    reach = 1.4 * np.abs(vectors).max()
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")


def feature_axes(ax: Axes) -> None:
    """Axes of two features, with lines through the origin."""
    ax.axhline(0, color=style.GREY, linewidth=0.5, zorder=0)
    ax.axvline(0, color=style.GREY, linewidth=0.5, zorder=0)
    ax.set(xlabel="$x_1$", ylabel="$x_2$")


def _has_room(cell: Sequence[Sequence[Any]], width: float, height: float) -> bool:
    """Whether a rectangle of that size fits around a convex, counter-clockwise cell's centre."""
    corners, middle = floats(cell), np.array([float(x) for x in centroid(cell)])
    sides = np.roll(corners, -1, axis=0) - corners
    ends = middle + np.array([[i * width / 2, j * height / 2] for i in (-1, 1) for j in (-1, 1)])
    offsets = ends[:, None] - corners
    return bool((sides[:, 0] * offsets[..., 1] - sides[:, 1] * offsets[..., 0] >= 0).all())
