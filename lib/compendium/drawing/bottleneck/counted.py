"""Counted rankings: how few of them a layer realises, and what that costs in nats (notebook 10)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from compendium import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_fractions(grid: pd.DataFrame, models: pd.DataFrame) -> Figure:
    """Left, the share of all rankings that a layer realises, over classes and features; right,
    digits of the counts for layers of real sizes.

    Parameters
    ----------
    grid
        Columns classes, dimension, log10_fraction.
    models
        Columns model, classes, dimension, log10_regions_with_bias, log10_factorial.
    """
    fig, (left, right) = style.figure("page", 4.6, ncols=2)
    _draw_map(left, grid)
    _draw_digits(right, models)
    gpt2 = next(models[models.model == "GPT-2"].itertuples())
    power = f"{gpt2.log10_factorial - gpt2.log10_regions_with_bias:,.0f}".replace(",", "{,}")
    style.headline(
        fig,
        f"Of all rankings of GPT-2's {gpt2.classes:,} tokens its softmax layer realises one "
        f"in $10^{{{power}}}$",
    )
    return fig


def _draw_map(ax: Axes, grid: pd.DataFrame) -> None:
    fractions = grid.pivot(index="dimension", columns="classes", values="log10_fraction")
    C, d = np.meshgrid(fractions.columns, fractions.index)
    image = ax.pcolormesh(
        C, d, np.ma.masked_where(d >= C - 1, fractions), cmap=style.SEQUENTIAL, rasterized=True
    )
    levels = [-16, -8, -4, -2, math.log10(0.5)]
    colours = ["white"] * 2 + ["black"] * 3
    contours = ax.contour(
        C, d, fractions, levels=levels, colors=colours, linewidths=0.8, linestyles="-"
    )
    ax.clabel(
        contours, fmt=lambda level: "1/2" if level > -1 else f"$10^{{{level:.0f}}}$", fontsize=9
    )
    ax.text(0.06, 0.9, "d ≥ C − 1:\nevery ranking", transform=ax.transAxes, va="top")
    ax.set(
        xlabel="classes C",
        ylabel="features d",
        title="Share of the C! rankings that are realisable",
    )
    ax.figure.colorbar(image, ax=ax, label="log$_{10}$ of the share")


def _draw_digits(ax: Axes, models: pd.DataFrame) -> None:
    ordered = models.sort_values("log10_factorial", ignore_index=True)
    few, many = ordered.log10_regions_with_bias, ordered.log10_factorial
    ax.hlines(ordered.index, few, many, color=style.GREY, linewidth=1)
    ax.scatter(few, ordered.index, color=style.ORANGE, zorder=3)
    ax.scatter(many, ordered.index, color=style.BLUE, marker="s", zorder=3)
    for values in (few, many):
        for y, value in enumerate(values):
            place = {"textcoords": "offset points", "ha": "center", "fontsize": 9}
            ax.annotate(f"{math.floor(value) + 1:,}", (value, y), (0, 5), **place)
    top = len(ordered) - 0.25
    for values, words, colour in (
        (few, "rankings\nit realises", style.ORANGE),
        (many, "all\nrankings", style.BLUE),
    ):
        ax.text(
            values.iloc[-1],
            top,
            words,
            color=style.legible(colour),
            ha="center",
            va="bottom",
            fontsize=9,
        )
    names = [f"{m.model}\nC = {m.classes:,}, d = {m.dimension}" for m in ordered.itertuples()]
    ax.set_yticks(ordered.index, names, fontsize=9)
    ax.set(xscale="log", xlabel="decimal digits of the number", ylim=(-0.5, len(ordered) + 0.6))
    ax.set_xlim(few.min() / 1.8, many.max() * 1.8)
