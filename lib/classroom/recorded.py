"""What the compendium measured on real models, read from its committed results: a lesson ends with
a number from there.

Lessons run without PyTorch and without the models; the results lie beside them in the clone.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

RESULTS = Path(__file__).resolve().parents[2] / "results" / "default"


@cache
def _record(notebook: str) -> dict[str, Any]:
    path = RESULTS / notebook / "record.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"The committed results of notebook {notebook} are not beside the lessons: run "
            f"them in a clone."
        )
    return json.loads(path.read_text(encoding="utf-8"))


def value(notebook: str, name: str) -> float:
    """A recorded number, such as `value("12_first_scan", "ppocr_unargmaxable")`."""
    return _record(notebook)["values"][name]["value"]


def evidence(notebook: str, claim: str) -> dict[str, Any]:
    """The evidence that a notebook passed for a claim."""
    return next(entry["evidence"] for entry in _record(notebook)["claims"] if entry["id"] == claim)


def penalised_gpt() -> dict[str, float]:
    """Of a small GPT that was trained with 003's penalty: ``share`` of positions that feel a
    barrier, and their mean ``score`` -log |det J| in nats.
    """
    row = json.loads((RESULTS / "barrier_sweep" / "penalty-0.05-1.json").read_text("utf-8"))
    learned = row["barrier"]["learned"]
    return {"share": learned["positive_share"], "score": learned["mean"]}


def table(notebook: str, name: str) -> pd.DataFrame:
    """A recorded table."""
    _record(notebook)
    return pd.read_csv(RESULTS / notebook / f"{name}.csv")
