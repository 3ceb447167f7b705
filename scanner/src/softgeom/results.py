"""Folders of results: scans, answers and ceilings, each with proofs that are read back and tables
that people read. Nobody's results replace those of another layer.

evidence.safetensors  of a scan, with verdicts.csv, summary.json and card.html
answers.safetensors   orders and evidence of ``softgeom ask``, with answers.csv
ceilings.safetensors  points that bound probabilities, with ceilings.csv
layer.safetensors     on request, W and b as tools/check_proofs.py reads them
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from softgeom.asking import Answers, Router
from softgeom.asking.label_sets import with_threshold
from softgeom.card import card, sentences
from softgeom.ceiling import Ceilings
from softgeom.certifying import container
from softgeom.certifying.evidence_file import read_header
from softgeom.certifying.folder import BLOCKS, CARD, EVIDENCE, write_folder
from softgeom.checkpoints import Head
from softgeom.errors import quoted
from softgeom.layer import SoftmaxLayer, fingerprint
from softgeom.options import facts
from softgeom.scan_result import Scan
from softgeom.verdict_table import down, escape_token, up
from softgeom.writing import LOCK, alone, write_text

ANSWERS, ANSWER_TABLE, LAYER = "answers.safetensors", "answers.csv", "layer.safetensors"
CEILINGS, CEILING_TABLE = "ceilings.safetensors", "ceilings.csv"
_DEFAULT = Path("scans")


def named_folder(out: str | Path, what: str) -> Path:
    """The folder that ``--out`` names; ValueError if it is empty or a file."""
    if not os.fspath(out).strip():
        raise ValueError(f"--out is empty: name a folder for the {what}.")
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {out} is a file: name a folder for the {what}.")
    return folder


def folder_for(out: str | Path | None, model: str, layer: SoftmaxLayer) -> Path:
    """The folder for a layer's results: the one that was asked for, else one named after the model
    and its fingerprint. ValueError if that is a file, or holds another layer's results.
    """
    key = fingerprint(layer)
    if out is None:
        name = re.sub(r"[^\w.-]+", "_", Path(model).name or model).strip("._") or "model"
        name = model.replace("/", "--") if "/" in model and not Path(model).exists() else name
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
) -> tuple[Scan, dict[str, Any], Path]:
    """What ``decide``, given a folder for finished blocks, finds of a layer, written into the
    folder of its results, which nobody else writes to; with its summary, and the folder.
    """
    folder = folder_for(out, model, head.layer)
    with alone(folder):
        folder_for(out, model, head.layer)  # somebody may have just finished
        found = decide(folder / "blocks")
        about = _about(found, head, model, why, seed)
        size = f"{head.layer.classes:,} classes over {head.layer.dimension} features"
        facts = [
            f"{size}, {found.features.describe()}{f': {why}' if why else ''}.",
            *sentences([*head.notes, found.readout.sentence()]),
            f"To check every proof without a solver: {verify_command(folder, model)}",
        ]
        ceiling = found.ceiling if found.bounds_probabilities else None
        page = card(found.table, found.counts, model, facts, ceiling=ceiling)
        return *write_folder(folder, found, about, page), folder


def verify_command(folder: str | Path, model: str) -> str:
    """The command that checks a folder of results, to paste into a shell."""
    return f"softgeom verify {quoted(os.fspath(folder))} {quoted(model)}"


def _about(found: Scan, head: Head, model: str, why: str | None, seed: int) -> dict[str, Any]:
    """What the summary says of the model, beside what `write_folder` says of the scan."""
    layer = head.layer
    return {
        "model": model,
        "source": head.source.name,
        "origin": {key: value for key, value in vars(head.source).items() if value},
        "tensors": head.names,
        "notes": list(head.notes),
        "head": None if found.head is None else found.head.to_json(),
        "is_embedding": head.is_embedding,
        "features": layer.dimension,
        "bias": layer.b is not None,
        "dtype": str(layer.W.dtype),
        "named": layer.tokens is not None,
        "feature_set_because": why,
        "unargmaxable_also": {p.features.condition(): len(p) for p in found.wider},
        "seed": seed,
    }


def folder_of_answers(out: str | Path) -> Path:
    """A new or empty folder, or one of answers, which are replaced; ValueError for another."""
    folder = named_folder(out, "answers")
    ours = {ANSWERS, ANSWER_TABLE, LAYER, CARD, LOCK, BLOCKS}
    if other := sorted({p.name for p in folder.iterdir()} - ours if folder.exists() else ()):
        raise ValueError(
            f"--out {out} holds {other[0]!r:.80}, which is not an answer: name another folder."
        )
    return folder


def write_answers(folder: Path, found: Answers | Router, *, with_layer: bool = False) -> None:
    """The table first, the evidence last: a folder with evidence is whole. Of another question
    nothing stays.
    """
    folder_of_answers(folder)  # somebody may have just finished
    plain = found.table.map(lambda value: escape_token(value) if isinstance(value, str) else value)
    how: Any = {"index": False, "quoting": csv.QUOTE_NONNUMERIC, "lineterminator": "\n"}
    write_text(folder / ANSWER_TABLE, plain.to_csv(**how))
    for name in (CARD, LAYER):
        (folder / name).unlink(missing_ok=True)
    if with_layer:
        write_layer(folder / LAYER, found.layer)
    found.save(folder / ANSWERS)


def write_layer(path: Path, layer: SoftmaxLayer) -> None:
    """W and b as safetensors."""
    container.write(path, {}, {"W": layer.W} | ({} if layer.b is None else {"b": layer.b}))


def verify_answers(path: Path, layer: SoftmaxLayer) -> Answers | Router:
    """The answers of a file, each proven again, and the layer beside it, if there is one; answers
    about label sets are about the layer with its threshold. ValueError: what is wrong, and where.
    """
    head = read_header(path)
    both = (layer, with_threshold(layer))
    held = next((held for held in both if fingerprint(held) == head["layer"]), layer)
    found = (Router if head["holds"] == "experts" else Answers).load(path, held)
    found.verify()
    if (path := path.with_name(LAYER)).exists():
        try:
            arrays: dict[str, Any] = container.read(path)[1]
            same = fingerprint(SoftmaxLayer(**arrays)) == fingerprint(found.layer)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} is not a layer ({str(error)[:80]}).") from None
        if not same:
            raise ValueError(f"{path} holds another layer than the answers are about.")
    return found


def write_ceilings(folder: Path, found: Ceilings) -> None:
    """The table first, ceilings rounded up and what is reached down; the proofs last."""
    with io.StringIO(newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["class", "token", "ceiling", "reached"])
        bounds = (found.classes.tolist(), found.ceiling.tolist(), found.reached.tolist())
        for t, ceiling, reached in zip(*bounds, strict=True):
            writer.writerow([t, escape_token(found.layer.token(t)), up(ceiling), down(reached)])
        write_text(folder / CEILING_TABLE, text.getvalue())
    found.save(folder / CEILINGS)
