"""The feed-forward memory (notebook 33): what fires a key, what its value promotes, and how few
neurons do the work.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from compendium import style


def draw_memory(entries: Sequence[dict], shown: int = 3) -> Figure:
    """For a few neurons: left, the contexts that fire the key most (the last token is where it
    fires) with the strength; right, the tokens that the value promotes.
    """
    fig, axes = style.figure(
        "page",
        height=1.2 + (0.27 * shown + 0.34) * len(entries),
        nrows=len(entries),
        ncols=2,
        squeeze=False,
    )
    for (left, right), entry in zip(axes, entries, strict=True):
        for ax, key, colour in ((left, "contexts", style.SKY), (right, "promoted", style.ORANGE)):
            pairs = entry[key][:shown]
            values = [value for _, value in pairs]
            ax.barh(range(len(pairs)), values, color=colour, height=0.7)
            for place, value in enumerate(values):
                ax.text(value + 0.015 * max(values), place, f"{value:.2g}", va="center", fontsize=9)
            ax.set_yticks(range(len(pairs)), [text for text, _ in pairs], fontsize=10)
            ax.set(xlim=(0, 1.14 * max(values)), ylim=(shown - 0.4, -0.6), xticks=[])
            ax.tick_params(length=0)
            ax.spines["bottom"].set_visible(False)
        left.set_title(
            f"{entry['model']}, layer {entry['layer']}, neuron {entry['neuron']} fires after",
            fontsize=10,
        )
        right.set_title("and raises", fontsize=10)
    axes[-1, 0].set_xlabel("activation at the last token of these words", fontsize=10)
    axes[-1, 1].set_xlabel("gain of its logit per unit (nats)", fontsize=10)
    first = entries[0]
    raised = ", ".join(f"“{text}”" for text, _ in first["promoted"][:shown])
    style.headline(
        fig,
        f"A key and a value: neuron {first['neuron']} of the {first['model']} fires after "
        f"“{first['contexts'][0][0]}” and raises {raised}",
    )
    return fig


def draw_sparsity(sparsity: pd.DataFrame) -> Figure:
    """By layer, the share of neurons that hold half of the write at a position: median (dot) and
    the middle 80% of positions (bar); left is sparse.
    """
    fig, ax = style.figure("page", height=1.6 + 0.42 * len(sparsity))
    colours = dict(zip(dict.fromkeys(sparsity["model"]), (style.BLUE, style.RED), strict=False))
    for place, row in enumerate(sparsity.to_dict("records")):
        colour = colours[row["model"]]
        low, middle, high = (
            row[f"fewest for half, {q}"] / row["neurons"] for q in ("10%", "median", "90%")
        )
        ax.plot([low, high], [place, place], color=colour, lw=5, alpha=0.35, solid_capstyle="butt")
        ax.plot(middle, place, "o", color=colour, ms=8)
        ax.text(
            high + 0.008,
            place,
            f"{row['fewest for half, median']:.0f} of {row['neurons']} neurons",
            va="center",
            fontsize=9,
        )
    ax.set_yticks(
        range(len(sparsity)), [f"{row.model}, layer {row.layer}" for row in sparsity.itertuples()]
    )
    top = 1.35 * (sparsity["fewest for half, 90%"] / sparsity["neurons"]).max()
    ax.set(
        xlim=(0, max(0.25, top)),
        xlabel=(
            "neurons that hold half of the write, as a share of all (dot: median position; bar: "
            "the middle 80%)"
        ),
    )
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.invert_yaxis()
    share = sparsity["fewest for half, median"] / sparsity["neurons"]
    style.headline(
        fig,
        f"Few neurons do the work: {share.min():.0%} to {share.max():.0%} of them write half "
        f"of what a layer writes",
    )
    return fig
