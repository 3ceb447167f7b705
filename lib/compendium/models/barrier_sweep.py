"""The barrier sweep: which runs there are, and their rows, one file a run (003, Section 7).

`work` takes the next run that has no row, trains it, measures it and writes the row. Several
processes may work on one folder: a run is locked while it is trained. A row has the key of its run,
a hash of its parameters and of `compendium.models.barrier_run`; a row with another key is stale.

A row is a JSON file of the repository. Checkpoints and weights stay in `data/processed`.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
import torch
from filelock import FileLock, Timeout

from compendium import corpora, paths, profiles
from compendium.models.barrier_measures import measure
from compendium.models.barrier_run import Run, Setting, Trained, key, train_run
from compendium.models.language_models import EncodedText, load_encoded
from softgeom.arrays import Floats
from softgeom.writing import whole, write_text

WEIGHT = 0.05  # lambda of the source's main comparison, and of the controls
# Seed 0 went into the choice of the model's size.
SEEDS = (1, 2, 3, 4, 5)
_OF_A_SEED = (
    ("plain", 0.0),
    ("penalty", WEIGHT),
    ("penalty", 0.25),
    ("penalty", 0.02),
    ("penalty", 0.1),
    ("sham", WEIGHT),
    ("placebo", WEIGHT),
    ("size", WEIGHT),
)
_FULL_AFTER, _FULL_SEEDS = 2, (1, 2)  # a full M costs more: two seeds, after the first two seeds
_OTHER = "wikitext-103"
_GPU = 1e14  # operations a second in bfloat16 that a large GPU sustains, for an estimate

# The experiment, one small enough to show that all of it runs, one run of minutes for a lesson, and
# the scale of the source.
SETTINGS = {
    "full": Setting(),
    "tiny": Setting(
        characters=300_000,
        held_out_characters=40_000,
        d_vocab=400,
        d_model=32,
        n_heads=2,
        n_layers=1,
        n_ctx=32,
        steps=24,
        batch_size=4,
        rank=8,
        evaluations=4,
        evaluation_windows=16,
        measured_windows=24,
    ),
    "small": Setting(
        characters=3_000_000,
        held_out_characters=600_000,
        d_model=64,
        n_layers=2,
        steps=300,
        batch_size=8,
        evaluations=6,
        evaluation_windows=32,
        measured_windows=32,
    ),
    "paper": Setting(
        corpus="wikitext-103",
        characters=0,
        held_out_characters=0,
        d_vocab=8192,
        d_model=384,
        n_heads=6,
        n_layers=12,
        n_ctx=512,
        steps=146_000,  # 20 passes over some 120 million tokens
        batch_size=32,
        learning_rate=3.0e-4,
        rank=64,
        precision="bfloat16",
        compile=True,
    ),
}


def schedule(seeds: Sequence[int] = SEEDS) -> list[Run]:
    """All runs in the order in which they are made: what is there at any time can be read."""
    runs: list[Run] = []
    for seed in seeds:
        runs += [Run(arm, weight, seed) for arm, weight in _OF_A_SEED]
        if seed == _FULL_AFTER:
            runs += [Run("full", WEIGHT, full) for full in _FULL_SEEDS]
    return runs


def cost(setting: Setting, d_vocab: int) -> str:
    """What one run takes: tokens, weights N and operations, 6 N + 12 layers x width x context for
    each token (forward and backward; the penalty apart), and the hours that they are on a GPU.
    """
    d, layers, context = setting.d_model, setting.n_layers, setting.n_ctx
    tokens = setting.steps * setting.batch_size * context
    weights = 12 * layers * d**2 + 2 * d_vocab * d
    # a row of W_E is looked up, not multiplied
    operations = tokens * (6 * (weights - d_vocab * d) + 12 * layers * d * context)
    return (
        f"a run: {tokens:,} tokens, {weights:,} weights in products and embeddings, "
        f"{operations:.1e} operations: {operations / _GPU / 3600:.2g} hours at {_GPU:.0e} a second"
    )


def folder(setting: str) -> Path:
    """Where the rows of a setting are, by its name: those of ``full`` are committed."""
    profile = {"tiny": profiles.SMOKE, "small": profiles.DEFAULT}.get(setting, setting)
    return paths.results_dir(profile, "barrier_sweep")


def work(runs: Sequence[Run], setting: Setting, into: Path, text: EncodedText | None = None) -> int:
    """Train, measure and write every run that has no row yet, but for those that another process
    has; how many were written. ValueError where the corpus is a stand-in.
    """
    written, scratch = 0, _scratch(into)
    other: dict[str, Any] | None = None
    for run in runs:
        scratch.mkdir(parents=True, exist_ok=True)
        lock = FileLock(scratch / f"{run.name}.lock")
        try:
            with lock.acquire(blocking=False):
                if _row(into, setting, run, text) is None:
                    text = text or load_text(setting)
                    if other is None:
                        other = _other(text)
                        print(cost(setting, len(text.tokenizer)), flush=True)
                    _make(run, setting, into, text, other)
                    written += 1
        except Timeout:
            continue
    return written


def load_text(setting: Setting, *, stand_in: bool = False) -> EncodedText:
    """The corpus of a setting, encoded; ValueError where it is a stand-in and none is wanted."""
    sizes = (setting.characters, setting.held_out_characters)
    text = load_encoded(
        setting.corpus, setting.d_vocab, characters=sizes[0], held_out_characters=sizes[1]
    )
    if text.source.stand_in and not stand_in:
        raise ValueError(
            f"the sweep needs {setting.corpus}, not a stand-in: set DATA to its folder"
        )
    return text


def recorded(setting: str) -> list[dict[str, Any]]:
    """The rows of a setting, by its name. FileNotFoundError where there is none."""
    found = rows(folder(setting), SETTINGS[setting])
    if not found:
        again = "run `python -m compendium sweep`, or notebook 23_margin_sweep in profile smoke"
        raise FileNotFoundError(f"no run of the barrier sweep is recorded ({setting}): {again}.")
    return found


def rows(into: Path, setting: Setting) -> list[dict[str, Any]]:
    """The rows of a folder that belong to the setting and to the code as it is."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(into.glob("*-*-*.json"))]
    return [row for row in found if row["key"] == key(setting, Run(**row["run"]))]


def _make(run: Run, setting: Setting, into: Path, text: EncodedText, other: dict[str, Any]) -> None:
    started, scratch = time.process_time(), _scratch(into)
    print(f"{time.strftime('%H:%M:%S')} {run.name} begins", flush=True)

    def report(row: dict[str, float]) -> None:
        seconds = time.process_time() - started
        told = f"step {row['step']} of {setting.steps}, validation {row['validation']:.4f} nats"
        print(f"{time.strftime('%H:%M:%S')} {run.name}: {told}, {seconds:.0f} CPU s", flush=True)

    checkpoint = scratch / f"{run.name}-{key(setting, run)}.checkpoint"
    path = _read_lengths(into, run) if run.arm == "size" else None
    corpus = (text.train, text.validation, len(text.tokenizer))
    how: dict[str, Any] = {"path": path, "checkpoint": checkpoint, "report": report}
    with _fast():
        trained = train_run(setting, run, *corpus, **how)
        trained_seconds = time.process_time() - started
        numbers = measure(setting, run, trained, text, other)
    with whole(scratch / f"{run.name}.joblib") as fresh:
        joblib.dump(trained, fresh)
    if run.arm == "penalty" and run.penalty_weight == WEIGHT:
        _write_lengths(into, run, trained)
    row = {
        "run": asdict(run),
        "key": key(setting, run),
        "setting": asdict(setting),
        "corpus": {"name": text.source.name, "key": text.key, "tokens": len(text.train)},
        "parameters": sum(p.numel() for p in trained.model.parameters()),
        "diverged_at": trained.diverged_at,
        "seconds": {"training": trained_seconds, "all": time.process_time() - started},
        "evaluations": trained.evaluations,
        **numbers,
    }
    # a line for each entry: a change of one is seen as one
    lines = [f"{json.dumps(name)}: {json.dumps(_short(value))}" for name, value in row.items()]
    write_text(into / f"{run.name}.json", "{\n" + ",\n".join(lines) + "\n}\n")
    checkpoint.unlink(missing_ok=True)
    seconds = row["seconds"]
    print(f"{time.strftime('%H:%M:%S')} {run.name} written, {seconds}", flush=True)


def _row(into: Path, setting: Setting, run: Run, text: EncodedText | None) -> dict[str, Any] | None:
    path = into / f"{run.name}.json"
    row = json.loads(path.read_text("utf-8")) if path.is_file() else None
    if row is None or row["key"] != key(setting, run):
        return None
    return row if text is None or row["corpus"]["key"] == text.key else None


def _other(text: EncodedText) -> dict[str, Any]:
    """Validation and test part of the other corpus; nothing where it cannot be had."""
    parts = ("validation", "test")
    found = corpora.load_text(_OTHER, parts=parts)
    if found.source.stand_in:
        return {}
    return {f"{_OTHER} {part}": text.tokenizer.encode(getattr(found, part)) for part in parts}


def _write_lengths(into: Path, run: Run, trained: Trained) -> None:
    """Lengths of the embeddings, which the arm ``size`` of this seed follows: a row for each token,
    a column for each place that a run notes.
    """
    table = pd.DataFrame(trained.lengths.T)
    with whole(_lengths_file(into, run.seed)) as fresh:
        table.to_csv(fresh, index=False, float_format="%.4g")


def _read_lengths(into: Path, run: Run) -> Floats:
    path = _lengths_file(into, run.seed)
    if not path.is_file():
        told = f"train penalty-{run.penalty_weight:g}-{run.seed} first, which it follows."
        raise ValueError(f"{run.name} needs {path.name}: {told}")
    return pd.read_csv(path).to_numpy(float).T


def _lengths_file(into: Path, seed: int) -> Path:
    return into / f"lengths-{WEIGHT:g}-{seed}.csv"


def _short(value: Any) -> Any:
    """Numbers with six significant digits, and null for what is not finite."""
    if isinstance(value, dict):
        return {str(name): _short(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_short(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def _scratch(into: Path) -> Path:
    """Folder of checkpoints, weights and locks, for one folder of rows."""
    return paths.processed_dir() / "barrier_sweep" / into.parent.name


@contextlib.contextmanager
def _fast() -> Iterator[None]:
    """One thread, since runs stand beside each other; denormal numbers of saturated attention,
    which are slow, become zero.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)
