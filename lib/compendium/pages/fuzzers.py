"""What the fuzzers found, as the tables of `docs/torture.md`: from `results/torture`, and from
`results/bench` near ties and mutants.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

_MEMORY = "most above an empty run (MB)"
TITLES = {
    "files": "hostile files and options, `softgeom scan`",
    "inspect": "the same files, `softgeom inspect`",
    "results": "damaged and forged results, the other verbs",
    "hub": "hostile hubs",
    "disk": "full disks",
}
_WHOLE = ["tried", "wrong", "refused", _MEMORY]


def summary(root: Path) -> pd.DataFrame:
    """One row a fuzzer: what was tried, what was answered wrongly, and the worst of seconds and
    megabytes.
    """
    rows = [
        _family(root / "results" / "torture" / f"{name}.csv", title)
        for name, title in TITLES.items()
    ]
    if len(killed := kills(root)):
        wrong = killed["rounds with other bytes"] + killed["done twice"] + killed["left after 5 s"]
        rows.append({"fuzzer": "kills", "tried": killed["kills"].sum(), "wrong": wrong.sum()})
    rows.append(_forgeries(root / "results" / "torture" / "forgeries.csv"))
    rows.append(_oracle(root / "results" / "bench" / "oracle.csv"))
    rows += _near_ties(root / "results" / "bench" / "near_ties.csv")
    rows.append(_mutants(root / "results" / "bench" / "mutants.csv"))
    table = pd.DataFrame([row for row in rows if row])
    return table.astype({name: "Int64" for name in table.columns.intersection(_WHOLE)})


def kills(root: Path) -> pd.DataFrame:
    """One row a kind of work."""
    path = root / "results" / "torture" / "kills.csv"
    names = [
        "work",
        "rounds",
        "kills",
        "of workers",
        "rounds with other bytes",
        "done twice",
        "left after 5 s",
    ]
    if not path.is_file():
        return pd.DataFrame(columns=names)
    table = pd.read_csv(path)
    found = [
        (
            work,
            len(rounds),
            rounds["kills"].sum(),
            rounds["of workers"].sum(),
            (~rounds["same bytes"]).sum(),
            rounds["done twice"].sum(),
            rounds["orphans"].sum(),
        )
        for work, rounds in table.groupby("work", sort=False)
    ]
    return pd.DataFrame(found, columns=names)


def _family(path: Path, title: str) -> dict[str, Any]:
    if not path.is_file():
        return {}
    table = pd.read_csv(path, keep_default_na=False)
    wrong = table["wrong"].ne("")
    return {
        "fuzzer": title,
        "tried": len(table),
        "wrong": wrong.sum(),
        "refused": table["answer"].ne("done").sum(),
        "slowest (s)": table["seconds"].max(),
        _MEMORY: table["megabytes"].max(),
    }


def _forgeries(path: Path) -> dict[str, Any]:
    """Random edits of honest evidence: falsehoods accepted, and crashes, by any verifier."""
    if not path.is_file():
        return {}
    table = pd.read_csv(path)
    wrong = table.filter(regex="^accepted falsehoods|^crashes of").to_numpy().sum()
    title = "random forgeries, under fresh hashes, against three verifiers"
    return {"fuzzer": title, "tried": table["tried"].sum(), "wrong": wrong}


def _oracle(path: Path) -> dict[str, Any]:
    """Verdicts of the oracle's layers, made to deceive."""
    if not path.is_file():
        return {}
    table = pd.read_csv(path)
    return {
        "fuzzer": "tiny layers: verdicts against enumeration",
        "tried": table["classes"].sum(),
        "wrong": table["false_verdicts"].sum(),
    }


def _near_ties(path: Path) -> list[dict[str, Any]]:
    """What the attack wins from the checkers; and without rounding bounds, where finding nothing
    would be the fault.
    """
    if not path.is_file():
        return []
    table = pd.read_csv(path).groupby("rounding_bounds")[["attempts", "falsely_accepted"]].sum()
    without = int(table["falsely_accepted"]["all zero"])
    title = (
        f"near ties: an attack on rounding bounds (with all of them set to zero it wins {without})"
    )
    real = table.loc["as they are"]
    return [{"fuzzer": title, "tried": real["attempts"], "wrong": real["falsely_accepted"]}]


def _mutants(path: Path) -> dict[str, Any]:
    """Broken expressions of what every verdict stands on; wrong is a survivor for which no reason
    is given.
    """
    if not path.is_file():
        return {}
    table = pd.read_csv(path, keep_default_na=False)
    unexplained = table["verdict"].eq("SURVIVED") & table["reason"].eq("")
    return {
        "fuzzer": "mutants: broken expressions",
        "tried": len(table),
        "wrong": unexplained.sum(),
    }
