"""Everything that says "proven" about a file: each takes one that is damaged, forged or honest, and
answers None when it accepts it, else the sentence with which it refuses.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from evidence import PROOFS, Evidence
from honest import Honest

from softgeom.bottleneck.asking import Answers, Router
from softgeom.bottleneck.certifying.folder import verify_folder, write_folder
from softgeom.bottleneck.scan_result import Scan
from softgeom.bottleneck.verdict_table import write_verdicts
from softgeom.commands.answers_folder import ANSWERS, verify_answers, write_answers
from softgeom.layer import Box, FeatureSet, SoftmaxLayer, Unbounded

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.append(str(TOOLS))  # one of them imports another
READERS = {"scan": Scan, "answers": Answers, "experts": Router}
VERDICTS = {2: "unargmaxable", 6: "unargmaxable", 3: "tied", 4: "undecided"}
Verifier = Callable[[bytes, Honest, Path], str | None]


def _sentence(attempt: Callable[[], object]) -> str | None:
    """What a refusal says; anything but a ValueError is a crash, and passes through."""
    try:
        attempt()
    except ValueError as error:
        return str(error)
    return None


def load(content: bytes, honest: Honest, place: Path) -> str | None:
    """`Scan.load(...).verify()`, and the same for answers and experts."""
    path = place / "evidence.npz"
    path.write_bytes(content)
    reader = READERS[honest.holds]
    return _sentence(lambda: reader.load(path, honest.layer).verify())


def verify(content: bytes, honest: Honest, place: Path) -> str | None:
    """`softgeom verify`."""
    check = verify_folder if honest.holds == "scan" else verify_answers
    out = folder(content, honest, place)
    return _sentence(lambda: check(out, honest.layer))


def folder(content: bytes, honest: Honest, place: Path) -> Path:
    """A folder around the file whose tables and hashes a forger has made fit."""
    make = _scan_folder if honest.holds == "scan" else _answers_folder
    make(content, honest, place / "out")
    return place / "out"


def sceptic(
    content: bytes, honest: Honest, place: Path, program: str = "check_evidence"
) -> str | None:
    """tools/check_evidence.py, or check_ceilings.py."""
    path, layer = place / "evidence.npz", place / "layer.npz"
    path.write_bytes(content)
    if not layer.exists():
        store(layer, honest.layer)
    before, sys.argv = sys.argv, [program, str(path), str(layer)]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            tool(program)["main"]()
    except SystemExit as end:
        return str(end.code)
    finally:
        sys.argv = before
    return None


VERIFIERS: dict[str, Verifier] = {"load": load, "verify": verify, "sceptic": sceptic}
_KEPT: dict[bytes, dict[str, bytes]] = {}


def store(path: Path, layer: SoftmaxLayer) -> None:
    """A layer as the programs read it."""
    np.savez(path, W=layer.W, **({} if layer.b is None else {"b": layer.b}))


@functools.cache
def tool(program: str) -> dict[str, Any]:
    """What a program of tools/ defines, read once."""
    return runpy.run_path(str(TOOLS / f"{program}.py"))["main"].__globals__


def _written(honest: Honest, folder: Path, write: Callable[[], object]) -> None:
    """The folder of the honest file: made once in a process, then copied."""
    if honest.content not in _KEPT:
        write()
        _KEPT[honest.content] = {path.name: path.read_bytes() for path in folder.iterdir()}
    folder.mkdir(exist_ok=True)
    for name, content in _KEPT[honest.content].items():
        (folder / name).write_bytes(content)


def _scan_folder(content: bytes, honest: Honest, folder: Path) -> None:
    """Honest table and summary, changed to say what the forged file says where that can be read."""
    path = folder.parent / "honest.npz"
    path.write_bytes(honest.content)
    _written(honest, folder, lambda: write_folder(folder, Scan.load(path, honest.layer)))
    (folder / "evidence.npz").write_bytes(content)
    summary = json.loads((folder / "summary.json").read_text())
    with contextlib.suppress(Exception):  # what cannot be read leaves the honest table
        claims = Evidence.read(content).claims()
        rows = [
            (
                *(c["classes"], honest.layer.token(c["classes"])),
                *(VERDICTS.get(c["kinds"], "argmaxable"), c["methods"]),
                *(c["steps"], c["margins"], c["radii"]),
            )
            for c in claims
        ]
        names = ["class", "token", "verdict", "method", "steps", "margin", "radius"]
        table = pd.DataFrame(rows, columns=names)
        if said := _holds(Evidence.read(content)):
            table["holds"] = [said.get(c["classes"], "") for c in claims]
        write_verdicts(table, folder / "verdicts.csv")
        classes = np.array([c["classes"] for c in claims], "<i8").tobytes()
        summary["scope"] = {"count": len(rows), "sha256": hashlib.sha256(classes).hexdigest()}
        summary["counts"] = {n: int((table["verdict"] == n).sum()) for n in summary["counts"]}
    for name in summary["sha256"]:
        summary["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    summary.pop("digest")
    text = json.dumps(summary, sort_keys=True).encode()
    summary["digest"] = hashlib.sha256(text).hexdigest()
    (folder / "summary.json").write_text(json.dumps(summary))


def _holds(evidence: Evidence) -> dict[int, str]:
    """What the table says of each class of a section; a larger box speaks for a smaller one."""
    found: dict[int, list[FeatureSet]] = {}
    for n, one in enumerate([evidence.head, *evidence.head["sections"]]):
        features = FeatureSet.from_json(one["features"])
        start = f"section{n}_" * bool(n)
        kinds = evidence.arrays[f"{start}kinds"].tolist()
        for t, kind in zip(evidence.arrays[f"{start}classes"].tolist(), kinds, strict=True):
            found.setdefault(t, []).extend([features] * (kind in PROOFS))
    if not evidence.head["sections"]:
        return {}
    return {t: _words(sets) for t, sets in found.items()}


def _words(sets: list[FeatureSet]) -> str:
    if Unbounded() in sets:
        return Unbounded().condition()
    high = max((np.max(one.high) for one in sets if isinstance(one, Box)), default=0.0)
    return "; ".join(
        one.condition() for one in sets if not isinstance(one, Box) or np.max(one.high) == high
    )


def _answers_folder(content: bytes, honest: Honest, folder: Path) -> None:
    """The honest table, or the one of the forged file where softgeom reads that."""
    path = folder.parent / "honest.npz"
    path.write_bytes(honest.content)
    reader = READERS[honest.holds]

    def write(source: Path) -> None:
        write_answers(folder, reader.load(source, honest.layer), with_layer=False)

    _written(honest, folder, lambda: write(path))
    path.write_bytes(content)
    with contextlib.suppress(Exception):  # what cannot be read leaves the honest table
        write(path)
    (folder / ANSWERS).write_bytes(content)
