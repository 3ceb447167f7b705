"""The authors' recipe beside their histories, and attention at equal training loss (notebook
44).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from compendium import style

_COLOURS = {
    "theirs, softmax": style.BLUE,
    "theirs, hard": style.SKY,
    "ours": style.ORANGE,
    "no attention": style.GREEN,
}


def draw_histories(curves: pd.DataFrame, histories: pd.DataFrame | None) -> Figure:
    """Test accuracy over epochs, one panel a dimension: the authors' published history (grey) and
    what is run here on a split of the same kind.

    Epochs in which a fixed alpha is still approached are dotted and do not count among the best
    (column `counts`).
    """
    dimensions = sorted(curves["dimension"].unique())
    fig, axes = style.figure("page", height=3.9, ncols=len(dimensions), sharey=True, squeeze=False)
    curves = curves.assign(
        kind=curves["recipe"].where(~curves["recipe"].str.startswith("ours"), "ours")
    )
    best = curves[curves["counts"]].groupby(["kind", "dimension"])["test"].max()
    peak = pd.Series(dtype=float)
    if histories is not None:
        peak = (
            histories[histories["history"].astype(str).str.isdecimal()]
            .groupby("history")["test_acc"]
            .max()
        )
        peak.index = peak.index.astype(int)
    for ax, d in zip(axes[0], dimensions, strict=True):
        lines = []
        if histories is not None and d in peak:
            lines.append((style.GREY, f"their history {peak[d]:.3f}"))
            theirs = histories[histories["history"].astype(str) == str(d)]
            ax.plot(theirs["epoch"], theirs["test_acc"], color=style.GREY, lw=2.5)
        for (kind, _, _), run in curves[curves["dimension"] == d].groupby(
            ["kind", "recipe", "seed"], sort=False
        ):
            colour, marker = _COLOURS[kind], "." if len(run) < 12 else None
            first = int(run["counts"].to_numpy().argmax())
            ax.plot(run["epoch"][: first + 1], run["test"][: first + 1], ":", color=colour, lw=1.2)
            ax.plot(
                run["epoch"][first:], run["test"][first:], color=colour, lw=1.2, marker=marker, ms=5
            )
        lines += [
            (colour, f"{kind} {best[kind, d]:.3f}")
            for kind, colour in _COLOURS.items()
            if (kind, d) in best
        ]
        for line, (colour, told) in enumerate(reversed(lines)):
            ax.text(
                0.98, 0.03 + 0.075 * line, told, transform=ax.transAxes, ha="right", fontsize=9,
                color=style.legible(colour),
                path_effects=style.halo(),
            )  # fmt: skip
        ax.set_xscale("log")
        ax.set_xticks([1, 10, 100], ["1", "10", "100"])
        ax.minorticks_off()
        ax.set(title=f"d = {d}", xlabel="epoch", xlim=(0.9, 115))
    axes[0, 0].set(ylabel="test accuracy", ylim=(0.4, 0.92))
    longest = int(curves[curves["kind"].str.startswith("theirs")]["epoch"].max())
    style.headline(fig, _who_reaches(best, peak, dimensions, longest))
    return fig


def _who_reaches(best: pd.Series, peak: pd.Series, dimensions: list[int], longest: int) -> str:
    """At which dimensions the best of the authors' epochs is reached, by at most `longest` epochs
    of their recipe (surrogate or hard) and by ours.
    """
    if peak.empty:
        return "Test accuracy epoch by epoch: the authors' recipe run here, and ours"
    reached = []
    for mine in (
        best.index.get_level_values("kind").str.startswith("theirs"),
        best.index.get_level_values("kind") == "ours",
    ):
        top = best[mine].groupby("dimension").max()
        at = ", ".join(str(d) for d in dimensions if d in top and d in peak and top[d] >= peak[d])
        reached.append(f"d = {at}" if at else "no d")
    tried = ", ".join(map(str, dimensions))
    return (
        f"Up to {longest} epochs of their recipe, run here, reach the best of the authors' 101 "
        f"at {reached[0]} of {tried}; ours at {reached[1]}"
    )


def draw_equal_loss(curves: pd.DataFrame, gains: pd.DataFrame) -> Figure:
    """Test accuracy against training loss, one curve a step size (mean over seeds) with its gain
    over none at equal loss, in points; one panel a dimension.
    """
    dimensions = sorted(curves["dimension"].unique())
    fig, axes = style.figure("page", height=4.2, ncols=len(dimensions), sharey=True, squeeze=False)
    alphas = sorted(a for a in curves["step_size"].unique() if a)
    shades = colormaps[style.SEQUENTIAL](np.linspace(0.0, 0.75, len(alphas)))
    colours = {0.0: style.GREEN} | {
        alpha: to_hex(shade) for alpha, shade in zip(alphas, shades, strict=True)
    }
    for ax, d in zip(axes[0], dimensions, strict=True):
        paths = {}
        for alpha in [0.0, *alphas]:
            part = curves[(curves["dimension"] == d) & (curves["step_size"] == alpha)]
            part = part[part["alpha"] >= 0.999 * alpha] if alpha else part
            mean = part.groupby("epoch")[["training_loss", "test"]].mean()
            if len(mean):
                ax.plot(
                    mean["training_loss"], mean["test"], ".-", color=colours[alpha], lw=1.3, ms=6
                )
                paths[alpha] = mean
        names = {alpha: f"α = {alpha:g}" if alpha else "no attention" for alpha in paths}
        for row in gains[(gains["dimension"] == d) & gains["gain"].notna()].itertuples():
            ax.vlines(
                row.loss,
                row.accuracy,
                row.accuracy_without,
                color=colours[row.step_size],
                lw=0.9,
                ls=":",
            )
            names[row.step_size] += f": {100 * row.gain:+.1f}"
        ax.invert_xaxis()
        ax.set(title=f"d = {d}", xlabel="training loss (nats)")
        _label_paths(ax, paths, names, colours)
    axes[0, 0].set_ylabel("test accuracy")
    met = gains.dropna(subset=["gain"])
    told = (
        "No pair of models reaches one training loss at this scale, so that nothing is said "
        "about attention"
    )
    if len(met):
        least, most = met["gain"].min(), met["gain"].max()
        span = (
            f"{100 * least:+.1f}"
            if most - least < 5e-4
            else f"{100 * least:+.1f} to {100 * most:+.1f}"
        )
        told = f"At equal training loss attention changes the test accuracy by {span} points"
        told += f" ({len(met)} of {len(gains)} comparisons meet)" if len(met) < len(gains) else ""
    style.headline(fig, told)
    return fig


def _label_paths(
    ax: Axes, paths: dict[float, pd.DataFrame], names: dict[float, str], colours: dict[float, str]
) -> None:
    """Name the half of the curves with the lower loss at their ends, the others at their starts;
    names of neighbours stand one below the other.
    """
    lowest = {alpha: path["training_loss"].min() for alpha, path in paths.items()}
    line = 0.05 * np.subtract(*ax.get_ylim()[::-1])  # the height of a line of text
    for ends in (False, True):
        above = np.inf
        side = [
            alpha for alpha in paths if (lowest[alpha] < np.median(list(lowest.values()))) == ends
        ]
        for alpha in sorted(side, key=lambda alpha: -paths[alpha]["test"].iloc[-1 if ends else 0]):
            place = paths[alpha].iloc[-1 if ends else 0]
            above = min(above - line, place["test"])
            ax.annotate(
                names[alpha], (place["training_loss"], above), (6 if ends else -6, 0),
                textcoords="offset points", ha="left" if ends else "right", va="center", fontsize=9,
                color=style.legible(colours[alpha]),
            )  # fmt: skip
