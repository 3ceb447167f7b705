"""Characters that a recogniser can never read: the poster, one proof, their rows, and what freeing
them takes (notebook 15).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from compendium import style
from softgeom.checkpoints import glyphs

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

GROUPS = {
    "imprisoned": (style.RED, "can never be read (proven)"),
    "matched": (style.BLUE, "others, as rare and as inky"),
    "short rows": (style.ORANGE, "others whose rows are as short"),
    "imprisoned in the Swish range": (style.PURPLE, "imprisoned in the network's own range"),
}
_COLUMNS = 10
_LINE = 1.3  # between the lines of captors, in their largest size
_COMMAND = "softgeom scan ppocr-v4      prints all of them, each with its proof"


def draw_poster(
    dead: Mapping[str, str],
    control: Mapping[str, str],
    font: glyphs.Font,
    imprisoned: int,
    classes: int,
) -> Figure:
    """Pictures of characters that can never be read with what is read instead, above a control row
    of characters that are read.

    Parameters
    ----------
    dead, control
        From a character to what the model reads when it is shown.
    font
        In which the pictures are drawn.
    imprisoned, classes
        How many outputs can never win, of how many.
    """
    import matplotlib.pyplot as plt

    rows = -(-len(dead) // _COLUMNS)
    fig = plt.figure(figsize=(style.WIDTHS["page"], 1.75 + 0.6 * (rows + 1)))
    top, bottom = fig.subfigures(2, 1, height_ratios=[0.45 + 0.6 * rows, 1.25])
    left = {"x": 0.1 / style.WIDTHS["page"], "ha": "left", "fontsize": 10}
    top.suptitle(
        "Shown to the network (black), and what it reads instead (orange):", color=style.INK, **left
    )
    _draw_pictures(top, dead, font, rows, style.legible(style.RED))
    bottom.suptitle(
        "Control: characters as rare and with as much ink, which it reads (blue):",
        color=style.INK,
        **left,
    )
    _draw_pictures(bottom, control, font, 1, style.legible(style.BLUE))
    bottom.supxlabel(
        _COMMAND,
        x=0.1 / style.WIDTHS["page"],
        ha="left",
        fontsize=9,
        family="monospace",
        color=style.INK,
    )
    style.headline(
        fig,
        f"{imprisoned} of the {classes:,} outputs of the text recogniser PP-OCRv4 can never "
        f"be its answer, whatever the picture: each is proven",
    )
    return fig


def _draw_pictures(
    fig: Figure, shown: Mapping[str, str], font: glyphs.Font, rows: int, colour: str
) -> None:
    axes = fig.subplots(rows, _COLUMNS, squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for ax, (character, reading) in zip(axes.flat, shown.items(), strict=False):
        picture = np.asarray(glyphs.render_line(character, font, 64))
        ax.imshow(picture, cmap="gray", vmin=0, vmax=255, extent=(0, 1, 0, 1))
        spoken = (
            reading
            if reading and style.draws_chinese()
            else " ".join(f"U+{ord(c):04X}" for c in reading)
        )
        # the columns stay where they are, whatever is read
        words = {"va": "center", "ha": "left", "in_layout": False}
        ax.text(1.05, 0.5, "→", color=style.GREY, fontsize=12, **words)
        ax.text(
            1.46,
            0.5,
            spoken or "none",
            color=colour,
            fontsize=20 if len(spoken) == 1 else 9,
            **words,
        )
        ax.set(xlim=(0, 2.45), ylim=(0, 1))


def draw_proof(
    token: str,
    captors: Sequence[str],
    weights: NDArray[np.float64],
    facts: Mapping[str, float],
    font: glyphs.Font,
) -> Figure:
    """One proof: a character as the weighted mean of its captors, each drawn as large as its
    weight, and the two numbers that decide.

    Parameters
    ----------
    token
        The captive.
    captors, weights
        Characters (n,) by falling weight, weights (n,) that sum to one.
    facts
        `bias` of the captive, `mean_bias` of its captors, `residual` (the most that the box can
        make of the difference of the rows), `bound` (on the best margin, negative).
    font
        In which the characters are drawn.
    """
    fig, (left, right) = style.figure("page", 4.6, ncols=2, width_ratios=[1, 2.3])
    left.imshow(
        np.asarray(glyphs.render_line(token, font, 160)),
        cmap="gray",
        vmin=0,
        vmax=255,
        extent=(0, 1, 1.2, 2.2),
    )
    left.text(1.18, 1.7, "=", fontsize=30, ha="center", va="center", color=style.INK)
    lines = (
        ("its own bias", f"{facts['bias']:+.4f}"),
        ("mean bias of the captors", f"{facts['mean_bias']:+.4f}"),
        ("most that |x| ≤ 100 makes\nof the rows' difference", f"{facts['residual']:.0e}"),
        ("so it is always behind, by", f"{-facts['bound']:.4f}"),
    )
    for y, (words, number) in zip((1.0, 0.8, 0.5, 0.2), lines, strict=True):
        weight = "bold" if y == 0.2 else "normal"
        left.text(-0.1, y, words, va="center", fontsize=10, color=style.INK, weight=weight)
        left.text(
            1.5, y, number, va="center", ha="right", fontsize=10, color=style.INK, weight=weight
        )
    left.set(xlim=(-0.1, 1.5), ylim=(0.1, 2.25))
    left.set_axis_off()
    _draw_captors(right, captors, weights, font)
    style.headline(
        fig,
        f"A proof: at every x the score of "
        f"{token if style.draws_chinese() else f'U+{ord(token):04X}'} is below the mean of "
        f"{len(captors)} other characters' scores, so one of them always wins",
    )
    return fig


def _draw_captors(
    ax: Axes, captors: Sequence[str], weights: NDArray[np.float64], font: glyphs.Font
) -> None:
    columns = int(np.ceil(np.sqrt(1.9 * len(captors))))
    rows = -(-len(captors) // columns)
    for k, (character, weight) in enumerate(zip(captors, weights, strict=True)):
        half = 0.5 * max(float(np.sqrt(weight / weights[0])), 0.12)
        x, y = k % columns + 0.5, _LINE * (rows - k // columns - 0.5)
        drawable = len(character) == 1 and character in font.characters
        picture = np.asarray(glyphs.render_line(character if drawable else "·", font, 48))
        ax.imshow(
            picture, cmap="gray", vmin=0, vmax=255, extent=(x - half, x + half, y - half, y + half)
        )
        if k < 8:
            ax.text(
                x,
                y - 0.5,
                f"{weight:.0%}",
                ha="center",
                va="top",
                fontsize=9,
                color=style.legible(style.RED),
            )
    ax.set(
        xlim=(0, columns),
        ylim=(0, _LINE * rows),
        aspect="equal",
        title="its captors: area = weight in the mean, the first eight with their share",
    )
    ax.set_axis_off()


def draw_read_shares(by: pd.DataFrame) -> Figure:
    """Share of single characters read by the network, by font and size, with 95% Wilson intervals;
    `by` has group, font, size, share, low, high.
    """
    settings = list(dict.fromkeys(zip(by["font"], by["size"], strict=True)))
    names = list(dict.fromkeys(by["group"]))
    fig, ax = style.figure("page", 1.9 + 0.5 * len(settings))
    for n, name in enumerate(names):
        part = by[by["group"] == name]
        colour, words = GROUPS[name]
        y = np.array([settings.index(key) for key in zip(part["font"], part["size"], strict=True)])
        y = y + 0.2 * (n - (len(names) - 1) / 2)
        error = [part["share"] - part["low"], part["high"] - part["share"]]
        ax.errorbar(part["share"], y, xerr=error, fmt="o", ms=5, color=colour)
        low, high = float(part["low"].iloc[0]), float(part["high"].iloc[0])
        x, side = (high + 0.02, "left") if high < 0.6 or low < 0.4 else (low - 0.02, "right")
        ax.text(
            x, float(y[0]), words, color=style.legible(colour), va="center", ha=side, fontsize=10
        )
    ax.set(
        xlim=(-0.02, 1.02),
        xlabel="share of characters read, shown alone on a line (95% intervals)",
        yticks=range(len(settings)),
    )
    ax.set_yticklabels([f"{font}\n{size} px" for font, size in settings])
    ax.set_ylim(len(settings) - 0.4, -0.6)
    dead, control = (by[by["group"] == name] for name in ("imprisoned", "matched"))
    style.headline(
        fig,
        f"Of the characters that are proven dead the network reads "
        f"{dead['sum'].sum() / dead['count'].sum():.0%}; "
        f"of others as rare and with as much ink, "
        f"{control['sum'].sum() / control['count'].sum():.0%}",
    )
    return fig
