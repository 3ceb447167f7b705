"""The generator and its token laws (notebook 22): draws against the density, consistency across
lengths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compendium import style
from softgeom.margins import scalar

_BINS = np.linspace(-4, 4, 65)


def draw_draws(drawn: Mapping[float, Any], past: Any, s: float) -> Figure:
    """Histograms of tokens drawn from the generator against eq. (16), one panel for each
    coupling.
    """
    fig, axes = style.figure("page", height=3.8, ncols=len(drawn))
    x = np.linspace(-4, 4, 401)
    masses = {}
    for ax, (c, tokens) in zip(axes, drawn.items(), strict=True):
        masses[c] = scalar.mass(past, c, s)
        density = scalar.conditional_density(x, past, c, s)
        ax.hist(tokens, bins=_BINS, density=True, color=style.SKY)
        ax.plot(x, density, color="black", lw=1.6)
        for root in scalar.preimages(0.0, past, c):
            ax.axvline(root, color=style.RED, lw=1, ls=":")
        # where the last hill falls: no dotted line there
        beyond = x[np.flatnonzero(density > 0.5 * density.max())[-1]]
        ax.annotate(
            "eq. (16)",
            (beyond, 0.5 * density.max()),
            (10, 6),
            textcoords="offset points",
            path_effects=style.halo(),
        )
        ax.text(-3.9, 0.5 * density.max(), "drawn\ntokens", color=style.legible(style.SKY))
        ax.set(
            xlabel="token $x_3$ (dotted: fixed points)",
            ylabel="density",
            title=f"$c = {c:g}$: eq. (16) weighs {masses[c]:.2f}",
        )
    largest = max(masses.values())
    style.headline(
        fig,
        f"A generator must choose among up to three tokens for one noise; the formula counts "
        f"them all and weighs {largest:.2f}",
    )
    return fig


def draw_consistency(consistency: pd.DataFrame, latent: pd.DataFrame) -> Figure:
    """Gaps between the laws of two lengths for causal and non-causal attention, and the total of a
    law with latent embeddings.
    """
    fig, (gaps, totals) = style.figure("page", height=4.0, ncols=2)
    _draw_gaps(gaps, consistency)
    for (name, rows), colour in zip(
        latent.groupby("conditional"), (style.RED, style.BLUE), strict=True
    ):
        totals.plot(rows["c"], rows["total"], marker="o", ms=4, color=colour, lw=2)
        above = name.startswith("every")
        totals.text(
            -1.9,
            rows["total"].max() if above else 0.985,
            name,
            color=style.legible(colour),
            va="top",
        )
    totals.set(
        xlabel="coupling $c$ (positive: the map can fold)",
        ylabel="sum of the law of length 3",
        title="Latent embeddings",
    )
    totals.set_ylim(0.97, None)
    worst = latent["total"].max()
    style.headline(
        fig,
        f"Causal laws of all lengths agree exactly, as long as each conditional is a "
        f"density: where the map folds they sum to {worst:.2f}",
    )
    return fig


def _draw_gaps(ax: Axes, consistency: pd.DataFrame) -> None:
    names = {
        "causal": ("causal: reads the past", style.BLUE),
        "anticausal": ("reads the future", style.ORANGE),
        "bidirectional": ("reads both", style.RED),
    }
    for mode, rows in consistency.groupby("attention", sort=False):
        name, colour = names[mode]
        heights = np.maximum(rows["largest_gap"], 1e-17)
        ax.semilogy(rows["length"], heights, "o-", color=colour, lw=2)
        ax.annotate(
            name,
            (rows["length"].iloc[-1], heights.iloc[-1]),
            (0, 8 if mode == "anticausal" else -18),
            textcoords="offset points",
            ha="right",
            color=style.legible(colour),
        )
    ax.axhline(np.finfo(float).eps, color=style.GREY, lw=1, ls="--")
    ax.text(consistency["length"].min(), 3.5e-16, "rounding")
    ax.set(
        xlabel="length $T$",
        ylabel="largest gap between lengths $T$ and $T+1$",
        title="Tokens only",
        ylim=(1e-19, 3),
    )
    ax.set_xticks(sorted(set(consistency["length"])))
