"""Predictions (notebooks 01 and 34): what the trained model learned, and how near each prediction
was to another one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium import style


def draw_losses(
    evaluations: pd.DataFrame, per_position: np.ndarray, tables: Mapping[str, float]
) -> Figure:
    """Left: loss while training beside the losses of counted tables. Right: held-out loss by length
    of context, positions and their means over doublings.
    """
    fig, (left, right) = style.figure("page", height=3.8, ncols=2)
    last = evaluations["step"].max()
    for column, colour in (("training", style.ORANGE), ("validation", style.BLUE)):
        left.plot(evaluations["step"], evaluations[column], color=colour, lw=2)
    for column, colour, place in (
        ("training", style.ORANGE, (-4, -16)),
        ("validation", style.BLUE, (26, 9)),
    ):
        early = evaluations.iloc[len(evaluations) // 4]
        left.annotate(
            {"training": "training", "validation": "held out"}[column],
            (early["step"], early[column]), place,
            textcoords="offset points", color=style.legible(colour), ha="center",
            path_effects=style.halo(),
        )  # fmt: skip
    for (name, loss), dash in zip(tables.items(), ("--", ":"), strict=True):
        left.axhline(loss, color=style.INK, lw=1, ls=dash)
        left.text(last, loss, f"table of {name}: {loss:.2f}", ha="right", va="bottom", fontsize=9)
    left.set(xlabel="step", ylabel="loss (nats per token)", title="Learning")
    context = np.arange(1, len(per_position) + 1)
    right.plot(context, per_position, ".", ms=3, color=style.SKY)
    doublings = np.log2(context).astype(int)  # 1, 2-3, 4-7, ...
    means = (
        pd.DataFrame({"context": np.log(context), "loss": per_position}).groupby(doublings).mean()
    )
    right.plot(np.exp(means["context"]), means["loss"], "o-", color=style.BLUE, lw=2)
    right.text(
        0.98,
        1.0,
        "dots: each position\nline: means of 1, 2-3, 4-7, ...",
        ha="right",
        va="top",
        transform=right.transAxes,
        fontsize=9,
    )
    right.set(
        xscale="log",
        xlabel="tokens of context",
        ylabel="loss (nats per token)",
        title="What context is worth",
    )
    right.set_xticks(2**means.index, [str(2**doubling) for doubling in means.index])
    right.minorticks_off()
    pairs, ours = list(tables.values())[-1], float(per_position.mean())
    beaten = "beats" if ours < pairs else "does not beat"
    late = means["loss"].iloc[2:4].mean() - means["loss"].iloc[-1] if len(means) > 4 else 0.0
    style.headline(
        fig,
        f"This small model {beaten} a table of pairs of tokens ({ours:.2f} against "
        f"{pairs:.2f} nats); beyond 8 tokens, more context is worth {late:.2f} nats",
    )
    return fig
