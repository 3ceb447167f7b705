"""A folder of answers: the evidence for the sceptic, a table for people; `verify_answers` reads
both back against the layer.

OUT/answers.npz     orders, evidence, the layer's SHA-256 (docs/certificates.md)
OUT/answers.csv     one row per answer, or per expert, with tokens escaped as in a scan's table
OUT/layer.npz       on request, W and b as tools/check_evidence.py reads them
"""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import numpy as np

from softgeom.bottleneck.asking import Answers, Router
from softgeom.bottleneck.asking.label_sets import with_threshold
from softgeom.bottleneck.certifying.evidence_file import identity, read_head
from softgeom.bottleneck.certifying.folder import SUMMARY
from softgeom.bottleneck.verdict_table import escape_token
from softgeom.commands.results import check_table, named_folder
from softgeom.layer import SoftmaxLayer
from softgeom.writing import whole, write_text

ANSWERS, TABLE, LAYER = "answers.npz", "answers.csv", "layer.npz"


def check_place(out: str) -> Path:
    """A new or empty folder, or one of answers, which are replaced; ValueError for another."""
    folder = named_folder(out, "answers")
    ours = {ANSWERS, TABLE, LAYER}
    if other := sorted({p.name for p in folder.iterdir()} - ours if folder.exists() else ()):
        raise ValueError(
            f"--out {out} holds {other[0]!r:.80}, which is not an answer: name another folder."
        )
    return folder


def write_answers(folder: Path, found: Answers | Router, *, with_layer: bool) -> None:
    """The table first, the evidence last: a folder with evidence is whole."""
    write_text(folder / TABLE, _table(found))
    if with_layer:
        arrays = {"W": found.layer.W} | ({} if found.layer.b is None else {"b": found.layer.b})
        with whole(folder / LAYER) as fresh, fresh.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
    else:
        (folder / LAYER).unlink(missing_ok=True)  # it could be another question's
    found.save(folder / ANSWERS)


def verify_answers(folder: Path, layer: SoftmaxLayer) -> Answers | Router:
    """The answers, each of them checked, and the table against the evidence. ValueError: what is
    wrong, and where.
    """
    if (folder / SUMMARY).exists():
        raise ValueError(f"{folder} holds a scan and answers: keep them in folders of their own.")
    found = read_answers(folder / ANSWERS, layer)
    found.verify()
    _check_layer(folder / LAYER, found.layer)
    check_table(folder / TABLE, _table(found))
    return found


def _check_layer(path: Path, layer: SoftmaxLayer) -> None:
    """ValueError unless the layer that was written beside the answers, if any, is theirs."""
    if not path.exists():
        return
    arrays = {"W": layer.W} | ({} if layer.b is None else {"b": layer.b})
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > sum(array.nbytes for array in arrays.values()) + 2**16:
            raise ValueError("it is too long")
        with np.load(path, allow_pickle=False) as file:
            stored = SoftmaxLayer(*(file[name] for name in arrays))
            same = set(file.files) == set(arrays) and identity(stored) == identity(layer)
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile, MemoryError) as error:
        raise ValueError(f"{path} is not a layer ({str(error)[:80]}).") from None
    if not same:
        raise ValueError(f"{path} holds another layer than the answers are about.")


def read_answers(path: Path, layer: SoftmaxLayer) -> Answers | Router:
    """Saved answers of any question to this layer; label sets are about the layer with its
    threshold. ValueError if the file is missing, damaged, or of another layer.
    """
    head = read_head(path)
    both = (layer, with_threshold(layer))
    held = next((held for held in both if identity(held) == head["layer"]), layer)
    return (Router if head["holds"] == "experts" else Answers).load(path, held)


def _table(found: Answers | Router) -> str:
    """The table as it is written: names on one line, and none a formula."""
    plain = found.table.map(lambda value: escape_token(value) if isinstance(value, str) else value)
    return plain.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
