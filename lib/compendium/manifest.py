"""`codecheck.yml`: every committed figure and table with what it shows, in the format of CODECHECK (https://codecheck.org.uk)."""

from __future__ import annotations

from typing import Any

import yaml

from compendium import paths, readme
from compendium.book import STAND_IN

_HEAD: dict[str, Any] = {
    "version": "https://codecheck.org.uk/spec/config/1.0/",
    "paper": {
        "title": "Softmax Geometry: a reproducible compendium",
        "authors": [{"name": "The Softmax Geometry authors"}],
    },
}


def render(profile: str = "default") -> str:
    """The manifest of a profile's committed outputs, ordered by notebook."""
    entries = []
    for name in sorted(path.stem for path in paths.notebook("x").parent.glob("[0-9]*.ipynb")):
        try:
            recorded = readme.committed_record(name, profile)
        except KeyError:
            continue
        folder = recorded["folder"].relative_to(paths.root()).as_posix()
        figures = paths.figures_dir(profile) / (STAND_IN if folder.endswith(STAND_IN) else "")
        place = figures.relative_to(paths.root()).as_posix()
        entries += [
            {"file": f"{place}/{name}-{key}.png", "comment": figure["caption"]}
            for key, figure in recorded["figures"].items()
        ]
        entries += [{"file": f"{folder}/{key}.csv", "comment": caption} for key, caption in recorded["tables"].items()]
    return yaml.safe_dump({**_HEAD, "manifest": entries}, sort_keys=False, allow_unicode=True, width=120)
