"""Runs each notebook alone, in a fresh clone, as somebody does who opens it first.

    python -m compendium run-alone --profile smoke 43_leader_explanations

The clone is of the last commit. Between two notebooks everything that git does not track goes, so
that none finds what another left. What a notebook needs from another, it makes itself.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from compendium import paths


class Outcome(NamedTuple):
    """How a notebook ended: seconds, and the last line of its failure, if it failed."""

    name: str
    seconds: float
    failure: str = ""

    def __str__(self) -> str:
        state = f"failed: {self.failure}" if self.failure else "ran"
        return f"{self.name}: {state} ({self.seconds:.0f} s)"


def run_alone(names: Iterable[str], profile: str) -> Iterator[Outcome]:
    """Run notebooks one by one in a clone of the repository's last commit."""
    with TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        _git("clone", "--quiet", "--shared", str(paths.root()), str(clone), cwd=paths.root())
        settings = os.environ | {"SOFTGEOM_ROOT": str(clone), "SOFTGEOM_PROFILE": profile}
        places = [f"{clone}/scanner/src", f"{clone}/lib", os.environ.get("PYTHONPATH", "")]
        settings |= {"PYTHONPATH": os.pathsep.join(places), "PARAMS": ""}
        for name in names:
            _git("reset", "--quiet", "--hard", cwd=clone)
            _git("clean", "--quiet", "-fdx", cwd=clone)
            started = time.monotonic()
            command = [sys.executable, "-m", "compendium.run", name]
            ran = subprocess.run(command, cwd=clone, env=settings, capture_output=True, text=True)
            said = ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"]
            yield Outcome(name, time.monotonic() - started, said[-1] if ran.returncode else "")


def _git(*arguments: str, cwd: Path) -> None:
    # without the filter that strips notebooks, which git would start for each
    command = ["git", "-c", "filter.nbstripout.clean=cat", *arguments]
    subprocess.run(command, cwd=cwd, check=True, capture_output=True)
