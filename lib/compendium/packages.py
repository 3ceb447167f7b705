"""What each use of the repository installs: parts of the one lock for pip.

The lock says of each package which others want it; a part of the lock is what some extras want,
directly or through others, with its hashes. Standard library only: make asks for a part before
anything is installed.
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
PROJECTS = ("pyproject.toml", "scanner/pyproject.toml")

OUTSIDE_THE_LOCK = ("torch",)  # has its own line in the Makefile

_ENTRY = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==")


def declared(extras: Iterable[str] | None = None, top: Path = TOP) -> dict[str, str]:
    """Packages with their bounds: the core and some extras, or all; ValueError at one unknown."""
    groups: dict[str, list[str]] = {}
    core: list[str] = []
    for file in PROJECTS:
        project = tomllib.loads((top / file).read_text(encoding="utf-8"))["project"]
        groups |= project.get("optional-dependencies", {})
        core += [entry for entry in project["dependencies"] if entry != "softgeom"]
    chosen = list(groups) if extras is None else list(extras)
    if unknown := [extra for extra in chosen if extra not in groups]:
        lost, known = ", ".join(unknown), ", ".join(groups)
        raise ValueError(f"there is no extra {lost} in pyproject.toml; there are {known}")
    wanted = [*core, *(entry for extra in chosen for entry in groups[extra])]
    split = (re.fullmatch(r"([\w.-]+)(.*)", entry, re.ASCII) for entry in wanted)
    return {match[1].lower(): match[2].replace(" ", "") for match in split if match}


def part(extras: Iterable[str], top: Path = TOP) -> str:
    """The part of the lock that core and extras want; ValueError if a package is not in it."""
    entries = _entries((top / "requirements.lock").read_text(encoding="utf-8"))
    found = {name for name in declared(extras, top) if name not in OUTSIDE_THE_LOCK}
    if missing := sorted(found - entries.keys()):
        raise ValueError(f"requirements.lock lacks {', '.join(missing)}: run `make lock`")
    wanting = {  # the `# via` comments of an entry
        name: {via.lower() for via in re.findall(r"(?m)^ *#(?: via)? +(\S+)$", text)}
        for name, text in entries.items()
    }
    while more := {name for name, by in wanting.items() if name not in found and by & found}:
        found |= more
    return "".join(text for name, text in entries.items() if name in found)


def _entries(lock: str) -> dict[str, str]:
    """Name -> its lines, in the order of the lock; of all versions, for several Pythons."""
    found: dict[str, str] = {}
    name = ""
    for line in lock.splitlines(keepends=True):
        if match := _ENTRY.match(line):
            name = match[1].lower()
        if name:
            found[name] = found.get(name, "") + line
    return found


def main(arguments: list[str]) -> int:
    """`python -m compendium.packages EXTRA ...`: print a part of the lock."""
    try:
        print(part(arguments), end="")
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
