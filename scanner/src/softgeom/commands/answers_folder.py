"""Answers in a folder, the evidence for the sceptic and a table for people; and in lines for a
terminal, the impossible first.

OUT/answers.safetensors   orders, evidence, the layer's SHA-256 (docs/certificates.md)
OUT/answers.csv           one row per answer, or per expert, with tokens escaped; a copy for people
OUT/card.html             of a scan that asked label by label
OUT/layer.safetensors     on request, W and b as tools/check_proofs.py reads them
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.asking import Answer, Answers, BlockingSet, Comparisons, Router
from softgeom.asking.label_sets import with_threshold
from softgeom.certifying import container
from softgeom.certifying.evidence_file import read_header
from softgeom.certifying.folder import CARD
from softgeom.certifying.verdict import Unknown, Witness
from softgeom.commands.results import named_folder
from softgeom.layer import SoftmaxLayer, fingerprint
from softgeom.verdict_table import at_least, escape_token
from softgeom.writing import write_text

ANSWERS, TABLE, LAYER = "answers.safetensors", "answers.csv", "layer.safetensors"
_SHOWN = 20  # answers on the terminal; answers.csv has them all
_PARTS = 4  # comparisons of a proof that are named


def check_place(out: str) -> Path:
    """A new or empty folder, or one of answers, which are replaced; ValueError for another."""
    folder = named_folder(out, "answers")
    ours = {ANSWERS, TABLE, LAYER, CARD}
    if other := sorted({p.name for p in folder.iterdir()} - ours if folder.exists() else ()):
        raise ValueError(
            f"--out {out} holds {other[0]!r:.80}, which is not an answer: name another folder."
        )
    return folder


def write_answers(folder: Path, found: Answers | Router, *, with_layer: bool) -> None:
    """The table first, the evidence last: a folder with evidence is whole."""
    write_text(folder / TABLE, _table(found))
    (folder / CARD).unlink(missing_ok=True)  # it could be another question's
    if with_layer:
        write_layer(folder / LAYER, found.layer)
    else:
        (folder / LAYER).unlink(missing_ok=True)  # it could be another question's
    found.save(folder / ANSWERS)


def write_layer(path: Path, layer: SoftmaxLayer) -> None:
    """W and b as safetensors."""
    container.write(path, {}, {"W": layer.W} | ({} if layer.b is None else {"b": layer.b}))


def verify_answers(path: Path, layer: SoftmaxLayer) -> Answers | Router:
    """The answers of a file, each of them proven again, and the layer beside it, if there is one.
    ValueError: what is wrong, and where.
    """
    found = read_answers(path, layer)
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


def read_answers(path: Path, layer: SoftmaxLayer) -> Answers | Router:
    """Saved answers of any question to this layer; label sets are about the layer with its
    threshold. ValueError if the file is missing, damaged, or of another layer.
    """
    head = read_header(path)
    both = (layer, with_threshold(layer))
    held = next((held for held in both if fingerprint(held) == head["layer"]), layer)
    return (Router if head["holds"] == "experts" else Answers).load(path, held)


def _table(found: Answers | Router) -> str:
    """The table as it is written: names on one line, and none a formula."""
    plain = found.table.map(lambda value: escape_token(value) if isinstance(value, str) else value)
    return plain.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")


def about_answers(found: Answers) -> list[str]:
    """One line an answer, as many as fit."""
    order = sorted(range(len(found)), key=lambda n: found[n].verdict)  # the impossible ones first
    return _as_many_as_fit([_sentence(found.layer, found[n]) for n in order[:_SHOWN]], len(order))


def _sentence(layer: SoftmaxLayer, answer: Answer) -> str:
    """One line: the verdict, the order by token, and what proves it."""
    evidence = answer.evidence
    if isinstance(evidence, Witness):
        norm = np.linalg.norm(np.asarray(evidence.point, float))
        why = f"by {at_least(answer.margin)} at features of norm {norm:.3g}"
    elif isinstance(evidence, Comparisons):
        share = np.asarray(evidence.weights, float)
        heaviest = np.argsort(-share, kind="stable")[:_PARTS]
        parts = [
            f"{_name(layer, evidence.above[n])} over {_name(layer, evidence.below[n])} "
            f"{share[n] / share.sum():.0%}"
            for n in heaviest
        ]
        more = f", {len(share) - _PARTS} more" if len(share) > _PARTS else ""
        why = f"a mean of demanded leads is never positive: {', '.join(parts)}{more}"
    else:
        assert isinstance(evidence, Unknown)
        why = evidence.reason
    return f"  {answer.verdict:<10}  {escape_token(answer.order.describe(layer))}  ({why})"


def about_blocking_set(found: BlockingSet) -> list[str]:
    """Who blocks the class, and by how much somebody always leads."""
    layer = found.leave_one_out.layer
    rivals = ", ".join(_name(layer, i) for i in found.rivals)
    name, few = _name(layer, found.class_), len(found.rivals)
    least = "whether each is needed stayed undecided"
    if found.minimal:
        least = "none of them can be spared"
    return [
        f"  {name} cannot win against these {few}, and {least}: {rivals}",
        f"  some of them always leads it by at least {at_least(max(0.0, -found.proof.margin))}",
    ]


def about_experts(router: Router) -> list[str]:
    """One line an expert, as many as fit."""
    order = sorted(router.experts, key=lambda expert: expert.verdict)
    lines = [
        f"  {e.verdict:<10}  {_name(router.layer, e.expert)}  ({e.method})" for e in order[:_SHOWN]
    ]
    return _as_many_as_fit(lines, len(order))


def _as_many_as_fit(lines: list[str], of: int) -> list[str]:
    return lines + ([f"  ... {of - _SHOWN:,} more"] if of > _SHOWN else [])


def _name(layer: SoftmaxLayer, i: int) -> str:
    return escape_token(layer.token(int(i)))


def listed(counts: dict[str, int]) -> str:
    """How many there are of each verdict."""
    return ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items())
