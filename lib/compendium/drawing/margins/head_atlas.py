"""The margins of real heads (notebook 28): an atlas by layer and head, and margins against what noise does."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.colors import SymLogNorm
from matplotlib.figure import Figure

from compendium import style
from compendium.drawing.head_grid import head_grid

_PANELS = {
    "coupling": "coupling (largest real eigenvalue)",
    "residual": "distance to the fold of $x - $attention",
    "folded": "share of positions folded",
    "stream": "distance to the fold of $x + $attention",
}


def draw_head_atlas(table: pd.DataFrame, model: str) -> Figure:
    """Every head of a model as a cell, layers from left to right: coupling and distances to both boundaries (medians over positions), share of folded positions."""
    fig, grid = head_grid(table, _PANELS)
    for column, (ax, cells) in grid.items():
        if column == "coupling":
            limit = float(np.abs(cells).max())
            looks = {"cmap": style.DIVERGING, "norm": SymLogNorm(0.1, vmin=-limit, vmax=limit)}
        else:
            looks = {"cmap": style.SEQUENTIAL, "vmin": 0, "vmax": 1}
        picture = ax.imshow(cells, aspect="auto", **looks)
        bar = fig.colorbar(
            picture, ax=ax, aspect=12, pad=0.02, extend="neither" if column in ("coupling", "folded") else "max"
        )
        if column == "coupling":
            bar.set_ticks([-limit, 0, limit], labels=[f"{-limit:.2g}", "0", f"{limit:.2g}"])
            bar.ax.minorticks_off()
        ax.set_title(_PANELS[column], fontsize=10)
    style.headline(
        fig,
        f"{(table['positive'] > 0.5).sum()} of {len(table)} heads of {model} couple positively at most positions; "
        f"the residual map of {(table['folded'] > 0).sum()} folds somewhere in the text",
    )
    return fig


def draw_margin_and_noise(table: pd.DataFrame, model: str, correlation: float) -> Figure:
    """Each head at its median distance to the fold and its median gain of noise; heads that couple positively in red."""
    fig, ax = style.figure("page", height=3.9)
    for positive, colour, label in ((True, style.RED, "positive coupling"), (False, style.BLUE, "negative coupling")):
        part = table[(table["coupling"] > 0) == positive]
        ax.scatter(part["residual"], part["gain"], s=16, color=colour)
        if len(part):
            edge = part.loc[part["gain"].idxmax()]
            ax.annotate(
                label,
                (edge["residual"], edge["gain"]),
                xytext=(6, 4),
                textcoords="offset points",
                color=style.legible(colour),
                fontsize=9,
            )
    ax.set(
        xlabel="distance to the fold, median over positions",
        ylabel="gain of noise (log)",
        yscale="log",
    )
    ax.margins(0.12)
    style.headline(fig, f"A small margin and loud noise go together in {model}: rank correlation {correlation:+.2f} over {len(table)} heads" if correlation < -0.3 else
                   f"In {model} the margin of a head says little about its noise: rank correlation {correlation:+.2f} over {len(table)} heads")  # fmt: skip
    return fig
