"""One look for every figure, and one way to save it: PNG and PDF, the same bytes each time."""

from __future__ import annotations

import json
import logging
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgeom.colours import BLACK, BLUE, COLOURS, GREEN, GREY, ORANGE, PURPLE, RED, SKY, YELLOW  # noqa: F401 - the palette is part of the look: notebooks and drawings say style.BLUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patheffects import AbstractPathEffect
    from matplotlib.text import Text

    from compendium.models.glyphs import Font

SEQUENTIAL = "cividis"  # even in lightness, and safe for colour-vision deficiencies
DIVERGING = "RdBu_r"

INK = "#333333"  # of headlines and of notes inside a picture: 12.6 to 1 on white
_HEADLINE_SIZES = (13, 12, 11, 10)  # points, the largest that fits two lines
_HEADLINE_INSET = 0.1  # inches to the left and right of a headline

_NOTE_CHARACTERS_PER_INCH = 17  # of the small print under a figure

WIDTHS = {"column": 5.0, "page": 9.0}  # inches: half a page and a page of the report


def use(fonts: Iterable[Font] = ()) -> None:
    """Set the look of all figures from here on. Text is drawn in matplotlib's own faces, and in
    `fonts` what those lack: an installed font would change the figures of one machine.
    """
    import matplotlib as mpl
    from matplotlib import font_manager
    from matplotlib.rcsetup import cycler

    faces, fonts = font_manager.fontManager, list(fonts)
    faces.ttflist = [f for f in faces.ttflist if f.fname.startswith(mpl.get_data_path())]
    for font in fonts:
        faces.addfont(font.path)

    # no warnings of families without a normal weight, and of old fonts' dates
    for name in ("matplotlib.font_manager", "fontTools"):
        logging.getLogger(name).setLevel(logging.ERROR)
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
            "font.family": ["DejaVu Sans", *(font.family for font in fonts)],
            "font.size": 10,
            "image.cmap": SEQUENTIAL,
            "legend.frameon": False,
            "pdf.fonttype": 42,  # TrueType: text stays text, for search and for screen readers
            "savefig.dpi": 150,
            "svg.hashsalt": "softgeom",
        }
    )


def draws_chinese() -> bool:
    """Whether `use` was given a font for what matplotlib's own faces lack."""
    import matplotlib as mpl

    return len(mpl.rcParams["font.family"]) > 1


def figure(
    width: str = "column", height: float | None = None, **subplots: Any
) -> tuple[Figure, Any]:
    """`plt.subplots` at a width of the report, `"column"` (5 in) or `"page"` (9 in); the height, in
    inches, is 0.62 of the width when not given.
    """
    import matplotlib.pyplot as plt

    inches = WIDTHS[width]
    return plt.subplots(figsize=(inches, height or 0.62 * inches), **subplots)


def halo(width: float = 3.0) -> list[AbstractPathEffect]:
    """A white edge for a label on lines or dots: `ax.text(..., path_effects=style.halo())`."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground="white")]


def label(
    ax: Axes, text: str, at: Any, away: tuple[float, float], colour: str = BLACK, **more: Any
) -> None:
    """Write `text` at `away` points from the place `at` of the data, legible in its colour."""
    ax.annotate(text, at, away, textcoords="offset points", color=legible(colour), **more)


def notes(
    ax: Axes, lines: Iterable[tuple[str, str]], x: float, y: float, step: float = -0.07, **more: Any
) -> None:
    """Write lines, each in its own colour, one below the other from (x, y) in parts of the axes."""
    for n, (text, colour) in enumerate(lines):
        ax.text(x, y + n * step, text, color=legible(colour), transform=ax.transAxes, **more)


def bare(ax: Axes, **settings: Any) -> None:
    """No ticks and no frame, then `ax.set(**settings)`: for plans, where places mean nothing."""
    ax.spines[:].set_visible(False)
    ax.set(**{"xticks": [], "yticks": []} | settings)


def legible(colour: str, contrast: float = 4.5) -> str:
    """The colour for text on white: darkened until its contrast is enough for small print (WCAG
    2.2, 1.4.3). Lines and areas may keep the palette's own.
    """
    from matplotlib.colors import to_hex, to_rgb

    channels = to_rgb(colour)
    while 1.05 / (luminance(channels) + 0.05) < contrast:
        red, green, blue = channels
        channels = (0.97 * red, 0.97 * green, 0.97 * blue)
    return to_hex(channels)


def luminance(channels: Iterable[float]) -> float:
    """Relative luminance of an sRGB colour, as WCAG defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def headline(fig: Figure, text: str) -> None:
    """Draw the finding of a figure as a bold title (its `suptitle`) at its top left: wrapped by its
    measured width, and set smaller, down to 10 points, when two lines cannot hold it. ValueError
    when there is nothing to say.
    """
    if not text.strip():
        raise ValueError("a headline says what the figure shows; this one is empty")
    title = fig.suptitle(
        "", x=_HEADLINE_INSET / fig.get_figwidth(), ha="left", weight="bold", color=INK
    )
    room = fig.dpi * (fig.get_figwidth() - 2 * _HEADLINE_INSET)
    for size in _HEADLINE_SIZES:
        title.set_fontsize(size)
        lines = _wrapped(title, text.split(), room)
        if len(lines) <= 2:
            break
    title.set_text("\n".join(lines))


def _wrapped(title: Text, words: list[str], room: float) -> list[str]:
    """Words filled greedily into lines of at most `room` pixels, as wide as `title` draws them."""
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]} {word}" if lines else word
        title.set_text(longer)
        if lines and title.get_window_extent().width <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def save_figure(
    fig: Figure,
    path: Path,
    *,
    alt: str,
    note: str = "",
    metadata: Mapping[str, Any] | None = None,
    pdf: bool = True,
) -> list[Path]:
    """Write `path.png` and, unless told otherwise, `path.pdf`, equal byte for byte whenever figure,
    matplotlib and fonts are. Both hold `alt`, what somebody who cannot see the figure needs to know
    (ValueError when it is missing), and further facts; `note` is small print under the figure.
    """
    if not alt.strip():
        told = "alternative text is missing; say in `alt` what the figure shows"
        raise ValueError(f"figure {path.name}: {told}")
    if note:
        wrapped = textwrap.fill(note, int(_NOTE_CHARACTERS_PER_INCH * fig.get_figwidth()))
        fig.supxlabel(wrapped, fontsize=7, color=INK, x=0.995, ha="right")
    path.parent.mkdir(parents=True, exist_ok=True)
    details = json.dumps(dict(metadata or {}), sort_keys=True, ensure_ascii=True)
    # no dates, which would change the bytes at every run
    facts: dict[str, dict[str, Any]] = {"png": {"Description": alt, "Comment": details}}
    facts["png"] |= {"Title": path.name, "Software": None}
    if pdf:
        facts["pdf"] = {"Title": path.name, "Subject": alt, "Keywords": details}
        facts["pdf"] |= {"CreationDate": None, "Producer": None}
    files = []
    for suffix, inside in facts.items():
        files.append(path.with_name(f"{path.name}.{suffix}"))
        fig.savefig(files[-1], metadata=inside)
    return files
