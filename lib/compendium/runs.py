"""Runs of notebooks that pages are made from: the committed one of the largest profile, or what ran
last in this clone.

Among committed runs one on real data goes before one on a stand-in, and no page of the repository
looks at what ran last: README and gallery show what a clone holds, `make report` shows the run at
hand.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compendium import book, paths, profiles
from compendium.book import STAND_IN

SHOWN = profiles.COMMITTED


@dataclass(frozen=True)
class NotebookRun:
    """One notebook's run: its `record.json`, the folder of its tables, and the folder of its
    figures.
    """

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
        """Why its results lie beside the committed ones and are not compared with them; empty where
        they do not.
        """
        if self.results.name != STAND_IN:
            return ""
        return "on stand-in data" if self.stand_in else "on incomplete data"

    @property
    def sources(self) -> str:
        """Its data in a reader's words."""
        return (
            "; ".join(
                dict.fromkeys(str(book.Source(**source)) for source in self.record["sources"])
            )
            or "none"
        )

    def figure(self, key: str) -> str:
        """Path of a recorded figure in the repository."""
        return f"{self.figures.relative_to(paths.root()).as_posix()}/{self.name}-{key}.png"


def notebooks() -> list[str]:
    """Names of the numbered notebooks, in order."""
    return sorted(path.stem for path in paths.notebook("x").parent.glob("[0-9]*.ipynb"))


def ran(profile: str) -> list[str]:
    """Names of the notebooks that were executed here in a profile."""
    folder = paths.executed_dir(profile)
    return [name for name in notebooks() if (folder / f"{name}.json").is_file()]


def committed(name: str, profiles: tuple[str, ...] = SHOWN) -> NotebookRun:
    """The committed run of a notebook; KeyError when there is none: the message says how to make
    one.
    """
    for profile in profiles:
        for aside in ("", STAND_IN):
            folder = paths.results_dir(profile, name) / aside
            if (folder / "record.json").is_file():
                return _read(name, folder)
    raise KeyError(
        f"{name} has no committed results in profile {', '.join(profiles)}: run `make {name}`"
    )


def all_committed(profiles: tuple[str, ...] = SHOWN) -> list[NotebookRun]:
    """The committed run of every notebook that has one."""
    found = []
    for name in notebooks():
        try:
            found.append(committed(name, profiles))
        except KeyError:
            continue
    return found


def all_last(profile: str) -> list[NotebookRun]:
    """What ran last of every notebook in a profile, else its committed run; notebooks that have
    neither are left out.
    """
    found = []
    for name in notebooks():
        try:
            found.append(_read(name, book.find_results(name, profile)))
        except FileNotFoundError:
            continue
    return found


def _read(name: str, folder: Path) -> NotebookRun:
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    aside = STAND_IN if folder.name == STAND_IN else ""
    profile = (
        (folder.parent if aside else folder).parent.relative_to(paths.root() / "results").as_posix()
    )
    return NotebookRun(name, profile, record, folder, paths.figures_dir(profile) / aside)
