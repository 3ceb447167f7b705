"""The margins of real heads (notebook 28): an atlas by layer and head, and margins against what
noise does.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from compendium import style
from compendium.drawing.head_grid import head_grid, number_cells

_PANELS = {
    "coupling": "coupling (largest real eigenvalue)",
    "residual": "distance to the fold of $x - $attention",
    "stream": "distance to the fold of $x + $attention",
    "folded": "share of positions where $x - $attention folds",
}
_WITHOUT_FOLDS = {
    "coupling": _PANELS["coupling"],
    "residual": "distance to the fold of $x - $attention: median",
    "stream": "distance to the fold of $x + $attention: median",
    "closest": "$x - $attention again, at its closest position",
}
_FLOOR = 1e-3  # gains below are drawn at the lower edge


def draw_head_atlas(table: pd.DataFrame, model: str) -> Figure:
    """Every head of a model as a cell, layers from left to right: coupling and distances to both
    boundaries (medians over positions), share of folded positions.

    Where no position is folded the smallest distance over the positions stands in the place of that
    share.
    """
    folding = int((table["folded"] > 0).sum())
    panels = _PANELS if folding else _WITHOUT_FOLDS
    fig, grid = head_grid(table, panels)
    for column, (ax, cells) in grid.items():
        if column == "coupling":
            limit = float(np.abs(cells).max())
            looks = {"cmap": style.DIVERGING, "norm": SymLogNorm(0.1, vmin=-limit, vmax=limit)}
        else:
            looks = {"cmap": style.SEQUENTIAL, "vmin": 0, "vmax": 1}
        picture = ax.imshow(cells, aspect="auto", **looks)
        number_cells(ax, picture)
        bar = fig.colorbar(
            picture,
            ax=ax,
            aspect=12,
            pad=0.02,
            extend="neither" if column in ("coupling", "folded") else "max",
        )
        if column == "coupling":
            bar.set_ticks([-limit, 0, limit], labels=[f"{-limit:.2g}", "0", f"{limit:.2g}"])
            bar.ax.minorticks_off()
        ax.set_title(panels[column], fontsize=10)
    style.headline(
        fig,
        f"{(table['positive'] > 0.5).sum()} of {len(table)} heads of {model} couple "
        f"positively at most positions; "
        + (
            f"the residual map of {folding} folds somewhere in the text"
            if folding
            else (
                f"no residual map folds anywhere in the text (0 would be a fold; the closest is "
                f"{table['closest'].min():.2f})"
            )
        ),
    )
    return fig


def draw_margin_and_noise(table: pd.DataFrame, model: str, correlation: float) -> Figure:
    """Each head at its median distance to the fold and its median gain of noise; heads that couple
    positively in red.
    """
    fig, ax = style.figure("page", height=3.9)
    shown = table.assign(gain=table["gain"].clip(lower=_FLOOR))
    for positive, colour, label in (
        (True, style.RED, "positive coupling"),
        (False, style.BLUE, "negative coupling"),
    ):
        part = shown[(shown["coupling"] > 0) == positive]
        for marker, some in (
            ("o", part[part["gain"] > _FLOOR]),
            ("v", part[part["gain"] == _FLOOR]),
        ):
            ax.scatter(some["residual"], some["gain"], s=16, color=colour, marker=marker)
        if len(part):
            edge = part.loc[part["gain"].idxmax()]
            right = edge["residual"] > shown["residual"].min() + 0.75 * np.ptp(
                [*shown["residual"], 1]
            )
            ax.annotate(
                label,
                (edge["residual"], edge["gain"]),
                xytext=(-8 if right else 8, 0),
                textcoords="offset points",
                ha="right" if right else "left",
                va="center",
                color=style.legible(colour),
                fontsize=9,
            )
    if below := int((table["gain"] < _FLOOR).sum()):
        ax.annotate(
            f"{below} {'head' if below == 1 else 'heads'} below",
            (shown.loc[shown["gain"] == _FLOOR, "residual"].median(), _FLOOR),
            xytext=(10, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    ax.axvline(1, color="black", lw=0.8, ls=":", zorder=0)
    ax.set(
        xlabel=(
            "distance to the fold, median over positions (dotted: a head that does not read its "
            "own token)"
        ),
        ylabel="gain of noise (log)",
        yscale="log",
    )
    ax.margins(0.12)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())
    style.headline(
        fig,
        (
            f"A small margin and a large gain of noise go together in {model}: rank correlation "
            f"{correlation:+.2f} over {len(table)} heads"
        )
        if correlation < -0.3
        else f"In {model} the margin of a head says little about its noise: rank "
        f"correlation {correlation:+.2f} over {len(table)} heads",
    )
    return fig
