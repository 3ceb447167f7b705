"""Heads (notebook 31): where each one looks, whether it copies what it reads, and what it thinks of
a distance.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from compendium import style


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
