"""The plane of two features: who wins where, how the lines arise, and what a bias adds (notebook
11; 001, Figures 1, 2, 7, 8).
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Polygon
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from compendium import style
from compendium.drawing.bottleneck import slices
from compendium.drawing.bottleneck.polygons import (
    CLASS_COLOURS,
    PLATE,
    draw_polygons,
    draw_vectors,
    feature_axes,
    floats,
    name,
    ranking_colour,
    tint,
)
from softgeom.bottleneck.drawing.planar import (
    argmax_cells,
    bounded_rankings,
    crossings,
    ranking_cells,
    square,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Matrix = NDArray[Any]


def draw_unargmaxable_class(W: Matrix) -> Figure:
    """Left, who wins at each point of the plane; middle, probabilities around a circle; right, the
    weight vectors and their hull.

    W (C, 2) without a bias. Classes inside the hull are dashed: no direction lifts them to the top.
    """
    fig, axes = style.figure("page", 3.5, ncols=3)
    winners = argmax_cells(square(2), W)
    losers = sorted(set(range(len(W))) - set(winners))
    draw_polygons(
        axes[0], winners, lambda c: tint(CLASS_COLOURS[c], 0.6), lambda c: f"$c_{c + 1}$", (13,)
    )
    feature_axes(axes[0])
    axes[0].set_title("Who wins at x")
    _draw_circle(axes[1], W, losers)
    axes[2].fill(*W[ConvexHull(W).vertices].T, color=tint(style.GREY, 0.25), zorder=0)
    draw_vectors(axes[2], W, [f"$w_{c + 1}$" for c in range(len(W))], CLASS_COLOURS)
    feature_axes(axes[2])
    axes[2].set_title("Weight vectors and their hull")
    names = ", ".join(str(c + 1) for c in losers) or "none"
    style.headline(
        fig,
        f"Class {names} can never win: its weights lie inside the triangle of the others, so "
        f"one of them always scores higher",
    )
    return fig


def _draw_circle(ax: Axes, W: Matrix, losers: list[int], radius: float = 0.35) -> None:
    angles = np.linspace(0, 2 * np.pi, 721)
    logits = radius * np.column_stack([np.cos(angles), np.sin(angles)]) @ W.T
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    for c, curve in enumerate(probabilities.T):
        ax.plot(
            np.degrees(angles),
            curve,
            color=CLASS_COLOURS[c],
            linestyle="--" if c in losers else "-",
            linewidth=2,
        )
        gap = np.abs(np.delete(probabilities, c, axis=1) - curve[:, None]).min(axis=1)
        place = int(np.argmax(gap))  # where the curve is farthest from the others
        above = 10 if curve[place] > np.median(probabilities[place]) else -10
        words = {"textcoords": "offset points", "ha": "center", "va": "center", "bbox": PLATE}
        ax.annotate(
            f"$c_{c + 1}$",
            (np.degrees(angles[place]), curve[place]),
            (0, above),
            color=style.legible(CLASS_COLOURS[c]),
            **words,
        )
    ax.set(
        xlabel="direction of x (degrees)",
        ylabel="probability",
        xticks=range(0, 361, 90),
        ylim=(0, 1),
    )
    ax.set_title("Around a circle of features")


def draw_construction(W: Matrix) -> Figure:
    """Four steps for three classes: weight vectors, their differences, the lines on which two
    classes tie, the rankings between them.
    """
    pairs = list(itertools.combinations(range(len(W)), 2))
    differences = np.array([W[i] - W[j] for i, j in pairs])
    reach = 1.25 * float(np.abs(differences).max())
    cells = ranking_cells(square(Fraction(reach)), W)
    fig, axes = style.figure("page", 8.4, nrows=2, ncols=2)
    draw_vectors(axes[0, 0], W, [f"$w_{c + 1}$" for c in range(len(W))], CLASS_COLOURS)
    axes[0, 0].set_title("1. Weight vectors")
    for i, j in pairs:
        axes[0, 1].plot(*W[[i, j]].T, color=style.GREY, linewidth=0.8, linestyle=":")
    draw_vectors(
        axes[0, 1], differences, [f"$w_{i + 1} - w_{j + 1}$" for i, j in pairs], [style.BLACK] * 3
    )
    axes[0, 1].set_title("2. Their differences are the normals")
    _draw_ties(axes[1, 0], W, reach)
    axes[1, 0].set_title("3. At a right angle to each, the tie of two classes")
    draw_polygons(axes[1, 1], cells, ranking_colour, name, (11,))
    axes[1, 1].set_title(
        f"4. Rankings, the winner last: in {name(next(iter(cells)))} class "
        f"{next(iter(cells))[-1] + 1} wins"
    )
    for ax in axes.flat:
        feature_axes(ax)
    style.headline(
        fig, f"Three weight vectors cut the plane into {len(cells)} rankings, two for each winner"
    )
    return fig


def _draw_ties(ax: Axes, W: Matrix, reach: float) -> None:
    for i, j in itertools.combinations(range(len(W)), 2):
        normal = W[i] - W[j]
        along = np.array([-normal[1], normal[0]]) / np.abs(normal).max() * reach
        ax.plot(*np.array([-along, along]).T, color=style.BLACK, linewidth=1)
        end = along if along[1] > 0 or (along[1] == 0 and along[0] > 0) else -along
        # to the right of a rising line, above a falling one
        beside = (9, -4) if end[0] > 0 else (3, 3)
        ax.annotate(
            f"$y_{i + 1} = y_{j + 1}$", 0.72 * end, beside, textcoords="offset points", bbox=PLATE
        )
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")


def window(W: Matrix, b: Matrix) -> list:
    """A square that holds every crossing of the lines of a layer, with a margin."""
    farthest = max((abs(x) for point in crossings(W, b) for x in point), default=Fraction(1))
    return square(Fraction(6, 5) * farthest)


def draw_effect_of_bias(W: Matrix, b: Matrix) -> Figure:
    """The rankings of one W (4, 2) without (top) and with a bias (bottom), in the plane of features
    and in the space of logits; bounded ones outlined.
    """
    fig, axes = style.figure("page", 8.3, nrows=2, ncols=2, width_ratios=[1.15, 1])
    frame, counts, bounded = window(W, b), {}, {}
    radius = slices.ball_radius(W, b)
    for row, bias in enumerate((None, b)):
        cells, bounded[row] = ranking_cells(frame, W, bias), bounded_rankings(W, bias)
        counts[row] = len(cells)
        draw_polygons(axes[row, 0], cells, ranking_colour, name, (9, 8))
        for ranking in bounded[row]:
            axes[row, 0].add_patch(
                Polygon(floats(cells[ranking]), fill=False, edgecolor=style.BLACK, linewidth=1.4)
            )
        feature_axes(axes[row, 0])
        axes[row, 0].set_title(
            f"{'With' if row else 'Without'} a bias: {counts[row]} rankings, "
            f"{len(bounded[row])} of them bounded"
        )
        slices.draw_space(axes[row, 1], W, bias, radius)
        axes[row, 1].set_title(
            "The plane of logits passes beside the origin"
            if row
            else "The plane of logits passes through the origin"
        )
    style.headline(
        fig,
        f"A bias adds {counts[1] - counts[0]} rankings (written with the winner last), all "
        f"in bounded cells (outlined): features that are too large "
        f"never meet them",
    )
    return fig
