"""The authors' recipe beside their histories, and attention at equal training loss (notebook 44)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from compendium import style

_COLOURS = {"theirs, softmax": style.BLUE, "theirs, hard": style.SKY, "ours": style.ORANGE}
_NAMES = {
    "theirs, softmax": "their recipe, surrogate",
    "theirs, hard": "their recipe, hard",
    "ours": "our recipe",
}


def draw_histories(curves: pd.DataFrame, histories: pd.DataFrame | None) -> Figure:
    """Test accuracy over epochs, one panel a dimension: the authors' published history (grey) and what is run here on a split of the same kind."""
    dimensions = sorted(curves["dimension"].unique())
    fig, axes = style.figure("page", height=3.9, ncols=len(dimensions), sharey=True, squeeze=False)
    ends = sorted({dimensions[0], dimensions[-1]})
    for place, (ax, d) in enumerate(zip(axes[0], dimensions, strict=True)):
        if histories is not None:
            theirs = histories[histories["history"].astype(str) == str(d)]
            ax.plot(theirs["epoch"], theirs["test_acc"], color=style.GREY, lw=2.5)
            if place == 0:
                ax.annotate(
                    "authors'\nhistory",
                    (float(theirs["epoch"].iloc[-1]), float(theirs["test_acc"].iloc[-1])),
                    (0, -28),
                    textcoords="offset points",
                    ha="right",
                    color=style.legible(style.GREY),
                    fontsize=9,
                )
        part = curves[curves["dimension"] == d]
        for (recipe, _), run in part.groupby(["recipe", "seed"], sort=False):
            kind = "ours" if recipe.startswith("ours") else recipe
            ax.plot(run["epoch"], run["test"], color=_COLOURS[kind], lw=1.2, marker="." if len(run) < 8 else None, ms=5)
        ax.set_xscale("log")
        ax.set_xticks([1, 10, 100], ["1", "10", "100"])
        ax.minorticks_off()
        ax.set(title=f"d = {d}", xlabel="epoch", xlim=(0.9, 115))
    axes[0, 0].set(ylabel="test accuracy", ylim=(0.48, 0.92))
    for line, (kind, name) in enumerate(_NAMES.items()):
        axes[0, -1].text(
            0.97, 0.05 + 0.08 * line, name, transform=axes[0, -1].transAxes, ha="right", fontsize=9,
            color=style.legible(_COLOURS[kind]),
        )  # fmt: skip
    shown = {}
    for whose in ("theirs", "ours"):
        part = curves[curves["recipe"].str.startswith(whose)]
        best = part.groupby("dimension")["test"].max()
        shown[whose] = f"{part['epoch'].max()} epochs of {whose} " + " and ".join(f"{best[d]:.3f}" for d in ends)
    if histories is not None:
        peak = histories.astype({"history": str}).groupby("history")["test_acc"].max()
        shown["history"] = "their own history " + " and ".join(f"{peak[str(d)]:.3f}" for d in ends)
    at = " and ".join(f"d = {d}" for d in ends)
    style.headline(fig, f"Best test accuracy at {at}: " + ", ".join(shown.values()))
    return fig


def draw_equal_loss(curves: pd.DataFrame, gains: pd.DataFrame) -> Figure:
    """Test accuracy against training loss, one curve a step size (mean over seeds), without attention in green; one panel a dimension."""
    dimensions = sorted(curves["dimension"].unique())
    fig, axes = style.figure("page", height=4.2, ncols=len(dimensions), sharey=True, squeeze=False)
    alphas = sorted(a for a in curves["step_size"].unique() if a)
    shades = colormaps[style.SEQUENTIAL](np.linspace(0.0, 0.75, len(alphas)))
    colours = {0.0: style.GREEN} | {alpha: to_hex(shade) for alpha, shade in zip(alphas, shades, strict=True)}
    for ax, d in zip(axes[0], dimensions, strict=True):
        for alpha in [0.0, *alphas]:
            part = curves[(curves["dimension"] == d) & (curves["step_size"] == alpha)]
            part = part[part["alpha"] >= 0.999 * alpha] if alpha else part
            mean = part.groupby("epoch")[["training_loss", "test"]].mean()
            if not len(mean):
                continue
            ax.plot(mean["training_loss"], mean["test"], ".-", color=colours[alpha], lw=1.3, ms=6)
            place = mean.iloc[-1]
            ax.annotate(
                f"alpha = {alpha:g}" if alpha else "no attention", (place["training_loss"], place["test"]), (4, 4),
                textcoords="offset points", fontsize=9, color=style.legible(colours[alpha]),
            )  # fmt: skip
        ax.invert_xaxis()
        ax.set(title=f"d = {d}", xlabel="training loss (nats)")
    axes[0, 0].set_ylabel("test accuracy")
    met = gains.dropna(subset=["gain"])
    told = "No pair of models reaches one training loss at this scale, so that nothing is said about attention"
    if len(met):
        least, most = met["gain"].min(), met["gain"].max()
        span = f"{100 * least:+.1f}" if most - least < 5e-4 else f"{100 * least:+.1f} to {100 * most:+.1f}"
        told = f"At equal training loss attention changes the test accuracy by {span} points"
        told += f" ({len(met)} of {len(gains)} comparisons meet)" if len(met) < len(gains) else ""
    style.headline(fig, told)
    return fig
