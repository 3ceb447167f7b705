"""A folder of results: verdicts, summary, evidence, a card; no model's replace another's."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from softgeom.card import card
from softgeom.certifying.evidence_file import read_header
from softgeom.certifying.folder import EVIDENCE, write_folder
from softgeom.checkpoints import Head
from softgeom.commands.options import facts
from softgeom.layer import SoftmaxLayer, fingerprint
from softgeom.scan_result import Scan
from softgeom.writing import alone

_DEFAULT = Path("scans")


def named_folder(out: str, what: str) -> Path:
    """The folder that ``--out`` names; ValueError if it is empty or a file."""
    if not out.strip():
        raise ValueError(f"--out is empty: name a folder for the {what}.")
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {out} is a file: name a folder for the {what}.")
    return folder


def folder_for(out: str | None, model: str, layer: SoftmaxLayer) -> Path:
    """The folder for a layer's results: the one that was asked for, else one named after the model
    and its fingerprint. ValueError if that is a file, or holds another layer's results.
    """
    key = fingerprint(layer)
    if out is None:
        name = re.sub(r"[^\w.-]+", "_", Path(model).name or model).strip("._") or "model"
        name = f"{model.replace('/', '--')}" if "/" in model and not Path(model).exists() else name
        return _DEFAULT / f"{name}-{key[:8]}"
    folder = named_folder(out, "results")
    kept = read_header(folder / EVIDENCE)["layer"] if (folder / EVIDENCE).is_file() else key
    if kept != key:
        raise ValueError(
            f"--out {out} holds the results of another layer ({kept[:16]}): name another folder."
        )
    return folder


def load_scan(path: Path, layer: SoftmaxLayer, head: Head | None = None) -> Scan:
    """The scan that a folder of results, or its file of proofs, holds for this layer; with what
    ``head`` says about it.
    """
    found = Scan.load(path / EVIDENCE if path.is_dir() else path, layer)
    return found if head is None else replace(found, head=facts(head, found.features))


def scan_into(
    out: str | Path | None,
    head: Head,
    model: str,
    why: str | None,
    decide: Callable[[Path], Scan],
    *,
    seed: int = 0,
    inputs: dict[str, float] | None = None,
) -> tuple[Scan, dict[str, Any], Path]:
    """What ``decide``, given a folder for finished blocks, finds of a layer, written into the
    folder of its results, which nobody else writes to; with its summary, and the folder.
    """
    named = None if out is None else os.fspath(out)
    folder = folder_for(named, model, head.layer)
    with alone(folder):
        folder_for(named, model, head.layer)  # somebody may have just finished
        found = decide(folder / "blocks")
        summary = summarise(found, head, model, why=why, seed=seed, inputs=inputs)
        return write_results(folder, found, summary), summary, folder


def summarise(
    found: Scan, head: Head, model: str, *, why: str | None, seed: int, inputs: Any
) -> dict[str, Any]:
    """What ``summary.json`` holds."""
    layer = head.layer
    return {
        "model": model,
        "source": head.source.name,
        "origin": {key: value for key, value in vars(head.source).items() if value},
        "tensors": head.names,
        "notes": list(head.notes),
        "head": None if found.head is None else found.head.to_json(),
        "is_embedding": head.is_embedding,
        "classes": layer.classes,
        "features": layer.dimension,
        "bias": layer.b is not None,
        "dtype": str(layer.W.dtype),
        "named": layer.tokens is not None,
        "feature_set": found.features.describe(),
        "feature_set_because": why,
        "inputs": inputs,
        "scanned": len(found.findings),
        "counts": found.counts,
        "unargmaxable_also": {p.features.condition(): len(p) for p in found.wider},
        "seed": seed,
        "fingerprint": fingerprint(layer),
        "versions": {name: version(name) for name in ("softgeom", "numpy", "scipy", "highspy")},
    }


def write_results(folder: Path, found: Scan, summary: dict[str, Any]) -> Scan:
    """Check the scan and write it with a page to look at; the scan as it was written."""
    size = f"{summary['classes']:,} classes over {summary['features']} features"
    because = f": {summary['feature_set_because']}" if summary["feature_set_because"] else ""
    behind = [found.readout.sentence()]
    sentences = [
        f"{size}, {summary['feature_set']}{because}.",
        *(f"{note[:1].upper()}{note[1:]}." for note in [*summary["notes"], *behind] if note),
        f"To check every proof without a solver: softgeom verify {folder} {summary['model']}",
    ]
    ceiling = found.ceiling if found.bounds_probabilities else None
    page = card(found.table, found.counts, str(summary["model"]), sentences, ceiling=ceiling)
    return write_folder(folder, found, summary, page)
