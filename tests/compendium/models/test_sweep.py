from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from compendium.models import margin_run, sweep
from softgeom.language_model import GPT, DivergedError, GPTConfig, TrainingConfig, window_losses, windows
from softgeom.margins.embedding_prior import EmbeddingPrior, PriorConfig
from softgeom.margins.perturb import Perturbation

TOKENS = (np.cumsum(np.random.default_rng(5).integers(1, 4, 900)) % 23).astype(np.int32)
BASE = sweep.Experiment(
    "sweep",
    GPTConfig(d_vocab=23, d_model=8, n_heads=2, n_layers=1, d_mlp=16, n_ctx=8),
    TrainingConfig(steps=6, batch_size=4, warmup_steps=2, evaluate_every=3, evaluation_windows=4),
    PriorConfig(d_model=8, rank=2),
    "corpus",
)


def run(experiment, folder, **options):
    return sweep.run_experiment(experiment, TOKENS[:600], TOKENS[600:], folder, "cpu", **options)


def test_the_grid_varies_lambda_and_seed_only() -> None:
    grid = sweep.penalty_grid(BASE, [0.0, 0.05, 0.25], [0, 1])
    assert [(e.training.seed, e.training.penalty_weight) for e in grid] == [
        (seed, weight) for seed in (0, 1) for weight in (0.0, 0.05, 0.25)
    ]
    assert len({e.key for e in grid}) == 6
    alike = [replace(e, training=replace(e.training, seed=0, penalty_weight=0.0)) for e in grid]
    assert len({e.key for e in alike}) == 1


def test_ablations_change_one_reading_each() -> None:
    names = ("positive coupling", "negative coupling", "quadratic term", "full M")
    found = {e.group: e for e in sweep.ablations(BASE, 0.05, dict.fromkeys(names, 1), stride=2)}
    assert found["positive coupling"].prior == replace(BASE.prior, coupling="positive")
    assert found["negative coupling"].prior == replace(BASE.prior, coupling="negative")
    assert found["quadratic term"].prior == replace(BASE.prior, quadratic=True)
    assert found["full M"].prior == replace(BASE.prior, rank=0, stride=2)
    assert {e.training.penalty_weight for e in found.values()} == {0.05}


def test_a_reading_has_its_own_number_of_seeds_and_a_name_that_is_known() -> None:
    found = sweep.ablations(BASE, 0.05, {"positive coupling": 2, "full M": 0})
    assert [(e.group, e.training.seed) for e in found] == [("positive coupling", 0), ("positive coupling", 1)]
    with pytest.raises(ValueError, match="no reading of the prior is called 'free M'"):
        sweep.ablations(BASE, 0.05, {"free M": 1})


def test_trials_of_the_learning_rate_know_nothing_of_the_penalty() -> None:
    trials = sweep.rate_trials(replace(BASE, training=replace(BASE.training, penalty_weight=0.5)), [0.1, 0.2], 7)
    assert [(e.training.learning_rate, e.training.steps, e.training.penalty_weight) for e in trials] == [
        (0.1, 7, 0.0),
        (0.2, 7, 0.0),
    ]


def test_lambda_zero_leaves_the_prior_as_it_started(tmp_path) -> None:
    outcome = run(BASE, tmp_path)
    _, prior = sweep.load_experiment(tmp_path, outcome["key"])
    assert torch.equal(prior.W_Q, EmbeddingPrior(BASE.prior, seed=0).W_Q)
    with_penalty = replace(BASE, training=replace(BASE.training, penalty_weight=0.5))
    _, trained = sweep.load_experiment(tmp_path, run(with_penalty, tmp_path)["key"])
    assert not torch.equal(trained.W_Q, prior.W_Q)


def test_a_finished_run_is_read_and_not_trained_again(tmp_path, monkeypatch) -> None:
    first = run(BASE, tmp_path)
    monkeypatch.setattr(margin_run, "train", None)
    assert run(BASE, tmp_path) == first
    (entry,) = (path for path in tmp_path.iterdir() if path.is_dir())  # no checkpoint and nothing half-written is left
    assert sorted(path.name for path in tmp_path.iterdir()) == [entry.name, f"{BASE.key}.json"]
    table = sweep.evaluations_table([first])
    assert table["step"].tolist() == [3, 6]
    assert set(table["key"]) == {BASE.key}


def test_a_diverged_run_is_a_finding(tmp_path, monkeypatch) -> None:
    def diverge(*_, **__):
        raise DivergedError(17, "loss", None)

    monkeypatch.setattr(margin_run, "train", diverge)
    outcome = run(BASE, tmp_path)
    assert outcome["diverged_at"] == 17
    assert outcome["evaluations"] == []
    assert run(BASE, tmp_path)["diverged_at"] == 17


def test_a_missing_run_names_its_notebook(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="run notebook 23_margin_sweep first"):
        sweep.load_experiment(tmp_path, "0123")


def test_window_scores_are_those_of_the_prior_whatever_the_batch(tmp_path) -> None:
    model, prior = sweep.load_experiment(tmp_path, run(BASE, tmp_path)["key"])
    cut = windows(TOKENS[600:], 8, 6)
    scores = sweep.window_scores(model, prior, cut, batch_size=4)
    assert prior.W_Q.dtype == torch.float32  # the prior itself stays as it was
    with torch.no_grad():
        expected = prior.double().scores(model.embed(torch.from_numpy(cut[:, :-1].astype(np.int64))).double())
    assert scores.shape == (6, 8)
    np.testing.assert_allclose(scores, expected.numpy(), atol=1e-12)


def test_losses_clean_and_perturbed(tmp_path) -> None:
    key = run(BASE, tmp_path)["key"]
    cut = windows(TOKENS[600:], 8, 6)
    model: GPT = sweep.load_experiment(tmp_path, key)[0]
    conditions = [Perturbation("noise", "absolute", 1, 0.0), Perturbation("noise", "relative", 2, 30.0)]
    clean, same, noisy = sweep.measure_losses(tmp_path, key, cut, conditions, device="cpu")
    assert clean == pytest.approx(window_losses(model, cut).mean(1))
    assert np.array_equal(clean, same)
    assert noisy.mean() > clean.mean()
    seen = model.W_E[torch.from_numpy(cut[:, :-1].astype(np.int64))]
    assert sweep.embeddings_rms(model, cut) == pytest.approx(seen.pow(2).mean().sqrt().item())
