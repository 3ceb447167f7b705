"""What the README, the gallery and the site show: of each notebook the committed run of the largest profile that there is.

A run on real data goes before one on a stand-in. Nothing here looks at what ran last: pages show what a clone holds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compendium import paths
from compendium.book import STAND_IN

SHOWN = ("hour", "default")  # profiles whose results are committed, the larger first


@dataclass(frozen=True)
class Committed:
    """One notebook's committed run: its `record.json`, the folder of its tables, and the folder of its figures."""

    name: str
    profile: str
    record: dict[str, Any]
    results: Path
    figures: Path

    @property
    def stand_in(self) -> bool:
        """Whether the run used stand-in data."""
        return self.results.name == STAND_IN

    def figure(self, key: str) -> str:
        """Path of a recorded figure in the repository."""
        return f"{self.figures.relative_to(paths.root()).as_posix()}/{self.name}-{key}.png"


def notebooks() -> list[str]:
    """Names of the numbered notebooks, in order."""
    return sorted(path.stem for path in paths.notebook("x").parent.glob("[0-9]*.ipynb"))


def shown(name: str, profiles: tuple[str, ...] = SHOWN) -> Committed:
    """The run of a notebook that pages show.

    Raises
    ------
    KeyError
        When none is committed: the message says how to make one.
    """
    for profile in profiles:
        for aside in ("", STAND_IN):
            folder = paths.results_dir(profile, name) / aside
            if (folder / "record.json").is_file():
                record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
                return Committed(name, profile, record, folder, paths.figures_dir(profile) / aside)
    raise KeyError(f"{name} has no committed results in profile {' or '.join(profiles)}: run `make {name}`")


def all_shown(profiles: tuple[str, ...] = SHOWN) -> list[Committed]:
    """The run that pages show of every notebook that has one."""
    found = []
    for name in notebooks():
        try:
            found.append(shown(name, profiles))
        except KeyError:
            continue
    return found
