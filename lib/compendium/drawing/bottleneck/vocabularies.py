"""A whole vocabulary in one picture, and the road that each of its classes takes to a verdict
(notebook 12; 001, Figure 4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Polygon

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


def draw_search_flow(classes: int, found: int, freed: int, captive: int, steps: int) -> Figure:
    """The road of every class: found by the approximate search, found by the exact method, or
    proven to have no region; bands as wide as their counts.
    """
    fig, ax = style.figure("page", 3.3)
    given_up = classes - found
    unit = 1.0 / classes
    thin = lambda n: max(n * unit, 0.012)  # noqa: E731 - a band that is still seen
    _band(ax, (0.16, 0.45, 0.7, 0.72), (1 - found * unit, 1), (1 - found * unit, 1), style.BLUE)
    _band(
        ax,
        (0.16, 0.28, 0.34, 0.42),
        (1 - found * unit - thin(given_up), 1 - found * unit),
        (-0.52, -0.52 + thin(given_up)),
        style.GREY,
    )
    _band(
        ax,
        (0.56, 0.62, 0.68, 0.72),
        (-0.52 + thin(captive), -0.52 + thin(given_up)),
        (-0.2, -0.2 + thin(freed)),
        style.BLUE,
    )
    _band(
        ax,
        (0.56, 0.62, 0.68, 0.72),
        (-0.52, -0.52 + thin(captive)),
        (-0.62, -0.62 + thin(captive)),
        style.RED,
    )
    texts = {
        (0.08, 0.5): (f"{classes:,}\nclasses", style.INK, "center"),
        (0.45, 0.5): (
            f"Braid Reflect, at most {steps} steps,\nfinds features for {found:,}",
            "white",
            "center",
        ),
        (0.49, -0.5): (f"exact method\ndecides {given_up:,}", style.INK, "center"),
        (0.74, 0.5): (
            f"argmaxable: {found + freed:,}\nfeatures at which it wins",
            style.legible(style.BLUE),
            "left",
        ),
        (0.74, -0.19): (f"{freed:,} that the search missed", style.legible(style.BLUE), "left"),
        (0.74, -0.6): (
            f"unargmaxable: {captive:,}\nproven, no such features",
            style.legible(style.RED),
            "left",
        ),
    }
    for (x, y), (words, colour, side) in texts.items():
        ax.text(x, y, words, color=colour, ha=side, va="center", fontsize=11)
    ax.set(xlim=(0, 1), ylim=(-0.8, 1.04))
    ax.set_axis_off()
    style.headline(
        fig,
        f"A cheap search settles {found / classes:.1%} of a real vocabulary; what it misses "
        f"needs a proof either way",
    )
    return fig


def _band(
    ax: Axes,
    x: tuple[float, ...],
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str,
) -> None:
    """A band that leaves at `start` (lower, upper), bends between the inner two abscissae, and
    arrives at `end`.
    """
    bend = np.linspace(0, 1, 40)
    along = np.concatenate([[x[0]], x[1] + (x[2] - x[1]) * bend, [x[3]]])
    ease = np.concatenate([[0], bend**2 * (3 - 2 * bend), [1]])
    lower, upper = (start[k] + (end[k] - start[k]) * ease for k in (0, 1))
    corners = np.concatenate(
        [np.column_stack([along, lower]), np.column_stack([along, upper])[::-1]]
    )
    ax.add_patch(Polygon(corners, facecolor=colour, edgecolor="none"))
