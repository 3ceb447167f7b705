"""Robustness on two rulers (notebook 24), and Figure 7.5 with its control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, ScalarFormatter

from compendium import style

_RULERS = {
    "absolute": ("the paper's measure:\none size for all models", style.BLUE),
    "relative": ("relative to the size of\neach model's own embeddings", style.RED),
}


def draw_two_rulers(
    gains: pd.DataFrame,
    gain: pd.DataFrame,
    multiples: Mapping[str, Sequence[float]],
    weight: float,
    living: Mapping[str, Sequence[int]],
) -> Figure:
    """Same noise, two rulers: extra loss of one lambda against none, at equal absolute and at equal
    relative size, seeds and interval; grey where the models without penalty are no better than
    unigrams, the headline at the strongest of the `living` levels.
    """
    fig, axes = style.figure("page", height=4.4, ncols=2, sharey=True)
    ends = {}
    for ax, family in zip(axes, multiples, strict=True):
        for scale, (_, colour) in _RULERS.items():
            chosen = (
                (gain["group"] == "sweep")
                & (gain["penalty_weight"] == weight)
                & (gain["family"] == family)
                & (gain["scale"] == scale)
            )
            line = gain[chosen].sort_values("level")
            seeds = gains[
                (gains["group"] == "sweep")
                & (gains["penalty_weight"] == weight)
                & (gains["family"] == family)
            ]
            for _, one in seeds[seeds["scale"] == scale].groupby("seed"):
                ax.plot(one["level"], one["extra_nats"], "o", color=colour, ms=3, alpha=0.5)
            ax.plot(line["level"], line["extra_nats"], color=colour, lw=2.5)
            low, high = (line[end].replace([-np.inf, np.inf], np.nan) for end in ("low", "high"))
            ax.fill_between(line["level"], low, high, color=colour, alpha=0.15, lw=0)
            alive = line[line["level"].isin(living[family])]
            ends[family, scale] = alive.iloc[-1] if len(alive) else None
            if len(alive):
                at = (ends[family, scale]["level"], ends[family, scale]["extra_nats"])
                ax.plot(*at, "o", color=colour, ms=11, mfc="none", mew=2)
                away = {"ha": "center", "path_effects": style.halo()}
                style.label(ax, f"{at[1]:+.2f}", at, (0, 11), colour, weight="bold", **away)
        ax.axhline(0, color="black", lw=1)
        _shade_dead(ax, living[family], len(multiples[family]))
        ax.set_xticks(range(1, len(multiples[family]) + 1), [f"{m:g}" for m in multiples[family]])
        ax.set(
            xlabel=f"{family}, in sizes of the baseline's embeddings",
            title=f"{family.capitalize()}",
        )
    axes[0].margins(y=0.3)  # room for the names above the bands and below them
    for (name, colour), height in zip(_RULERS.values(), (0.04, 0.97), strict=True):
        side = "bottom" if height < 0.5 else "top"
        axes[0].text(
            0.03, height, name, color=style.legible(colour), transform=axes[0].transAxes, va=side
        )
    axes[0].set_ylabel("extra loss of the penalty (nats)\nbelow zero: more robust")
    noise = next(iter(multiples))
    says = [_says(ends[noise, scale]) for scale in _RULERS]
    told = f"The penalty {says[0]} under noise, however noise is measured"
    if says[0] != says[1]:
        told = (
            f"The penalty {says[0]} under equal noise, {says[1]} under noise relative to its size"
        )
    style.headline(fig, told)
    return fig


def _shade_dead(ax: Axes, living: Sequence[int], levels: int) -> None:
    """Grey over the levels at which the models without penalty are no better than unigrams."""
    border = max(living, default=0) + 0.5
    if border < levels:
        ax.axvspan(border, levels + 0.5, color=style.GREY, alpha=0.15, lw=0)
        told = "grey: no better\nthan word counts"
        at = {"transform": ax.get_xaxis_transform(), "ha": "right", "va": "top", "fontsize": 9}
        ax.text(levels + 0.45, 0.98, told, color=style.INK, **at)


def _says(row: pd.Series | None) -> str:
    if row is None:
        return "cannot be judged"
    if not (row["high"] < 0 or row["low"] > 0):
        return "changes nothing certain"
    return "adds robustness" if row["extra_nats"] < 0 else "adds loss"


def draw_beside_the_paper(
    degradation: pd.DataFrame,
    paper: pd.DataFrame,
    multiples: Mapping[str, Sequence[float]],
    weight: float,
    living: Mapping[str, Sequence[int]],
) -> Figure:
    """Figure 7.5, the paper's printed ratios on wikitext-103 beside ours at equal absolute size,
    with both 95% ranges over subsamples; grey where ours without penalty are no better than
    unigrams, the headline at the paper's strongest level and at the strongest of our `living` ones.
    """
    fig, axes = style.figure("page", height=5.4, nrows=2, ncols=2, sharey="row")
    sweep = degradation[(degradation["group"] == "sweep") & (degradation["scale"] == "absolute")]
    for row, family in enumerate(multiples):
        printed = paper[(paper["perturbation"] == family) & (paper["dataset"] == "wikitext-103")]
        by_objective = {
            "λ = 0": printed[printed["objective"] == "cross-entropy"],
            f"λ = {weight:g}": printed[printed["objective"] != "cross-entropy"],
        }
        _draw_ratios(axes[row, 0], by_objective, ("median_ratio", "ci95_low", "ci95_high"))
        ours = {
            f"λ = {w:g}": sweep[(sweep["family"] == family) & (sweep["penalty_weight"] == w)]
            for w in (0.0, weight)
        }
        _draw_ratios(axes[row, 1], ours, ("median_ratio", "ratio_low", "ratio_high"))
        axes[row, 0].set(
            title=f"Paper, {family} (wikitext-103)",
            ylabel="perplexity ratio\n(log, bars: 95%)",
            xlabel="level (its sizes are lost)",
        )
        axes[row, 1].set(title=f"Ours, {family}", xlabel="size over the baseline's embeddings")
        axes[row, 1].set_xticks(
            range(1, len(multiples[family]) + 1), [f"{m:g}" for m in multiples[family]]
        )
        _shade_dead(axes[row, 1], living[family], len(multiples[family]))
    strongest = max(living["noise"], default=0)
    judged = sweep[(sweep["family"] == "noise") & (sweep["level"] == strongest)]
    ours = judged.set_index("penalty_weight")["median_ratio"]
    printed = paper[(paper["perturbation"] == "noise") & (paper["dataset"] == "wikitext-103")]
    last = printed["level"].max()
    theirs = printed[printed["level"] == last].sort_values("objective")["median_ratio"].tolist()
    pairs = [(axes[0, 0], last, theirs)]
    if len(ours):
        pairs.append((axes[0, 1], strongest, [ours[0.0], ours[weight]]))
    for ax, level, ratios in pairs:
        for ratio, shift in zip(ratios, (-0.06, 0.06), strict=True):
            ax.plot(level + shift, ratio, "o", color=style.INK, ms=12, mfc="none")
            away = 15 if ratio == max(ratios) else -15
            centred = {"ha": "center", "va": "center", "path_effects": style.halo(), "zorder": 5}
            style.label(ax, f"×{ratio:.3g}", (level + shift, ratio), (0, away), **centred)
    helps = [without > with_it for _, _, (without, with_it) in pairs]
    words = ["helps" if each else "hurts" for each in helps] + ["is not judged"]
    style.headline(fig, f"Under noise the penalty {words[0]} in the paper and {words[1]} here")
    return fig


def _draw_ratios(
    ax: Axes, lines: Mapping[str, pd.DataFrame], columns: tuple[str, str, str]
) -> None:
    middle, low, high = columns
    ends = [line[middle].iloc[-1] for line in lines.values()]
    apart = 7 if max(ends) < 3 * min(ends) else 0  # points between two names that would touch
    for shift, (name, colour), line in zip(
        (-0.06, 0.06), zip(lines, ("black", style.RED), strict=True), lines.values(), strict=True
    ):
        y = line[middle]
        ax.errorbar(
            line["level"] + shift,
            y,
            yerr=[y - line[low], line[high] - y],
            color=colour,
            marker="o",
            ms=4,
            capsize=3,
            lw=2,
        )
        place = (line["level"].iloc[-1] + 0.15, y.iloc[-1])
        up = apart if y.iloc[-1] == max(ends) else -apart
        ax.annotate(
            name,
            place,
            (4, up),
            textcoords="offset points",
            color=style.legible(colour),
            va="center",
            annotation_clip=False,
        )
    ax.set(yscale="log", xticks=sorted(set(line["level"])))
    ax.set_xlim(0.6, len(set(line["level"])) + 0.9)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter(ScalarFormatter())
    ax.minorticks_off()
