"""Effects of the margin penalty, as differences between runs of one seed (003, Section 7).

Read from the rows of `compendium.models.barrier_sweep`. A seed is the unit: a difference counts
where both runs of the seed are there. The rules of the register say which levels of noise and drift
are judged, the regimes of `regimes`; over the levels of one regime p is corrected by Holm.

Added loss is what a perturbation adds to a model's own clean loss, in nats: the logarithm of the
source's degradation ratio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from compendium import statistics
from compendium.models.barrier_measures import QUANTILES, TOP

Arm = tuple[str, float]  # name and lambda
PLAIN: Arm = ("plain", 0.0)
REGIMES = {"paper": "the paper's regime", "living": "mild levels"}
_RATIOS = (50.0, 800.0)  # of the source's own baselines, from the weakest level to the strongest
_OF_THE_TOP = "low high median rising seeds seeds_to_decide".split()  # of a `summary`
_FELT = 0.05  # nats that a mild level adds at least
_QUANTILES = [f"q{100 * q:g}" for q in QUANTILES]


def runs_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One line a run: what it is, and what it ended with; columns of tables where it has them."""
    found = []
    for row in rows:
        line = _run(row)
        line |= {f"{part}_perplexity": np.exp(row[part]) for part in ("training", "validation")}
        line |= {f"{name} perplexity": np.exp(nats) for name, nats in row["other"].items()}
        line |= {"error": row["error"][2], "directions": row["sizes"]["directions"]}
        line |= {"embedding_rms": row["sizes"]["rms"], "clean_nats": row["clean"]["nats"]}
        if learned := row["barrier"].get("learned"):
            names = "mean largest positive_share folded_share softmax_share_of_the_first"
            line |= {f"score_{name}": learned[name] for name in names.split()}
            line["coupling_norm"] = learned["coupling_norm"]
        line |= {f"{name}_nats": nats for name, nats in row.get("tables", {}).items()}
        line |= {"tokens": _tokens(row), "parameters": row["parameters"]}
        found.append(line | {"cpu_minutes": row["seconds"]["all"] / 60})
    return pd.DataFrame(found).sort_values(["arm", "penalty_weight", "seed"], ignore_index=True)


def evaluations_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Every evaluation on the way of every run."""
    lines = [_run(row) | each for row in rows for each in row["evaluations"]]
    return pd.DataFrame(lines)


def perturbed_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A line for each run, family, ruler and multiple: ``nats``, ``added`` nats, and quantiles of
    the ratio of perplexities over subsamples of windows.
    """
    columns = ["family", "scale", "multiple", "nats", *_QUANTILES]
    parts = []
    for row in rows:
        part = pd.DataFrame(row["perturbed"], columns=columns).assign(**_run(row))
        part["added"] = part["nats"] - row["clean"]["nats"]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def support_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """A line for each run, prior and reading: share of windows with pressure, effective support
    with its quantiles over subsamples, and cumulative shares at the places of `TOP`. A support is
    counted as one where no window has any pressure.
    """
    lines = []
    for row in rows:
        for prior, found in row["barrier"].items():
            for reading, each in found["readings"].items():
                line = _run(row) | {"prior": prior, "reading": reading}
                line |= {"windows_with_pressure": each["windows_with_pressure"]}
                line |= {"support": each.get("support", 1.0)}
                line |= dict(zip(_QUANTILES, each.get("quantiles", [np.nan] * 5), strict=True))
                curve = each.get("cumulative", [np.nan] * len(TOP))
                lines.append(line | {f"top_{k}": s for k, s in zip(TOP, curve, strict=True)})
    return pd.DataFrame(lines)


def of_arm(table: pd.DataFrame, arm: Arm) -> pd.DataFrame:
    """The lines of one arm and lambda, without runs that diverged."""
    here = (table["arm"] == arm[0]) & (table["penalty_weight"] == arm[1])
    return table[here & table["diverged_at"].isna()]


def differences(table: pd.DataFrame, column: str, arm: Arm, against: Arm = PLAIN) -> pd.Series:
    """A column of one arm less that of another, by seed, where both are there and none diverged."""
    ours, theirs = (of_arm(table, each).set_index("seed")[column] for each in (arm, against))
    return (ours - theirs).dropna()


def summary(values: pd.Series) -> dict[str, float | int | None]:
    """Mean with its 95% interval (t), median, how many rise, number of seeds, p, and how many seeds
    would decide; None where there is no seed, and for the ends of a single one.
    """
    names = "mean low high median rising seeds p seeds_to_decide".split()
    if values.empty:
        return dict.fromkeys(names) | {"seeds": 0}
    interval = statistics.over_seeds(values)
    ends = (interval.low, interval.high) if interval.seeds > 1 else (None, None)
    found: tuple[float | int | None, ...] = (interval.mean, *ends, float(values.median()))
    found += (int((values > 0).sum()), interval.seeds, statistics.p_value(values))
    return dict(zip(names, (*found, statistics.seeds_to_decide(values)), strict=True))


def regimes(perturbed: pd.DataFrame, runs: pd.DataFrame) -> dict[str, dict[str, list[float]]]:
    """Multiples of the absolute ruler in each regime, by family, from the models without penalty.

    ``living``: the perturbation adds .05 nats or more, and the model is better than single tokens.
    ``paper``: the ratio of perturbed to clean perplexity is 50 to 800.
    """
    plain = of_arm(perturbed, PLAIN)
    plain = plain[plain["scale"] == "absolute"].assign(log_ratio=lambda t: np.log(t["q50"]))
    found: dict[str, dict[str, list[float]]] = {regime: {} for regime in REGIMES}
    single = of_arm(runs, PLAIN)["unigrams_nats"].mean()
    for family, part in plain.groupby("family"):
        means = part.groupby("multiple")[["nats", "added", "log_ratio"]].mean()
        living = (means["added"] >= _FELT) & (means["nats"] < single)
        low, high = np.log(_RATIOS)
        paper = (means["log_ratio"] >= low) & (means["log_ratio"] <= high)
        found["living"][str(family)] = means.index[living].tolist()
        found["paper"][str(family)] = means.index[paper].tolist()
    return found


def level_effects(
    perturbed: pd.DataFrame,
    levels: Sequence[float],
    family: str,
    arm: Arm,
    against: Arm = PLAIN,
    scale: str = "absolute",
) -> pd.DataFrame:
    """Added loss of one arm less that of another at some levels: the `summary` of each, p corrected
    by Holm over them, and what that decides (gain, loss or nothing).
    """
    part = perturbed[(perturbed["family"] == family) & (perturbed["scale"] == scale)]
    lines = []
    for level in sorted(levels):
        nats = differences(part[part["multiple"] == level], "added", arm, against)
        lines.append({"multiple": level, **summary(nats)})
    names = ["multiple", *summary(pd.Series(dtype=float))]
    table = pd.DataFrame(lines, columns=names).astype(float)
    known = table["p"].notna()
    table.loc[known, "p_holm"] = statistics.holm(table.loc[known, "p"]) if known.any() else []
    sides = np.where(table["mean"] < 0, "gain", "loss")
    return table.assign(decided=np.where(table["p_holm"] < 0.05, sides, ""))


def evidence(
    perturbed: pd.DataFrame, levels: Sequence[float], family: str, arm: Arm, against: Arm = PLAIN
) -> dict[str, float | int | None]:
    """What rules about a regime ask: the effect at its strongest level, how much more that is than
    at its weakest, and how many levels gain and lose; None without runs of both.
    """
    table = level_effects(perturbed, levels, family, arm, against)
    part = perturbed[(perturbed["family"] == family) & (perturbed["scale"] == "absolute")]
    ends = [
        differences(part[part["multiple"] == level], "added", arm, against)
        for level in (sorted(levels)[-1:] + sorted(levels)[:1])
    ]
    top = summary(ends[0] if ends else pd.Series(dtype=float))
    wider = summary(ends[0] - ends[1] if ends else pd.Series(dtype=float))
    return {
        **{name: top[name] for name in _OF_THE_TOP},
        "gain": top["mean"],
        "widening": wider["mean"],
        "widening_low": wider["low"],
        "widening_high": wider["high"],
        "levels": len(table),
        "better": int((table["decided"] == "gain").sum()) if top["seeds"] else None,
        "worse": int((table["decided"] == "loss").sum()) if top["seeds"] else None,
    }


def gate(runs: pd.DataFrame) -> dict[str, float | int | None]:
    """What rules about the sweep ask of its scale; perplexities are geometric means over seeds."""
    plain = of_arm(runs, PLAIN)
    columns = {"baseline": np.log(plain["validation_perplexity"])}
    columns |= {name: plain[f"{name}s_nats"] for name in ("unigram", "bigram", "trigram")}
    found = {
        f"{name}_perplexity": float(np.exp(nats.mean())) if len(nats) else None
        for name, nats in columns.items()
    }
    sizes = {name: int(runs[name].max()) for name in ("tokens", "parameters")}
    return found | sizes


def _run(row: Mapping[str, Any]) -> dict[str, Any]:
    """Which run a row is of, and the step at which it diverged, if it did."""
    return {**row["run"], "diverged_at": row["diverged_at"]}


def _tokens(row: Mapping[str, Any]) -> int:
    told = row["setting"]
    return int(told["steps"] * told["batch_size"] * told["n_ctx"])
