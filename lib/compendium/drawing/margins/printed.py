"""The source's own tables (notebook 26): degradation with and without the penalty, and which
printed intervals separate.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, ScalarFormatter

from compendium import style


def draw_printed_robustness(degradation: pd.DataFrame, compared: pd.DataFrame) -> Figure:
    """Appendix E.1 redrawn with its intervals: filled dots where the two intervals share no point,
    hollow ones where they overlap.
    """
    fig, axes = style.figure("page", height=5.6, nrows=2, ncols=2, sharey=True)
    for ax, ((dataset, family), part) in zip(
        axes.flat, degradation.groupby(["dataset", "perturbation"], sort=False), strict=True
    ):
        here = compared[
            (compared["dataset"] == dataset) & (compared["perturbation"] == family)
        ].set_index("level")
        for shift, colour, name, (_, line) in zip(
            (-0.08, 0.08),
            ("black", style.RED),
            ("λ = 0", "λ = 0.05"),
            part.groupby("objective"),
            strict=True,
        ):
            ax.plot(line["level"] + shift, line["median_ratio"], color=colour, lw=1.5)
            ax.vlines(
                line["level"] + shift, line["ci95_low"], line["ci95_high"], color=colour, lw=1.5
            )
            for row in line.itertuples():
                apart = here.loc[row.level, "intervals_apart"]
                ax.plot(
                    row.level + shift,
                    row.median_ratio,
                    "o",
                    ms=7,
                    mec=colour,
                    mfc=colour if apart else "white",
                    mew=1.6,
                )
            ax.text(
                line["level"].iloc[-1] + 0.25,
                line["median_ratio"].iloc[-1],
                name,
                color=style.legible(colour),
                va="center",
            )
        ax.set(
            title=f"{dataset}, {family}: {int(here['intervals_apart'].sum())} of {len(here)} apart",
            yscale="log",
            xlim=(0.6, 6),
        )
        ax.set_xticks(sorted(here.index))
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(ScalarFormatter())
        ax.minorticks_off()
    for ax in axes[:, 0]:
        ax.set_ylabel("perplexity ratio (log)")
    for ax in axes[-1]:
        ax.set_xlabel("level of the perturbation")
    axes[0, 0].text(2.2, 18, "hollow: the two intervals overlap", fontsize=9)
    lower, apart = (
        int((compared["margin_over_plain"] < 1).sum()),
        int(compared["intervals_apart"].sum()),
    )
    style.headline(
        fig,
        f"In the paper's own tables the penalty has the lower median at {lower} of "
        f"{len(compared)} levels, and intervals apart at {apart}",
    )
    return fig
