"""Hardmax dynamics (notebook 40): what attracts a token, where tokens end, how fast, and how many
lead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.spatial import ConvexHull

from compendium import style
from softgeom.hardmax import TheoremCheck, clusters, hardmax_step
from softgeom.hardmax.cases import Case

Run = tuple[
    Case, np.ndarray, np.ndarray
]  # a case, its states (layers + 1, n, 2), and who led at each layer (layers + 1, n)

SHOWN = (0, 1, 2, 5, 30)  # layers of the still picture
_FILM = (0, 0, 1, 2, 3, 4, 5, 6, 8, 10, 10)  # and of the film
_TOGETHER = 0.035  # distance within which tokens are counted at one place


def draw_attraction(Z: np.ndarray, matrices: dict[str, np.ndarray], i: int) -> Figure:
    """One token, two matrices: it goes half the way (alpha = 1) to the token with the largest
    projection on A z_i.
    """
    fig, axes = style.figure("page", height=4.3, ncols=len(matrices))
    for ax, (title, A) in zip(axes, matrices.items(), strict=True):
        towards = A @ Z[i] / np.linalg.norm(A @ Z[i])
        following, best = hardmax_step(Z, A, 1.0), int((Z @ A @ Z[i]).argmax())
        ax.fill(*Z[ConvexHull(Z).vertices].T, color=style.SKY, alpha=0.15, lw=0)
        side = np.array([-towards[1], towards[0]])
        line = (Z[best] @ towards) * towards + np.outer([-1.6, 1.6], side)
        ax.plot(*line.T, "--", color=style.GREY, lw=1)
        ax.annotate("", 1.1 * towards, (0, 0), arrowprops={"arrowstyle": "->", "color": style.GREY})
        ax.text(*(1.24 * towards), "$Az_i$", color=style.INK, ha="center", va="center")
        ax.scatter(*Z.T, s=22, color=style.BLACK, zorder=3)
        ax.scatter(*Z[i], s=70, color=style.BLUE, zorder=4)
        ax.scatter(
            *Z[best], s=70, color=style.ORANGE, marker="D", edgecolor=style.BLACK, lw=0.5, zorder=4
        )
        ax.annotate(
            "", following[i], Z[i], arrowprops={"arrowstyle": "-|>", "color": style.BLUE, "lw": 2}
        )
        ax.annotate(
            "token $z_i$",
            Z[i],
            (4, -13),
            textcoords="offset points",
            color=style.legible(style.BLUE),
        )
        ax.annotate(
            "reaches farthest",
            Z[best],
            (9, 5),
            textcoords="offset points",
            color=style.legible(style.ORANGE),
        )
        ax.plot(0, 0, "+", color=style.BLACK)
        _bare(ax)
        ax.set(title=title, aspect="equal", xlim=(-1.6, 2.9), ylim=(-1.4, 1.9))
    style.headline(
        fig,
        "A token goes half the way to the token that reaches farthest in the direction "
        "$Az_i$: another A, another attractor",
    )
    return fig


def draw_cases(runs: Sequence[Run]) -> Figure:
    """Four constructed cases at five layers; stars are leaders so far, a number at a place counts
    the tokens that stand there.
    """
    fig, axes = style.figure("page", height=7.6, nrows=len(runs), ncols=len(SHOWN))
    for row, (case, states, led) in zip(axes, runs, strict=True):
        for ax, layer in zip(row, SHOWN, strict=True):
            _draw_state(ax, states, led, layer)
        row[0].set_ylabel(case.name.replace(" a ", " a\n"), fontsize=10)
    for ax, layer in zip(axes[0], SHOWN, strict=True):
        ax.set_title(f"layer {layer}" if layer else "at the start", fontsize=10, loc="center")
    style.headline(
        fig,
        "Tokens gather at leaders (stars; numbers count who stands there), or on the faces "
        "between them",
    )
    return fig


def film_cases(runs: Sequence[Run], path: Path) -> Path:
    """The four cases as an animation over ten layers, written as a GIF; returns its path."""
    from matplotlib import animation

    fig, axes = style.figure("page", height=2.6, ncols=len(runs), dpi=70)

    def draw_frame(layer: int) -> None:
        for ax, (case, states, led) in zip(axes, runs, strict=True):
            ax.clear()
            _draw_state(ax, states, led, layer)
            ax.set_title(f"{case.name}\nlayer {layer}", fontsize=9)

    path.parent.mkdir(parents=True, exist_ok=True)
    animation.FuncAnimation(fig, draw_frame, frames=_FILM).save(
        path, writer=animation.PillowWriter(fps=2)
    )
    plt.close(fig)
    return path


def _draw_state(ax: Axes, states: np.ndarray, led: np.ndarray, layer: int) -> None:
    ax.plot(*states[: layer + 1].swapaxes(0, 1).T, color=style.GREY, lw=0.6, alpha=0.7)
    here, leading = states[layer], led[: layer + 1].any(0)
    ax.scatter(*here[~leading].T, s=18, color=style.BLUE, zorder=3)
    ax.scatter(
        *here[leading].T,
        s=95,
        marker="*",
        color=style.ORANGE,
        edgecolor=style.BLACK,
        lw=0.5,
        zorder=4,
    )
    places = clusters(here, _TOGETHER)
    for place in range(places.max() + 1):
        if layer and (many := int((places == place).sum())) > 1:
            ax.annotate(
                str(many),
                here[places == place].mean(0),
                (7, 5),
                textcoords="offset points",
                fontsize=9,
                zorder=5,
            )
    ax.plot(0, 0, "+", color=style.BLACK, ms=5)
    _bare(ax)
    ax.set(aspect="equal", xlim=(states[0][:, 0].min() - 0.3, states[0][:, 0].max() + 0.5))
    ax.set(ylim=(states[0][:, 1].min() - 0.3, states[0][:, 1].max() + 0.45))


def draw_polytope(check: TheoremCheck, states: np.ndarray) -> Figure:
    """Mirror-symmetric tokens in the plane: paths, the polytope of the leaders' limits (stars), and
    limits on a face (diamonds) with the tokens that end there.
    """
    fig, ax = style.figure("page", height=5.2)
    vertices, faces = check.sites[check.is_vertex], check.sites[~check.is_vertex]
    ax.fill(*vertices[ConvexHull(vertices).vertices].T, color=style.SKY, alpha=0.2, lw=0)
    ax.plot(*states.swapaxes(0, 1).T, color=style.GREY, lw=0.6, alpha=0.7)
    ax.scatter(*states[0].T, s=12, color=style.BLACK, zorder=3)
    ax.scatter(
        *vertices.T, s=150, marker="*", color=style.ORANGE, edgecolor=style.BLACK, lw=0.6, zorder=4
    )
    ax.scatter(
        *faces.T, s=70, marker="D", color=style.PURPLE, edgecolor=style.BLACK, lw=0.6, zorder=4
    )
    for site, many in zip(check.sites, np.bincount(check.labels), strict=True):
        away = 15 * site / np.linalg.norm(site)
        ax.annotate(
            str(many), site, away, textcoords="offset points", ha="center", va="center", zorder=5
        )
    ax.plot(0, 0, "+", color=style.BLACK)
    notes = (
        ("• tokens at the start", style.BLACK),
        ("★ a leader's limit, a vertex", style.ORANGE),
        ("◆ a limit without a leader,", style.PURPLE),
        ("   foot of the origin (+) on a face", style.PURPLE),
        ("numbers: tokens that end there", style.BLACK),
    )
    for line, (note, colour) in enumerate(notes):
        ax.text(
            1.0,
            0.95 - 0.07 * line,
            note,
            color=style.legible(colour),
            transform=ax.transAxes,
            va="top",
        )
    _bare(ax)
    ax.set(aspect="equal")
    style.headline(
        fig,
        f"{len(check.labels)} tokens end at {len(check.sites)} points: {len(vertices)} "
        f"vertices of a polytope, one for each leader, and {len(faces)} on its faces",
    )
    return fig


def draw_convergence(rates: pd.DataFrame) -> Figure:
    """Median over sets of the largest distance of a token from its limit, by layer (solid), beside
    the law (1 + alpha)^-k (dotted).
    """
    fig, ax = style.figure("page", height=3.9)
    at_eight = {}
    for colour, (alpha, part) in zip(
        (style.RED, style.PURPLE, style.BLUE, style.GREEN), rates.groupby("alpha"), strict=False
    ):
        part = part[part["distance"] > 1e-8]
        ax.semilogy(part["layer"], part["distance"], color=colour, lw=2)
        ax.semilogy(part["layer"], part["rate"], ":", color=colour)
        last = part.iloc[-1]
        ax.annotate(
            f"$\\alpha$ = {alpha:g}",
            (last["layer"], last["distance"]),
            (5, 0),
            textcoords="offset points",
            color=style.legible(colour),
        )
        at_eight[alpha] = float(part.loc[part["layer"] == 8, "distance"].iloc[0])
    ax.axvline(8, color=style.INK, lw=0.8)
    ax.text(8.6, 1.1, "K = 8 layers", color=style.INK, va="bottom")
    ax.set(
        xlabel="layer k",
        ylabel="largest distance to the limit\n(share of that at the start)",
        xlim=(0, 66),
        ylim=(3e-9, 3),
    )
    ax.text(
        0.99,
        0.97,
        "solid: measured\ndotted: $(1+\\alpha)^{-k}$",
        transform=ax.transAxes,
        ha="right",
        va="top",
    )
    slow, quick = min(at_eight), 1.0
    style.headline(
        fig,
        f"Whether eight layers are enough depends on alpha: {at_eight[slow]:.0%} of the way "
        f"is left at {slow:g}, {at_eight[quick]:.1%} at {quick:g}",
    )
    return fig


def draw_growth(growth: pd.DataFrame) -> Figure:
    """Leaders of normal tokens against their number, by dimension (alpha = 1), and against the step
    size; bars: standard deviation over sets.
    """
    fig, (left, right) = style.figure(
        "page", height=3.9, ncols=2, gridspec_kw={"width_ratios": [1.5, 1]}
    )
    unit = growth[growth["alpha"] == 1.0]
    tokens = np.array(sorted(unit["n"].unique()), dtype=float)
    left.plot(tokens, tokens, color=style.GREY, lw=1, ls="--")
    left.annotate(
        "every token leads",
        (tokens[-1], tokens[-1]),
        (-6, 0),
        textcoords="offset points",
        ha="right",
        fontsize=9,
    )
    shares = {}
    for colour, (d, part) in zip(style.COLOURS, unit.groupby("d"), strict=False):
        part = part.sort_values("n")
        left.errorbar(
            part["n"], part["leaders"], part["spread"], color=colour, marker="o", ms=4, capsize=2
        )
        left.annotate(
            f"d = {d}",
            (part["n"].iloc[-1], part["leaders"].iloc[-1]),
            (6, -3),
            textcoords="offset points",
            color=style.legible(colour),
        )
        shares[d] = part["leaders"].iloc[-1] / part["n"].iloc[-1]
    left.set_xscale("log", base=2)
    left.set_yscale("log", base=2)
    for axis in (left.xaxis, left.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    left.set(
        xlabel="tokens",
        ylabel="leaders",
        title="step size $\\alpha$ = 1",
        xlim=(tokens[0] / 1.2, 1.9 * tokens[-1]),
    )
    at = growth[growth["n"] == min(64, growth["n"].max())]
    for colour, d in zip((style.BLUE, style.GREEN), (2, 5), strict=True):
        part = at[at["d"] == d].sort_values("alpha")
        right.errorbar(
            part["alpha"],
            part["leaders"],
            part["spread"],
            color=colour,
            marker="o",
            ms=4,
            capsize=2,
        )
        right.annotate(
            f"d = {d}",
            (part["alpha"].iloc[-1], part["leaders"].iloc[-1]),
            (-4, 12),
            textcoords="offset points",
            color=style.legible(colour),
            ha="right",
        )
    right.set(
        xscale="log", xlabel="step size $\\alpha$", ylim=(0, None), title=f"{at['n'].max()} tokens"
    )
    few, many = min(shares), max(shares)
    style.headline(
        fig,
        f"Few tokens lead in the plane ({shares[few]:.0%} of {tokens[-1]:.0f}), "
        f"{_portion(shares[many])} in {many} dimensions ({shares[many]:.0%}); the step size "
        f"hardly matters",
    )
    return fig


def _portion(share: float) -> str:
    return "most" if share > 0.5 else "nearly half" if share > 0.4 else "more"


def _bare(ax: Axes) -> None:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
