"""The sentiment model (notebooks 42 and 43): how accurate, how deep, who leads, and what
decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compendium import style

LAYERS = (0, 1, 2, 8)  # of the pictures of two reviews
# first word of a model's name
_STATES = {"labels": "trained on labels", "distilled": "taught by a teacher"}


_ENCODERS = {
    "random": "random start",
    "polarity": "start from word polarity",
    "K = 0": "no attention (K = 0)",
}
_WORDS = {"bag-of-words words": "heaviest in a bag of words", "random words": "as many at random"}


def _spoken(name: str) -> str:
    """A model's name in words: how it was trained, where its embeddings started, its step size."""
    parts = name.split(", ")
    return ", ".join(
        [_STATES.get(parts[0], parts[0]), *(_ENCODERS.get(part, part) for part in parts[1:])]
    )


def draw_accuracy(
    table: pd.DataFrame, standard_error: float, bag_of_words: float, theirs: str
) -> Figure:
    """Test accuracy of every model, the best on top; bars: the larger of spread over seeds and one
    standard error. `theirs` names the row of another split.
    """
    rows = table.sort_values("accuracy").reset_index(drop=True)
    fig, ax = style.figure("page", height=1.6 + 0.31 * len(rows))
    ax.axvline(bag_of_words, color=style.INK, lw=1, ls="--")
    ax.text(bag_of_words - 0.001, len(rows) - 0.35, "bag of words", ha="right", fontsize=9)
    for place, row in rows.iterrows():
        attends = not np.isnan(row["leaders"])
        foreign = row["model"] == theirs
        colour = style.GREY if foreign else style.BLUE if attends else style.GREEN
        error = (
            0.0
            if foreign
            else max(standard_error, 0.0 if np.isnan(row["spread"]) else row["spread"])
        )
        ax.errorbar(
            row["accuracy"],
            place,
            xerr=error,
            fmt="D" if foreign else "o",
            color=colour,
            capsize=2,
            ms=6,
        )
        note = f" {row['accuracy']:.3f}" + (
            f"\n (alpha {row['alpha']:.2g})" if attends and "trained" in row["model"] else ""
        )
        ax.text(1.0, place, note, transform=ax.get_yaxis_transform(), va="center", fontsize=9)
    ax.set(yticks=range(len(rows)), ylim=(-0.6, len(rows)), xlabel="test accuracy")
    ax.set_yticklabels([_spoken(name) for name in rows["model"]], fontsize=9)
    ax.set_xlim(rows["accuracy"].min() - 0.02, rows["accuracy"].max() + 0.03)
    for line, (note, colour) in enumerate(
        (
            ("with attention", style.BLUE),
            ("no attention", style.GREEN),
            ("authors', other split", style.GREY),
        )
    ):
        ax.text(
            0.99,
            0.04 + 0.06 * line,
            note,
            transform=ax.transAxes,
            ha="right",
            color=style.legible(colour),
            fontsize=10,
        )
    ours = rows[rows["model"] != theirs]
    attentive = ours.loc[ours["leaders"].notna(), "accuracy"]
    flat = ours.loc[ours["model"].str.contains("K = 0"), "accuracy"].max()
    style.headline(
        fig,
        f"Two dimensions are nearly enough: {attentive.max():.3f} with attention, {flat:.3f} "
        f"for the mean of the words without it, "
        f"{bag_of_words:.3f} for a bag of words",
    )
    return fig


def draw_depth(depth: pd.DataFrame) -> Figure:
    """Share of the tokens' distance to their limits that is left after eight layers, against alpha,
    beside the law (1 + alpha)^-8; one dot a model.
    """
    fig, ax = style.figure("page", height=3.9)
    alpha = np.geomspace(0.05, 4, 100)
    ax.plot(alpha, (1 + alpha) ** -8.0, color=style.INK, lw=1, ls=":")
    ax.text(0.2, 0.3, "$(1+\\alpha)^{-8}$", color=style.INK)
    ours, theirs = depth[~depth["published"]], depth[depth["published"]]
    ax.loglog(ours["alpha"], ours["distance_to_limit"], "o", color=style.BLUE, ms=6, alpha=0.8)
    ax.annotate(
        "our models",
        (1.0, float(ours.loc[(ours["alpha"] - 1).abs().idxmin(), "distance_to_limit"])),
        (-10, -12),
        textcoords="offset points",
        ha="right",
        color=style.legible(style.BLUE),
    )
    told = "whether eight layers are enough depends on alpha"
    for row in theirs.itertuples():
        ax.loglog(
            row.alpha,
            row.distance_to_limit,
            "*",
            color=style.ORANGE,
            ms=18,
            markeredgecolor=style.BLACK,
        )
        note = (
            f"the authors' trained model:\nalpha = {row.alpha:.2f}, {row.distance_to_limit:.3%} "
            f"left"
        )
        ax.annotate(
            note,
            (row.alpha, row.distance_to_limit),
            (-14, -4),
            textcoords="offset points",
            ha="right",
            va="center",
        )
        told = (
            f"the authors' model, at alpha = {row.alpha:.2f}, has arrived after eight layers; at "
            f"alpha = 0.1 half of the way would be left"
        )
    ax.axhline(0.01, color=style.GREY, lw=0.8, ls="--")
    ax.text(0.052, 0.0115, "a hundredth: close enough", fontsize=9)
    ax.set(
        xlabel="step size alpha",
        ylabel="distance to the limit left\nafter eight layers (share)",
        xlim=(0.05, 4),
    )
    ax.set_xticks([0.1, 0.3, 1, 3], ["0.1", "0.3", "1", "3"])
    ax.minorticks_off()
    style.headline(fig, f"{told[0].upper()}{told[1:]}")
    return fig


def draw_two_reviews(reviews: Sequence[Mapping], w: np.ndarray, v: float) -> Figure:
    """Two reviews on their way through the layers: tokens, leaders (stars, with their words) and
    decision line; at the end, circles count who stands at each leader.
    """
    fig, axes = style.figure("page", height=5.6, nrows=len(reviews), ncols=len(LAYERS))
    told = []
    for place, (row, review) in enumerate(zip(axes, reviews, strict=True)):
        span = 1.35 * np.abs(review["states"][0]).max()
        for ax, layer in zip(row, LAYERS, strict=True):
            line = -v * w / (w @ w) + np.outer(
                [-3 * span, 3 * span], [-w[1], w[0]]
            ) / np.linalg.norm(w)
            ax.plot(*line.T, "--", color=style.BLACK, lw=1)
            _draw_tokens(ax, review, layer, span)
            ax.set(xlim=(-span, span), ylim=(-span, span), aspect="equal", xticks=[], yticks=[])
            if place == 0:
                ax.set_title(f"layer {layer}" if layer else "at the start", fontsize=10)
            ax.spines[:].set_visible(False)
        sides = review["states"][-1] @ w + v > 0
        positive, negative = (int(review["counts"][side].sum()) for side in (sides, ~sides))
        row[0].set_ylabel(f"{'positive' if review['label'] else 'negative'} review", fontsize=10)
        row[-1].set_xlabel(
            f"{positive} against {negative}: {'positive' if review['logit'] > 0 else 'negative'}",
            fontsize=10,
            weight="bold",
        )
        told.append(f"{positive} to {negative}")
    style.headline(
        fig,
        f"Words follow a few leaders (stars), and the head count decides: "
        f"{' and '.join(told)} on the two sides of the line",
    )
    return fig


def _draw_tokens(ax: Axes, review: Mapping, layer: int, span: float) -> None:
    Z, led, counts = review["states"][layer], review["leader"], review["counts"]
    last = layer == LAYERS[-1]
    if last:
        goal = np.linalg.norm(Z[:, None] - Z[led][None], axis=-1).argmin(1)
        followers = np.bincount(goal, counts, minlength=int(led.sum()))
        ax.scatter(*Z[led].T, s=22 * followers, color=style.SKY, alpha=0.55, lw=0)
    else:
        ax.scatter(*Z[~led].T, s=12 * counts[~led], color=style.BLUE, alpha=0.6, lw=0)
    ax.scatter(
        *Z[led].T, s=90, marker="*", color=style.ORANGE, edgecolor=style.BLACK, lw=0.5, zorder=4
    )
    if layer not in (LAYERS[0], LAYERS[-1]):
        return
    words = review["words"][led]
    for i, z in enumerate(Z[led]):
        others = np.delete(Z[led], i, axis=0)
        below = (others[np.linalg.norm(others - z, axis=1) < 0.4 * span, 1] > z[1]).any()
        text = f"{words[i]}: {followers[i]:.0f}" if last else words[i]
        place = {"xytext": (0, -14 if below else 8), "ha": "center"}
        ax.annotate(
            text, z, fontsize=9, textcoords="offset points", zorder=5, **place
        ).set_path_effects(style.halo(2))


def draw_frequent_leaders(listed: pd.DataFrame, names: Sequence[str]) -> Figure:
    """The most frequent leaders of confident, correct reviews, by model: blue on the positive side,
    red on the negative; pale where the lexicon does not list the word.
    """
    fig, axes = style.figure("page", height=5.0, ncols=len(names), sharex=True)
    for ax, name in zip(np.atleast_1d(axes), names, strict=True):
        part = listed[(listed["model"] == name) & (listed["seed"] == listed["seed"].min())].iloc[
            ::-1
        ]
        colours = [style.BLUE if side == "positive" else style.RED for side in part["side"]]
        for place, (row, colour) in enumerate(zip(part.to_dict("records"), colours, strict=True)):
            known = np.isfinite(row["valence"])
            ax.barh(place, row["share_of_reviews"], color=colour, alpha=1 if known else 0.3)
            clash = known and (row["valence"] > 0) != (row["side"] == "positive")
            ax.text(
                row["share_of_reviews"],
                place,
                f" {row['word']}{' (!)' if clash else ''}",
                va="center",
                fontsize=9,
            )
        ax.set(yticks=[], xlabel="share of reviews")
        ax.set_title(_spoken(name).replace(", ", ",\n"), fontsize=9)
        ax.set_xlim(0, 1.9 * listed["share_of_reviews"].max())
    for line, (note, colour) in enumerate(
        (("leads to positive", style.BLUE), ("leads to negative", style.RED))
    ):
        ax = np.atleast_1d(axes)[0]
        ax.text(
            1,
            0.02 + 0.06 * line,
            note,
            color=style.legible(colour),
            transform=ax.transAxes,
            ha="right",
            fontsize=9,
        )
    share = (
        listed[listed["model"].isin([n for n in names if "random" in n])]["valence"].notna().mean()
    )
    style.headline(
        fig,
        f"Of the most frequent leaders {share:.0%} are sentiment words in a lexicon that "
        f"people made (pale: not listed; (!): on the other side)",
    )
    return fig


def draw_faithfulness(kept: pd.DataFrame, predicts: float) -> Figure:
    """Decisions kept, mean over models from random starts, when leaders (or as many other words)
    are deleted, left alone, or mirrored at the line.
    """
    changes = {
        "deleted": "deleted",
        "alone": "all that is left",
        "reflected": "mirrored at the line",
    }
    fig, axes = style.figure("page", height=3.3, ncols=3, sharey=True)
    for ax, (change, title) in zip(axes, changes.items(), strict=True):
        for place, row in enumerate(kept.to_dict("records")):
            ax.barh(
                place, row[change], color=style.ORANGE if row["words"] == "leaders" else style.SKY
            )
            ax.text(0.02, place, f"{row[change]:.0%}", va="center")
        ax.axvline(0.5, color=style.INK, lw=0.8, ls=":")
        ax.set(
            xlim=(0, 1),
            xticks=[0, 0.5, 1],
            xticklabels=["0", "50%", "100%"],
            xlabel="decisions kept",
            title=f"{title}",
        )
    axes[0].set_yticks(range(len(kept)), [_WORDS.get(words, words) for words in kept["words"]])
    axes[0].invert_yaxis()
    leaders = kept.set_index("words").loc["leaders"]
    style.headline(
        fig,
        f"Delete all leaders, and {leaders['deleted']:.0%} of the decisions stay; counting "
        f"the words on each side of the line gives {predicts:.0%} of them",
    )
    return fig
