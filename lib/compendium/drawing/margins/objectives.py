"""What training minimises (notebook 27): what a factor of the stack's law integrates to, and what
the penalty alone wants.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from compendium import style


def draw_layer_masses(couplings: Any, masses: Mapping[str, Any]) -> Figure:
    """What one layer's conditional law integrates to, against its coupling: a standard layer, and
    one that queries with its own output.
    """
    fig, ax = style.figure("page", height=3.8)
    ink = {"standard": style.BLUE, "own output": style.RED}
    for name, mass in masses.items():
        ax.plot(couplings, mass, color=ink[name], lw=2.5)
    own = masses["own output"]
    ax.text(
        couplings[-1],
        masses["standard"][-1],
        "a standard layer",
        color=style.legible(style.BLUE),
        ha="right",
        va="bottom",
    )
    ax.text(
        couplings[-1],
        own[-1] - 0.25,
        "a layer that queries\nwith its own output",
        color=style.legible(style.RED),
        ha="right",
        va="top",
    )
    ax.set(
        xlabel="coupling $c$ of the layer",
        ylabel="integral of its conditional law",
        ylim=(0, own.max() * 1.1),
    )
    style.headline(
        fig,
        f"A deep prior stays a law of probability unless a layer queries with its own "
        f"output: there its integral grows to {own.max():.1f}",
    )
    return fig


def draw_penalty(scales: Any, rays: Any, unseen: Any, weight: float, lowest: float) -> Figure:
    """Mean barrier score along random rays of couplings (grey), along one that a token cannot see
    (red), and there with a repair (blue).
    """
    fig, ax = style.figure("page", height=4.2)
    for ray in rays:
        ax.semilogx(scales, ray, color=style.GREY, lw=0.8, alpha=0.7)
    ax.semilogx(scales, unseen, color=style.RED, lw=2.5)
    with_square = unseen + 0.5 * weight * np.square(scales)
    shown = with_square < 1.5
    ax.semilogx(scales[shown], with_square[shown], color=style.BLUE, lw=2.5)
    ax.axhline(lowest, color=style.BLUE, lw=1, ls=":")
    ax.text(
        scales[-1],
        lowest,
        f"lowest value that γ/2 |M|² leaves (γ = {weight:g}): {lowest:.2f}",
        color=style.BLUE,
        ha="right",
        va="bottom",
    )
    end = int(shown.sum()) - 1
    ax.text(
        scales[end],
        with_square[end],
        " with γ/2 |M|² added",
        color=style.BLUE,
        va="bottom",
        path_effects=style.halo(),
    )
    ax.text(scales[-1], 0.05, "random couplings: attention saturates", ha="right", va="bottom")
    half = len(scales) // 2
    ax.text(
        scales[half],
        unseen[half] - 0.1,
        "a coupling that one token cannot see ",
        color=style.legible(style.RED),
        ha="right",
        va="top",
    )
    ax.set(
        xlabel="size of the coupling $c$ (log)",
        ylabel="mean barrier score β (nats)",
        ylim=(min(unseen.min(), lowest) - 0.3, 1.6),
    )
    style.headline(
        fig,
        "The penalty alone has no minimum: along almost every ray it dies out, along one "
        "that a token cannot see it falls without end",
    )
    return fig
