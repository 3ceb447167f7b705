"""The picture of the summary: verdicts by kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from compendium import findings, style
from compendium.claims import NOT_TESTABLE, VERDICTS
from compendium.findings import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# for the source, in part, against it, cannot be told
_SHADES = (style.GREEN, style.ORANGE, style.RED, style.GREY)
_OURS = (style.BLUE, style.ORANGE, style.SKY, style.GREY)  # counts for nobody: other colours
_SHORT = {"holds under its hypotheses": "under its hypotheses", NOT_TESTABLE: "not testable here"}
_LABEL = 0.25  # of the picture's width: what the labels of a column need


def draw_verdicts(found: Iterable[Finding]) -> Figure:
    """Bars of claims, a row for each kind, a column for what a verdict means to the source; rows
    that share a root count once.

    Seen: how much of what the sources state holds as it stands, how much in part, how much does
    not, and how much no scale of ours can tell. Our own questions stand apart, below, in other
    colours: they count for no source.
    """
    from matplotlib.patches import Rectangle

    counts = findings.count(found)
    counts["column"] = [
        _column(kind, verdict)
        for kind, verdict in zip(counts["kind"], counts["verdict"], strict=True)
    ]
    longest = counts.groupby("column")["claims"].max().reindex(range(4), fill_value=0)
    widths = longest + 1.0
    for _ in range(
        50
        # a column is as wide as its longest bar, and at least as its labels: the whole is a fixed
        # point
    ):
        widths = (longest + 1.0).clip(lower=_LABEL * widths.sum())
    starts = [sum(widths[:column]) for column in range(4)]
    rows = {"theorem": 3.3, "numbers": 2.2, "experiment": 1.1, "ours": -0.3}
    fig, ax = style.figure("page", height=3.6)
    for kind, verdict, n, column in counts[["kind", "verdict", "claims", "column"]].itertuples(
        index=False
    ):
        place = (starts[column], rows[kind])
        shade = (_OURS if kind == "ours" else _SHADES)[column]
        ax.add_patch(Rectangle(place, n, 0.5, facecolor=shade))
        words = f"{_SHORT.get(verdict, verdict)}: {n}"
        ax.text(
            place[0],
            place[1] + 0.55,
            words,
            va="bottom",
            color=style.legible(shade) if n else style.GREY,
        )
    ax.set_yticks([y + 0.25 for y in rows.values()], [findings.KINDS[kind] for kind in rows])
    ax.set_xlim(0, sum(widths))
    ax.set_ylim(-0.4, 4.3)
    ax.tick_params(axis="y", length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_xticks([])
    return fig


def _column(kind: str, verdict: str) -> int:
    if verdict == NOT_TESTABLE:
        return 3
    verdicts = [v for v in VERDICTS[kind] if v != NOT_TESTABLE]
    return 0 if verdict == verdicts[0] else 2 if verdict == verdicts[-1] else 1
