"""The tables of all fuzzers in one: `python -m torture.page` writes results/torture/summary.csv and kills_summary.csv, which docs/torture.md shows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
TITLES = {
    "files": "hostile files and options, `softgeom scan`",
    "inspect": "the same files, `softgeom inspect`",
    "results": "damaged and forged results, the other verbs",
    "hub": "hostile hubs",
    "disk": "full disks",
}


def summary(root: Path = ROOT) -> pd.DataFrame:
    """One row a fuzzer: what was tried, what was answered wrongly, and the worst of seconds and megabytes."""
    rows = [_family(root / "results" / "torture" / f"{name}.csv", title) for name, title in TITLES.items()]
    killed = kills(root)
    wrong = killed["rounds with other bytes"] + killed["done twice"] + killed["left after 5 s"]
    rows.append({"fuzzer": "kills", "tried": killed["kills"].sum(), "wrong": wrong.sum()})
    rows.append(_near_ties(root / "results" / "bench" / "oracle.csv"))
    rows.append(_mutants(root / "results" / "bench" / "mutants.csv"))
    return pd.DataFrame([row for row in rows if row]).astype({"tried": int, "wrong": int})


def kills(root: Path = ROOT) -> pd.DataFrame:
    """One row a kind of work."""
    path = root / "results" / "torture" / "kills.csv"
    names = ["work", "rounds", "kills", "of workers", "rounds with other bytes", "done twice", "left after 5 s"]
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
        "most above an empty run (MB)": table["megabytes"].max(),
    }


def _near_ties(path: Path) -> dict[str, Any]:
    """Verdicts of the oracle's layers, in thousands of layers made to deceive."""
    if not path.is_file():
        return {}
    table = pd.read_csv(path)
    return {
        "fuzzer": "near ties: verdicts against enumeration",
        "tried": table["classes"].sum(),
        "wrong": table["false_verdicts"].sum(),
    }


def _mutants(path: Path) -> dict[str, Any]:
    """Broken expressions of what every verdict stands on; wrong is a survivor for which no reason is given."""
    if not path.is_file():
        return {}
    table = pd.read_csv(path, keep_default_na=False)
    unexplained = table["verdict"].eq("SURVIVED") & table["reason"].eq("")
    return {"fuzzer": "mutants: broken expressions", "tried": len(table), "wrong": unexplained.sum()}


def main() -> int:
    """Write both; exit code 1 when anything is wrong."""
    folder = ROOT / "results" / "torture"
    folder.mkdir(parents=True, exist_ok=True)
    table = summary()
    table.to_csv(folder / "summary.csv", index=False, lineterminator="\n")
    kills().to_csv(folder / "kills_summary.csv", index=False, lineterminator="\n")
    print(table.to_string(index=False, na_rep=""))
    return int(table["wrong"].sum() > 0)


if __name__ == "__main__":
    sys.exit(main())
