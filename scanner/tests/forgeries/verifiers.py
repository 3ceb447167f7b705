"""Both programs that say "proven" about a file: each takes a damaged, forged or honest one, and
answers None when it accepts it, else the sentence with which it refuses.
"""

import contextlib
import functools
import io
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from honest import Honest

from softgeom.ceiling import Ceilings
from softgeom.certifying.folder import EVIDENCE, verify_folder
from softgeom.results import ANSWERS, CEILINGS, verify_answers, write_layer

TOOL = Path(__file__).parents[2] / "tools" / "check_proofs.py"
NAMES = {"scan": EVIDENCE, "answers": ANSWERS, "experts": ANSWERS, "ceilings": CEILINGS}
Verifier = Callable[[Any, Honest, Path], str | None]


def library(content: bytes | Path, honest: Honest, place: Path) -> str | None:
    """What `softgeom verify` says of a folder that holds the file."""
    path = _put(content, place / NAMES[honest.holds])
    try:
        if honest.holds == "scan":
            verify_folder(path, honest.layer)
        elif honest.holds == "ceilings":
            Ceilings.load(path, honest.layer)
        else:
            verify_answers(path, honest.layer)
    except ValueError as error:  # anything else is a crash, and passes through
        return str(error)
    return None


def sceptic(content: bytes | Path, honest: Honest, place: Path) -> str | None:
    """scanner/tools/check_proofs.py."""
    path, layer = _put(content, place / "proofs.safetensors"), place / "own.safetensors"
    write_layer(layer, honest.layer)
    before, sys.argv = sys.argv, ["check_proofs", str(path), str(layer)]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            tool()["main"]()
    except SystemExit as end:
        return str(end.code)
    finally:
        sys.argv = before
    return None


def _put(content: bytes | Path, path: Path) -> Path:
    """The file, or a link to it where it is too large to copy."""
    path.unlink(missing_ok=True)
    if isinstance(content, Path):
        path.hardlink_to(content)
    else:
        path.write_bytes(content)
    return path


VERIFIERS: dict[str, Verifier] = {"library": library, "sceptic": sceptic}


@functools.cache
def tool() -> dict[str, Any]:
    """What the exact checker defines, read once."""
    return runpy.run_path(str(TOOL))["main"].__globals__
