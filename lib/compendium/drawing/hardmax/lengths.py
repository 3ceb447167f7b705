"""Reviews as they are found (notebook 00)."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from compendium import style

_LONGEST = 800  # words; what is longer is counted in words, not drawn


def draw_review_lengths(lengths: pd.Series, kept: int) -> Figure:
    """How many words the reviews have, and how many are longer than what the hardmax chapter keeps."""
    fig, ax = style.figure("page", height=3.6)
    ax.hist(lengths[lengths <= _LONGEST], bins=80, range=(0, _LONGEST), color=style.SKY)
    ax.axvline(kept, color=style.RED, lw=2)
    top = 1.22 * ax.get_ylim()[1]
    ax.text(
        kept + 8,
        0.97 * top,
        f"{kept} words: what the classifier of\nthe hardmax chapter reads of a review",
        va="top",
        color=style.legible(style.RED),
    )
    beyond = (lengths > _LONGEST).mean()
    ax.text(
        _LONGEST,
        0.06 * top,
        f"{beyond:.1%} have more than {_LONGEST} words",
        ha="right",
        fontsize=9,
    )
    ax.set(
        xlabel="words in a review, before cleaning",
        ylabel="reviews",
        xlim=(0, _LONGEST),
        ylim=(0, top),
    )
    style.headline(
        fig,
        f"Half of the reviews have more than {int(lengths.median())} words; "
        f"{(lengths > kept).mean():.0%} are longer than the {kept} that are kept after "
        f"cleaning",
    )
    return fig
