"""One look for every figure, and one way to save it: PNG and PDF, reproducible byte for byte, with alt text inside."""

from __future__ import annotations

import json
import logging
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgeom.colours import COLOURS, GREY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEQUENTIAL = "cividis"  # even in lightness, and safe for colour-vision deficiencies
DIVERGING = "RdBu_r"

_NOTE_CHARACTERS_PER_INCH = 17  # of the small print under a figure

WIDTHS = {"column": 5.0, "page": 9.0}  # inches: half a page and a page of the report

_CJK_FAMILIES = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "Source Han Sans SC",
    "PingFang SC",
    "SimHei",
)


def use() -> None:
    """Set the compendium's look for all figures drawn from here on."""
    import matplotlib as mpl
    from cycler import cycler

    # A Chinese family without a normal weight is fine for labels; its warning would stand in every executed notebook.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    logging.getLogger("fontTools").setLevel(logging.ERROR)  # comments on old fonts' dates at every PDF
    mpl.rcParams.update(mpl.rcParamsDefault | {"backend": mpl.rcParams["backend"]})
    mpl.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=COLOURS),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": "medium",
            "axes.titlelocation": "left",
            "axes.grid": False,
            "figure.constrained_layout.use": True,
            "figure.dpi": 110,
            "font.family": ["DejaVu Sans", *cjk_families()],
            "font.size": 10,
            "image.cmap": SEQUENTIAL,
            "legend.frameon": False,
            "pdf.fonttype": 42,  # TrueType: text stays text, for search and for screen readers
            "savefig.dpi": 150,
            "svg.hashsalt": "softgeom",
        }
    )


def cjk_families() -> list[str]:
    """Families with Chinese characters installed here, best first; empty when there is none."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return [family for family in _CJK_FAMILIES if family in installed]


def figure(width: str = "column", height: float | None = None, **subplots: Any) -> tuple[Figure, Any]:
    """`plt.subplots` at one of the two widths of the report.

    Parameters
    ----------
    width
        `"column"` (5 in) or `"page"` (9 in).
    height
        In inches; 0.62 of the width when not given.
    **subplots
        Passed to `matplotlib.pyplot.subplots`.
    """
    import matplotlib.pyplot as plt

    inches = WIDTHS[width]
    return plt.subplots(figsize=(inches, height or 0.62 * inches), **subplots)


def save_figure(
    fig: Figure, path: Path, *, alt: str, note: str = "", metadata: Mapping[str, Any] | None = None
) -> list[Path]:
    """Write `path.png` and `path.pdf`, equal byte for byte whenever figure, matplotlib and fonts are equal.

    Parameters
    ----------
    fig
        The figure.
    path
        Destination without suffix.
    alt
        What somebody who cannot see the figure needs to know; stored in both files.
    note
        Small print under the figure (its data source); wrapped at the figure's width.
    metadata
        Further facts for the PNG's and PDF's metadata; JSON-serialisable.

    Raises
    ------
    ValueError
        When the alternative text is missing.
    """
    if not alt.strip():
        raise ValueError(f"figure {path.name}: alternative text is missing; say in `alt` what the figure shows")
    if note:
        wrapped = textwrap.fill(note, int(_NOTE_CHARACTERS_PER_INCH * fig.get_figwidth()))
        fig.supxlabel(wrapped, fontsize=7, color=GREY, x=0.995, ha="right")
    path.parent.mkdir(parents=True, exist_ok=True)
    details = json.dumps(dict(metadata or {}), sort_keys=True, ensure_ascii=True)
    png, pdf = (path.with_name(f"{path.name}.{suffix}") for suffix in ("png", "pdf"))
    # matplotlib writes no date into PNG; the PDF's date is switched off, since it would change the bytes at every run
    fig.savefig(png, metadata={"Title": path.name, "Description": alt, "Comment": details, "Software": None})
    fig.savefig(
        pdf, metadata={"Title": path.name, "Subject": alt, "Keywords": details, "CreationDate": None, "Producer": None}
    )
    return [png, pdf]
