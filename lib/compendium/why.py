"""Why make would run a notebook, or not: what it needs, compared with what its last run saw.

A run leaves two files beside the executed notebook, both ignored by git: `NAME.inputs.json`, the
hash of everything that the notebook needs, and `NAME.kept.jsonl`, the computed things that it read
or made (`compendium.keeping`).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from compendium import codebase, edges, making, paths
from compendium.keeping import write_json


def inputs(name: str, profile: str) -> dict[str, str]:
    """What a notebook needs, each with its hash: of what it says, for code; of its content, for
    data and results.
    """
    needs = edges.needs_of(paths.root(), name)
    files = [f"notebooks/{name}.ipynb", f"build/params/{profile}/{name}.json", *needs.files]
    files += [f"executed/{profile}/{other}.ipynb" for other in needs.notebooks]
    return {file: _digest(_path(file)) for file in files}


def note(name: str, profile: str, before: dict[str, str]) -> None:
    """Leave beside an executed notebook what it was made from."""
    write_json(paths.executed_dir(profile) / f"{name}.inputs.json", before)


def fresh(name: str, profile: str) -> bool:
    """Whether the last run of a notebook saw exactly what a run would see now."""
    output = paths.executed_dir(profile) / f"{name}.ipynb"
    return output.is_file() and _noted(output.with_suffix(".inputs.json")) == inputs(name, profile)


def kept_log(name: str, profile: str) -> Path:
    """The file to which a run's readings and makings of kept things go."""
    return paths.executed_dir(profile) / f"{name}.kept.jsonl"


def unnamed(name: str, profile: str) -> list[str]:
    """What the last run of a notebook was seen to read that its edges do not name."""
    execution = paths.executed_dir(profile) / f"{name}.json"
    if not execution.is_file():
        return []
    needs = edges.needs_of(paths.root(), name)
    found = []
    for read in json.loads(execution.read_text(encoding="utf-8")).get("reads", []):
        owner = next((other for other in needs.notebooks if f"/{other}/" in read), None)
        if read not in needs.files and owner is None and f"/{name}/" not in read:
            found.append(read)
    return found


def tell(name: str, profile: str) -> str:
    """One line on whether make would run a notebook, and a line for each reason and for each kept
    thing.

    Raises
    ------
    ValueError
        When there is no such notebook.
    """
    now = inputs(name, profile)
    output = paths.executed_dir(profile) / f"{name}.ipynb"
    if not output.is_file():
        failed = output.with_suffix(".failed.ipynb")
        reason = (
            f"its last run failed, see {failed.relative_to(paths.root())}"
            if failed.is_file()
            else "it has not run here"
        )
        return f"make would run {name} in profile {profile}: {reason}"
    before = _noted(output.with_suffix(".inputs.json"))
    lines = []
    for file, digest in now.items():
        path = _path(file)
        newer = path.is_file() and path.stat().st_mtime > output.stat().st_mtime
        if file not in before:
            change = (
                "is needed now, and was not then" if before else "is younger than the run" * newer
            )
        elif digest != before[file]:
            change = "has changed" if path.is_file() else "is gone"
        else:
            change = "was saved again, and says the same" * newer
        if change:
            lines.append(
                f"  {file} "
                f"{change}{'' if newer else ' (not younger than the run: make does not see it)'}"
            )
    runs = any("make does not see it" not in line for line in lines)
    verdict = (
        f"make would run {name} in profile {profile}:"
        if runs
        else f"make would not run {name} in profile {profile}: it is up to date"
    )
    return "\n".join([verdict, *lines, *_kept(name, profile)])


def _kept(name: str, profile: str) -> list[str]:
    log = kept_log(name, profile)
    if not log.is_file():
        return []
    lines = {}
    for entry in map(json.loads, log.read_text(encoding="utf-8").splitlines()):
        changed = making.changed_code(entry["code"])
        state = (
            f"would be computed again: {', '.join(changed)} changed" if changed else "would be read"
        )
        lines[entry["entry"]] = f"  kept {entry['entry']}: {entry['how']} by the last run, {state}"
    return list(lines.values())


def _path(file: str) -> Path:
    return (codebase.LIB.parent if file.startswith("lib/") else paths.root()) / file


def _noted(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _digest(path: Path) -> str:
    if not path.is_file():
        return "missing"
    return (
        codebase.digest(path)
        if path.suffix == ".py"
        else hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    )
