"""Heads (notebook 31): where each one looks, whether it copies what it reads, and what it thinks of
a distance.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium import style

# columns of the table of heads
_HABITS = {"previous token": "previous", "itself": "itself", "first token": "first"}
_DOING = {
    "previous": "mostly look one token back",
    "itself": "mostly at themselves",
    "first": "mostly at the first token",
}
_A_HABIT = 0.35  # mean weight from which a head is named after where it looks


def draw_patterns(patterns: np.ndarray, table: pd.DataFrame, model: str) -> Figure:
    """Attention weights (L, H, T, T) of every head on one sentence: rows look, columns are looked
    at; what lies ahead is blank.
    """
    L, H, T, _ = patterns.shape
    fig, axes = style.figure(
        "page", height=1.0 + (8.4 / H + 0.25) * L, nrows=L, ncols=H, squeeze=False
    )
    rows = table[table["model"] == model].set_index("head")
    ahead = np.triu(np.ones((T, T), bool), 1)
    picture = None
    habits = []
    for layer in range(L):
        for head in range(H):
            ax, row = axes[layer, head], rows.loc[f"L{layer}.H{head}"]
            picture = ax.imshow(
                np.ma.masked_where(ahead, patterns[layer, head]),
                vmin=0,
                vmax=1,
                cmap=style.SEQUENTIAL,
                aspect="equal",
            )
            column = max(_HABITS, key=lambda name: row[name])
            habit = _HABITS[column] if row[column] > _A_HABIT else ""
            habits += [habit] * bool(habit)
            ax.set_title(
                f"L{layer}.H{head}: {habit}" if habit else f"L{layer}.H{head}",
                fontsize=10,
                color=style.legible(style.RED) if habit else style.INK,
                weight="bold" if habit else "normal",
            )
            ax.set_xticks([0, T - 1], ["1", str(T)] if layer == L - 1 else ["", ""], fontsize=9)
            ax.set_yticks([0, T - 1], ["1", str(T)] if head == 0 else ["", ""], fontsize=9)
            ax.tick_params(length=0, pad=1)
            ax.spines[:].set_visible(False)
        axes[layer, 0].set_ylabel("token that looks", labelpad=-6)
    for ax in axes[-1]:
        ax.set_xlabel("token looked at", labelpad=-6)
    assert picture is not None
    fig.colorbar(picture, ax=axes, shrink=0.5, label="attention weight", aspect=40)
    told = " and ".join(
        f"{habits.count(name)} {doing}" for name, doing in _DOING.items() if name in habits
    )
    style.headline(
        fig,
        f"Of the {model}'s {L * H} heads {told}; the others follow the text"
        if told
        else f"None of the {model}'s {L * H} heads looks at one place only: all follow the text",
    )
    return fig


def draw_copying(table: pd.DataFrame) -> Figure:
    """Copying score of every head, from -1 (what it reads is suppressed) to 1 (what it reads is
    raised): sum of eigenvalues of W_E W_OV W_U^T over moduli.
    """
    names = list(dict.fromkeys(table["model"]))
    counts = [len(table[table["model"] == name]) for name in names]
    fig, axes = style.figure(
        "page", height=1.6 + 0.21 * max(counts), ncols=len(names), squeeze=False
    )
    told = []
    for ax, name in zip(axes[0], names, strict=True):
        part = (
            table[table["model"] == name]
            .sort_values("copying", ascending=False)
            .reset_index(drop=True)
        )
        colours = np.where(part["copying"] > 0, style.BLUE, style.RED)
        ax.barh(part.index, part["copying"], color=colours, height=0.7)
        for i, row in part.iterrows():
            side = 1 if row["copying"] >= 0 else -1
            ax.text(
                row["copying"] + 0.03 * side,
                i,
                row["head"],
                va="center",
                ha="left" if side > 0 else "right",
                fontsize=9,
            )
        ax.axvline(0, color=style.BLACK, lw=0.8)
        ax.set(title=name, xlim=(-1.3, 1.3), xticks=[-1, 0, 1], yticks=[])
        ax.set_xticklabels(["$-1$\nsuppresses\nwhat it reads", "0", "1\ncopies\nwhat it reads"])
        ax.spines["left"].set_visible(False)
        ax.set_ylim(max(counts) - 0.4, -0.6)
        told.append(f"{(part['copying'] > 0.5).sum()} of {len(part)} heads of the {name}")
    style.headline(
        fig,
        f"Copying is what some heads are for: {', '.join(told)} raise the very token that "
        f"they attend to (score above 0.5)",
    )
    return fig


def draw_offset_profiles(profiles: Mapping[tuple[str, int], np.ndarray]) -> Figure:
    """Mean attention score (H, offsets) against the distance between query and key, for one layer
    of each model; ticks at the period of the fastest clock.
    """
    fig, axes = style.figure("page", height=3.6, ncols=len(profiles), squeeze=False)
    period = 2 * np.pi
    for ax, ((name, layer), curves) in zip(axes[0], profiles.items(), strict=True):
        distance = np.arange(curves.shape[1])
        centred = curves - curves.mean(1, keepdims=True)
        for turn in np.arange(period, distance[-1], period):
            ax.axvline(turn, color=style.GREY, lw=0.5, alpha=0.6)
        loudest = int(np.diff(centred).std(1).argmax())
        for head, curve in enumerate(centred):
            first = head == loudest
            ax.plot(
                distance,
                curve,
                color=style.BLUE if first else style.GREY,
                lw=2 if first else 1,
                alpha=1 if first else 0.7,
            )
        ax.text(
            1,
            1,
            f"head {loudest} (others grey)",
            transform=ax.transAxes,
            ha="right",
            va="bottom",
            fontsize=9,
            color=style.legible(style.BLUE),
        )
        ax.set(
            title=f"{name}, layer {layer}", xlabel="distance $i-j$ between query and key (tokens)"
        )
    axes[0, 0].set_ylabel("mean score, minus its average")
    style.headline(
        fig,
        f"Rotary positions beat time: scores swing with the fastest clock's period, 2π = "
        f"{period:.1f} tokens (grey lines)",
    )
    return fig
