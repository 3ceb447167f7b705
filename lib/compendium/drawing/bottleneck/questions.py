"""More questions to a layer (notebook 19): masks and prisons, label sets, retrieval, routers and
rankings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compendium import style

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_label_sets(table: pd.DataFrame, k: int) -> Figure:
    """Share of random label sets that can be predicted, by the number of labels that are on, one
    line a layer.

    Parameters
    ----------
    table : DataFrame
        layer, numbers, size, asked, possible.
    k : int
        The Fourier layer's guarantee.
    """
    fig, ax = style.figure("page", 3.8)
    colours = dict(
        zip(
            dict.fromkeys(table["layer"]),
            (style.RED, style.ORANGE, style.BLUE, style.GREEN),
            strict=True,
        )
    )
    drawn = {}
    for name, part in reversed(list(table.groupby("layer", sort=False))):
        share = 100 * part["possible"] / part["asked"]
        ax.plot(part["size"], share, marker="o", color=colours[str(name)], linewidth=2)
        drawn[str(name)] = part["size"], share, colours[str(name)]
    ax.axvline(k + 0.5, color=style.INK, linewidth=1, linestyle=":")
    ax.text(k + 0.58, 105, f"what is guaranteed ends at {k}", fontsize=9)
    numbers = table.groupby("layer", sort=False)["numbers"].first()
    ax.set_title(
        "Numbers a label: " + "; ".join(f"{name}: {count}" for name, count in numbers.items()),
        fontsize=10,
    )
    ax.set(xlabel="labels on at once", ylabel="sets that can be predicted (%)", ylim=(-4, 114))
    ax.set_xticks(sorted(set(table["size"])))
    _name_layers(ax, drawn, k)
    random = table[(table["layer"] == "random, with a bias") & (table["size"] <= k)]
    share = random["possible"].sum() / random["asked"].sum()
    style.headline(
        fig,
        f"A Fourier layer predicts every set of up to {k} labels; random weights and a bias, "
        f"as many numbers, miss {1 - share:.0%} of them",
    )
    return fig


def _name_layers(ax: Axes, drawn: Mapping[str, tuple[pd.Series, pd.Series, str]], k: int) -> None:
    """Each layer beside its line, where the shape of the four curves leaves room: left of the fall,
    above the tail.
    """
    places = {
        "Fourier and slack": (k + 1.0, (8, 5), "left", "bottom"),
        "Fourier": (k - 0.5, (0, -6), "center", "top"),
        "random, with a bias": (k - 0.5, (-8, -4), "right", "top"),
        "random": (1.5, (0, 5), "center", "bottom"),
    }
    for name, (size, share, colour) in drawn.items():
        at, offset, ha, va = places[name]
        ax.annotate(
            name, (at, float(np.interp(at, size, share))), offset, textcoords="offset points",
            ha=ha, va=va,
            color=style.legible(colour), path_effects=style.halo(),
        )  # fmt: skip


def draw_flocks(table: pd.DataFrame, model: str, features: int) -> Figure:
    """Share of random label sets of a multi-label model that can be predicted, by their size.

    Parameters
    ----------
    table : DataFrame
        size, asked, possible.
    model : str
        In a reader's words.
    features : int
        Of the layer: half as many labels, rounded down, a Fourier layer predicts in every
        combination.
    """
    fig, ax = style.figure("page", 3.8)
    share = 100 * table["possible"] / table["asked"]
    ax.plot(table["size"], share, marker="o", color=style.BLUE, linewidth=2)
    whole = table.loc[share == 100, "size"].max()
    for size, value in zip(table["size"], share, strict=True):
        if value == 100 and size != whole:
            continue  # one label for all of them
        ax.annotate(
            f"{value:.0f}%",
            (size, value),
            (6, 7),
            textcoords="offset points",
            ha="left",
            fontsize=10,
            path_effects=style.halo(),
        )
    ax.set(xlabel="labels on at once", ylabel="sets that can be predicted (%)", ylim=(-4, 118))
    ax.set_xticks(table["size"])
    largest = table["size"].max()
    style.headline(
        fig,
        f"{model}: {share.iloc[0]:.0f}% of random sets of {table['size'].min()} sounds can "
        f"be predicted, {share.iloc[-1]:.0f}% of those of {largest};\n"
        f"a Fourier layer with as many features ({features:,}) predicts every set of up to "
        f"{(features - 1) // 2}",
    )
    return fig


def draw_retrieval(table: pd.DataFrame) -> Figure:
    """By dimension: documents that no query ranks first, and pairs that no query returns together.

    Parameters
    ----------
    table : DataFrame
        dimension, documents, never first, pairs, never together.
    """
    fig, ax = style.figure("page", 3.8)
    d = table["dimension"]
    series = (
        (
            "pairs that no query returns together\n(unit vectors)",
            "never together",
            "pairs",
            style.RED,
            "o",
        ),
        (
            "documents that no query ranks first\n(inner products)",
            "never first",
            "documents",
            style.BLUE,
            "s",
        ),
    )
    for (text, column, of, colour, marker), beside in zip(
        series, ((12, 6), (-12, -6)), strict=True
    ):
        share = 100 * table[column] / table[of]
        ax.plot(d, share, marker=marker, color=colour, linewidth=2)
        # the one line above the other: right of the upper, left of the lower
        middle = len(table) // 2
        ax.annotate(
            text, (d.iloc[middle], share.iloc[middle]), beside, textcoords="offset points",
            color=style.legible(colour),
            ha="left" if beside[0] > 0 else "right", va="bottom" if beside[1] > 0 else "top",
        )  # fmt: skip
    ax.set(xscale="log", xlabel="dimensions of the index", ylabel="impossible (%)", ylim=(-4, 108))
    ax.set_xticks(list(d), [str(x) for x in d])
    ax.minorticks_off()
    one = table.iloc[len(table) // 2]
    style.headline(
        fig,
        f"In {one['dimension']} dimensions {one['never together'] / one['pairs']:.0%} of "
        f"random pairs of {one['documents']:,} passages are the first two of no query; each "
        f"pair proven",
    )
    return fig


def draw_experts_and_rankings(experts: pd.DataFrame, rankings: pd.DataFrame, model: str) -> Figure:
    """Left, the share of experts never among the top k, by features; right, rankings of winners
    that are impossible, by length.

    Parameters
    ----------
    experts : DataFrame
        features, k, experts, impossible.
    rankings : DataFrame
        k, asked, impossible.
    model : str
        Whose head was asked for rankings.
    """
    fig, (left, right) = style.figure("page", 3.8, ncols=2, width_ratios=[1.2, 1])
    ks = sorted(set(experts["k"]))
    for n, k in enumerate(ks):
        part = experts[experts["k"] == k]
        share = 100 * part["impossible"] / part["experts"]
        colour = style.COLOURS[n]
        left.plot(part["features"], share, marker="o", color=colour, linewidth=2)
        left.text(
            float(part["features"].iloc[0]) - 0.12,
            float(share.iloc[0]),
            f"top {k}",
            color=style.legible(colour),
            ha="right",
            va="center",
            fontsize=10,
        )
    first = float(experts["features"].min())
    left.set(xlabel="features of the router", ylabel="experts never chosen (%)", ylim=(-4, 108))
    left.set_xlim(first - 0.9, float(experts["features"].max()) + 0.3)
    left.set_xticks(sorted(set(experts["features"])))
    share = 100 * rankings["impossible"] / rankings["asked"]
    right.bar([str(k) for k in rankings["k"]], share, color=style.ORANGE, width=0.6)
    for n, value in enumerate(share):
        right.text(n, value + 2, f"{value:.0f}%", ha="center", fontsize=10)
    right.set(
        xlabel="length k of the ranking", ylabel="never the top k, in that order (%)", ylim=(0, 112)
    )
    left.set_title(f"A router with {experts['experts'].iloc[0]} experts", fontsize=10)
    right.set_title(f"{model}: random rankings of outputs that can win", fontsize=10)
    short, long = rankings.iloc[0], rankings.iloc[-1]
    style.headline(
        fig,
        f"Narrow routers never choose some experts. Outputs that can each win need not win "
        f"together: {short['impossible'] / short['asked']:.0%} of rankings of "
        f"{short['k']} are impossible, {long['impossible'] / long['asked']:.0%} of {long['k']}",
    )
    return fig
