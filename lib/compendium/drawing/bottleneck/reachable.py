"""What models list and can never answer with (notebook 18): a poster of words, a league of models,
drawn letters, rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compendium import style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY = "#5f5f5f"
PALE = "#dfe4e8"
_FEW = 5  # fewer letters than this make no bar


def draw_signs(signs: pd.DataFrame, model: str, lost: int, outputs: int, most: int = 12) -> Figure:
    """Everyday words as they are drawn, and under each what the recogniser makes of it; what it can
    never read is coloured.

    Parameters
    ----------
    signs : DataFrame
        language, word, meaning, reading, lost: the letters of the word that are no possible answer.
    model : str
        The recogniser's name.
    lost, outputs : int
        Its outputs, and those that can never be its answer.
    most : int
        Words shown, one a language first.
    """
    first = signs[~signs.duplicated("language")]
    shown = (first if len(first) >= most else signs).head(most)
    columns = 4
    rows = int(np.ceil(len(shown) / columns))
    fig, axes = style.figure("page", 1.25 * rows + 0.8, nrows=rows, ncols=columns, squeeze=False)
    for ax in axes.flat:
        ax.set_axis_off()
    for ax, sign in zip(axes.flat, shown.itertuples(), strict=False):
        _draw_sign(ax, sign.language, sign.word, sign.reading, set(sign.lost))
    style.headline(
        fig,
        f"The text recogniser {model.split(' ')[0]} lists {outputs:,} signs; {lost:,} it can "
        f"never read, the coloured letters among them. Each is proven.",
    )
    return fig


def _draw_sign(ax: Axes, language: str, word: str, reading: str, lost: set[str]) -> None:
    ax.add_patch(_frame(ax))
    ax.text(0.05, 0.9, language, fontsize=9, color=GREY, va="top", transform=ax.transAxes)
    size = 22 if len(word) <= 7 else 17
    _spell(ax, word, 0.62, size, [c in lost for c in word], style.legible(style.RED), "black")
    said = reading or "(nothing)"
    _spell(ax, f"is read {said}", 0.2, 12, [False] * (8 + len(said)), "black", "black")


def _frame(ax: Axes):
    from matplotlib.patches import Rectangle

    return Rectangle((0, 0), 1, 1, transform=ax.transAxes, facecolor="#f4f5f6", edgecolor="none")


def _spell(
    ax: Axes, text: str, height: float, size: float, marked: list[bool], colour: str, plain: str
) -> None:
    """A centred line in which some characters have another colour."""
    from matplotlib.offsetbox import AnnotationBbox, HPacker, TextArea

    runs: list[tuple[str, bool]] = []
    for character, mark in zip(text, marked, strict=True):
        if runs and runs[-1][1] == mark:
            runs[-1] = (runs[-1][0] + character, mark)
        else:
            runs.append((character, mark))
    areas = [
        TextArea(run, textprops={"fontsize": size, "color": colour if mark else plain})
        for run, mark in runs
    ]
    packed = HPacker(children=areas, align="baseline", pad=0, sep=0)
    ax.add_artist(
        AnnotationBbox(packed, (0.5, height), xycoords="axes fraction", frameon=False, pad=0)
    )


def draw_reach(league: pd.DataFrame, scripts: pd.DataFrame) -> Figure:
    """Left, the share of each model's outputs that can never be its answer; right, the same by
    script.

    Parameters
    ----------
    league : DataFrame
        model, asked, unreachable, share.
    scripts : DataFrame
        model, script, classes, unreachable, share.
    """
    fig, (left, right) = style.figure("page", 4.6, ncols=2, width_ratios=[1, 1.25])
    order = league[::-1]
    left.barh(order["model"], 100 * order["share"], color=style.RED, height=0.6)
    for n, row in enumerate(order.itertuples()):
        left.text(
            100 * row.share + 0.7,
            n,
            f"{row.unreachable:,} of {row.asked:,}",
            va="center",
            fontsize=9,
        )
    left.set(
        xlabel="outputs that can never be the answer (%)",
        xlim=(0, 1.55 * 100 * max(league["share"].max(), 0.01)),
    )
    left.set_yticks(range(len(order)), [_wrapped(name) for name in order["model"]], fontsize=9)
    wide = scripts[scripts["model"].str.startswith("PP-OCR")].pivot_table(
        index="script", columns="model", values="share"
    )
    wide = wide.loc[wide.max(axis=1).sort_values(ascending=False).index].head(14)
    image = right.imshow(100 * wide.to_numpy(float), cmap="Reds", vmin=0, vmax=100, aspect="auto")
    image.cmap.set_bad("white")
    right.set_xticks(
        range(wide.shape[1]), [name.split(" ")[0] for name in wide.columns], fontsize=9
    )
    right.set_yticks(range(wide.shape[0]), wide.index, fontsize=9)
    for (n, m), share in np.ndenumerate(wide.to_numpy(float)):
        text = "not listed" if np.isnan(share) else f"{share:.0%}"
        dark = not np.isnan(share) and share > 0.55
        right.text(
            m,
            n,
            text,
            ha="center",
            va="center",
            fontsize=9,
            color="white" if dark else "black" if text != "not listed" else GREY,
        )
    right.set_title("Share of each script that can never be read")
    right.spines[:].set_visible(False)
    right.tick_params(length=0)
    worst = league.loc[league["share"].idxmax()]
    style.headline(
        fig,
        f"Up to {worst['share']:.0%} of what a model in production lists can never be its "
        f"answer ({worst['model'].split(' ')[0].rstrip(',')})",
    )
    return fig


def draw_letters(readings: pd.DataFrame) -> Figure:
    """Letters drawn between two plain ones: how many are read, of those that can never be and of
    their matched controls.

    Parameters
    ----------
    readings : DataFrame
        model, letter, group, script, read.
    """
    counted = (
        readings.groupby(["model", "group"], sort=False)["read"].agg(["sum", "size"]).reset_index()
    )
    counted = counted[counted["size"] >= _FEW]
    models = list(dict.fromkeys(counted["model"]))
    fig, ax = style.figure("page", 1.1 + 0.8 * len(models))
    for n, model in enumerate(models[::-1]):
        for group, place, colour in (
            ("matched control", 0.19, style.BLUE),
            ("can never be read", -0.19, style.RED),
        ):
            row = counted[(counted["model"] == model) & (counted["group"] == group)]
            if not len(row):
                continue
            read, drawn = int(row["sum"].iloc[0]), int(row["size"].iloc[0])
            ax.barh(n + place, 100, height=0.34, color=PALE)
            ax.barh(n + place, 100 * read / drawn, height=0.34, color=colour)
            inside = 100 * read / drawn > 60
            ax.text(
                99,
                n + place,
                f"{group}: {read} of {drawn} read",
                va="center",
                ha="right",
                fontsize=9,
                color="white" if inside else "black",
            ) if not inside else ax.text(
                1,
                n + place,
                f"{group}: {read} of {drawn} read",
                va="center",
                fontsize=9,
                color="white",
            )
    ax.set_yticks(range(len(models)), [_wrapped(name) for name in models[::-1]], fontsize=9)
    ax.set(xlim=(0, 100), xlabel="letters that are read where they are drawn (%)")
    totals = counted.groupby("group")[["sum", "size"]].sum()
    never, control = totals.loc["can never be read"], totals.loc["matched control"]
    style.headline(
        fig,
        f"Of {never['size']} letters proven unreadable, {never['sum']} are read; of "
        f"{control['size']} others as rare and as dark, {control['sum']}",
    )
    return fig


def _wrapped(name: str) -> str:
    return name.replace(", ", ",\n").replace(" recogniser", "\nrecogniser").replace(" of ", "\nof ")
