"""Printed medians with intervals, compared as statements about themselves (003, Sections 7.3 to
7.5, Appendix E).

Two intervals that share a point do not show that two models are equal: the windows were the same,
and a paired comparison could still tell them apart. They support no difference either. All
intervals are over windows of one trained model, so none says what another seed would give.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from softgeom.margins.intervals import Interval

STEMS = {
    "clean_perplexity": "clean",
    "degradation_ratio": "degradation",
    "contextual_embedding_error": "error",
    "effective_support_size": "support",
}  # quantity of Table 1 -> stem of its interval's columns


def compare_robustness(degradation: pd.DataFrame) -> pd.DataFrame:
    """Each level of each perturbation: both medians, their ratio and difference, and whether the
    intervals share no point.
    """
    rows = []
    for (dataset, family, level), pair in degradation.groupby(
        ["dataset", "perturbation", "level"], sort=False
    ):
        numbers = pair[["median_ratio", "ci95_low", "ci95_high"]].to_numpy(float).tolist()
        by = {
            objective: Interval(*row)
            for objective, row in zip(pair["objective"], numbers, strict=True)
        }
        plain, margin = by["cross-entropy"], by["margin-regularized"]
        rows.append(
            {
                "dataset": dataset,
                "perturbation": family,
                "level": level,
                "cross_entropy": plain.median,
                "margin_regularized": margin.median,
                "margin_over_plain": margin.median / plain.median,
                "gap": plain.median - margin.median,
                "intervals_apart": not plain.overlaps(margin),
            }
        )
    return pd.DataFrame(rows)


def widening(gaps: Sequence[float]) -> dict[str, float | int | str]:
    """In how many steps a sequence of gaps grows, and what the last step changes, as evidence for
    the register.
    """
    steps = np.diff(gaps)
    return {
        "widening": int((steps > 0).sum()),
        "steps": len(steps),
        "gaps": ", ".join(f"{gap:.2f}" for gap in gaps),
        "last_change": float(steps[-1] / gaps[-2]),
    }


def compare_settings(selection: pd.DataFrame) -> pd.DataFrame:
    """Each quantity of Table 1 on each data set: every nonzero penalty against none, and the
    nonzero ones among themselves.
    """
    rows = []
    for dataset, part in selection.groupby("dataset", sort=False):
        table = part.set_index("margin_penalty").sort_index()
        for quantity, stem in STEMS.items():
            intervals = {
                w: Interval(*table.loc[w, [quantity, f"{stem}_low", f"{stem}_high"]])
                for w in table.index
            }
            zero, nonzero = intervals[0.0], {w: i for w, i in intervals.items() if w > 0}
            medians = np.array([i.median for i in nonzero.values()])
            half = len(medians) // 2
            pairs = [(a, b) for a in nonzero for b in nonzero if a < b]
            rows.append(
                {
                    "dataset": dataset,
                    "quantity": quantity,
                    "settings": len(nonzero),
                    "lower": int((medians < zero.median).sum()),
                    "apart_from_zero": sum(not zero.overlaps(i) for i in nonzero.values())
                    if np.isfinite(zero.median)
                    else np.nan,
                    "least_fall": float(1 - medians.max() / zero.median),
                    "greatest_fall": float(1 - medians.min() / zero.median),
                    "pairs_apart": sum(not nonzero[a].overlaps(nonzero[b]) for a, b in pairs),
                    "pairs": len(pairs),
                    "smallest_at": list(nonzero)[int(medians.argmin())],
                    "rising": bool((np.diff(medians) > 0).all()),
                    "lower_over_larger": medians[:half].mean() / medians[half:].mean(),
                }
            )
    return pd.DataFrame(rows)


def repeated_numbers(
    degradation: pd.DataFrame,
    selection: pd.DataFrame,
    perplexity: pd.DataFrame,
    concentration: pd.DataFrame,
) -> pd.DataFrame:
    """Numbers that the source prints in two places: degradation, support size and clean
    perplexity.
    """
    table = selection.set_index(["dataset", "margin_penalty"])
    weights = {"cross-entropy": 0.0, "margin-regularized": 0.05}
    ends = degradation[(degradation["perturbation"] == "noise") & (degradation["level"] == 5)]
    rows: list[tuple[str, Any, float, str, Any]] = [
        (
            f"degradation of Table 1 and noise level 5, {r.objective}, {r.dataset}",
            r.dataset,
            weights[str(r.objective)],
            "degradation_ratio",
            r.median_ratio,
        )
        for r in ends.itertuples()
    ]
    rows += [
        (
            f"support size of Sections 7.4 and 7.5, {r.dataset}",
            r.dataset,
            0.05,
            "effective_support_size",
            r.effective_support_size,
        )
        for r in concentration[concentration["prior"] == "learned"].itertuples()
    ]
    rows += [
        (
            f"validation perplexity of Sections 7.2 and 7.5, {r.objective}, {r.dataset}",
            r.dataset,
            weights[str(r.objective)],
            "clean_perplexity",
            r.validation_perplexity,
        )
        for r in perplexity.itertuples()
    ]
    found = pd.DataFrame(
        {
            "statement": statement,
            "one": float(table[column].loc[[(dataset, weight)]].item()),
            "other": other,
        }
        for statement, dataset, weight, column, other in rows
    )
    return found.assign(equal=np.isclose(found["one"], found["other"]))


def largest_support_size(top5: float, positions: int) -> float:
    """exp of the largest entropy of ``positions`` shares of which the five largest sum to ``top5``:
    five equal ones, the rest even.
    """
    rest = positions - 5
    return float(np.exp(-top5 * np.log(top5 / 5) - (1 - top5) * np.log((1 - top5) / rest)))


def smallest_context(top5: float, size: float) -> int:
    """Fewest positions for which a top-5 share and an effective support size are possible
    together.
    """
    positions = 6
    while largest_support_size(top5, positions) < size:
        positions += 1
    return positions
