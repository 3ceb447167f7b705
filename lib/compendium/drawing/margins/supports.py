"""Support tokens of trained models (notebook 25): how concentrated, where, which words, and the
choice of the penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from compendium import style
from compendium.drawing.naming import name_lines
from softgeom.margins.support import READINGS, barrier_shares, cumulative_shares, support_tokens

_PRIORS = {"learned": style.RED, "random-init": style.BLUE}


def draw_concentration(
    group: Sequence[Any],
    sizes: pd.DataFrame,
    paper: pd.DataFrame,
    k: int,
    named: str = "The barrier",
) -> Figure:
    """Figure 7.6: cumulative share of the barrier in the softmax reading, and effective support in
    every reading, ours and the paper's.
    """
    fig, (curve, dots) = style.figure("page", height=4.2, ncols=2)
    positions = group[0].scores["learned"].shape[1]
    ranks = np.arange(1, positions + 1)
    drawn = {}
    for prior, colour in _PRIORS.items():
        shares = np.concatenate(
            [cumulative_shares(barrier_shares(run.scores[prior], "softmax")) for run in group]
        )
        low, middle, high = np.quantile(shares, [0.025, 0.5, 0.975], axis=0)
        curve.plot(ranks, 100 * middle, color=colour, lw=2)
        curve.fill_between(ranks, 100 * low, 100 * high, color=colour, alpha=0.15, lw=0)
        drawn[prior] = ranks, 100 * middle, colour
        printed = 100 * paper.loc[prior, "top5_share"]
        curve.plot(k, printed, "D", color=colour, ms=8, mec="black")
        beside = {"va": "center", "ha": "right", "path_effects": style.halo()}
        curve.text(
            k / 1.14, printed, f"paper: {printed:.0f}%", color=style.legible(colour), **beside
        )
    curve.set(
        xscale="log",
        xlabel="positions, largest first (log)",
        ylabel="share of the barrier (%)",
        title="Softmax of the scores",
        ylim=(0, 103),
    )
    curve.set_xticks([n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500) if n <= positions])
    curve.xaxis.set_major_formatter("{x:g}")
    curve.minorticks_off()
    name_lines(curve, drawn)
    rows = [*READINGS, "paper"]
    for place, reading in enumerate(rows):
        for prior, colour in _PRIORS.items():
            size = (
                paper.loc[prior, "effective_support_size"]
                if reading == "paper"
                else sizes.loc[(reading, prior), "effective_support"]
            )
            if np.isfinite(size):
                dots.plot(
                    size, place, "D" if reading == "paper" else "o", color=colour, ms=8, mec="black"
                )
                dots.text(
                    size,
                    # above and below: the two may be close
                    place + (-0.16 if prior == "learned" else 0.38),
                    f"{size:.0f}" if size >= 10 else f"{size:.1f}",
                    ha="center",
                    color=style.legible(colour),
                )
            else:
                dots.text(
                    1.15,
                    place - 0.2,
                    "learned: none is positive",
                    color=style.legible(colour),
                    fontsize=9,
                )
    names = {
        "positive": "positive scores",
        "softmax": "softmax of scores",
        "absolute": "absolute scores",
        "paper": "paper (wikitext-103,\nreading lost)",
    }
    dots.set_yticks(range(len(rows)), [names[row] for row in rows])
    dots.set(
        xscale="log",
        xlim=(1, 700),
        ylim=(len(rows) - 0.5, -0.6),
        xlabel="positions that carry the barrier (log)",
        title=f"Ours of {positions}, by reading",
    )
    dots.xaxis.set_major_formatter("{x:g}")
    soft = sizes.loc[("softmax", "learned"), "effective_support"]
    ratio = sizes["effective_support"].unstack("prior")
    told = int((ratio["learned"] / ratio["random-init"] < 0.5).sum())
    style.headline(
        fig,
        f"{named} lies on {soft:.0f} of {positions} positions, in the paper on "
        f"{paper.loc['learned', 'effective_support_size']:.1f}; of "
        f"{len(READINGS)} readings of “normalised” {told} {'tells' if told == 1 else 'tell'} "
        f"a learned prior from a random one",
    )
    return fig


def draw_positions(group: Sequence[Any], k: int) -> Figure:
    """Barrier score by position, and how often a position is among the k largest: learned prior,
    random prior, spread evenly.
    """
    fig, (left, right) = style.figure("page", height=3.9, ncols=2)
    share = {}
    for prior, colour in _PRIORS.items():
        beta = np.concatenate([run.scores[prior] for run in group])
        ranks = np.arange(1, beta.shape[1] + 1)
        low, middle, high = np.quantile(beta, [0.025, 0.5, 0.975], axis=0)
        left.plot(ranks, middle, color=colour, lw=2)
        left.fill_between(ranks, low, high, color=colour, alpha=0.15, lw=0)
        place = (ranks[-1], middle[-1])
        left.annotate(
            prior,
            place,
            (0, 8),
            textcoords="offset points",
            color=style.legible(colour),
            ha="right",
            path_effects=style.halo(),
        )
        tops = support_tokens(beta, k).ravel()
        chance = 100 * np.bincount(tops, minlength=beta.shape[1]) / len(beta)
        share[prior] = chance[:k].sum() / (100 * k)
        right.plot(
            ranks,
            chance,
            color=colour,
            lw=2.5 if prior == "learned" else 1.5,
            ls="-" if prior == "learned" else "--",
        )
    right.axhline(100 * k / len(ranks), color="black", lw=1, ls=":")
    right.annotate(
        "spread evenly (dotted)",
        (0.85 * ranks[-1], 100 * k / len(ranks)),
        (0.85 * ranks[-1], 28),
        ha="center",
        arrowprops={"arrowstyle": "-", "lw": 0.8},
    )
    right.text(
        0.12 * ranks[-1],
        80,
        f"learned: {share['learned']:.0%} of the top {k}\nare the first {k} positions",
        color=style.legible(style.RED),
    )
    right.text(
        0.12 * ranks[-1],
        60,
        f"random-init: {share['random-init']:.0%}",
        color=style.legible(style.BLUE),
    )
    left.axhline(0, color="black", lw=0.8, zorder=0)
    left.set(
        xlabel="position in the window",
        ylabel="barrier score β (nats)",
        title="Score by position: median, 95% of windows",
    )
    right.set(
        xlabel="position in the window",
        ylabel="share of windows (%)",
        title=f"Position is among the {k} largest scores",
        ylim=(0, 103),
    )
    style.headline(
        fig,
        f"{share['learned']:.0%} of the learned prior's top {k} are the first {k} positions, "
        f"which have no past to disperse "
        f"({share['random-init']:.0%} under a random prior)",
    )
    return fig


def draw_text(words: Sequence[str], scores: Any, k: int, columns: int = 84) -> Figure:
    """The start of a window, each token on its score's colour, the k largest scores boxed."""
    low, high = float(np.min(scores)), float(np.max(scores))
    boxed = set(support_tokens(scores, k).tolist())
    places, column, line = [], 0, 0
    for number, word in enumerate(words):
        rest = next(
            (n for n, follows in enumerate(words[number + 1 :]) if follows[:1].isspace()), 0
        )
        whole = (
            len(word) + sum(map(len, words[number + 1 : number + 1 + rest]))
            if word[:1].isspace()
            else len(word)
        )
        if column + min(whole, columns) > columns:
            column, line = 0, line + 1
        places.append((column, line))
        column += len(word)
    fig, ax = style.figure("page", height=1.5 + 0.28 * (line + 1))
    norm = plt.Normalize(
        low - 0.05 * (high - low + 1e-12), high + 0.9 * (high - low + 1e-12)
    )  # the pale half of the map: text stays legible
    colours = plt.get_cmap("YlOrBr")
    for number, (word, (x, y), score) in enumerate(zip(words, places, scores, strict=True)):
        ax.add_patch(Rectangle((x, y - 0.42), len(word), 0.84, fc=colours(norm(score)), lw=0))
        if number in boxed:
            ax.add_patch(
                Rectangle(
                    (x + 0.05, y - 0.42), len(word) - 0.1, 0.84, fill=False, ec="black", lw=1.8
                )
            )
        for offset, character in enumerate(word):
            ax.text(
                x + offset + 0.5,
                y,
                character,
                ha="center",
                va="center",
                family="monospace",
                fontsize=10,
            )
    ax.set(xlim=(-0.3, columns + 0.3), ylim=(line + 0.6, -0.6))
    ax.axis("off")
    bar = fig.colorbar(
        plt.cm.ScalarMappable(norm, colours),
        ax=ax,
        orientation="horizontal",
        fraction=0.09,
        aspect=60,
        pad=0.02,
    )
    bar.ax.set_xlim(low, high)
    bar.set_label(f"barrier score β (nats); boxed: the {k} largest")
    early = sum(number < k for number in boxed)
    style.headline(
        fig, f"{early} of the {k} largest barrier scores in this text stand on its first {k} tokens"
    )
    return fig


def draw_selection(ours: pd.DataFrame, paper: pd.DataFrame) -> Figure:
    """Figure 7.7: perplexity, degradation and embedding error relative to lambda = 0, and effective
    support; ours beside the paper's.
    """
    fig, axes = style.figure("page", height=5.2, nrows=2, ncols=2)
    metrics = {
        "clean_perplexity": ("clean", "Clean perplexity"),
        "degradation_ratio": ("degradation", "Degradation under the strongest noise"),
        "contextual_embedding_error": ("error", "Contextual embedding error"),
        "effective_support_size": ("support", "Positions that carry the barrier"),
    }
    sources = {"this run": (ours, style.BLUE, -0.1), "paper": (paper, style.ORANGE, 0.1)}
    for ax, (column, (stem, title)) in zip(axes.flat, metrics.items(), strict=True):
        relative = column != "effective_support_size"
        ax.axhline(1, color="black", lw=0.8, zorder=0) if relative else None
        for table, colour, shift in sources.values():
            unit = table[column].iloc[0] if relative else 1.0
            x = np.arange(len(table)) + shift
            ends = table[[f"{stem}_low", f"{stem}_high"]].replace([-np.inf, np.inf], np.nan) / unit
            ax.vlines(x, ends.iloc[:, 0], ends.iloc[:, 1], color=colour, lw=2)
            ax.plot(x, table[column] / unit, "o", color=colour, ms=6)
        ax.set_xticks(range(len(ours)), [f"{weight:g}" for weight in ours["penalty_weight"]])
        ax.set(
            title=title,
            xlim=(-0.4, len(ours) - 0.6),
            ylabel="ratio to λ = 0" if relative else "positions (log)",
        )
        if not relative:
            ax.set_yscale("log")
            ax.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
            ax.minorticks_off()
            ax.text(0, ax.get_ylim()[0] * 1.3, "never\nlearned", ha="center", fontsize=9)
    for ax in axes[1]:
        ax.set_xlabel("penalty λ (lines: intervals, as each source gives them)", fontsize=9)
    # where the two lie apart: ours is named above its last interval, theirs below
    named = axes[0, 1]
    sides = (("ours", "high", 5, "bottom"), ("paper (wikitext-103)", "low", -5, "top"))
    for (words, end, offset, side), (table, colour, shift) in zip(
        sides, sources.values(), strict=True
    ):
        place = (
            len(table) - 1 + shift,
            table[f"degradation_{end}"].iloc[-1] / table["degradation_ratio"].iloc[0],
        )
        named.annotate(
            words, place, (10, offset), textcoords="offset points", ha="right", va=side,
            color=style.legible(colour),
            weight="bold",
        )  # fmt: skip
    bottom, top = named.get_ylim()
    named.set_ylim(bottom - 0.14 * (top - bottom), top)
    mine, theirs = (table.set_index("penalty_weight") for table in (ours, paper))
    first = mine.index[1]
    errors = mine["contextual_embedding_error"]
    style.headline(
        fig,
        f"At λ = {first:g} the paper's degradation falls to "
        f"{theirs.loc[first, 'degradation_ratio'] / theirs['degradation_ratio'].iloc[0]:.2f} "
        f"of the "
        f"baseline's, ours to "
        f"{mine.loc[first, 'degradation_ratio'] / mine['degradation_ratio'].iloc[0]:.2f}; "
        f"embedding error falls there and "
        f"{'falls' if errors[first] < errors.iloc[0] else 'rises'} here",
    )
    return fig
