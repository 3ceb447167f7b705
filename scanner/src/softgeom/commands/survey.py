"""``softgeom survey LIST``: several models in one table, each scanned into its own folder.

LIST is models one after the other, text files that name one a line (a ``#`` begins a remark), or
folders: whatever lies in one and below it and has a format that is read.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from softgeom.checkpoints import Head
from softgeom.checkpoints.folder import holds_model
from softgeom.checkpoints.formats import FORMATS, model_files
from softgeom.checkpoints.unread import is_result
from softgeom.commands import options as asked
from softgeom.commands.boundary import DONE, explain, one_line
from softgeom.commands.results import scan_into
from softgeom.commands.scan import decided
from softgeom.layer import Unbounded
from softgeom.scan_result import Scan

_COUNTS = set(
    "classes features argmaxable tied unargmaxable undecided unconditionally".split()
)  # whole, also in a column with gaps


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    models = "files, folders, hub ids or released models, or .txt files with one a line"
    parser.add_argument("models", nargs="+", metavar="LIST", help=models)
    asked.add_features(parser)
    asked.add_work(parser)
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Scan each; a model that cannot be read is a row that says why."""
    how = (asked.chosen(options, kind) for kind in (asked.SetOptions, asked.WorkOptions))
    rows, worst = _surveyed(listed(options.models), *how, progress=True)
    if options.json:
        print(json.dumps(rows))
    else:
        table = _table(rows).drop(columns="refused", errors="ignore")
        print(table.to_string(index=False, na_rep="-"))
    return worst


def survey_models(
    models: str | Path | Iterable[str | Path],
    *,
    progress: bool = False,
    **options: Unpack[asked.SurveyOptions],
) -> pd.DataFrame:
    """Several models in one table, each scanned into a folder of its own under ``scans``.

    Parameters
    ----------
    models : path, name, or several
        Files, folders, hub ids or released models, or .txt files with one a line.
    progress, **options
        Where the features lie and how the work is done, as for ``softgeom.scan``.

    Returns
    -------
    DataFrame
        One row per model; ``refused`` says why a model could not be scanned.

    Raises
    ------
    ValueError
        When a .txt file is not a text, or names no model.
    """
    named = [models] if isinstance(models, str | Path) else models
    how = asked.split(options, asked.SetOptions)
    rows, _ = _surveyed(listed([str(m) for m in named]), *how, progress=progress)
    return _table(rows)


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(rows)
    return table.astype({column: "Int64" for column in table if column in _COUNTS})


def _surveyed(
    models: Sequence[str], sets: dict[str, Any], work: Any, *, progress: bool
) -> tuple[list[dict[str, Any]], int]:
    rows, worst = [], DONE
    for model in models:
        started = time.process_time()
        try:
            head, features, why = asked.question(model, **sets)
            asked.refuse_threshold(head, "it is not surveyed by the largest score")
            how: Any = {"wider": False, "progress": progress, "why": why, **work}

            def decide(blocks: Path, head: Head = head, how: Any = how, x: Any = features) -> Scan:
                return decided(head, x, None, (), checkpoint=blocks, **how)

            seed = work.get("seed", 0)
            found, _, folder = scan_into(None, head, model, why, decide, seed=seed)
            row = {
                "model": one_line(model),
                "classes": head.layer.classes,
                "features": head.layer.dimension,
                **found.counts,
                "unconditionally": _unconditionally(found),
                "set": features.describe(),
                "seconds": round(time.process_time() - started, 1),
                "folder": str(folder),
            }
            rows.append(row)
        except Exception as error:
            sentence, code = explain(error)
            worst = max(worst, code)
            rows.append({"model": one_line(model), "refused": one_line(sentence)})
            whose = "" if sentence.startswith(model) else f"{model}: "
            print(f"softgeom: {one_line(f'{whose}{sentence}')}", file=sys.stderr)
    return rows, worst


def _unconditionally(found: Scan) -> int:
    """How many of the unargmaxable classes are so whatever the features."""
    if isinstance(found.features, Unbounded):
        return found.counts["unargmaxable"]
    return sum(len(part) for part in found.wider if isinstance(part.features, Unbounded))


def _within(folder: Path) -> list[str]:
    """The models in a folder and below it; links to folders are not followed, and what scans left
    is none.
    """
    if holds_model(folder):
        return [str(folder)]
    if is_result(folder):
        return []
    found: list[str] = []
    models = model_files(folder)
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            found += _within(path)
        elif path in models:
            found.append(str(path))
    return found


def listed(entries: Sequence[str]) -> list[str]:
    """The models that are meant: a ``.txt`` file stands for the models that it names, a folder for
    those in it. ValueError if such a file is not a text, or there are none.
    """
    models: list[str] = []
    for entry in entries:
        if Path(entry).is_dir():
            if not (inside := _within(Path(entry))):
                looked = f"looked for {', '.join(FORMATS)}."
                raise ValueError(f"{entry} holds no model, nor does a folder in it: {looked}")
            models += inside
            continue
        if not entry.endswith(".txt"):
            models.append(entry)
            continue
        lines = asked.read_lines(Path(entry), entry, "model")
        named = [name for line in lines if (name := line.partition("#")[0].strip())]
        if not named:
            raise ValueError(f"{entry} names no model: write one a line.")
        models += named
    return models
