"""Effects of the margin penalty as differences between arms of one seed, with the null beside them:
how far a placebo and no penalty drift apart for no reason (003, Section 7).

`compendium.models.arms` trains and measures the arms; losses are its.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from compendium import statistics
from compendium.models.arms import NONE, PLACEBO, Losses
from compendium.models.robustness import perturbation_grid


def differences(
    runs: pd.DataFrame,
    losses: Losses,
    multiples: Mapping[str, Sequence[float]],
    pairs: Sequence[tuple[str, str]],
) -> pd.DataFrame:
    """Extra loss in nats that each perturbation adds to one arm against another of its seed;
    negative is a gain.
    """
    grid = perturbation_grid(multiples, 1.0, 1)
    rows = []
    for seed in runs["seed"].unique():
        added = {arm: losses[seed, arm][1:] - losses[seed, arm][0] for arm in runs["arm"].unique()}
        for arm, against in pairs:
            extra = (added[arm] - added[against]).mean(1)
            for one, nats in zip(grid, extra, strict=True):
                multiple = multiples[one.family][one.level - 1]
                rows.append([arm, against, one.family, one.scale, multiple, seed, nats])
    columns = ["arm", "against", "family", "scale", "multiple", "seed", "extra_nats"]
    return pd.DataFrame(rows, columns=columns)


def living_multiples(
    losses: Losses, multiples: Mapping[str, Sequence[float]], unigram_perplexity: float
) -> dict[str, list[float]]:
    """Sizes of each family at which the models without penalty still beat a table of single tokens:
    the rule of :func:`compendium.models.robustness.living_levels`, over these arms.
    """
    plain = np.stack([found.mean(1) for (_, arm), found in losses.items() if arm == NONE]).mean(0)
    alive: dict[str, list[float]] = {family: [] for family in multiples}
    for one, loss in zip(perturbation_grid(multiples, 1.0, 1), plain[1:], strict=True):
        if one.scale == "absolute" and np.exp(loss) < unigram_perplexity:
            alive[one.family].append(multiples[one.family][one.level - 1])
    return alive


def effects(found: pd.DataFrame, living: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    """Mean extra loss over seeds with its 95% interval, the spread of the null beside it, Student's
    p, corrected by Holm over the living sizes of a family, ruler and pair of arms, what that
    decides, and how many seeds would. The null is rounding, and is not tested.
    """
    keys = ["arm", "against", "family", "scale", "multiple"]
    null = found[(found["arm"] == PLACEBO) & (found["against"] == NONE)]
    spread = null.groupby(keys[2:])["extra_nats"].std()
    rows = []
    for key, nats in found.groupby(keys, sort=False)["extra_nats"]:
        interval = statistics.over_seeds(nats)
        rows.append(
            dict(zip(keys, key, strict=True))
            | {"extra_nats": interval.mean, "low": interval.low, "high": interval.high}
            | {"null_deviation": spread.get(key[2:]), "p": _tested(statistics.p_value, nats, key)}
            | {"living": key[4] in living[str(key[2])], "seeds": interval.seeds}
            | {"seeds_to_decide": _tested(statistics.seeds_to_decide, nats, key)}
        )
    table = pd.DataFrame(rows)
    alive = table[table["living"] & table["p"].notna()]
    corrected = alive.groupby(keys[:4])["p"].transform(lambda p: statistics.holm(p.to_numpy()))
    sides = np.where(table["extra_nats"] < 0, "gain", "loss")
    return table.assign(p_holm=corrected, decided=lambda t: np.where(t["p_holm"] < 0.05, sides, ""))


def ratios(
    runs: pd.DataFrame, columns: Sequence[str], pairs: Sequence[tuple[str, str]]
) -> pd.DataFrame:
    """Each column of one arm over that of another of its seed: geometric mean with its 95% interval
    over seeds, less one, and the deviation of the null, which is not tested itself.
    """
    rows = []
    for column in columns:
        wide = runs.pivot(index="seed", columns="arm", values=column).transform(np.log)
        null = (wide[PLACEBO] - wide[NONE]).std()
        for arm, against in pairs:
            logs = wide[arm] - wide[against]
            interval = statistics.over_seeds(logs)
            ends = np.expm1([interval.mean, interval.low, interval.high])
            rows.append(
                {"quantity": column, "arm": arm, "against": against, "change": ends[0]}
                | {"low": ends[1], "high": ends[2], "null_deviation": null}
                | {"p": _tested(statistics.p_value, logs, (arm, against)), "seeds": interval.seeds}
                | {"seeds_to_decide": _tested(statistics.seeds_to_decide, logs, (arm, against))}
            )
    return pd.DataFrame(rows)


def decided(
    table: pd.DataFrame, arm: str, against: str, family: str, scale: str
) -> dict[str, float | int | None]:
    """What rules ask of a pair of arms: living levels, gains, losses, and that at the strongest."""
    part = table[
        (table["arm"] == arm)
        & (table["against"] == against)
        & (table["family"] == family)
        & (table["scale"] == scale)
        & table["living"]
    ].sort_values("multiple")
    named = {"gain": "extra_nats"} | {name: name for name in ("low", "high", "null_deviation")}
    top = {key: float(part[name].iloc[-1]) if len(part) else None for key, name in named.items()}
    return top | {
        "levels": len(part),
        "better": int((part["decided"] == "gain").sum()),
        "worse": int((part["decided"] == "loss").sum()),
    }


def _tested(
    test: Callable[[pd.Series], float | None], values: pd.Series, pair: tuple[object, ...]
) -> float | None:
    """A test over seeds of one arm against another; None for placebo against none."""
    return None if pair[:2] == (PLACEBO, NONE) else test(values)
