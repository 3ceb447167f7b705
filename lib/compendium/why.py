"""Whether a notebook is up to date, and why not: what it needs now, beside what its last run saw.

A run leaves files beside the executed notebook, all ignored by git: `NAME.inputs.json`, the hash of
everything that the notebook needs and how long it took, and `NAME.kept.jsonl`, the computed things
that it read or made (`compendium.keeping`). Content decides, not time: a file that was saved again
and says the same makes nothing run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compendium import codebase, edges, making, parameters, paths, profiles
from compendium.keeping import write_json


def inputs(name: str, profile: str) -> dict[str, str]:
    """What a notebook needs: parameters with their values, files with a hash of what they say, the
    folder of raw data where it looks there. ValueError when name or parameters do not fit.
    """
    needs = edges.needs_of(paths.root(), name)
    below = profiles.below(profile)
    files = [f"notebooks/{name}.ipynb", *needs.files]
    files += [f"executed/{below}/{other}.ipynb" for other in needs.notebooks]
    told = parameters.read(name, profile).items()
    given = {f"parameter {key}": json.dumps(value, ensure_ascii=False) for key, value in told}
    if needs.raw_data:
        given["the folder of raw data (DATA)"] = paths.data_stamp()
    return given | {file: _digest(_path(file)) for file in files}


def note(
    name: str, profile: str, before: dict[str, str], seconds: float = 0.0, cpu: float = 0.0
) -> None:
    """Leave beside an executed notebook what it was made from, and the seconds that it took."""
    took = {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1)}
    path = paths.executed_dir(profile) / f"{name}.inputs.json"
    write_json(path, {"inputs": before} | took)


def is_fresh(name: str, profile: str) -> bool:
    """Whether the last run of a notebook saw exactly what a run would see now."""
    output = paths.executed_dir(profile) / f"{name}.ipynb"
    return output.is_file() and _before(name, profile) == inputs(name, profile)


def changed_since(moment: float, needed: Iterable[str]) -> bool:
    """Whether code among these inputs changed on disk after some time."""
    code = (_path(file) for file in needed if file.endswith(".py"))
    return any(not path.is_file() or path.stat().st_mtime > moment for path in code)


def kept_log(name: str, profile: str) -> Path:
    """The file to which a run's readings and makings of kept things go."""
    return paths.executed_dir(profile) / f"{name}.kept.jsonl"


def undeclared_reads(name: str, profile: str) -> list[str]:
    """What the last run of a notebook was seen to read that its edges do not name."""
    execution = paths.executed_dir(profile) / f"{name}.json"
    if not execution.is_file():
        return []
    needs = edges.needs_of(paths.root(), name)
    return [
        read
        for read in json.loads(execution.read_text(encoding="utf-8")).get("reads", [])
        if read not in needs.files
        and not any(f"/{owner}/" in read for owner in (name, *needs.notebooks))
    ]


def explain(name: str, profile: str) -> str:
    """Whether `make` would run a notebook, and a line for each reason and each kept thing."""
    now, before = inputs(name, profile), _before(name, profile)
    output = paths.executed_dir(profile) / f"{name}.ipynb"
    if not output.is_file():
        failed = output.with_suffix(".failed.ipynb")
        reason = "it has not run here"
        if failed.is_file():
            reason = f"its last run failed, see {failed.relative_to(paths.root())}"
        return f"make would run {name} in profile {profile}: {reason}"
    lines = []
    for file in [*now, *(before.keys() - now.keys())]:
        if before.get(file) != now.get(file):
            change = "has changed"
            if file not in before:
                change = "is needed now, and was not then"
            elif now.get(file, "missing") == "missing":
                change = "is no longer there" if file in now else "is no longer needed"
            lines.append(f"  {file} {change}")
    verdict = f"make would run {name} in profile {profile}:"
    if not lines:
        verdict = f"make would not run {name} in profile {profile}: it is up to date"
    log, kept = kept_log(name, profile), {}
    for line in log.read_text(encoding="utf-8").splitlines() if log.is_file() else []:
        entry = json.loads(line)
        changed = ", ".join(making.changed_code(entry["code"]))
        state = f"would be computed again: {changed} changed" if changed else "would be read"
        kept[entry["entry"]] = f"  kept {entry['entry']}: {entry['how']} by the last run, {state}"
    return "\n".join([verdict, *lines, *kept.values()])


def _path(file: str) -> Path:
    return (codebase.LIB.parent if file.startswith("lib/") else paths.root()) / file


def _before(name: str, profile: str) -> dict[str, Any]:
    path = paths.executed_dir(profile) / f"{name}.inputs.json"
    return json.loads(path.read_text(encoding="utf-8")).get("inputs", {}) if path.is_file() else {}


def _digest(path: Path) -> str:
    if not path.is_file():
        return "missing"
    if path.suffix == ".py":
        return codebase.digest(path)
    content = path.read_bytes()
    if path.parent == paths.root() / "notebooks":
        cells = json.loads(content)["cells"]  # not what JupyterLab adds to them
        said = [[c["cell_type"], c["source"], c["metadata"].get("tags")] for c in cells]
        content = json.dumps(said).encode()
    return hashlib.sha256(content).hexdigest()[:16]
