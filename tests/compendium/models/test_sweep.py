import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from compendium.models import margin_run, sweep
from papers.language_model import (
    GPT,
    DivergedError,
    GPTConfig,
    TrainingConfig,
    training,
    window_losses,
    windows,
)
from papers.margins.embedding_prior import EmbeddingPrior, PriorConfig
from papers.margins.perturb import Perturbation

TOKENS = (np.cumsum(np.random.default_rng(5).integers(1, 4, 900)) % 23).astype(np.int32)
BASE = sweep.Experiment(
    "sweep",
    GPTConfig(d_vocab=23, d_model=8, n_heads=2, n_layers=1, d_mlp=16, n_ctx=8),
    TrainingConfig(steps=6, batch_size=4, warmup_steps=2, evaluate_every=3, evaluation_windows=4),
    PriorConfig(d_model=8, rank=2),
    "corpus",
)


def told_by(experiment, **training):
    return replace(experiment, training=replace(experiment.training, **training))


def run(experiment, folder, **options):
    return sweep.run_experiment(experiment, TOKENS[:600], TOKENS[600:], folder, "cpu", **options)


def test_the_grid_varies_lambda_and_seed_only_and_trials_the_rate():
    told = itertools.product((0, 1), (0.0, 0.05, 0.25))
    assert sweep.penalty_grid(BASE, [0.0, 0.05, 0.25], [0, 1]) == [
        told_by(BASE, seed=seed, penalty_weight=weight) for seed, weight in told
    ]
    trials = sweep.rate_trials(told_by(BASE, penalty_weight=0.5), [0.1, 0.2], 7)
    told = [(t.learning_rate, t.steps, t.penalty_weight) for t in (e.training for e in trials)]
    assert told == [(0.1, 7, 0.0), (0.2, 7, 0.0)]


def test_ablations_change_one_reading_each_with_seeds_of_its_own():
    names = ("positive coupling", "negative coupling", "quadratic term", "full M")
    found = {e.group: e for e in sweep.ablations(BASE, 0.05, dict.fromkeys(names, 1), stride=2)}
    assert found["positive coupling"].prior == replace(BASE.prior, coupling="positive")
    assert found["negative coupling"].prior == replace(BASE.prior, coupling="negative")
    assert found["quadratic term"].prior == replace(BASE.prior, quadratic=True)
    assert found["full M"].prior == replace(BASE.prior, rank=0, stride=2)
    assert {e.training.penalty_weight for e in found.values()} == {0.05}
    found = sweep.ablations(BASE, 0.05, {"positive coupling": 2, "full M": 0})
    assert [e.group for e in found] == ["positive coupling"] * 2
    assert [e.training.seed for e in found] == [0, 1]
    with pytest.raises(ValueError, match="no reading of the prior is called 'free M'"):
        sweep.ablations(BASE, 0.05, {"free M": 1})


def test_lambda_zero_leaves_the_prior_as_it_started(tmp_path):
    outcome = run(BASE, tmp_path)
    _, prior = sweep.load_experiment(tmp_path, outcome["key"])
    assert torch.equal(prior.W_Q, EmbeddingPrior(BASE.prior, seed=0).W_Q)
    with_penalty = told_by(BASE, penalty_weight=0.5)
    _, trained = sweep.load_experiment(tmp_path, run(with_penalty, tmp_path)["key"])
    assert not torch.equal(trained.W_Q, prior.W_Q)


def test_a_finished_run_is_read_and_not_trained_again(tmp_path, monkeypatch):
    first = run(BASE, tmp_path)
    monkeypatch.setattr(margin_run, "train", None)
    assert run(BASE, tmp_path) == first
    # no checkpoint and nothing half-written is left
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".joblib", ".json"]
    table = sweep.evaluations_table([first])
    assert table["step"].tolist() == [3, 6]
    assert set(table["key"]) == {BASE.key}


def test_a_diverged_run_is_a_finding_and_a_missing_one_names_its_notebook(tmp_path, monkeypatch):
    def diverge(*_, **__):
        raise DivergedError(17, "loss", None)

    monkeypatch.setattr(margin_run, "train", diverge)
    outcome = run(BASE, tmp_path)
    assert outcome["diverged_at"] == 17
    assert outcome["evaluations"] == []
    assert run(BASE, tmp_path)["diverged_at"] == 17
    with pytest.raises(FileNotFoundError, match="run notebook 23_margin_sweep first"):
        sweep.load_experiment(tmp_path, "0123")


def test_window_scores_are_those_of_the_prior_whatever_the_batch(tmp_path):
    model, prior = sweep.load_experiment(tmp_path, run(BASE, tmp_path)["key"])
    cut = windows(TOKENS[600:], 8, 20)
    scores = sweep.window_scores(model, prior, cut)
    assert prior.W_Q.dtype == torch.float32  # the prior itself stays as it was
    with torch.no_grad():
        embedded = model.embed(torch.from_numpy(cut[:, :-1].astype(np.int64)))
        expected = prior.double().scores(embedded.double())
    assert scores.shape == (20, 8)
    np.testing.assert_allclose(scores, expected.numpy(), atol=1e-12)


def test_losses_clean_and_perturbed(tmp_path):
    key = run(BASE, tmp_path)["key"]
    cut = windows(TOKENS[600:], 8, 6)
    model: GPT = sweep.load_experiment(tmp_path, key)[0]
    told = (("absolute", 1, 0.0), ("relative", 2, 30.0))
    conditions = [Perturbation("noise", *some) for some in told]
    clean, same, noisy = sweep.measure_losses(tmp_path, key, cut, conditions, device="cpu")
    assert clean == pytest.approx(window_losses(model, cut).mean(1))
    assert np.array_equal(clean, same)
    assert noisy.mean() > clean.mean()
    seen = model.W_E[torch.from_numpy(cut[:, :-1].astype(np.int64))]
    assert sweep.embeddings_rms(model, cut) == pytest.approx(seen.pow(2).mean().sqrt().item())


class KilledError(Exception):
    pass


def test_the_branches_of_the_paper_s_profile_survive_a_kill(tmp_path, monkeypatch):
    """Half precision, full matrix, stride, early stopping; killed once."""
    half = told_by(BASE, precision="bfloat16", patience=2, penalty_weight=0.5)
    experiment = replace(half, prior=replace(BASE.prior, rank=0, stride=2))
    whole = run(experiment, tmp_path / "whole")
    assert [row["step"] for row in whole["evaluations"]] == [3, 6]
    save = training._Run.save

    def killed(self) -> None:
        save(self)
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr(training._Run, "save", killed)
        with pytest.raises(KilledError):
            run(experiment, tmp_path / "killed")
    started, update = [], training._Run.update

    def noted(self) -> None:
        started.append(self.step)
        update(self)

    monkeypatch.setattr(training._Run, "update", noted)
    assert run(experiment, tmp_path / "killed") == whole
    assert started == [3, 4, 5]
    models = [sweep.load_experiment(tmp_path / name, whole["key"]) for name in ("whole", "killed")]
    for one, two in zip(*(m.parameters() for m, _ in models), strict=True):
        assert torch.equal(one, two)
    assert torch.equal(models[0][1].W_Q, models[1][1].W_Q)
    # only activations are rounded
    assert models[0][1].W_Q.dtype == models[0][0].W_E.dtype == torch.float32


def test_a_sweep_is_described_by_its_notebook_s_parameters():
    told = {
        "d_model": 8, "n_heads": 2, "n_layers": 1, "n_ctx": 8, "steps": 6, "epochs": 0.0,
        "batch_size": 4, "evaluate_every": 3,
        "evaluation_windows": 4, "patience": 0, "precision": "float32", "compile_model": False,
        "rank": 2, "learning_rates": [0.01, 0.02],
    }  # fmt: skip
    text = SimpleNamespace(tokenizer=range(23), train=TOKENS, key="corpus")
    found = sweep.base_experiment(told, text)
    expected = replace(BASE, gpt=replace(BASE.gpt, d_mlp=32))
    assert found == told_by(expected, warmup_steps=20, learning_rate=0.01)
    assert sweep.base_experiment(told, text, 0.02).training.learning_rate == 0.02
    assert sweep.base_experiment(told | {"epochs": 2.0}, text).training.steps == 2 * 900 // 32
