"""Known vulnerabilities of everything that this repository pins: the lock, PyTorch, the site's npm
assets, the actions of its workflows.

Asked in one request of the open database osv.dev, which collects the advisories of PyPI, npm and
GitHub. What is sent is the list of names and versions. Standard library only: an audit needs no
environment. `SOFTGEOM_ADVISORIES` names another address with the same interface, such as a mirror.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compendium import paths
from compendium.pages import assets

ADDRESS = "https://api.osv.dev"
SECONDS = 60.0
_MOST = 1000  # queries of one request


@dataclass(frozen=True)
class Pinned:
    """A package in the one version that is used."""

    ecosystem: str
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.ecosystem})"


def pinned(top: Path) -> list[Pinned]:
    """Everything in `requirements.lock`, the Makefile's line for PyTorch, `assets.NPM`, and the
    workflows.
    """
    lock = (top / "requirements.lock").read_text(encoding="utf-8")
    found = [
        Pinned("PyPI", *pair)
        for pair in re.findall(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)", lock, re.MULTILINE)
    ]
    torch = re.search(
        r"^TORCH\s*:=\s*(torch)==(\S+)",
        (top / "Makefile").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    if torch is None:
        raise ValueError("the Makefile names no version of torch: nothing was audited")
    found.append(Pinned("PyPI", torch[1], torch[2]))
    found += [Pinned("npm", asset.name, asset.version) for asset in assets.NPM]
    for path in sorted((top / ".github" / "workflows").glob("*.yml")):
        used = re.findall(
            r"uses: ([\w/-]+)@[0-9a-f]{40} # v(\S+)", path.read_text(encoding="utf-8")
        )
        found += [Pinned("GitHub Actions", *pair) for pair in used]
    return list(dict.fromkeys(found))


def advisories(packages: list[Pinned]) -> dict[Pinned, list[str]]:
    """Ids of the advisories of each package that has any.

    Raises
    ------
    ValueError
        When the database cannot be reached or answers something else: no advisory found is then not
        none there is.
    """
    found: dict[Pinned, list[str]] = {}
    waiting: list[tuple[Pinned, dict[str, Any]]] = [(package, {}) for package in packages]
    while waiting:
        now, waiting = waiting[:_MOST], waiting[_MOST:]
        for (package, _), result in zip(now, _ask(now), strict=True):
            ids = [entry["id"] for entry in result.get("vulns", [])]
            if ids:
                found.setdefault(package, []).extend(ids)
            if token := result.get("next_page_token"):
                waiting.append((package, {"page_token": token}))
    return found


def tell(top: Path) -> tuple[str, bool]:
    """The result in words, and whether nothing is known against anything."""
    packages = pinned(top)
    found = advisories(packages)
    lines = [
        f"{package}: {', '.join(sorted(ids))}"
        for package, ids in sorted(found.items(), key=lambda item: str(item[0]))
    ]
    said = f"{len(packages)} pinned packages, known vulnerabilities in {len(found)}"
    more = (
        f"; https://osv.dev/vulnerability/{next(iter(found.values()))[0]} and so on say which"
        if found
        else ""
    )
    return "\n".join([*lines, said + more]), not found


def main() -> int:
    """Exit code 0 when nothing is known, 1 when something is, or nothing could be learned."""
    try:
        told, clean = tell(paths.root())
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(told)
    return int(not clean)


def _ask(queries: list[tuple[Pinned, dict[str, Any]]]) -> list[dict[str, Any]]:
    address = os.environ.get("SOFTGEOM_ADVISORIES") or ADDRESS
    body = [
        {
            "package": {"ecosystem": package.ecosystem, "name": package.name},
            "version": package.version,
            **more,
        }
        for package, more in queries
    ]
    request = urllib.request.Request(
        f"{address}/v1/querybatch",
        data=json.dumps({"queries": body}).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            results = json.loads(answer.read())["results"]
            if len(results) != len(queries):
                raise ValueError(f"{len(results)} answers to {len(queries)} questions")
            return results
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = (
            error.reason
            if isinstance(error, urllib.error.URLError)
            else f"{type(error).__name__}: {error}"
        )
        raise ValueError(
            f"the advisories at {address} cannot be had ({reason}): nothing was audited"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
