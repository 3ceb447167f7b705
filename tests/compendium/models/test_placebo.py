import numpy as np
import pandas as pd
import pytest

from compendium.models import arms, margin_run, placebo
from compendium.models.arms import NONE, PLACEBO
from compendium.models.sweep import Experiment
from papers.language_model import GPTConfig, TrainingConfig, windows
from papers.margins.embedding_prior import PriorConfig
from softgeom.rounding import demand_standard_model

MULTIPLES = {"noise": [0.5, 2.0]}
PAIRS = [(PLACEBO, NONE), ("penalty 0.5", PLACEBO)]


@pytest.fixture(scope="module")
def tokens():
    return (np.random.default_rng(0).zipf(1.5, 4000) % 40).astype(np.uint16)


@pytest.fixture(scope="module")
def base():
    gpt = GPTConfig(d_vocab=40, d_model=8, n_heads=2, n_layers=1, d_mlp=16, n_ctx=12)
    each = dict(batch_size=4, learning_rate=0.01, evaluate_every=50, evaluation_windows=4)
    training = TrainingConfig(steps=150, **each)
    return Experiment("sweep", gpt, training, PriorConfig(d_model=8, rank=4), "tokens")


@pytest.fixture(scope="module")
def ran(base, tokens, tmp_path_factory):
    place = (tokens, tokens[:500], tmp_path_factory.mktemp("placebo"))
    held = arms.held_arms(base.prior, 0.5, 5.0, 4)
    chosen = [*arms.arms_of([0.5], 1e-6, 10.0), *held, arms.size_arm(held[0], 10.0)]
    told = (base, 3, chosen, *place, windows(tokens, 12, 10), MULTIPLES, "cpu")
    return arms.run_seed(*told), told


def test_a_training_leaves_denormal_numbers_to_others(ran):
    demand_standard_model()


def test_inert_forms_leave_every_digit_and_the_placebo_does_not(base, tokens):
    table = arms.inert_forms(base, 0.5, 1e-6, 30, tokens, 3)
    apart = table["largest_difference"]
    assert (apart[:3] == 0).all()
    assert 0 < apart[3] < 0.01


def test_the_size_arm_ends_with_the_size_of_the_penalised_one(ran):
    (rows, _, _), _ = ran
    size = {row["arm"]: row["embedding_rms"] for row in rows}
    assert size["penalty 0.5"] > 1.1 * size[PLACEBO]
    assert size["size of penalty 0.5"] == pytest.approx(size["penalty 0.5"], rel=0.1)
    assert size[PLACEBO] == pytest.approx(size[NONE], rel=0.01)


def test_a_held_matrix_does_not_die_and_its_size_is_followed(ran):
    (rows, _, _), _ = ran
    found = {row["arm"]: row for row in rows}
    held, full = found["held 0.5, rank 4"], found["held 0.5, full"]
    # entries of 5 / sqrt(8), four and eight rows of them
    assert 30 < held["coupling_norm"] < 120
    assert 50 < full["coupling_norm"] < 200
    assert 0 < held["mean_beta"] < held["untrained_beta"]  # it turns away
    assert held["folded_share"] == 0
    size = found["size of held 0.5, rank 4"]["embedding_rms"]
    assert size == pytest.approx(held["embedding_rms"], rel=0.1)


def test_what_is_kept_is_read_again(ran, capsys, monkeypatch):
    (rows, losses, evaluations), told = ran
    monkeypatch.setattr(margin_run, "train", lambda *_, **__: pytest.fail("trained again"))
    again, measured, evaluated = arms.run_seed(*told)
    assert (again, evaluated) == (rows, evaluations)
    assert [row["step"] for row in evaluations[:3]] == [50, 100, 150]
    for key, found in losses.items():
        np.testing.assert_array_equal(measured[key], found)


def made(extra):
    """Losses of two seeds and three arms at four conditions, with `extra` nats for the penalty."""
    rng = np.random.default_rng(1)
    losses, rows = {}, []
    for seed in (1, 2, 3, 4):
        plain = rng.normal(3, 0.1, (5, 6))
        for arm in (NONE, PLACEBO, "penalty 0.5"):
            found = plain + rng.normal(0, 0.01, plain.shape)
            found[1:] += extra if arm == "penalty 0.5" else 0
            losses[seed, arm] = found
            rows.append({"seed": seed, "arm": arm, "perplexity": np.exp(found[0].mean())})
    return pd.DataFrame(rows), losses


@pytest.mark.parametrize(("extra", "better", "worse"), [(-0.3, 2, 0), (0.3, 0, 2)])
def test_a_planted_effect_is_found_with_its_sign(extra, better, worse):
    table = placebo.effects(placebo.differences(*made(extra), MULTIPLES, PAIRS), MULTIPLES)
    decided = placebo.decided(table, "penalty 0.5", PLACEBO, "noise", "absolute")
    assert (decided["levels"], decided["better"], decided["worse"]) == (2, better, worse)
    assert decided["gain"] == pytest.approx(extra, abs=0.02)
    assert decided["null_deviation"] < 0.02
    null = table["arm"] == PLACEBO
    assert table.loc[null, ["p", "p_holm", "seeds_to_decide"]].isna().all(axis=None)
    assert set(table.loc[~null, "decided"]) == {"gain" if better else "loss"}


def test_no_effect_is_found_where_there_is_none_and_dead_levels_are_not_asked():
    table = placebo.effects(placebo.differences(*made(0.0), MULTIPLES, PAIRS), {"noise": [0.5]})
    decided = placebo.decided(table, "penalty 0.5", PLACEBO, "noise", "absolute")
    assert (decided["levels"], decided["better"], decided["worse"]) == (1, 0, 0)
    assert table.loc[table["multiple"] == 2, "p_holm"].isna().all()
    none = placebo.decided(table.assign(living=False), "penalty 0.5", PLACEBO, "noise", "absolute")
    assert (none["levels"], none["gain"]) == (0, None)


def test_levels_live_while_models_beat_unigrams_and_ratios_are_within_a_seed():
    runs, losses = made(0.0)
    losses = {key: found + np.array([0, 0, 0, 3, 3])[:, None] for key, found in losses.items()}
    assert placebo.living_multiples(losses, MULTIPLES, np.exp(4)) == {"noise": [0.5]}
    runs["perplexity"] = runs["seed"] * np.where(runs["arm"] == "penalty 0.5", 1.1, 1.0)
    row = placebo.ratios(runs, ["perplexity"], PAIRS).iloc[1]
    assert row[["change", "low", "high"]].tolist() == pytest.approx([0.1, 0.1, 0.1])
    assert row["null_deviation"] == 0
