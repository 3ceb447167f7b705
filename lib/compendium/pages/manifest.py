"""`codecheck.yml`: every committed figure and table with what it shows, in the format of CODECHECK
(https://codecheck.org.uk).

Ours is the manifest, the title and the version of the specification. The authors add ORCIDs and
`paper.reference` at a release, whoever checks the compendium adds `codechecker`, `certificate`,
`summary` and `report`: the specification forbids placeholders for them.
"""

from __future__ import annotations

from typing import Any

import yaml

from compendium import paths
from compendium.runs import all_committed

_HEAD: dict[str, Any] = {
    "version": "https://codecheck.org.uk/spec/config/2.0/",
    "paper": {
        "title": "Softmax Geometry: a reproducible compendium",
        "authors": [{"name": "The Softmax Geometry authors"}],
    },
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
    return yaml.safe_dump(
        {**_HEAD, "manifest": entries},
        sort_keys=False,
        allow_unicode=True,
        width=120,
        explicit_start=True,
    )
