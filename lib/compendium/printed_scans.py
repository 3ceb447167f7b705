"""The tables of paper 001 that list scanned models (Tables 1 and 4 to 8), read from
`data/reference` and held against one another.
"""

from __future__ import annotations

import re

import pandas as pd

from compendium import paths

__all__ = ["implied_totals", "read_printed_scans"]

FAMILIES = {
    "helsinki-nlp": "Helsinki OPUS-MT",
    "fair-wmt19": "FAIR WMT'19",
    "edinburgh-wmt17": "Edinburgh WMT'17",
    "bergamot": "Bergamot",
    "language-model": "language models",
}


def read_printed_scans() -> pd.DataFrame:
    """Tables 4 to 8, one row as printed: source, model, models (that the row stands for), at_most
    (whether its first number is a bound), exact_only, unargmaxable.

    `exact_only` is the column that the captions call "potentially unargmaxable".
    """
    printed = pd.read_csv(paths.root() / "data" / "reference" / "unargmaxable_model_scans.csv")
    text = printed["argmaxable_by_exact_only"].astype(str)
    printed["at_most"] = text.str.startswith("<=")
    printed["exact_only"] = text.str.removeprefix("<=").astype(int)
    printed["models"] = printed["model"].map(_models_in_row)
    return printed.drop(columns="argmaxable_by_exact_only")


def implied_totals(printed: pd.DataFrame) -> pd.DataFrame:
    """Table 1 beside what Tables 4 to 8 imply, by source: models and affected ones, printed and
    implied, and whether they agree.
    """
    totals = pd.read_csv(
        paths.root() / "data" / "reference" / "unargmaxable_model_sources.csv"
    ).set_index("source")
    rows = printed.assign(
        implied_affected=(printed["unargmaxable"] > 0) * printed["models"],
        implied=printed["models"],
    )
    implied = rows.groupby("source", sort=False)[["implied_affected", "implied"]].sum()
    table = totals[["models_with_unargmaxable", "models"]].join(implied)
    same = (table["models_with_unargmaxable"] == table["implied_affected"]) & (
        table["models"] == table["implied"]
    )
    return table.assign(agree=same).reset_index()


def _models_in_row(name: str) -> int:
    """A row such as `en-cs.l2r(1-4)` stands for four models."""
    several = re.search(r"\((\d+)-(\d+)\)$", name)
    return int(several[2]) - int(several[1]) + 1 if several else 1
