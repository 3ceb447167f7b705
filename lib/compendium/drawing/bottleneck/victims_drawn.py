"""Tokens that a trained layer gives up, and how hard the others are to find, by frequency (notebook
14; 001, Figures 11 and 12).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from compendium import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from compendium.models.victims import Judged

_BINS = 20  # of the frequency ranks


def draw_lost_tokens(
    judged: Mapping[tuple[int, int], Judged], frequency: NDArray[np.integer]
) -> Figure:
    """Left, the share of tokens that can never win, by the width of the layer, one dot a seed;
    right, the same by frequency rank.

    Parameters
    ----------
    judged
        By dimension and seed.
    frequency
        How often each token occurs in the training text.
    """
    fig, (left, right) = style.figure("page", 3.9, ncols=2)
    widths = sorted({d for d, _ in judged})
    shares = {
        d: [found.lost.mean() for (width, _), found in judged.items() if width == d] for d in widths
    }
    for d, values in shares.items():
        left.plot([d] * len(values), values, "o", color=style.BLUE, alpha=0.6)
    left.plot(widths, [np.mean(shares[d]) for d in widths], "-", color=style.BLUE)
    for d in widths:
        left.annotate(
            f"{np.mean(shares[d]):.0%}",
            (d, np.mean(shares[d])),
            (5, 5),
            textcoords="offset points",
            fontsize=10,
        )
    left.set(
        xscale="log",
        xlabel="features d",
        ylabel="share of tokens that can never win",
        ylim=(-0.03, 1.05),
    )
    left.set_title("Each dot a trained layer")
    left.set_xticks(widths, [str(d) for d in widths])
    left.set_xlim(widths[0] / 1.2, widths[-1] * 1.5)
    left.minorticks_off()
    _draw_by_rank(right, judged, frequency)
    style.headline(
        fig,
        f"A layer trained on text gives up {np.mean(shares[widths[0]]):.0%} of its tokens at "
        f"d = {widths[0]} and "
        f"{np.mean(shares[widths[-1]]):.0%} at d = {widths[-1]}{_whom(judged, frequency)}",
    )
    return fig


def _whom(judged: Mapping[tuple[int, int], Judged], frequency: NDArray[np.integer]) -> str:
    """Who goes first between the extremes: the share lost of the rarest quarter of the tokens seen,
    against that of those never seen.
    """
    between = [found.lost for found in judged.values() if 0.01 < found.lost.mean() < 0.8]
    never = frequency == 0
    if not between or not never.any():
        return ""
    rare = ~never & (frequency <= np.quantile(frequency[~never], 0.25))
    ahead = np.mean([lost[rare].mean() - lost[never].mean() for lost in between])
    return "; in between " + (
        "rare tokens that it saw go before those it never saw"
        if ahead > 0
        else "those it never saw go first"
    )


def _draw_by_rank(
    ax: Axes, judged: Mapping[tuple[int, int], Judged], frequency: NDArray[np.integer]
) -> None:
    rank, classes = _ranks(frequency), len(frequency)
    edges = np.linspace(0, classes, _BINS + 1)
    for d, colour in zip(sorted({d for d, _ in judged}), style.COLOURS, strict=False):
        lost = np.mean([found.lost for (width, _), found in judged.items() if width == d], axis=0)
        share = np.array(
            [lost[(low <= rank) & (high > rank)].mean() for low, high in pairwise(edges)]
        )
        if not share.any():
            continue
        ax.plot((edges[:-1] + edges[1:]) / 2, share, color=colour)
        beside = {"textcoords": "offset points", "color": style.legible(colour), "va": "center"}
        ax.annotate(f"d = {d}", (edges[-1], share[-1]), (4, 0), **beside)
    seen = int((frequency > 0).sum())
    if seen < classes:
        ax.axvspan(seen, classes, color=style.GREY, alpha=0.15, lw=0)
        ax.text(
            (seen + classes) / 2, 0.02, "never\nseen", ha="center", va="bottom", color=style.INK
        )
    ax.set(
        xlabel="token by frequency rank (left: frequent)",
        ylabel="share that can never win",
        ylim=(-0.03, 1.05),
    )
    ax.set_xlim(-0.02 * classes, 1.17 * classes)
    ax.set_title("Whom it gives up")


def draw_steps_by_rank(
    panels: Sequence[tuple[str, Judged]],
    frequency: NDArray[np.integer],
    patience: int,
    correlation: float | None,
) -> Figure:
    """One panel a model: the steps that Braid Reflect needs for each token, sorted by frequency, as
    in the paper's Figures 11 and 12.

    Parameters
    ----------
    panels
        Title of each panel, and the layer judged.
    frequency
        How often each token occurs in the training text.
    patience
        Steps after which the search gives up.
    correlation
        Spearman's correlation of steps and rarity, for the headline; None where it could not be
        measured.
    """
    fig, axes = style.figure("page", 3.5, ncols=len(panels), sharey=True, squeeze=False)
    rank, seen = _ranks(frequency), int((frequency > 0).sum())
    for ax, (title, found) in zip(axes[0], panels, strict=True):
        for chosen, colour in ((~found.lost, style.BLUE), (found.lost, style.RED)):
            height = np.minimum(found.steps[chosen], patience)
            ax.plot(rank[chosen], height, ".", ms=4, color=colour, alpha=0.8, rasterized=True)
        ax.axhline(patience, color=style.GREY, linewidth=0.8, linestyle=":")
        ax.text(
            seen / 40, 1.25 * patience, f"gave up after {patience}", fontsize=8, color=style.INK
        )
        ax.axvspan(seen, len(frequency), color=style.GREY, alpha=0.15, lw=0)
        ax.set_yscale("symlog", linthresh=1, linscale=0.5)
        ax.set(title=title, ylim=(-0.4, 2.5 * patience), xticks=[0, seen])
        ax.tick_params(labelsize=9)
    axes[0, 0].set_ylabel("steps of Braid Reflect")
    axes[0, len(panels) // 2].set_xlabel(
        "token by frequency rank (left: frequent; grey: never seen)"
    )
    for place, words, colour in ((0.9, "can win", style.BLUE), (0.8, "can never win", style.RED)):
        axes[0, -2].text(
            0.03,
            place - 0.1,
            words,
            transform=axes[0, -2].transAxes,
            color=style.legible(colour),
            weight="bold",
            fontsize=9,
        )
    spoken = "not measured" if correlation is None else f"{correlation:+.2f}"
    style.headline(
        fig,
        f"Rarer tokens are "
        f"{'not ' if correlation is not None and correlation < 0.1 else ''}harder to find: "
        f"among those seen, steps and rarity have rank correlation {spoken}",
    )
    return fig


def _ranks(frequency: NDArray[np.integer]) -> NDArray[np.intp]:
    """Rank of each token, 0 the most frequent."""
    return np.argsort(np.argsort(-frequency, kind="stable"))
