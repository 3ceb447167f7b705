"""What the margin penalty costs and does (notebook 23): the sweep over lambda, and other readings
of the prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from compendium import style

READINGS = {
    "no penalty": "no penalty",
    "sweep": "free coupling, low rank\n(the sweep)",
    "positive coupling": "positive coupling only",
    "negative coupling": "negative coupling only",
    "quadratic term": "with squared residuals",
    "full M": "full matrix M",
}  # group -> name of the reading, in the order drawn


def draw_sweep(
    evaluations: pd.DataFrame,
    runs: pd.DataFrame,
    changes: pd.DataFrame,
    scale: Mapping[str, Any],
    representative: float,
    flat: float,
) -> Figure:
    """Figure 7.4: learning curves beside the tables to beat, change of clean perplexity by lambda,
    and the penalty while training.
    """
    fig, (curves, change, scores) = style.figure("page", height=4.0, ncols=3)
    trained = evaluations[evaluations["group"] == "sweep"]
    _draw_curves(curves, trained, scale, representative)
    _draw_changes(change, runs, changes, flat)
    _draw_scores(scores, trained)
    row = changes.loc[representative]
    beats = scale["baseline_perplexity"] < min(
        scale["bigram_perplexity"], scale["unigram_perplexity"]
    )
    verdict = "which beats" if beats else "which still loses to"
    style.headline(
        fig,
        f"λ = {representative:g} changes clean perplexity by {row['relative_change']:+.1%}, "
        f"in a model {verdict} a table of word pairs "
        f"({scale['baseline_perplexity']:.0f} against {scale['bigram_perplexity']:.0f})",
    )
    return fig


def _draw_curves(
    ax: Axes, trained: pd.DataFrame, scale: Mapping[str, Any], representative: float
) -> None:
    for weight, colour, width, dash in (
        (0.0, style.SKY, 5, "-"),
        (representative, style.RED, 1.6, "--"),
    ):
        grouped = trained[trained["penalty_weight"] == weight].groupby("step")[
            "validation_perplexity"
        ]
        ax.plot(grouped.mean(), color=colour, lw=width, ls=dash, label=f"λ = {weight:g}")
    end = trained["step"].max()
    for name, column in (
        ("pairs", "bigram_perplexity"),
        ("Kneser-Ney triples", "trigram_perplexity"),
    ):
        ax.axhline(scale[column], color="black", lw=1, ls=":")
        ax.text(
            end,
            0.97 * scale[column],
            f"table of {name}: {scale[column]:.0f}",
            ha="right",
            va="top",
            fontsize=9,
        )
    ax.set(
        xlabel="step", ylabel="validation perplexity (log)", title="Learning curves", yscale="log"
    )
    ticks = [t for t in (20, 30, 50, 100, 200, 300, 500) if 0.5 * scale["trigram_perplexity"] < t]
    ax.set_yticks(ticks, [str(t) for t in ticks])
    ax.minorticks_off()
    ax.legend(fontsize=9)


def _draw_changes(ax: Axes, runs: pd.DataFrame, changes: pd.DataFrame, flat: float) -> None:
    weights = [w for w in changes.index if w > 0]
    sweep = runs[runs["group"] == "sweep"]
    for place, weight in enumerate(weights):
        row = changes.loc[weight]
        ends = 100 * np.nan_to_num(
            [row["relative_change_low"], row["relative_change_high"]], neginf=np.nan, posinf=np.nan
        )
        ax.plot([place, place], ends, color=style.BLUE, lw=2)
        seeds = 100 * sweep.loc[sweep["penalty_weight"] == weight, "relative_change"]
        ax.plot(np.full(len(seeds), place), seeds, "o", color=style.SKY, ms=4)
        ax.plot(place, 100 * row["relative_change"], "D", color=style.BLUE, ms=6)
    ax.axhline(0, color="black", lw=1)
    ax.axhspan(-100 * flat, 100 * flat, color="0.9", zorder=0)
    ax.text(-0.4, 90 * flat, "unchanged", va="top", fontsize=9)
    ax.set_xticks(range(len(weights)), [f"{weight:g}" for weight in weights])
    ax.set(
        xlabel="λ",
        ylabel="change of perplexity (%)",
        title="Seeds, mean, 95% interval",
        xlim=(-0.5, len(weights) - 0.5),
    )


def _draw_scores(ax: Axes, trained: pd.DataFrame) -> None:
    weights = sorted(w for w in trained["penalty_weight"].unique() if w > 0)
    for number, weight in enumerate(weights):
        colour = style.COLOURS[number % len(style.COLOURS)]
        grouped = trained[trained["penalty_weight"] == weight].groupby("step")["penalty"].mean()
        ax.plot(grouped, color=colour, lw=2)
        ax.text(
            grouped.index[-1],
            grouped.iloc[-1],
            f" {weight:g}",
            color=style.legible(colour),
            va="center",
            clip_on=False,
        )
    ax.axhline(0, color="black", lw=1)
    ax.text(
        trained["step"].max(), 0, "above: a barrier is felt", va="bottom", ha="right", fontsize=9
    )
    ax.margins(y=0.12)
    ax.set(xlabel="step", ylabel="mean barrier score β (nats)", title="The penalty, by λ")


def draw_ablations(runs: pd.DataFrame, weight: float) -> Figure:
    """Readings of the prior at one lambda: change of perplexity, size of the embeddings and mean
    score, a dot for each seed.
    """
    fig, axes = style.figure("page", height=3.8, ncols=3, sharey=True)
    columns = {
        "relative_change": ("change of perplexity (%)", 100.0, 0.0),
        "growth": ("embeddings over those at λ = 0", 1.0, 1.0),
        "mean_beta": ("mean barrier score β (nats)", 1.0, 0.0),
    }
    names = [name for name in READINGS if name in set(runs["reading"])]
    for ax, (column, (label, unit, reference)) in zip(axes, columns.items(), strict=True):
        for place, name in enumerate(names):
            values = unit * runs.loc[runs["reading"] == name, column]
            colour = {"no penalty": "black", "positive coupling": style.RED}.get(name, style.BLUE)
            ax.plot([reference, values.mean()], [place, place], color=colour, lw=2, alpha=0.5)
            ax.plot(values, np.full(len(values), place), "o", color=colour, ms=6)
        ax.axvline(reference, color="black", lw=1)
        ax.set(xlabel=label)
        ax.margins(x=0.12)
        ax.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10]))
    axes[0].text(
        0.98, 0.98, "each dot a seed", transform=axes[0].transAxes, ha="right", va="top", fontsize=9
    )
    axes[0].set_yticks(range(len(names)), [READINGS[name] for name in names])
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    mean = runs.groupby("reading")["growth"].mean()
    free = [name for name in names if name not in ("no penalty", "positive coupling")]
    held = (
        f", {mean['positive coupling']:.2f} times when it is held positive"
        if "positive coupling" in mean
        else ""
    )
    least, most = f"{mean[free].min():.2f}", f"{mean[free].max():.2f}"
    style.headline(
        fig,
        f"With λ = {weight:g} the embeddings end "
        f"{least if least == most else f'{least} to {most}'} times as large where the "
        f"coupling may "
        f"turn negative{held}",
    )
    return fig
