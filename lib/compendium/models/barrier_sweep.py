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

from compendium import corpora, paths
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


def schedule(seeds: Sequence[int] = SEEDS) -> list[Run]:
    """All runs in the order in which they are made: what is there at any time can be read."""
    runs: list[Run] = []
    for seed in seeds:
        runs += [Run(arm, weight, seed) for arm, weight in _OF_A_SEED]
        if seed == _FULL_AFTER:
            runs += [Run("full", WEIGHT, full) for full in _FULL_SEEDS]
    return runs


def folder() -> Path:
    """Where the committed rows are."""
    return paths.results_dir("full", "barrier_sweep")


def work(runs: Sequence[Run], setting: Setting, into: Path, text: EncodedText | None = None) -> int:
    """Train, measure and write every run that has no row yet, but for those that another process
    has; how many were written. ValueError where the corpus is a stand-in.
    """
    written, scratch = 0, _scratch(into)
    for run in runs:
        scratch.mkdir(parents=True, exist_ok=True)
        lock = FileLock(scratch / f"{run.name}.lock")
        try:
            with lock.acquire(blocking=False):
                if _row(into, setting, run) is None:
                    text = text or _text(setting)
                    _make(run, setting, into, text)
                    written += 1
        except Timeout:
            continue
    return written


def rows(into: Path, setting: Setting) -> list[dict[str, Any]]:
    """The rows of a folder that belong to the setting and to the code as it is."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(into.glob("*-*-*.json"))]
    return [row for row in found if row["key"] == key(setting, Run(**row["run"]))]


def _make(run: Run, setting: Setting, into: Path, text: EncodedText) -> None:
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
        numbers = measure(setting, run, trained, text, _other(text))
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


def _row(into: Path, setting: Setting, run: Run) -> dict[str, Any] | None:
    path = into / f"{run.name}.json"
    row = json.loads(path.read_text("utf-8")) if path.is_file() else None
    return row if row and row["key"] == key(setting, run) else None


def _text(setting: Setting) -> EncodedText:
    sizes = (setting.characters, setting.held_out_characters)
    text = load_encoded(
        setting.corpus, setting.d_vocab, characters=sizes[0], held_out_characters=sizes[1]
    )
    if text.source.stand_in:
        raise ValueError(
            f"the sweep needs {setting.corpus}, not a stand-in: set DATA to its folder"
        )
    return text


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
