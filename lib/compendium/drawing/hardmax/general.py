"""Semidefinite matrices (notebook 41): collapse, cells with straight paths, the wait before the
end, and a classifier that is written down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.spatial import ConvexHull

from compendium import style
from softgeom.hardmax.construction import ExactClassifier
from softgeom.hardmax.general_matrices import Collapse

_CELLS = (style.SKY, style.ORANGE, style.GREEN, style.YELLOW, style.PURPLE, style.RED)


def draw_collapse(
    paths: Mapping[float, Sequence[np.ndarray]], runs: Mapping[float, Sequence[Collapse]]
) -> Figure:
    """Paths of twelve tokens under A = -I around the origin and shifted, with the point of
    collapse; right, mean energy above its limit by layer.
    """
    fig, axes = style.figure("page", height=3.7, ncols=3, width_ratios=[1, 1, 1.15])
    for ax, (shift, states) in zip(axes, paths.items(), strict=False):
        ax.fill(*states[0][ConvexHull(states[0]).vertices].T, color=style.SKY, alpha=0.15, lw=0)
        for path in np.stack(states, 1):
            ax.plot(*path.T, color=style.BLUE, lw=0.8, alpha=0.6)
        ax.scatter(*states[0].T, s=16, color=style.BLACK, zorder=3)
        end = runs[shift][0].point
        ax.scatter(
            *end, s=130, marker="*", color=style.ORANGE, edgecolor=style.BLACK, lw=0.6, zorder=5
        )
        ax.plot(0, 0, "+", color=style.RED, ms=12, mew=2, zorder=4)
        low = states[0].min(axis=0)[1]
        arrow = {"arrowstyle": "-", "color": style.RED, "lw": 0.8, "shrinkB": 7}
        ax.annotate(
            "origin",
            (0, 0),
            (0, low - 0.25),
            ha="center",
            va="top",
            color=style.legible(style.RED),
            arrowprops=arrow,
        )
        where = "around the origin" if not shift else f"shifted by {shift:g}"
        ax.set(xticks=[], yticks=[])
        ax.set_aspect("equal", adjustable="datalim")
        ax.set_title(f"{where}:\nthey meet {np.linalg.norm(end):.2f} away", fontsize=11)
        ax.margins(0.15)
        ax.spines[:].set_visible(False)
    _draw_energies(axes[-1], runs[0.0])
    first, second = (np.linalg.norm(run[0].point) for run in runs.values())
    style.headline(
        fig,
        f"A = -I gathers all tokens in one point of their hull, but {first:.2f} and "
        f"{second:.2f} away from the origin (star: where they meet)",
    )
    return fig


def _draw_energies(ax: Axes, runs: Sequence[Collapse]) -> None:
    names = (
        ("alpha = 1", style.BLUE, 0.5, (-12, -2), "right"),
        ("$g_t = 1/(t+1)$", style.ORANGE, 0.05, (6, 4), "left"),
    )
    for run, (name, colour, along, offset, side) in zip(runs, names, strict=True):
        above = run.energy - run.energy[-1]
        t = np.flatnonzero((above > 1e-9 * above[0]) & (np.arange(len(above)) < 0.6 * len(above)))[
            1:
        ]
        ax.loglog(t, above[t], color=colour)
        place = t[int(along * len(t))]
        ax.annotate(
            name,
            (place, above[place]),
            offset,
            textcoords="offset points",
            ha=side,
            color=style.legible(colour),
        )
    t = np.array([10.0, 0.5 * len(runs[1].energy)])
    ax.loglog(t, 0.3 * (runs[1].energy[10] - runs[1].energy[-1]) * 10 / t, ":", color=style.INK)
    end = t[1], ax.get_lines()[-1].get_ydata()[1]
    ax.annotate("slope -1", end, (0, -14), textcoords="offset points", ha="right")
    ax.set(xlabel="layer", title="mean energy above its limit")


def draw_cells(
    A: np.ndarray, V: np.ndarray, X: np.ndarray, left: Mapping[str, np.ndarray]
) -> Figure:
    """Left, the cells of vertices that stand still, coloured, with the straight paths of tokens;
    right, the distance left by layer under each kind of shares.
    """
    fig, (ax, curves) = style.figure("page", height=3.9, ncols=2, width_ratios=[1, 1.2])
    corners = V[ConvexHull(V).vertices]
    rng = np.random.default_rng(0)
    inside = rng.dirichlet(np.full(len(corners), 0.6), 9000) @ corners
    for points, size, alpha in ((inside, 5, 0.16), (X, 18, 1.0)):
        goal = (points @ A.T @ V.T).argmax(1)
        colours = [_CELLS[g % len(_CELLS)] for g in goal]
        ax.scatter(
            *points.T,
            s=size,
            c=colours,
            alpha=alpha,
            lw=0 if size < 10 else 0.4,
            edgecolor=style.BLACK,
        )
    goal = (X @ A.T @ V.T).argmax(1)
    for x, v in zip(X, V[goal], strict=True):
        ax.plot(*np.stack([x, v]).T, color=style.INK, lw=0.6)
    ax.scatter(*V.T, s=120, marker="*", color=style.ORANGE, edgecolor=style.BLACK, lw=0.6, zorder=5)
    ax.set(aspect="equal", xticks=[], yticks=[], title="A cell for each vertex (star), and paths")
    ax.spines[:].set_visible(False)
    colours = (style.BLUE, style.SKY, style.ORANGE, style.GREEN)
    for (name, values), colour in zip(left.items(), colours, strict=True):
        t = np.flatnonzero(values > 1e-8)[1:]
        curves.loglog(t, values[t], color=colour)
        place = t[-1] if name.startswith("1/") else t[len(t) * 2 // 3]
        offset, side = (
            ((-6, 7), "right")
            if name.startswith("1/")
            else ((-8, -4), "right")
            if "random" in name
            else ((8, 2), "left")
        )
        written = name.replace("^2", "²").replace("1/(t + 1)", "1/(t+1)")
        if name == "1/(t + 1)":  # the line falls under its end: the name goes below
            offset = (-6, -20)
        curves.annotate(
            f"$g_t$ = {written}", (place, values[place]), offset, textcoords="offset points",
            ha=side, color=style.legible(colour), fontsize=10,
        )  # fmt: skip
    curves.set(
        xlabel="layer",
        title="Largest distance to the vertices (share of the start)",
        ylim=(1e-8, 2),
    )
    style.headline(
        fig,
        "Vertices of one norm stand still; tokens go straight to the vertex of their cell, "
        "as fast as the shares allow",
    )
    return fig


def draw_metastability(waits: pd.DataFrame, gap: float) -> Figure:
    """Layers until arrival, first departure and collapse, against inverse temperature; the exact
    expectation of the chain is dotted.
    """
    fig, ax = style.figure("page", height=3.8)
    beta = waits["beta"].to_numpy()
    kinds = {
        "departure": ("first departure in the random chain", style.ORANGE),
        "collapse": ("collapse of the layers to half the spread", style.BLUE),
        "arrival": ("arrival of interior tokens near a vertex", style.GREEN),
    }
    for name, (label, colour) in kinds.items():
        ax.semilogy(beta, waits[name], "o-", color=colour, ms=5)
        place = 1 if name == "arrival" else len(beta) // 2
        ax.annotate(
            label, (beta[place], waits[name].iloc[place]),
            {"departure": (-6, 8), "collapse": (8, -9), "arrival": (0, -17)}[name],
            textcoords="offset points", ha="right" if name == "departure" else "left",
            color=style.legible(colour),
        )  # fmt: skip
    ax.semilogy(beta, waits["expected"], ":", color=style.INK)
    ax.set(
        xlabel="inverse temperature beta",
        ylabel="layers",
        ylim=(0.7, 3 * waits[["collapse", "departure"]].max().max()),
    )
    rate = np.polyfit(beta[2:], np.log(waits["departure"].iloc[2:]), 1)[0]
    style.headline(
        fig,
        f"Arrival takes {waits['arrival'].max()} layers at most, the wait before the end "
        f"grows like exp({rate:.2f} beta); theory: exp({gap:g} beta)",
    )
    return fig


def draw_classifier(
    classifier: ExactClassifier, sequences: Sequence[Sequence], labels: Sequence[int]
) -> Figure:
    """Tokens of each sequence by position along u and second coordinate, at five moments: blue and
    orange are the two labels, one marker a sequence.
    """
    states = [classifier.states(sequence) for sequence in sequences]
    last = len(classifier.layers)
    blocks = len(classifier.tests)
    moments = {
        "at the start": 0,
        "slate wiped to 1": 1,
        "one test token": 4,
        f"all {blocks} test tokens": last - 1,
        "labels read": last,
    }
    fig, axes = style.figure("page", height=3.4, ncols=len(moments))
    for ax, (title, layer) in zip(axes, moments.items(), strict=True):
        for i, (run, label) in enumerate(zip(states, labels, strict=True)):
            z = np.array(
                [
                    [
                        float(sum(a * b for a, b in zip(classifier.u, token, strict=True))),
                        float(token[1]),
                    ]
                    for token in run[layer]
                ]
            )
            colour = (style.BLUE, style.ORANGE)[label]
            ax.plot(
                *z[z[:, 0].argsort()].T,
                marker="osDv^P"[i % 6],
                ls="-" if layer else "",
                lw=0.8,
                color=colour,
                ms=5,
                alpha=0.75,
                mec="none",
            )
        ax.set_title(title, fontsize=10)
        ax.set(xticks=[], xlabel="position" if layer else "position along u")
        ax.margins(0.1)
    levels = sorted({float(run[last - 1][0][1]) for run in states})
    axes[3].set_yticks(levels, [f"{level:g}" for level in levels])
    axes[4].set_yticks([0, 1], ["label 0", "label 1"])
    axes[2].set_yticks(sorted({float(run[4][0][1]) for run in states}))
    axes[1].set_yticks([1])
    axes[0].set_yticks([])
    axes[0].set_ylabel("second coordinate: the slate")
    axes[4].set_ylim(-0.5, 1.5)
    axes[0].text(
        0.04, 0.97, "one marker\na sequence", transform=axes[0].transAxes, va="top", fontsize=9
    )
    style.headline(
        fig,
        f"{blocks} test tokens tell {len(sequences)} sequences apart; rank-one attention "
        f"writes each one's number on all its tokens, exactly",
    )
    return fig
