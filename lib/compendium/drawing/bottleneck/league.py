"""All models whose heads were scanned, the paper's and ours, in one table (notebook 16; 001, Figure
6 and Tables 4 to 8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compendium import style
from compendium.printed_scans import FAMILIES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SPREAD = 0.27  # of the dots of one row
_CROWDED = 500  # from here on words stand to the left of their mark


def draw_league(printed: pd.DataFrame, ours: pd.DataFrame) -> Figure:
    """Tokens that can never be predicted, one dot a model: the paper's in grey by family, the heads
    scanned here in colour.

    Parameters
    ----------
    printed
        Columns source, model, models, unargmaxable (Tables 4 to 8).
    ours
        Columns name, classes, unargmaxable, for the heads that were scanned here.
    """
    families = [name for name in FAMILIES if (printed["source"] == name).any()]
    fig, ax = style.figure("page", 1.5 + 0.48 * (len(families) + len(ours)))
    for n, source in enumerate(families):
        _draw_family(ax, -n, printed[printed["source"] == source])
    ours = ours.sort_values("unargmaxable", ignore_index=True)
    for n, row in enumerate(ours.itertuples(), start=1):
        colour = style.RED if row.unargmaxable else style.BLUE
        ax.plot(row.unargmaxable, n, "D", ms=9, color=colour, zorder=3)
        share = f" ({row.unargmaxable / row.classes:.1%})" if row.unargmaxable else ""
        words = (
            f"{f'{row.unargmaxable:,}' if row.unargmaxable else 'none'} of {row.classes:,}{share}"
        )
        left = row.unargmaxable > _CROWDED
        ax.annotate(
            words,
            (row.unargmaxable, n),
            (-10 if left else 10, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            color=style.legible(colour),
            weight="bold",
        )
    totals = [
        f"{FAMILIES[s]} ({printed.models[printed['source'] == s].sum()} models)" for s in families
    ]
    labels = list(ours["name"]) + totals
    ax.set_yticks([*range(1, len(ours) + 1), *range(0, -len(families), -1)], labels)
    for tick, scanned_here in zip(
        ax.get_yticklabels(), [True] * len(ours) + [False] * len(families), strict=True
    ):
        tick.set_fontweight("bold" if scanned_here else "normal")
    ax.axhline(0.5, color=style.GREY, linewidth=0.8)
    for words, place, side in (("scanned here", 3, "bottom"), ("as the paper prints", -3, "top")):
        ax.annotate(
            words,
            (1, 0.5),
            (-2, place),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va=side,
            fontsize=9,
        )
    ax.set_xscale("symlog", linthresh=1, linscale=0.6)
    ax.set_xticks([0, 1, 10, 100, 1000], ["none", "1", "10", "100", "1,000"])
    ax.set(
        xlim=(-0.25, max(4000, 1.6 * ours["unargmaxable"].max())),
        ylim=(-len(families) + 0.4, len(ours) + 0.6),
        xlabel="outputs that can never be produced (each mark a model)",
    )
    affected = int((printed["models"] * (printed["unargmaxable"] > 0)).sum())
    worst = ours.loc[ours["unargmaxable"].idxmax()]
    style.headline(
        fig,
        f"{affected} of the paper's {printed.models.sum()} models have dead outputs, at most "
        f"{printed.unargmaxable.max()}; {worst['name']}, scanned here, has "
        f"{worst.unargmaxable:,}",
    )
    return fig


def _draw_family(ax: Axes, y: float, rows: pd.DataFrame) -> None:
    """The dots of one family, one a model; those at the same number side by side."""
    numbers = np.repeat(rows["unargmaxable"].to_numpy(), rows["models"])
    clean = int((numbers == 0).sum())
    if clean:
        words = "all have none" if clean == len(numbers) else f"{clean} of {len(numbers)}"
        ax.annotate(
            words,
            (0, y),
            (9, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=style.INK,
        )
    for number in np.unique(numbers):
        count = int((numbers == number).sum())
        shift = np.linspace(-_SPREAD, _SPREAD, count) if count > 1 else np.zeros(1)
        ax.plot(np.full(count, number), y + shift, ".", ms=5, color=style.GREY, alpha=0.8)
    top = rows.loc[rows["unargmaxable"].idxmax()]
    if top["unargmaxable"]:
        name = f"{top['model'].removeprefix('opus-mt-')}: {top['unargmaxable']}"
        ax.annotate(
            name,
            (top["unargmaxable"], y),
            (7, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=style.INK,
        )
