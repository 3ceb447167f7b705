"""What the fuzzers found, as the tables of `docs/torture.md`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

_Reader = Callable[[pd.DataFrame], dict[str, Any]]
_MEMORY = "most above an empty run (MB)"
_FAMILIES = {
    "torture/files": "hostile files and options, `softgeom scan`",
    "torture/inspect": "the same files, `softgeom inspect`",
    "torture/results": "damaged and forged results, the other verbs",
    "torture/hub": "hostile hubs",
    "torture/disk": "full disks",
}
_WHOLE = ["tried", "wrong", "refused", _MEMORY]
_WRONG_KILLS = ["rounds with other bytes", "done twice", "left after 5 s"]


def summary(root: Path) -> pd.DataFrame:
    """One row a fuzzer: what was tried, what was answered wrongly, and the most of what it took."""
    rows = []
    for name, read in _FUZZERS.items():
        path = root / "results" / f"{name}.csv"
        if path.is_file():
            found = read(pd.read_csv(path, keep_default_na=False))
            rows.append({"fuzzer": _FAMILIES.get(name), **found})
    table = pd.DataFrame(rows)
    return table.astype({name: "Int64" for name in table.columns.intersection(_WHOLE)})


def kills(root: Path) -> pd.DataFrame:
    """One row a kind of work; no row where nothing was killed yet."""
    path = root / "results" / "torture" / "kills.csv"
    if not path.is_file():
        return pd.DataFrame(columns=["work", "rounds", "kills", "of workers", *_WRONG_KILLS])
    return _by_work(pd.read_csv(path)).reset_index()


def _by_work(table: pd.DataFrame) -> pd.DataFrame:
    """Sums over the rounds of each kind of work."""
    counted = table.assign(rounds=1, other=~table["same bytes"])
    columns = ["rounds", "kills", "of workers", "other", "done twice", "orphans"]
    sums = counted.groupby("work", sort=False)[columns].sum()
    return sums.rename(columns=dict(zip(columns[3:], _WRONG_KILLS, strict=True)))


def _kills(table: pd.DataFrame) -> dict[str, Any]:
    wrong = _by_work(table)[_WRONG_KILLS].to_numpy().sum()
    return {"fuzzer": "kills", "tried": table["kills"].sum(), "wrong": wrong}


def _family(table: pd.DataFrame) -> dict[str, Any]:
    return {
        "tried": len(table),
        "wrong": table["wrong"].ne("").sum(),
        "refused": table["answer"].ne("done").sum(),
        "slowest (s)": table["seconds"].max(),
        _MEMORY: table["megabytes"].max(),
    }


def _sums(title: str, tried: str, wrong: str) -> _Reader:
    """A table whose columns, of what was tried and of what was answered wrongly, add up."""
    return lambda table: {
        "fuzzer": title,
        "tried": table[tried].sum(),
        "wrong": table.filter(regex=wrong).to_numpy().sum(),
    }


def _near_ties(table: pd.DataFrame) -> dict[str, Any]:
    """What the attack wins from the checkers; without rounding bounds it has to win something."""
    sums = table.groupby("rounding_bounds")[["attempts", "falsely_accepted"]].sum()
    won, real = int(sums["falsely_accepted"]["all zero"]), sums.loc["as they are"]
    title = f"near ties: an attack on rounding bounds (with all of them set to zero it wins {won})"
    return {"fuzzer": title, "tried": real["attempts"], "wrong": real["falsely_accepted"]}


def _mutants(table: pd.DataFrame) -> dict[str, Any]:
    """Broken expressions of what every verdict stands on; wrong are survivors without a reason."""
    table = table[table["verdict"] != "gone"]  # with the code that they broke
    wrong = (table["verdict"].eq("SURVIVED") & table["reason"].eq("")).sum()
    return {"fuzzer": "mutants: broken expressions", "tried": len(table), "wrong": wrong}


# below `results`, in the order of the page
_FUZZERS: dict[str, _Reader] = {
    **dict.fromkeys(_FAMILIES, _family),
    "torture/kills": _kills,
    # falsehoods accepted, and crashes, by any verifier
    "torture/forgeries": _sums(
        "random forgeries, under fresh hashes, against three verifiers",
        "tried",
        "^accepted falsehoods|^crashes of",
    ),
    "bench/oracle": _sums(
        "tiny layers: verdicts against enumeration", "classes", "^false_verdicts$"
    ),
    "bench/near_ties": _near_ties,
    "bench/mutants": _mutants,
}
