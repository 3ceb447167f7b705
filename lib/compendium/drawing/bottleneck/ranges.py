"""How much of the paper's box the features of a real network use (notebook 17; 001, Table 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compendium import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def draw_ranges(table: pd.DataFrame, box: float = 100.0) -> Figure:
    """One bar a model inside the box: the extremes over everything seen (thin), and the ranges that
    hold 99% of each position's least and greatest.

    `table` has columns model, min, max, min_range_p99_low, ..., max_range_p99_high, as Table 9.
    """
    fig, ax = style.figure("page", 1.7 + 0.62 * len(table))
    for y, row in enumerate(table.itertuples()):
        colour = style.ORANGE if row.measured == "here" else style.GREY
        ax.plot([row.min, row.max], [-y, -y], color=colour, linewidth=2)
        for low, high in (
            (row.min_range_p99_low, row.min_range_p99_high),
            (row.max_range_p99_low, row.max_range_p99_high),
        ):
            ax.barh(-y, max(high - low, 0.6), left=low, height=0.42, color=colour, alpha=0.85)
        ends = {"fontsize": 10, "ha": "center", "va": "bottom", "color": style.INK}
        ax.text(max(row.min, -0.92 * box), -y + 0.25, f"{row.min:.1f}", **ends)
        ax.text(min(row.max, 0.92 * box), -y + 0.25, f"{row.max:.1f}", **ends)
    for edge in (-box, box):
        ax.axvline(edge, color=style.BLACK, linewidth=1.5)
        side = "left" if edge < 0 else "right"
        ax.text(0.98 * edge, 0.66, f"box: {edge:+.0f}", ha=side, va="bottom", color=style.INK)
    ax.set_yticks(
        -np.arange(len(table)),
        [
            f"{m}\n({'measured here' if h == 'here' else 'paper'})"
            for m, h in zip(table.model, table.measured, strict=True)
        ],
    )
    ax.set(xlim=(-1.18 * box, 1.18 * box), ylim=(-len(table) + 0.4, 1.0))
    ax.set_xlabel(
        "activation: line = all of them; bars = where 99% of a position's least and greatest lie"
    )
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    own = table[table.measured == "here"].iloc[-1]
    share = (own["max"] - own["min"]) / (2 * box)
    style.headline(
        fig,
        f"The features of the text recogniser span {share:.0%} of the box that its verdicts "
        f"allow for, from {own['min']:.2f} to {own['max']:.1f}",
    )
    return fig
