"""The Jacobian of attention and its blocks (notebook 21): Appendix A, triangular shape, depth,
support tokens and margins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from compendium import style

_STABLE = "RdBu"  # diverging, with blue for what is safe


def draw_appendix_a(truth: Any, printed: Any, corrected: Any) -> Figure:
    """One block of a layer that sees its own position: autograd, the printed form, the corrected
    one, and what each is off by.
    """
    fig, axes = style.figure("page", height=3.0, ncols=5)
    limit = float(np.abs(truth).max())
    panels = {
        "autograd": truth,
        "printed (eq. 53)": printed,
        "with own key": corrected,
        "printed − autograd": printed - truth,
        "own key − autograd": corrected - truth,
    }
    for ax, (title, block) in zip(axes, panels.items(), strict=True):
        image = ax.imshow(block, cmap=style.DIVERGING, vmin=-limit, vmax=limit)
        ax.set(xticks=[], yticks=[])
        ax.set_title(title, fontsize=10)
        for (row, column), entry in np.ndenumerate(block):
            text = "0" if abs(entry) < 1e-12 else f"{entry:.2f}"
            ink = "white" if abs(entry) > 0.6 * limit else "black"
            ax.text(column, row, text, ha="center", va="center", fontsize=9, color=ink)
    fig.colorbar(image, ax=axes[-1], shrink=0.6, label="entry of $J_i$")
    off = np.abs(printed - truth).max()
    style.headline(
        fig,
        f"Appendix A forgets that a token is its own key: the printed block is off by up to "
        f"{off:.2f}, the completed one by rounding",
    )
    return fig


def draw_triangular(jacobian: Any) -> Figure:
    """The whole Jacobian (T, d, T, d) of a strict-causal layer, its blocks outlined, exact zeros
    left blank.
    """
    T, d = jacobian.shape[:2]
    shown = jacobian.reshape(T * d, T * d)
    fig, ax = style.figure("column", height=4.6)
    image = ax.imshow(
        np.where(shown == 0, np.nan, shown), cmap=style.DIVERGING, vmin=-1.5, vmax=1.5
    )
    for edge in np.arange(0, T * d + 1, d) - 0.5:
        ax.axhline(edge, color="#bbbbbb", lw=0.6)
        ax.axvline(edge, color="#bbbbbb", lw=0.6)
    for i in range(T):
        ax.add_patch(Rectangle((i * d - 0.5, i * d - 0.5), d, d, fill=False, ec="black", lw=1.6))
    centres = np.arange(T) * d + (d - 1) / 2
    ax.set_xticks(centres, [f"$x_{i + 1}$" for i in range(T)])
    ax.set_yticks(centres, [f"$e_{i + 1}$" for i in range(T)])
    ax.tick_params(length=0)
    ax.text(0.97, 0.95, "the future:\nexactly zero", transform=ax.transAxes, ha="right", va="top")
    fig.colorbar(image, ax=ax, shrink=0.8, label="$\\partial e_i/\\partial x_j$")
    style.headline(
        fig,
        "A residual feels only its own token and the past, so the determinant is a product "
        "of small blocks",
    )
    return fig


def draw_depth(stacks: Mapping[str, Any]) -> Figure:
    """Full Jacobians of a stack of three stages, each diagonal block outlined and labelled with its
    log-determinant.
    """
    fig, axes = style.figure("page", height=4.9, ncols=2)
    for ax, (name, stack) in zip(axes, stacks.items(), strict=True):
        full, terms = stack.jacobian, stack.terms
        size = len(full) // len(terms)
        image = ax.imshow(
            np.where(full == 0, np.nan, full), cmap=style.DIVERGING, vmin=-1.5, vmax=1.5
        )
        for stage, term in enumerate(terms):
            active = abs(term) > 1e-9
            corner = stage * size - 0.5
            ax.add_patch(
                Rectangle(
                    (corner, corner),
                    size,
                    size,
                    fill=False,
                    ec=style.RED if active else "black",
                    lw=2.5 if active else 1.2,
                )
            )
            # Beside its block, or above the last one, where the matrix is blank.
            x, y = (
                (corner + size + 0.6, corner + size / 2)
                if stage < 2
                else (corner + size / 2, corner - 0.8)
            )
            ax.text(
                x,
                y,
                f"log|det| {term:+.2f}" if active else "log|det| 0",
                ha="left" if stage < 2 else "center",
                va="center" if stage < 2 else "bottom",
                color=style.legible(style.RED) if active else "black",
                weight="bold" if active else "normal",
            )
        ticks = np.arange(len(terms)) * size + (size - 1) / 2
        ax.set_xticks(ticks, ["embeddings", "layer 1", "layer 2"])
        ax.set_yticks(ticks, ["$e^0$", "$e^1$", "$e^2$"])
        ax.tick_params(length=0)
        ax.set_title(name)
    fig.colorbar(image, ax=axes, shrink=0.7, label="entry of the Jacobian")
    own = terms[-1]  # of the stack drawn last
    style.headline(
        fig,
        f"After the prior, only a layer that queries with its own output adds volume "
        f"({own:+.2f} nats here); standard layers add none",
    )
    return fig


def draw_support_tokens(plane: pd.DataFrame, axis: Any, field: Any, line: pd.DataFrame) -> Figure:
    """Figure 1.1 computed: where the next token would tear, each position's own margin, and three
    margins against the coupling.
    """
    fig, (left, middle, right) = style.figure(
        "page", height=3.9, ncols=3, width_ratios=[1.25, 0.75, 1]
    )
    filled = left.contourf(
        axis, axis, field, levels=np.linspace(-1, 1, 21), cmap=_STABLE, alpha=0.75, extend="both"
    )
    left.contour(axis, axis, field, levels=[0.0], colors="black", linewidths=1.6)
    worst = int(plane["eigenvalue_margin"].to_numpy().argmin())
    left.plot(plane["x"], plane["y"], "o", color="black", ms=6)
    left.plot(
        plane["x"].iloc[worst],
        plane["y"].iloc[worst],
        "o",
        ms=16,
        mfc="none",
        mec=style.RED,
        mew=2.5,
    )
    for point in plane.itertuples():
        side = 1 if point.x > 0 else -1
        left.annotate(
            f"$x_{point.position}$",
            (point.x, point.y),
            (9 * side, 6),
            textcoords="offset points",
            ha="left" if side > 0 else "right",
        )
    bar = fig.colorbar(filled, ax=left, shrink=0.75, ticks=[-1, 0, 1], aspect=24)
    bar.ax.set_title("$\\det J$", fontsize=10, loc="center")
    left.set(
        aspect="equal",
        xticks=[-2, 0, 2],
        yticks=[-2, 0, 2],
        title="Next token: on the black lines it tears",
        xlabel="first coordinate",
        ylabel="second coordinate",
    )
    colours = [style.RED if i == worst else style.BLUE for i in range(len(plane))]
    middle.barh(plane["position"], plane["eigenvalue_margin"], color=colours)
    for i, point in enumerate(plane.itertuples()):
        value = point.eigenvalue_margin
        middle.text(
            max(value, 0) + 0.03,
            point.position,
            f"{value:.2f}" + (" support" * (i == worst)),
            va="center",
        )
    middle.axvline(0, color="black", lw=1)
    middle.set(
        xlim=(min(0, plane["eigenvalue_margin"].min()) - 0.05, 1.35),
        yticks=plane["position"],
        title="Each token's own margin",
        xlabel="1 − largest real eigenvalue",
    )
    middle.set_yticklabels([f"$x_{i}$" for i in plane["position"]])
    middle.invert_yaxis()
    _draw_three_margins(right, line)
    support = plane.iloc[worst]
    style.headline(
        fig,
        f"The support token is the one that its past almost tears: margin "
        f"{support['eigenvalue_margin']:.2f} for $x_{int(support['position'])}$; "
        "under negative coupling nothing tears",
    )
    return fig


def _draw_three_margins(ax: Axes, line: pd.DataFrame) -> None:
    curves = {
        "$1 - \\rho(SM)$": ("spectral_radius", style.RED, "-"),
        "1 − largest real eigenvalue": ("largest_real_eigenvalue", style.BLUE, "-"),
        "smallest singular value": ("smallest_singular_value", style.ORANGE, "--"),
    }
    places = {
        "spectral_radius": (-2.9, -2.0),
        "largest_real_eigenvalue": (3.0, 3.6),
        "smallest_singular_value": (3.0, 2.2),
    }
    for name, (column, colour, dash) in curves.items():
        ax.plot(line["c"], line[column], color=colour, ls=dash, lw=2)
        x, y = places[column]
        ax.text(
            x, y, name, color=style.legible(colour), fontsize=9, ha="right" if x > 0 else "left"
        )
    ax.axhline(0, color="black", lw=1)
    negative = line[line["c"] < 0]
    alarm = negative.loc[negative["spectral_radius"].abs().idxmin(), "c"]
    ax.annotate(
        "false\nalarm", (alarm, 0), (alarm - 1.2, 0.9), arrowprops={"arrowstyle": "->"}, ha="center"
    )
    ax.set(xlabel="coupling $c$", title="Three margins of one token", ylim=(-2.2, 5.6))
