import os
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from papers.language_model import (
    GPT,
    DivergedError,
    GPTConfig,
    TrainingConfig,
    configuration_hash,
    draw_batch,
    learning_rate,
    train,
    window_losses,
    windows,
)

Corpus = tuple[np.ndarray, np.ndarray]


class Spread(torch.nn.Module):
    """A penalty with a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3, 3))

    def forward(self, embeddings: torch.Tensor) -> torch.Tensor:
        return self.scale.square().mean() * embeddings.square().mean()


def run(tiny: GPTConfig, corpus: Corpus, config: TrainingConfig, **options):
    return train(GPT(tiny, seed=1), *corpus, config, device="cpu", **options)


def test_learns_and_equal_seeds_give_equal_losses_bit_for_bit(tiny, corpus, quick):
    config = replace(quick, steps=60, evaluate_every=60)
    one, two = run(tiny, corpus, config), run(tiny, corpus, config)
    assert one.losses == two.losses
    assert one.losses[-1] < 0.8 * one.losses[0]
    assert run(tiny, corpus, replace(config, seed=4)).losses != one.losses


def test_lambda_zero_is_the_plain_gpt_bit_for_bit(tiny, corpus, quick):
    """A loop written here gives the same losses, and so does a penalty with lambda 0."""
    model = GPT(tiny, seed=1)
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": quick.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, betas=(quick.beta1, quick.beta2))
    losses = []
    for step in range(quick.steps):
        batch = draw_batch(corpus[0], quick, tiny.n_ctx, step)
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), quick.clip_norm)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(quick, step)
        optimizer.step()
        losses.append(loss.item())
    assert not torch.equal(batch, draw_batch(corpus[0], quick, tiny.n_ctx, 0))
    plain = run(tiny, corpus, quick)
    assert plain.losses == losses
    recent = losses[-quick.evaluate_every :]
    assert plain.evaluations[-1]["training"] == pytest.approx(np.mean(recent))
    assert run(tiny, corpus, quick, penalty=Spread()).losses == losses
    obeyed = run(tiny, corpus, replace(quick, penalty_weight=5.0), penalty=Spread()).losses
    assert obeyed[0] == losses[0]  # the batches are the same for every lambda
    assert obeyed[1:] != losses[1:]


def test_a_penalty_is_minimised_and_its_own_parameters_are_trained(tiny, corpus, quick):
    weak, strong = Spread(), Spread()
    config = replace(quick, steps=40)
    ignored = run(tiny, corpus, replace(config, penalty_weight=1e-12), penalty=weak)
    obeyed = run(tiny, corpus, replace(config, penalty_weight=300.0), penalty=strong)
    assert obeyed.model.W_E.square().mean() < 0.5 * ignored.model.W_E.square().mean()
    assert strong.scale.max() < weak.scale.min()


class KilledError(Exception):
    pass


@pytest.mark.parametrize("patience", [0, 3])
def test_killed_half_way_and_resumed_gives_the_same_losses(tiny, corpus, quick, tmp_path, patience):
    config = replace(quick, penalty_weight=2.0, patience=patience)
    whole = run(tiny, corpus, config, penalty=Spread())

    def kill_after_the_second_evaluation(row: dict[str, float]) -> None:
        if row["step"] == 8:
            raise KilledError

    kept = {"checkpoint": tmp_path / "deep" / "run.checkpoint"}
    with pytest.raises(KilledError):
        run(tiny, corpus, config, penalty=Spread(), report=kill_after_the_second_evaluation, **kept)
    resumed = run(tiny, corpus, config, penalty=Spread(), **kept)
    assert resumed.resumed_at == 8
    with pytest.raises(ValueError, match=r"run\.checkpoint belongs to another configuration"):
        run(tiny, corpus, replace(config, learning_rate=2e-2), penalty=Spread(), **kept)
    assert resumed.losses == whole.losses
    assert resumed.evaluations == whole.evaluations
    for one, other in zip(resumed.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert os.listdir(tmp_path / "deep") == ["run.checkpoint"], "nothing is half-written"


@pytest.mark.parametrize("harm", ["cut", "pickle of a list"])
def test_a_damaged_checkpoint_is_set_aside_and_the_run_starts_again(
    tiny, corpus, quick, tmp_path, caplog, harm
):
    whole = run(tiny, corpus, quick)
    checkpoint = tmp_path / "run.checkpoint"
    run(tiny, corpus, quick, checkpoint=checkpoint)
    if harm == "pickle of a list":
        torch.save([1, 2], checkpoint)
    else:
        checkpoint.write_bytes(checkpoint.read_bytes()[: checkpoint.stat().st_size // 2])
    damaged = checkpoint.read_bytes()
    again = run(tiny, corpus, quick, checkpoint=checkpoint)
    assert again.resumed_at == 0
    assert again.losses == whole.losses
    assert "checkpoint run.checkpoint is damaged" in caplog.text
    assert "set aside as run.checkpoint.damaged" in caplog.text
    assert (tmp_path / "run.checkpoint.damaged").read_bytes() == damaged
    assert run(tiny, corpus, quick, checkpoint=checkpoint).resumed_at == 12


@pytest.mark.parametrize("broken", ["loss", "gradient"])
def test_a_loss_or_gradient_that_is_not_finite_stops_the_run_and_keeps_the_last_good_state(
    tiny, corpus, quick, tmp_path, broken
):
    calls = 0

    def penalty(embeddings: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls < 7:
            return embeddings.square().mean()
        if broken == "loss":
            return embeddings.sum() * torch.nan
        # sqrt at 0 has the value 0 and an infinite slope: only the gradient shows it
        return (embeddings - embeddings.detach()).sum().sqrt()

    checkpoint = tmp_path / "run.checkpoint"
    config = replace(quick, penalty_weight=1.0)
    told = f"the {broken} is not finite at step 7; .* kept in run.checkpoint"
    with pytest.raises(DivergedError, match=told) as caught:
        run(tiny, corpus, config, penalty=penalty, checkpoint=checkpoint)
    assert caught.value.step == 7
    state = torch.load(checkpoint, weights_only=True)
    assert state["step"] == 6
    assert len(state["losses"]) == 6
    assert all(tensor.isfinite().all() for tensor in state["model"].values())


def test_early_stopping_returns_the_best_model(tiny, corpus, quick):
    """Validation text that the training text contradicts: every step makes it worse."""
    misleading = (corpus[0], (np.arange(300) * 13 % 29).astype(np.int32))
    config = replace(quick, steps=200, patience=2, learning_rate=3e-2)
    result = run(tiny, misleading, config)
    best = min(result.evaluations, key=lambda row: row["validation"])
    assert result.stopped_early
    assert result.evaluations[-1]["step"] == best["step"] + 2 * config.evaluate_every < config.steps
    held_out = windows(misleading[1], tiny.n_ctx, config.evaluation_windows)
    found = window_losses(result.model, held_out).mean()
    assert found == pytest.approx(best["validation"], abs=1e-12)


def test_bfloat16_with_compilation_follows_float32(tiny, corpus, quick):
    """The paper profile's way on a GPU, small and on the CPU: weights in float32."""
    half, full = (
        run(tiny, corpus, replace(quick, precision=p, penalty_weight=1.0), penalty=Spread())
        for p in ("bfloat16", "float32")
    )
    assert half.model.W_E.dtype is torch.float32
    assert half.losses == pytest.approx(full.losses, abs=0.05)
    assert half.losses != full.losses


def test_window_losses_are_the_chain_rule(tiny, corpus):
    model = GPT(tiny, seed=1).double()
    cut = windows(corpus[1], tiny.n_ctx, 7)
    found = window_losses(model, cut, batch_size=3)
    log_p = model(torch.from_numpy(cut[:, :-1].astype(np.int64))).log_softmax(-1).detach().numpy()
    expected = -np.take_along_axis(log_p, cut[:, 1:, None].astype(int), 2)[..., 0]
    # the sum over the vocabulary is taken in float32
    assert np.allclose(found, expected, atol=1e-6)
    seen: list[slice] = []
    window_losses(model, cut, batch_size=3, perturb=lambda x, rows: (seen.append(rows), x)[1])
    assert [row.start for row in seen] == [0, 3, 6]


def test_learning_rates_rise_then_fall_and_hashes_name_configurations(quick):
    config = TrainingConfig(steps=100, warmup_steps=10, learning_rate=1.0, final_fraction=0.1)
    rates = [learning_rate(config, step) for step in range(100)]
    assert rates[:2] == pytest.approx([0.1, 0.2])
    assert max(rates) == rates[9] == 1.0
    assert rates[-1] == pytest.approx(0.1)
    assert all(a >= b for a, b in pairwise(rates[9:]))
    assert configuration_hash(quick, "a") == configuration_hash(replace(quick), "a")
    described = [(quick, "a"), (quick, "b"), (replace(quick, seed=9), "a"), ("a",)]
    described += [(np.arange(3),), (np.arange(4),)]
    assert len({configuration_hash(*some) for some in described}) == 6


def test_a_corpus_of_few_tokens_or_foreign_ones_is_refused(tiny, corpus, quick):
    training, validation = corpus
    for texts, message in (
        ((training[:0], validation), "training .* 0 tokens, one window needs 11"),
        ((training, validation[:10]), "validation corpus has 10 tokens"),
        ((training + 5, validation), r"training .* outside the vocabulary 0\.\.28"),
    ):
        with pytest.raises(ValueError, match=message):
            run(tiny, texts, quick)
