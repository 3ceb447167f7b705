"""``softgeom.survey``: several models in one table, each scanned into its own folder."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Unpack

import pandas as pd

from softgeom.errors import DONE, explain, one_line
from softgeom.layer import Unbounded
from softgeom.options import (
    SetOptions,
    SurveyOptions,
    question,
    refuse_threshold,
    spelled_out,
    split,
)
from softgeom.results import scan_into
from softgeom.scan_result import Scan
from softgeom.scanning import decided

# whole numbers, also in a column with gaps
_COUNTS = "classes features argmaxable tied unargmaxable undecided unconditionally".split()


@spelled_out(SurveyOptions)
def survey(
    models: str | Path | Iterable[str | Path],
    *,
    progress: bool = False,
    **options: Unpack[SurveyOptions],
) -> pd.DataFrame:
    """Several models in one table, each scanned into a folder of its own under ``scans``.

    Parameters
    ----------
    models : path, name, or several
        Files, folders, hub ids or released models.
    progress, **options
        Where the features lie and how the work is done, as for ``softgeom.scan``.

    Returns
    -------
    DataFrame
        One row per model; ``refused`` says why a model could not be scanned.
    """
    named = [models] if isinstance(models, str | Path) else models
    rows, _ = surveyed([str(m) for m in named], progress=progress, **options)
    return table_of(rows)


def table_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """The rows as a table."""
    table = pd.DataFrame(rows)
    return table.astype({column: "Int64" for column in table if column in _COUNTS})


def surveyed(
    models: Sequence[str], *, progress: bool, **options: Unpack[SurveyOptions]
) -> tuple[list[dict[str, Any]], int]:
    """A row for each model, and the largest exit code; a model that cannot be read is a row that
    says why.
    """
    rows, worst = [], DONE
    for model in models:
        try:
            rows.append(_row(model, progress, *split(options, SetOptions)))
        except Exception as error:
            sentence, code = explain(error)
            worst = max(worst, code)
            rows.append({"model": one_line(model), "refused": one_line(sentence)})
            whose = "" if sentence.startswith(model) else f"{model}: "
            print(f"softgeom: {one_line(f'{whose}{sentence}')}", file=sys.stderr)
    return rows, worst


def _row(model: str, progress: bool, sets: dict[str, Any], work: dict[str, Any]) -> dict[str, Any]:
    started = time.process_time()
    head, features, why = question(model, **sets)
    refuse_threshold(head, "it is not surveyed by the largest score")

    def decide(blocks: Path) -> Scan:
        how: Any = {"wider": False, "progress": progress, "why": why, "checkpoint": blocks}
        return decided(head, features, None, **how, **work)

    found, _, folder = scan_into(None, head, model, why, decide, seed=work.get("seed", 0))
    return {
        "model": one_line(model),
        "classes": head.layer.classes,
        "features": head.layer.dimension,
        **found.counts,
        "unconditionally": _unconditionally(found),
        "set": features.describe(),
        "seconds": round(time.process_time() - started, 1),
        "folder": str(folder),
    }


def _unconditionally(found: Scan) -> int:
    """How many of the unargmaxable classes are so for any features."""
    if isinstance(found.features, Unbounded):
        return found.counts["unargmaxable"]
    return sum(len(part) for part in found.wider if isinstance(part.features, Unbounded))
