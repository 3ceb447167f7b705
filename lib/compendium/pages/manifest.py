"""`codecheck.yml`: every committed figure and table with what it shows, in the format of CODECHECK
(https://codecheck.org.uk).

Ours is the manifest, the title and the version of the specification; `paper.reference` is where the
compendium is published, once it is. The authors add ORCIDs, whoever checks the compendium adds
`codechecker`, `certificate`, `summary` and `report`: the specification forbids placeholders.
"""

from __future__ import annotations

from typing import Any

import yaml

from compendium import paths
from compendium.pages.readme import addresses
from compendium.runs import all_committed

_VERSION = "https://codecheck.org.uk/spec/config/2.0/"
_PAPER: dict[str, Any] = {
    "title": "Softmax Geometry: a reproducible compendium",
    "authors": [{"name": "The Softmax Geometry authors"}],
}


def render() -> str:
    """The manifest of the committed outputs that pages show, ordered by notebook."""
    entries = []
    for run in all_committed():
        entries += [
            {"file": run.figure(key), "comment": figure["caption"]}
            for key, figure in run.record["figures"].items()
        ]
        folder = run.results.relative_to(paths.root()).as_posix()
        entries += [
            {"file": f"{folder}/{key}.csv", "comment": text}
            for key, text in run.record["tables"].items()
        ]
    source = addresses().get("source")
    paper = _PAPER | ({"reference": source} if source else {})
    return yaml.safe_dump(
        {"version": _VERSION, "paper": paper, "manifest": entries},
        sort_keys=False,
        allow_unicode=True,
        width=120,
        explicit_start=True,
    )
