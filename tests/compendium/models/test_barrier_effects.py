"""Effects of the barrier sweep, from rows whose answers are known."""

import json

import numpy as np
import pandas as pd
import pytest

from compendium import statistics
from compendium.models import barrier_effects as effects
from compendium.models import barrier_sweep

PENALTY, SIZE = ("penalty", 0.05), ("size", 0.05)
LEVELS = (0.5, 1.0, 2.0, 4.0)


def perturbed(gains: dict[tuple[str, float], list[float]]) -> pd.DataFrame:
    """Noise of equal absolute size over three seeds: added loss is the level plus the arm's gain of
    that level, a little more at each seed; ratios of the plain models are 10, 60, 100 and 900.
    """
    lines = []
    for (arm, weight), by_level in gains.items():
        for level, gain, ratio in zip(LEVELS, by_level, (10, 60, 100, 900), strict=True):
            for seed in (1, 2, 3):
                added = level + gain * (1 + 0.01 * seed)
                line = {"arm": arm, "penalty_weight": weight, "seed": seed, "family": "noise"}
                line |= {"scale": "absolute", "multiple": level, "nats": 3 + added, "q50": ratio}
                lines.append(line | {"added": added, "diverged_at": None})
    return pd.DataFrame(lines)


def runs_of(unigrams: float) -> pd.DataFrame:
    line = {"arm": "plain", "penalty_weight": 0.0, "unigrams_nats": unigrams, "diverged_at": None}
    return pd.DataFrame([line | {"seed": seed} for seed in (1, 2, 3)])


def test_regimes_are_read_from_the_models_without_penalty():
    table = perturbed({effects.PLAIN: [0.0] * 4, PENALTY: [9.0] * 4})
    found = effects.regimes(table, runs_of(unigrams=4.5))
    assert found["paper"]["noise"] == [1.0, 2.0]
    assert found["living"]["noise"] == [0.5, 1.0]
    nothing_felt = perturbed({effects.PLAIN: [-0.46, -0.96, -1.96, 0.0]})
    assert effects.regimes(nothing_felt, runs_of(9.0))["living"]["noise"] == [4.0]


def test_evidence_is_the_difference_of_runs_of_one_seed():
    table = perturbed({effects.PLAIN: [0.0] * 4, PENALTY: [-0.1, -0.2, -0.3, 0.4]})
    found = effects.evidence(table, (0.5, 1.0, 2.0), "noise", PENALTY)
    assert found["gain"] == pytest.approx(-0.3 * 1.02)
    assert found["widening"] == pytest.approx(-0.2 * 1.02)
    assert found["low"] < found["gain"] < found["high"] < 0
    assert (found["levels"], found["better"], found["worse"], found["rising"]) == (3, 3, 0, 0)
    whole = effects.evidence(table, LEVELS, "noise", PENALTY)
    assert (whole["better"], whole["worse"], whole["rising"]) == (3, 1, 3)


def test_p_is_corrected_over_the_levels_that_are_judged():
    table = perturbed({effects.PLAIN: [0.0] * 4, PENALTY: [-0.1, -0.2, -0.3, 0.4]})
    alone = effects.level_effects(table, [1.0], "noise", PENALTY)
    among = effects.level_effects(table, LEVELS, "noise", PENALTY)
    assert alone["p_holm"].item() == alone["p"].item()
    assert among["p_holm"].tolist() == pytest.approx(statistics.holm(among["p"]).tolist())
    assert among.loc[among["multiple"] == 1.0, "p_holm"].item() > alone["p"].item()


def test_what_is_not_there_is_none_and_an_absent_seed_is_left_out():
    table = perturbed({effects.PLAIN: [0.0] * 4, PENALTY: [-0.1] * 4})
    absent = effects.evidence(table, LEVELS, "noise", SIZE)
    assert absent["gain"] is None
    assert (absent["seeds"], absent["levels"], absent["better"]) == (0, 4, None)
    assert effects.evidence(table, [], "noise", PENALTY)["gain"] is None
    others = (table["arm"] == "plain") & (table["seed"] > 1)
    diverged = table.assign(diverged_at=np.where(others, 40.0, np.nan))
    for less in (table[~others], diverged):
        one = effects.evidence(less, LEVELS, "noise", PENALTY)
        assert (one["seeds"], one["low"], one["better"]) == (1, None, 0)


def test_the_committed_rows_are_those_of_the_code_as_it_is():
    names = {path.stem for path in barrier_sweep.folder("full").glob("*-*-*.json")}
    rows = barrier_sweep.recorded("full")
    assert len(rows) == len(names)
    assert names <= {run.name for run in barrier_sweep.schedule()}
    assert len({json.dumps(row["corpus"], sort_keys=True) for row in rows}) == 1
    runs = effects.runs_table(rows)
    assert np.isfinite(runs["validation_perplexity"]).all()
    for each in rows:
        weakest = [line[3] for line in each["perturbed"] if line[2] < 0.1]
        assert weakest == pytest.approx([each["clean"]["nats"]] * len(weakest), abs=0.1)
