"""The runs of the barrier sweep: trained, measured, resumed and kept."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from compendium import paths
from compendium.models import barrier_measures, barrier_run, barrier_sweep
from compendium.models.barrier_run import Run, Setting, train_run
from compendium.models.language_models import EncodedText
from papers.language_model import GPT, train, train_tokenizer
from softgeom.source import Source

TINY = Setting(
    d_model=16,
    n_heads=2,
    n_layers=1,
    n_ctx=16,
    steps=12,
    batch_size=4,
    rank=4,
    evaluations=4,
    evaluation_windows=8,
    measured_windows=24,
)


@pytest.fixture(scope="module")
def text() -> EncodedText:
    words = "the cat sat on the mat and the dog ran to the old red barn by night".split()
    rng = np.random.default_rng(0)
    content = " ".join(rng.choice(words, 6000))
    tokenizer = train_tokenizer(content, 300)
    tokens = tokenizer.encode(content)
    parts = np.split(tokens, [len(tokens) // 2, 3 * len(tokens) // 4])
    return EncodedText(*parts, tokenizer, Source("words", "local", "a test"), "words")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "processed_dir", lambda: tmp_path / "processed")
    monkeypatch.setattr(barrier_sweep, "_other", lambda text: {})


def trained(text: EncodedText, run: Run, setting: Setting = TINY, **others):
    tokens = (text.train, text.validation, len(text.tokenizer))
    return train_run(setting, run, *tokens, device="cpu", **others)


def weights(model: GPT) -> list[torch.Tensor]:
    return [parameter.detach() for parameter in model.parameters()]


def test_the_arm_without_penalty_is_a_plain_gpt(text):
    ours = trained(text, Run("plain", 0.0, 3)).model
    config = TINY.training(Run("plain", 0.0, 3))
    plain = GPT(TINY.gpt(len(text.tokenizer)), seed=3)
    train(plain, text.train, text.validation, config, device="cpu")
    assert all(map(torch.equal, weights(ours), weights(plain)))


def test_a_resumed_run_is_the_uninterrupted_one(text, tmp_path):
    run, checkpoint = Run("penalty", 0.25, 1), tmp_path / "run.checkpoint"

    def stop(row: dict[str, float]) -> None:
        if row["step"] == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(text, run, checkpoint=checkpoint, report=stop)
    resumed, whole = trained(text, run, checkpoint=checkpoint), trained(text, run)
    assert all(map(torch.equal, weights(resumed.model), weights(whole.model)))
    assert np.array_equal(resumed.lengths, whole.lengths)
    assert torch.equal(resumed.prior.W_Q, whole.prior.W_Q)
    assert resumed.evaluations == whole.evaluations


def test_the_sham_never_moves_its_matrix_and_the_penalty_does(text):
    start = barrier_run.EmbeddingPrior(barrier_run.prior_config(TINY, "sham"), 2)
    sham, penalty = (trained(text, Run(arm, 0.25, 2)) for arm in ("sham", "penalty"))
    plain = trained(text, Run("plain", 0.0, 2))
    assert torch.equal(sham.prior.W_Q, start.W_Q)
    assert torch.equal(sham.prior.W_K, start.W_K)
    assert not torch.equal(penalty.prior.W_Q, start.W_Q)
    assert not torch.equal(sham.model.W_E, plain.model.W_E)  # and yet its penalty is felt


def test_the_size_arm_has_the_lengths_of_the_run_that_it_follows(text):
    penalty = trained(text, Run("penalty", 0.25, 1))
    size = trained(text, Run("size", 0.25, 1), path=penalty.lengths)
    wanted = penalty.model.W_E.norm(dim=1).detach().numpy()
    assert np.allclose(size.model.W_E.norm(dim=1).detach().numpy(), wanted, rtol=1e-5)
    assert np.allclose(size.lengths, penalty.lengths, rtol=1e-5)
    assert not torch.allclose(size.model.W_E, penalty.model.W_E)
    plain = trained(text, Run("plain", 0.0, 1)).model.W_E.norm(dim=1).detach().numpy()
    assert not np.allclose(plain, wanted, rtol=1e-5)


def test_the_key_is_of_parameters_and_the_training_file_alone(monkeypatch, tmp_path):
    run = Run("penalty", 0.05, 1)
    key = barrier_run.key(TINY, run)
    assert key != barrier_run.key(replace(TINY, steps=13), run)
    assert key != barrier_run.key(TINY, Run("penalty", 0.05, 2))
    copy = tmp_path / "barrier_run.py"
    shutil.copy(barrier_run.__file__, copy)
    monkeypatch.setattr(barrier_run, "__file__", str(copy))
    assert key == barrier_run.key(TINY, run)
    copy.write_text(copy.read_text() + "# another training\n")
    assert key != barrier_run.key(TINY, run)


def test_work_writes_what_is_missing_and_nothing_twice(text, tmp_path):
    into = tmp_path / "full" / "barrier_sweep"
    runs = [Run("plain", 0.0, 1), Run("penalty", 0.05, 1), Run("size", 0.05, 1)]
    assert barrier_sweep.work(runs[:1], TINY, into, text) == 1
    assert barrier_sweep.work(runs, TINY, into, text) == 2
    assert barrier_sweep.work(runs, TINY, into, text) == 0
    found = barrier_sweep.rows(into, TINY)
    assert sorted(row["run"]["arm"] for row in found) == ["penalty", "plain", "size"]
    assert barrier_sweep.rows(into, replace(TINY, steps=13)) == []
    for path in into.glob("*.json"):
        json.loads(path.read_text(), parse_constant=lambda word: pytest.fail(word))
    by_arm = {row["run"]["arm"]: row for row in found}
    assert set(by_arm["plain"]["barrier"]) == {"random"}
    assert set(by_arm["penalty"]["barrier"]) == {"learned", "start", "random"}
    assert set(by_arm["plain"]["tables"]) == {"unigrams", "bigrams", "trigrams"}
    assert by_arm["size"]["sizes"]["lengths"] == pytest.approx(
        by_arm["penalty"]["sizes"]["lengths"], rel=1e-3
    )


@pytest.mark.parametrize(
    "stale",
    [lambda row: row.update(key="of another code"), lambda row: row["corpus"].update(key="")],
)
def test_a_row_of_another_code_or_corpus_is_made_again(text, tmp_path, stale):
    into, run = tmp_path / "full" / "barrier_sweep", Run("plain", 0.0, 1)
    barrier_sweep.work([run], TINY, into, text)
    path = into / f"{run.name}.json"
    row = json.loads(path.read_text())
    stale(row)
    path.write_text(json.dumps(row))
    assert barrier_sweep.work([run], TINY, into, text) == 1
    assert barrier_sweep.work([run], TINY, into, text) == 0


def test_the_scale_of_the_paper_trains(text):
    setting = replace(
        barrier_sweep.SETTINGS["paper"], steps=20, batch_size=1, n_ctx=32, compile=False,
        evaluations=1, evaluation_windows=1,
    )  # its width, depth and precision; fewer tokens  # fmt: skip
    result = trained(text, Run("penalty", 0.05, 1), setting)
    assert result.diverged_at is None
    assert sum(p.numel() for p in result.model.blocks.parameters()) == 12 * 1_772_928
    assert result.evaluations[0]["validation"] < np.log(len(text.tokenizer))


def test_the_cost_is_that_of_the_products(text):
    setting, tokens = replace(TINY, steps=1, n_heads=1), 64
    told = barrier_sweep.cost(setting, 300)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        GPT(setting.gpt(300))(torch.zeros(4, 16, dtype=torch.long)).sum().backward()
    counted = counter.get_total_flops()
    assert float(re.search(r"([\d.e+]+) operations", told)[1]) == pytest.approx(counted, rel=0.06)
    assert f"{tokens} tokens" in told


def test_the_size_arm_says_what_it_waits_for(text, tmp_path):
    with pytest.raises(ValueError, match=r"train penalty-0\.05-1 first"):
        barrier_sweep.work([Run("size", 0.05, 1)], TINY, tmp_path / "full" / "sweep", text)


def test_measures_agree_with_the_model(text):
    run = Run("plain", 0.0, 1)
    done = trained(text, run)
    found = barrier_measures.measure(TINY, run, done, text, {"same": text.validation})
    rows = found["perturbed"]
    assert len(rows) == 4 * len(barrier_measures.MULTIPLES)
    weakest = [row[3] for row in rows if row[2] == min(barrier_measures.MULTIPLES)]
    assert weakest == pytest.approx([found["clean"]["nats"]] * 4, abs=0.01)
    assert found["other"]["same"] == pytest.approx(found["validation"], abs=1e-6)
    assert max(row[3] for row in rows) > found["clean"]["nats"] + 0.05
    assert 0 < found["tables"]["unigrams"] < np.log(len(text.tokenizer))
    assert found["barrier"]["random"]["readings"]["softmax"]["cumulative"][-1] == pytest.approx(1)


@pytest.mark.parametrize(("arm", "weight"), [("plain", 0.1), ("sham", 0.0), ("other", 0.1)])
def test_a_run_refuses_what_is_none(arm, weight):
    with pytest.raises(ValueError, match=r"lambda is|arm is"):
        Run(arm, weight, 1)


def test_the_schedule_begins_with_what_the_source_compares():
    runs = barrier_sweep.schedule()
    assert [run.name for run in runs[:3]] == ["plain-0-1", "penalty-0.05-1", "penalty-0.25-1"]
    assert len({run.name for run in runs}) == len(runs) == 42
