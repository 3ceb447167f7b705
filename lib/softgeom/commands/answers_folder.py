"""A folder of answers: the evidence for the sceptic, a table for people; `verify_answers` reads
both back against the layer.

OUT/answers.npz     orders, evidence, the layer's SHA-256 (docs/certificates.md)
OUT/answers.csv     one row per answer, or per expert, with tokens escaped as in a scan's table
OUT/layer.npz       on request, W and b as tools/check_answers.py reads them
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd

from softgeom.bottleneck.asking import Answers, OrderChecker, Router
from softgeom.bottleneck.asking.answer_file import FORM
from softgeom.bottleneck.asking.label_sets import with_threshold
from softgeom.bottleneck.certifying.evidence_file import fingerprint
from softgeom.bottleneck.certifying.folder import SAME
from softgeom.bottleneck.certifying.verdict import Witness
from softgeom.bottleneck.certifying.witness import WitnessChecker
from softgeom.bottleneck.verdict_table import escape_token
from softgeom.layer import SoftmaxLayer
from softgeom.writing import whole

ANSWERS, TABLE, LAYER = "answers.npz", "answers.csv", "layer.npz"


def check_place(out: str) -> Path:
    """The folder for answers: a new one, an empty one, or one of answers, which are replaced.

    Raises
    ------
    ValueError
        When it is a file, or holds anything else.
    """
    if not out.strip():
        raise ValueError("--out is empty: name a folder for the answers.")
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {out} is a file: name a folder for the answers.")
    other = (
        sorted({path.name for path in folder.iterdir()} - {ANSWERS, TABLE, LAYER})
        if folder.exists()
        else []
    )
    if other:
        raise ValueError(
            f"--out {out} holds {other[0]!r:.80}, which is no answer: name another folder."
        )
    return folder


def write_answers(folder: Path, found: Answers | Router, *, with_layer: bool) -> None:
    """The table first, the evidence last: a folder with evidence is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    with whole(folder / TABLE) as fresh:
        _table(found).to_csv(fresh, index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    if with_layer:
        arrays = {"W": found.layer.W} | ({} if found.layer.b is None else {"b": found.layer.b})
        with whole(folder / LAYER) as fresh, fresh.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
    else:
        (folder / LAYER).unlink(missing_ok=True)  # it could be another question's
    found.save(folder / ANSWERS)


def verify_answers(folder: Path, layer: SoftmaxLayer) -> dict[str, int]:
    """Check every answer against the layer, and the table against the evidence: the number of
    answers of each verdict.

    Raises
    ------
    ValueError
        One sentence: what is wrong, and where.
    """
    found = read_answers(folder / ANSWERS, layer)
    found.verify()
    _check_margins(found)
    expected = (
        _table(found)
        .to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        .split("\n")
    )
    if not (folder / TABLE).is_file():
        raise ValueError(f"{folder} has no {TABLE}: ask again.")
    with (folder / TABLE).open(encoding="utf-8", errors="replace", newline="") as file:
        written = file.read(2 * sum(map(len, expected)) + 2**16).split("\n")
    if written != expected:
        row = next(
            (n for n, (a, b) in enumerate(zip(written, expected, strict=False)) if a != b),
            "its length",
        )
        raise ValueError(
            f"{folder / TABLE} differs from the evidence in "
            f"{f'row {row}' if row != 'its length' else row}."
        )
    return found.counts


def read_answers(path: Path, layer: SoftmaxLayer) -> Answers | Router:
    """Saved answers of any question to this layer; label sets are about the layer with its
    threshold.

    Raises
    ------
    ValueError
        If the file is missing, damaged, or of another layer.
    """
    head = FORM.head(path)
    held = next(
        (held for held in (layer, with_threshold(layer)) if fingerprint(held) == head.get("layer")),
        layer,
    )
    return Router.load(path, held) if "experts" in head else Answers.load(path, held)


def _check_margins(found: Answers | Router) -> None:
    """Stored margins are those of the evidence, up to SAME and the rounding of the products behind
    them.
    """
    answers = (
        found.answers
        if isinstance(found, Answers)
        else [a for e in found.experts for a in e.answers]
    )
    checker, bounds = (
        OrderChecker(found.layer, found.features),
        WitnessChecker(found.layer, found.features),
    )
    for answer in answers:
        again, evidence = checker.check(answer), answer.evidence
        slack = SAME * abs(again)
        if isinstance(evidence, Witness):
            slack += 4 * float(bounds.tolerance(np.asarray(evidence.point, float)[None])[0])
        if answer.margin != again and not abs(answer.margin - again) <= slack:
            raise ValueError(
                f"{answer.order.describe(found.layer)}: the stored margin is "
                f"{answer.margin!r}, but its evidence proves {again!r}."
            )


def _table(found: Answers | Router) -> pd.DataFrame:
    """The table as it is written: names on one line, and none a formula."""
    return found.table.map(lambda value: escape_token(value) if isinstance(value, str) else value)
