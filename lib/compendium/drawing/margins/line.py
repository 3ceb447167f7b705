"""Attention on the line (notebook 20): the next token's density, what it integrates to, random
sequences, a constrained problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compendium import style
from softgeom.margins import constrained, population, scalar

SIGNS = {"positive": 1.0, "zero": 0.0, "negative": -1.0}
_SIGN_COLOURS = {"positive": style.RED, "zero": style.INK, "negative": style.BLUE}


def draw_densities(past: Any, s: float) -> Figure:
    """Figure 3.2: density of a token given its past, and the factor that the change of variables
    puts on it, for three couplings.
    """
    fig, (density, factor) = style.figure("page", height=3.8, ncols=2)
    x = np.linspace(-4, 4, 801)
    peaks = {}
    for sign, c in SIGNS.items():
        colour, dash = _SIGN_COLOURS[sign], "--" if sign == "zero" else "-"
        p, margin = scalar.conditional_density(x, past, c, s), scalar.margin(x, past, c)
        peaks[sign] = p.max()
        name = "no coupling" if sign == "zero" else f"$c = {c:g}$"
        density.plot(x, p, color=colour, ls=dash, lw=2)
        density.text(
            1.05,
            p.max() if sign != "positive" else 0.25,
            f"{name}: {p.max():.2f}",
            color=colour,
            va="center",
        )
        factor.plot(x, margin, color=colour, ls=dash, lw=2)
        at = margin[np.abs(x).argmin()]
        factor.text(0, at + 0.05, name, color=colour, ha="center", va="bottom")
    for axis in (density, factor):
        axis.set_xlabel("next token $x$")
    density.plot(past, np.zeros_like(past), "|", color="black", ms=12, clip_on=False)
    density.text(0, 0.03, "the past", ha="center")
    density.set(
        ylabel="density", ylim=(0, 1.12 * max(peaks.values())), title="Density given the past"
    )
    factor.axhline(0, color="black", lw=1)
    factor.text(3.95, 0.05, "degeneracy boundary", ha="right")
    factor.set(
        ylabel="factor $1 - c\\,$Var$(x)$",
        title="What the change of variables multiplies by",
        ylim=(-0.1, 1.75),
    )
    style.headline(
        fig,
        f"Positive coupling flattens the next token's density, negative coupling sharpens "
        f"it: peaks {peaks['positive']:.2f}, "
        f"{peaks['zero']:.2f} and {peaks['negative']:.2f}",
    )
    return fig


def draw_mass(past: Any, c: float, s: float, points: int) -> Figure:
    """A folded residual map, the mass of its one-step "density" against the coupling, and its limit
    as the noise vanishes.
    """
    fig, axes = style.figure("page", height=3.8, ncols=3)
    _draw_fold(axes[0], past, c, level=0.15)
    _draw_mass_curves(axes[1], s, points)
    _draw_small_noise(axes[2], past, c, points)
    style.headline(
        fig,
        f"Where the map folds one noise has three tokens, so that the printed “density” "
        f"weighs {scalar.mass(past, c, s):.2f} instead of 1",
    )
    return fig


def _draw_fold(ax: Axes, past: Any, c: float, level: float) -> None:
    x = np.linspace(-3, 3, 601)
    e, m = scalar.residual(x, past, c), scalar.margin(x, past, c)
    ax.plot(x, np.where(m >= 0, e, np.nan), color=style.BLUE, lw=2)
    ax.plot(x, np.where(m < 0, e, np.nan), color=style.RED, lw=2)
    roots = scalar.preimages(level, past, c)
    ax.plot([-3, *roots, 3], np.full(len(roots) + 2, level), color=style.GREY, lw=0.8)
    ax.plot(roots, np.full_like(roots, level), "o", color="black", ms=5)
    ax.text(0.45, -0.75, "beyond the\nboundary", color=style.RED)
    ax.text(-2.95, level + 0.1, "one noise", color=style.INK)
    ax.set(
        xlabel="token $x$", ylabel="noise $e(x) = x - \\mu(x)$", title=f"$c = {c:g}$, past $\\pm 1$"
    )


def _draw_mass_curves(ax: Axes, s: float, points: int) -> None:
    couplings = np.linspace(-3, 5, 4 * points)
    for gap, colour in ((1.5, style.BLUE), (2.0, style.GREEN), (4.0, style.ORANGE)):
        p = np.array([-gap / 2, gap / 2])
        curve = [scalar.mass(p, c, s) for c in couplings]
        ax.plot(couplings, curve, color=colour)
        ax.plot(4 / gap**2, 1.0, "o", color=colour, ms=5)
        ax.text(
            5.2, curve[-1], f"{gap:g}\napart", color=style.legible(colour), va="center", fontsize=9
        )
    ax.axhline(1, color="black", lw=0.6)
    ax.set(
        xlabel="coupling $c$",
        ylabel="mass",
        title="Mass leaves 1 at $4/|x_1 - x_2|^2$",
        xlim=(-3.2, 7),
    )


def _draw_small_noise(ax: Axes, past: Any, c: float, points: int) -> None:
    scales = np.geomspace(0.02, 5, points)
    for coupling, colour in ((c, style.RED), (-c, style.BLUE)):
        ax.semilogx(scales, [scalar.mass(past, coupling, t) for t in scales], color=colour, lw=2)
        roots = len(scalar.preimages(0.0, past, coupling))
        ax.plot(scales[0], roots, "s", color=colour, ms=6, clip_on=False)
        ax.text(
            scales[0] * 1.3,
            roots + 0.06,
            f"{roots} fixed point{'s' * (roots > 1)}, $c = {coupling:g}$",
            color=colour,
        )
    ax.set(xlabel="noise scale $s$", ylabel="mass", title="Vanishing noise", ylim=(0.8, 3.4))


def draw_population(
    sequences: Any, curves: pd.DataFrame, crossing: Mapping[str, float], target: float, s: float
) -> Figure:
    """Figure 3.3: the excluded share against the lost scale, and log-density against the margin of
    random sequences, both signs.
    """
    fig, axes = style.figure("page", height=3.8, ncols=3)
    ax = axes[0]
    for reading, colour in zip(population.READINGS, (style.BLUE, style.ORANGE), strict=True):
        ax.plot(curves["scale"], 100 * curves[reading], color=colour, lw=2)
        ax.plot(
            [crossing[reading]] * 2, [0, 100 * target], "-o", color=colour, lw=0.8, markevery=[1]
        )
        side = "right" if reading == "any position" else "left"
        ax.text(
            crossing[reading] + (-0.03 if side == "right" else 0.03),
            100 * target + 0.8 if side == "right" else 1,
            f"{crossing[reading]:.2f}",
            color=style.legible(colour),
            ha=side,
            path_effects=style.halo(),
        )
        ax.text(
            2.0,
            100 * curves[reading].max() + 1,
            reading,
            color=style.legible(colour),
            ha="right",
            va="bottom",
        )
    ax.axhline(100 * target, color="black", lw=0.8, ls="--")
    ax.text(0.15, 100 * target + 1, f"paper:\n{target:.1%}")
    ax.set(
        xlabel="standard deviation of the tokens ($c = 1$)",
        ylabel="excluded sequences (%)",
        title="The lost scale",
        ylim=(-2, 47),
    )
    for axis, sign in zip(axes[1:], ("positive", "negative"), strict=True):
        _draw_cloud(axis, sequences, SIGNS[sign], s, _SIGN_COLOURS[sign])
    style.headline(
        fig,
        f"Only positive coupling has a boundary; Gaussian tokens of standard deviation "
        f"{crossing['any position']:.2f} would give the "
        f"paper's {target:.1%}",
    )
    return fig


def _draw_cloud(ax: Axes, sequences: Any, c: float, s: float, colour: str) -> None:
    margins = population.margins(sequences, c)
    extreme = margins[np.arange(len(margins)), np.abs(margins - 1.0).argmax(axis=1)]
    out = population.excluded(sequences, c)
    ax.plot(
        extreme[~out],
        scalar.sequence_log_density(sequences[~out], c, s),
        ".",
        ms=2,
        color=colour,
        alpha=0.5,
    )
    if out.any():
        floor = ax.get_ylim()[0]
        ax.plot(extreme[out], np.full(out.sum(), floor), "|", color="black", ms=6)
        ax.axvline(0, color="black", lw=0.8)
        ax.text(-0.25, floor + 0.6, f"{out.sum()}\nexcluded", ha="right", va="bottom")
    ax.set(
        xlabel="factor farthest from 1",
        ylabel="log-density (nats)",
        title=f"$c = {c:g}$: {out.mean():.0%} excluded",
    )


def draw_interior_point(
    paths: Mapping[str, Sequence[constrained.Point]],
    optima: Mapping[str, constrained.Point],
    starts: Mapping[str, Any],
    past: Any,
    c: float,
    level: float,
) -> Figure:
    """Problem (22): where two tokens may go, the two barrier paths, and their margins as the
    barrier's weight falls.
    """
    fig, (ax, fall) = style.figure("page", height=4.6, ncols=2, width_ratios=[1.1, 1])
    grid = np.linspace(-2.8, 2.8, 141)
    tails = [[np.array([u, v]) for u in grid] for v in grid]
    error = np.array([[2 * constrained.tail_error(tail, past, c) for tail in row] for row in tails])
    worst = np.array(
        [[constrained.tail_margins(tail, past, c).min() for tail in row] for row in tails]
    )
    lines = ax.contour(
        grid, grid, error, levels=[0.25, 1, 2, 4, 8], colors=style.GREY, linewidths=0.7
    )
    ax.clabel(lines, fmt="%g", fontsize=8)
    ax.contourf(grid, grid, worst, levels=[-9, level], colors=["#d55e0030"])
    ax.contour(grid, grid, worst, levels=[level], colors=style.RED, linewidths=1.4)
    free = scalar.preimages(0.0, past, c)[0]
    free = np.array([free, scalar.preimages(0.0, np.append(past, free), c)[0]])
    ax.plot(*free, "X", color="black", ms=9)
    said = {"textcoords": "offset points", "path_effects": style.halo()}
    ax.annotate(
        "squared error\nalone ends in the\nforbidden region", free, (6, -46), fontsize=9, **said
    )
    for (side, points), colour in zip(paths.items(), (style.BLUE, style.GREEN), strict=True):
        trace = np.array([starts[side], *[p.tail for p in points]])
        ax.plot(*trace.T, "-o", color=colour, ms=4, lw=2)
        ax.plot(*optima[side].tail, "*", color=colour, ms=15, mec="black", mew=0.7)
        weights = [p.weight for p in points]
        for position, dash in ((0, "-"), (1, "--")):
            margin = [p.margins[position] for p in points]
            fall.semilogx(weights, margin, dash, marker="o", ms=4, color=colour)
        fall.text(
            weights[-1],
            margin[-1] + 0.012,
            f"$x_4$, path from the {side}",
            color=style.legible(colour),
            ha="right",
        )
    ax.text(
        -2.7, -0.35, "a margin\nbelow ½", color=style.legible(style.RED), path_effects=style.halo()
    )
    ax.set(
        xlabel="token $x_3$",
        ylabel="token $x_4$",
        aspect="equal",
        title="Contours: squared error; stars: optima",
    )
    fall.axhline(level, color=style.RED, lw=1.4)
    fall.text(
        weights[-1],
        level + 0.012,
        "constraint; $x_3$ ends on it",
        color=style.legible(style.RED),
        ha="right",
    )
    fall.invert_xaxis()
    fall.set(
        xlabel="weight of the barrier",
        ylabel="margin (line: $x_3$, dashes: $x_4$)",
        title="The barrier lets go, the constraint stays",
    )
    style.headline(
        fig,
        "The log-barrier leads to the best tokens that keep a margin of ½: each piece of the "
        "allowed region has an optimum of its own",
    )
    return fig
