"""Runs of notebooks that pages are made from: the committed one of the largest profile (README,
papers, site), or what ran last in this clone (`make check`).

Among committed runs one on real data goes before one on a stand-in.
"""

import contextlib
import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compendium import book, claims, paths
from compendium.book import ASIDE
from compendium.cache import while_unchanged
from compendium.profiles import COMMITTED


@dataclass(frozen=True)
class NotebookRun:
    """One notebook's run: its `record.json`, and the folders of its tables and of its figures."""

    name: str
    profile: str
    record: dict[str, Any]
    results: Path
    figures: Path

    @property
    def stand_in(self) -> bool:
        """Whether one of its sources was a stand-in: no experiment is judged."""
        return any(book.Source(**source).stand_in for source in self.record["sources"])

    @property
    def aside(self) -> str:
        """Why its results lie beside the committed ones without comparison; else empty."""
        if self.results.name not in ASIDE:
            return ""
        return "on stand-in data" if self.stand_in else "on incomplete data"

    @property
    def sources(self) -> str:
        """Its data in a reader's words."""
        told = dict.fromkeys(str(book.Source(**source)) for source in self.record["sources"])
        return "; ".join(told) or "none"

    def figure(self, key: str) -> str:
        """Path of a recorded figure in the repository."""
        return f"{self.figures.relative_to(paths.root()).as_posix()}/{self.name}-{key}.png"


def committed(name: str, profiles: tuple[str, ...] = COMMITTED) -> NotebookRun:
    """The committed run of a notebook; KeyError when there is none."""
    for aside in ("", *ASIDE):
        for profile in profiles:
            folder = paths.results_dir(profile, name) / aside
            if (folder / "record.json").is_file():
                return _read(name, folder)
    where = f"no committed results in profile {', '.join(profiles)}"
    raise KeyError(f"{name} has {where}: run `make {name}`")


def all_committed(profiles: tuple[str, ...] = COMMITTED) -> list[NotebookRun]:
    """The committed run of every notebook that has one."""
    found = []
    for path in paths.notebooks():
        with contextlib.suppress(KeyError):
            found.append(committed(path.stem, profiles))
    return found


def recorded(what: str, profiles: tuple[str, ...] = COMMITTED) -> Any:
    """What a committed run recorded, by its address.

    `18_reachable_vocabulary/outputs` is a value, `001-prevention:before` the evidence of a claim,
    `NOTEBOOK/TABLE:KEY:COLUMN`, or `bench/TABLE:KEY:COLUMN` of a benchmark, a cell in the first row
    that holds the key: its number, or its text. KeyError or FileNotFoundError when there is none,
    or only one on stand-in or incomplete data.
    """
    name, _, place = what.partition(":")
    notebook, _, key = name.rpartition("/")
    if notebook == "bench":
        return _cell(paths.root() / "results" / "bench" / f"{key}.csv", place)
    run = committed(notebook or claims.load()[name].notebook, profiles)
    if run.aside:
        raise KeyError(f"{what}: recorded {run.aside} alone")
    if not notebook:
        return {row["id"]: row["evidence"] for row in run.record["claims"]}[name][place]
    if place:
        return _cell(run.results / f"{key}.csv", place)
    values = run.record["values"]
    if key not in values or "value" not in values[key]:
        raise KeyError(f"{what}: {notebook} recorded {', '.join(values) or 'no value'}")
    return values[key]["value"]


def _cell(table: Path, place: str) -> float | str:
    held, _, column = place.rpartition(":")
    for row in csv_rows(table):
        if held in row.values():
            text, plain = row[column], row[column].replace(",", "")
            with contextlib.suppress(ValueError):
                return int(plain) if plain.isdecimal() else float(plain)
            return text
    raise KeyError(f"{table.stem}:{place}: no row of that table holds {held!r}")


@while_unchanged
def csv_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table, as texts; shared between callers, who leave them as they are."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def all_last(profile: str) -> list[NotebookRun]:
    """What ran last of every notebook in a profile, else its committed run, where it has either."""
    found = []
    for path in paths.notebooks():
        with contextlib.suppress(FileNotFoundError):
            found.append(_read(path.stem, book.find_results(path.stem, profile)))
    return found


def _read(name: str, folder: Path) -> NotebookRun:
    record = _record(folder / "record.json")
    aside = folder.name if folder.name in ASIDE else ""
    place = (folder.parent if aside else folder).parent
    profile = place.relative_to(paths.root() / "results").as_posix()
    return NotebookRun(name, profile, record, folder, paths.figures_dir(profile) / aside)


@while_unchanged
def _record(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))
