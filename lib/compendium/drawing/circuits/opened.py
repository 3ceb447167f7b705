"""A language model opened (notebook 35): the atlas of its heads, what happens without them, the
paths between two, its memories and its depths.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compendium import style
from compendium.drawing.head_grid import head_grid, number_cells
from compendium.drawing.naming import name_lines

_PANELS = {
    "previous": "looks at the token before",
    "duplicate": "looks at the same token, last time",
    "induction": "looks at what followed it last time",
    "copying": "raises what it reads (blue: lowers it)",
}
_AT_WORK = 0.2  # mean weight from which a head counts as doing something
_FELT = 0.1  # nats from which the loss of a head or of a path is worth a sentence
_LABELLED = 6  # heads named in a scatter plot


def draw_atlas(table: pd.DataFrame, model: str) -> Figure:
    """Every head of a model as a cell, layers from left to right: three habits on texts read twice,
    and whether it copies; the strongest of each is named.
    """
    fig, grid = head_grid(table, _PANELS)
    for column, (ax, cells) in grid.items():
        signed = column == "copying"
        picture = ax.imshow(
            cells,
            vmin=-1 if signed else 0,
            vmax=1,
            cmap=style.DIVERGING if signed else style.SEQUENTIAL,
            aspect="auto",
        )
        best = table.loc[table[column].idxmax()]
        ax.set_title(f"{_PANELS[column]}\n{best['name']}: {best[column]:.2f}", fontsize=10)
        ax.add_patch(_frame(best["layer"], best["head"]))
        number_cells(ax, picture)
        fig.colorbar(picture, ax=ax, aspect=12, pad=0.02)
    counts = {
        column: int((table[column] > _AT_WORK).sum())
        for column in ("previous", "duplicate", "induction")
    }
    style.headline(
        fig,
        f"{len(table)} heads of {model}: {counts['previous']} look one token back, "
        f"{counts['duplicate']} find the same token, "
        f"{counts['induction']} what followed it (weight above {_AT_WORK:g}; even attention "
        f"gives {table['even'].iloc[0]:.2g})",
    )
    return fig


def draw_localising(table: pd.DataFrame, model: str) -> Figure:
    """What is in the sum against what happens without it: every head's direct effect and its total
    effect on the right logit; grey crosses: the twins.
    """
    fig, ax = style.figure("page", height=4.4)
    ax.axline((0, 0), slope=1, color=style.GREY, lw=0.8)
    ax.scatter(table["direct"], table["control"], marker="x", s=14, color=style.GREY, lw=0.8)
    ax.scatter(table["direct"], table["total"], s=18, color=style.BLUE)
    told = table.sort_values("total", key=abs, ascending=False)[:_LABELLED]
    _name_points(ax, told, "direct", "total")
    ax.set(
        xlabel="direct: only its write into the last stream is lost (nats)",
        ylabel="total: all that reads it, again (nats)",
    )
    ax.set_title(
        "dots: heads (on the line all is direct); crosses: the same on texts without a repetition",
        fontsize=10,
    )
    worst = table.loc[table["total"].abs().idxmax()]
    loss = f"Without {worst['name']} the right token of {model} loses {-worst['total']:.2f} nats"
    if abs(worst["total"]) < _FELT:
        loss = (
            f"{model} does not rest on any head when it repeats a text: the largest loss is "
            f"{abs(worst['total']):.2f} nats"
        )
    elif abs(worst["direct"]) < 0.1 * abs(worst["total"]):
        loss += (
            f", {-worst['direct']:.2f} of them directly: what is in the sum is not what the sum "
            f"rests on"
        )
    else:
        loss += f", {-worst['direct']:.2f} of them directly"
    style.headline(fig, loss)
    return fig


def draw_paths(paths: pd.DataFrame, table: pd.DataFrame, receiver: str, model: str) -> Figure:
    """Senders by their previous-token score and by what the receiver's keys lose with them; queries
    and values beside it for comparison.
    """
    merged = paths.merge(table[["name", "previous"]], on="name")
    fig, axes = style.figure("page", height=3.6, ncols=3, sharex=True, sharey=True)
    visible = 0.1 * merged[["keys", "queries", "values"]].abs().max().max()
    for ax, side, colour in zip(
        axes, ("keys", "queries", "values"), (style.BLUE, style.ORANGE, style.GREEN), strict=True
    ):
        ax.axhline(0, color=style.GREY, lw=0.8)
        ax.scatter(merged["previous"], merged[side], s=16, color=colour)
        strongest = merged.sort_values(side, key=abs, ascending=False)[:2]
        _name_points(ax, strongest[strongest[side].abs() > visible], "previous", side)
        ax.set(
            title=f"through its {side}",
            xlabel="previous-token score of the sender",
            xlim=(-0.03, 1.12),
        )
    axes[0].set_ylabel("effect on the right logit (nats)")
    best = merged.loc[merged["keys"].abs().idxmax()]
    if abs(best["keys"]) < _FELT:
        told = (
            f"No single path into the keys of {receiver} of {model} is worth {_FELT:g} nats: "
            f"nothing here finds its place by the token before"
        )
    else:
        told = (
            f"{receiver} of {model} finds its place by what {best['name']} wrote into its "
            f"keys: that path alone is worth {-best['keys']:.2f} nats, "
            f"and {best['name']} looks one token back with weight {best['previous']:.2f}"
        )
    style.headline(fig, told)
    return fig


def draw_depths(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """By depth, what the unembedding would read from the stream: its loss on the next token, and
    how often its first choice is the model's own.
    """
    fig, axes = style.figure("page", height=3.6, ncols=2)
    colours = dict(zip(tables, (style.ORANGE, style.GREEN, style.BLUE), strict=False))
    for ax, column, label in zip(
        axes,
        ("nats", "agrees"),
        ("loss on the next token (nats)", "agrees with the model's own choice"),
        strict=True,
    ):
        for name, table in tables.items():
            ax.plot(
                table["depth"] / table["depth"].max(),
                table[column],
                marker="o",
                ms=4,
                color=colours[name],
            )
        if (
            column == "nats" and max(table["nats"].max() for table in tables.values()) > 20
        ):  # the embedding alone can be off by a hundred nats
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter("{x:g}")
        ax.set(xlabel="depth (0 embedding, 1 the model itself)", title=label)
        name_lines(
            ax,
            {
                name: (t["depth"] / t["depth"].max(), t[column], colours[name])
                for name, t in tables.items()
            },
            size=9,
        )
    name, table = list(tables.items())[-1]
    late = table[table["agrees"] >= 0.5]["depth"].min() / table["depth"].max()
    settled = f"settles half of its choices at {late:.0%} of its depth"
    if late == 1:
        settled = (
            f"settles in its last block: before it {table['agrees'].iloc[-2]:.0%} of its choices "
            f"stand"
        )
    style.headline(
        fig, f"{name} {settled}; until then the unembedding reads other words from the stream"
    )
    return fig


def _frame(layer: float, head: float) -> object:
    from matplotlib.patches import Rectangle

    return Rectangle((layer - 0.5, head - 0.5), 1, 1, fill=False, edgecolor=style.RED, lw=1.6)


def _name_points(ax: Axes, rows: pd.DataFrame, x: str, y: str) -> None:
    """Names beside points, left of those in the right half."""
    middle = np.mean(ax.get_xlim())
    for _, row in rows.iterrows():
        left = row[x] > middle
        ax.annotate(
            row["name"], (row[x], row[y]), xytext=(-5 if left else 5, 0),
            textcoords="offset points",
            ha="right" if left else "left", va="center", fontsize=9, path_effects=style.halo(),
        )  # fmt: skip
