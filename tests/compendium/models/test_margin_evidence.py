"""From runs to evidence: pairs, gains, concentration, windows."""

import numpy as np
import pandas as pd
import pytest

from compendium.models import concentration, outcomes, robustness
from compendium.models.sweep import Experiment
from papers.language_model import GPTConfig, TrainingConfig
from papers.language_model.configuration import draw_batch
from papers.margins.embedding_prior import PriorConfig
from papers.margins.perturb import Perturbation

SIZES = {0.0: (1.0, 2.0, 4.0), 0.05: (2.0, 4.0, 8.0), 0.25: (3.0, 6.0, 12.0)}
RUNS = pd.DataFrame(
    [("sweep", w, seed, f"{w}-{seed}", rms) for w in SIZES for seed, rms in enumerate(SIZES[w])],
    columns=["group", "penalty_weight", "seed", "key", "embedding_rms"],
)
NOISE = [Perturbation("noise", "absolute", 1, 0.5), Perturbation("noise", "absolute", 2, 1.0)]


def losses(extra):
    """Clean 3 + seed, perturbed 1 and 2 nats more, plus `extra` of a weight and a seed."""
    return {
        run.key: np.add.outer([0, 1, 2 + extra(run.penalty_weight, run.seed)], np.full(4, 3.0))
        + run.seed
        for run in RUNS.itertuples()
    }


def test_changes_are_taken_within_a_seed():
    ratio = outcomes.over_baseline(RUNS, "embedding_rms")
    assert ratio.tolist() == [1.0] * 3 + [2.0] * 3 + [3.0] * 3
    table = outcomes.by_weight(RUNS.assign(growth=ratio), ["growth"])
    found = table.loc[0.05, ["growth", "growth_low", "growth_high", "seeds"]]
    assert found.tolist() == [2.0, 2.0, 2.0, 3]


def test_gain_is_the_added_loss_beyond_the_baselines():
    gains = robustness.gains_by_seed(RUNS, losses(lambda w, s: -w * (1 + 0.1 * s)), NOISE)
    top = gains.query("family == 'noise' and scale == 'absolute' and level == level.max()")
    top = top.set_index(["penalty_weight", "seed"])
    assert top.loc[0.05, "extra_nats"].tolist() == pytest.approx([-0.05, -0.055, -0.06])
    assert gains[gains["level"] == 1]["extra_nats"].abs().max() == pytest.approx(0.0)


def test_both_rulers_measure_the_baseline_alike():
    multiples = {"noise": [1.0, 4.0], "drift": [2.0]}
    grid = robustness.perturbation_grid(multiples, baseline_rms=0.5, d_model=16)
    sizes = {(p.family, p.scale, p.level): p.sigma for p in grid}
    assert sizes["noise", "absolute", 2] == 0.5 * sizes["noise", "relative", 2] == 2.0
    assert sizes["drift", "absolute", 1] == 2.0 * 0.5 * 4.0


def scored(learned):
    nothing = np.zeros((3, 6))
    flat = {"learned": nothing + learned, "random-init": nothing + 1e-3}
    return [concentration.Scored(0.05, seed, flat, nothing, nothing) for seed in range(3)]


def test_pressure_on_one_position_or_on_none():
    runs = scored([0, 0, 50.0, 0, 0, 0])
    ratios = concentration.support_ratios(concentration.concentration_by_seed(runs, 2), 0.05)
    assert all(interval.mean == pytest.approx(1 / 6, rel=1e-3) for interval in ratios.values())
    places = concentration.places_by_seed(runs, 2).set_index(["prior", "seed"])
    assert places.loc[("learned", 0), "softmax_share_of_the_first"] == pytest.approx(0.0, abs=1e-6)
    by_seed = concentration.concentration_by_seed(scored([0, -5.0, -5, -5, -5, -5]), 2)
    positive = by_seed[(by_seed["prior"] == "learned") & (by_seed["reading"] == "positive")]
    assert positive["windows_with_pressure"].eq(0).all()
    assert concentration.support_ratios(by_seed, 0.05)["positive"].mean == 1.0


def experiment(steps):
    gpt = GPTConfig(d_vocab=20, d_model=8, n_heads=2, n_layers=1, d_mlp=16, n_ctx=6)
    training, prior = TrainingConfig(steps=steps, batch_size=2), PriorConfig(d_model=8, rank=2)
    return Experiment("sweep", gpt, training, prior, "corpus")


def test_tables_read_the_windows_of_the_run():
    tokens = np.random.default_rng(0).integers(0, 20, 500).astype(np.int32)
    run = experiment(3)
    read = outcomes.training_windows(run, tokens)
    assert read.shape == (6, 7)
    assert np.array_equal(read[2:4], draw_batch(tokens, run.training, 6, 1).numpy())
    # more than the corpus: all of it, once
    assert outcomes.training_windows(experiment(1000), tokens).shape == (83, 7)
    found = outcomes.table_perplexities(run, tokens, read)
    assert found["bigram_perplexity"] < found["unigram_perplexity"] <= 20


def test_the_gate_takes_numbers_as_they_are_and_the_lowest_loss_chooses_the_rate():
    measured = {"baseline_perplexity": 9.5, "tokens": 100, "seeds": 3}
    gate = outcomes.gate(pd.DataFrame([measured | {"trigram_perplexity": 7.0}]))
    assert gate == measured
    assert isinstance(gate["tokens"], int)
    trials = pd.DataFrame({"learning_rate": [1e-1, 3e-3, 1e-3], "validation": [np.nan, 4.0, 5.0]})
    assert outcomes.chosen_rate(trials) == 3e-3
    assert outcomes.chosen_rate(trials.iloc[::-1]) == 3e-3


def test_a_level_lives_while_the_model_without_penalty_beats_unigrams():
    """Clean 40 against 400: ratios of 2 and 9 live, 11 does not."""
    rows = [("sweep", 0.0, "noise", "absolute", n, r) for n, r in ((1, 2.0), (2, 9.0), (3, 11.0))]
    rows += [("sweep", 0.1, "noise", "absolute", n, 1.0) for n in (1, 2, 3)]
    rows += [("sweep", 0.0, "drift", "absolute", 1, 1.0)]
    columns = ["group", "penalty_weight", "family", "scale", "level", "median_ratio"]
    scale = pd.DataFrame([{"baseline_perplexity": 40.0, "unigram_perplexity": 400.0}])
    table = pd.DataFrame(rows, columns=columns)
    levels = robustness.living_levels(table, scale, "noise")
    assert levels == [1, 2]
    intervals = {"extra_nats": [0.1, 0.5, -9.0], "low": [-0.1, 0.4, -9.5], "high": [0.3, 0.6, -8.5]}
    gain = table[table["penalty_weight"] > 0].assign(**intervals)
    found = robustness.evidence_at(gain, levels, "noise", "absolute", 0.1)
    assert (found["gain"], found["weakest"]) == (0.5, 0.1)
    assert (found["levels"], found["better"], found["worse"]) == (2, 0, 1)
    assert robustness.evidence_at(gain, [], "noise", "absolute", 0.1)["gain"] is None


def test_an_interval_of_ratios_is_one_of_their_logarithms():
    runs = pd.DataFrame({"penalty_weight": 0.1, "ratio": [0.5, 2.0, 8.0]})
    found = outcomes.by_weight(runs, ["ratio"], logarithms=True).iloc[0]
    assert found["ratio"] == pytest.approx(2.0)
    assert found["ratio_low"] > 0
    assert found["ratio_low"] * found["ratio_high"] == pytest.approx(4.0)
