"""The residual stream (notebook 32): who wrote the predicted token, and what each depth would
predict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium import style

_BRIGHT = 0.6  # probability from which black text is read better on the colour map


def draw_writers(
    shares: pd.DataFrame, read: Sequence[str], predicted: Sequence[str], model: str
) -> Figure:
    """What each writer (rows) adds to the winning logit at each position (columns), and its mean
    over the positions as a bar.

    Colours end at the 98th percentile of the sizes, so that the largest writer does not drown the
    others.
    """
    fig, (ax, bars) = style.figure(
        "page",
        height=2.3 + 0.2 * len(shares),
        ncols=2,
        sharey=True,
        gridspec_kw={"width_ratios": [4.2, 1]},
    )
    limit = np.quantile(np.abs(shares.to_numpy()), 0.98)
    picture = ax.imshow(shares, cmap=style.DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
    ax.set_yticks(range(len(shares)), shares.index, fontsize=9)
    positions = range(shares.shape[1])
    ax.set_xticks(positions, read, rotation=90, fontsize=9)
    over = ax.secondary_xaxis("top")
    over.set_xticks(positions, predicted, rotation=90, fontsize=9)
    for axis in (ax, over):
        axis.tick_params(length=0)
    ax.set_xlabel("token read")
    over.set_xlabel("token predicted next")
    mean = shares.mean(axis=1)
    bars.barh(range(len(mean)), mean, color=np.where(mean > 0, style.RED, style.BLUE))
    for place, value in enumerate(mean):
        if abs(value) > 0.2 * mean.abs().max():
            bars.text(value, place, f" {value:+.1f}", va="center", fontsize=9)
    bars.axvline(0, color=style.BLACK, lw=0.8)
    bars.set(xlabel="mean", xlim=(min(0.0, 1.1 * mean.min()), 1.45 * mean.max()))
    bars.tick_params(length=0)
    bars.spines["left"].set_visible(False)
    fig.colorbar(
        picture, ax=bars, label="adds to the winning logit (nats)", extend="both", shrink=0.8
    )
    style.headline(
        fig,
        f"Who wrote the {model}'s predictions? {mean.idxmax()} adds {mean.max():+.1f} nats "
        f"on average, all heads together "
        f"{mean[mean.index.str.contains('.H', regex=False)].sum():+.1f}",
    )
    return fig


def draw_lens(
    lenses: Mapping[str, tuple[np.ndarray, Sequence[Sequence[str]], Sequence[str]]],
    depths: Sequence[int] | None = None,
) -> Figure:
    """For each model the leading token and its probability (depths, positions), read from the
    stream after each layer; the last row is the model's own.

    `depths` says how many layers each row has behind it, where not all are shown.
    """
    fig, axes = style.figure(
        "page", height=2.5 * len(lenses) + 0.9, nrows=len(lenses), squeeze=False
    )
    picture, told = None, []
    for ax, (name, (probability, tokens, read)) in zip(axes[:, 0], lenses.items(), strict=True):
        picture = ax.imshow(probability, vmin=0, vmax=1, cmap=style.SEQUENTIAL, aspect="auto")
        for (depth, position), p in np.ndenumerate(probability):
            ax.text(
                position, depth, tokens[depth][position], ha="center", va="center", fontsize=8.5,
                color="white" if p < _BRIGHT else "black",
            )  # fmt: skip
        rows = range(len(probability)) if depths is None else depths
        ax.set_xticks(range(len(read)), read, rotation=45, fontsize=9)
        ax.set_yticks(
            range(len(rows)), [f"after L{i - 1}" if i else "embedding" for i in rows], fontsize=9
        )
        ax.tick_params(length=0)
        ax.set(title=name)
        agree = [np.mean([a == b for a, b in zip(row, tokens[-1], strict=True)]) for row in tokens]
        told.append(f"{agree[-2]:.0%} ({name})")
    axes[-1, 0].set_xlabel("token read")
    assert picture is not None
    fig.colorbar(picture, ax=axes, label="probability of the leading token", shrink=0.6)
    style.headline(
        fig,
        f"The prediction forms on the way up: "
        f"{'before the last block' if depths is None else 'one row before the last'}, "
        f"{' and '.join(told)} of the positions have it",
    )
    return fig
