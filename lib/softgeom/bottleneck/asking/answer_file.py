"""Answers about orders in a file of evidence (certifying/evidence_file.py; docs/certificates.md)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from softgeom.bottleneck.asking.answer import Answer, Comparisons, Proof
from softgeom.bottleneck.asking.order import Order
from softgeom.bottleneck.certifying.evidence_file import Form, Supply, filed_as, joined
from softgeom.layer import FeatureSet, SoftmaxLayer

KINDS = ("witness32", "witness64", "comparisons", "unknown", "witness_exact", "comparisons_exact")
FORM = Form(
    version="orders 1",
    holds="set of saved answers",
    remedy="ask the layer again",
    dtypes={
        "kinds": "|i1",
        "steps": "<i8",
        "margins": "<f8",
        "points32": "<f4",
        "points64": "<f8",
        "counts": "<i8",
        "above": "<i8",
        "below": "<i8",
        "weights": "<f8",
        "bounds": "<f8",
    },
)


def save_answers(path: str | Path, layer: SoftmaxLayer, features: FeatureSet, answers: Sequence[Answer]) -> None:
    """Write answers to ``path``, all or nothing."""
    evidence = [a.evidence for a in answers]
    compared = [e for e in evidence if isinstance(e, Comparisons)]
    head = {
        "orders": [{"blocks": a.order.blocks, "rest": a.order.rest} for a in answers],
        "methods": [a.method for a in answers],
    }
    arrays = {
        "kinds": [
            KINDS.index(filed_as(e, "comparisons" if isinstance(e, Comparisons) else "unknown")) for e in evidence
        ],
        "steps": [a.steps for a in answers],
        "margins": [a.margin for a in answers],
        "counts": [len(e.weights) for e in compared],
        "above": joined(e.above for e in compared),
        "below": joined(e.below for e in compared),
    }
    FORM.save(path, layer, features, evidence, head, arrays)


def load_answers(path: str | Path, layer: SoftmaxLayer) -> tuple[FeatureSet, list[Answer]]:
    """Read what ``save_answers`` wrote for this layer.

    Raises
    ------
    ValueError
        If the file is missing, damaged, of another kind, or belongs to another layer.
    """

    def read(supply: Supply) -> list[Answer]:
        orders = [Order(stored["blocks"], stored["rest"]) for stored in supply.head["orders"]]
        for order in orders:
            order.check(layer.classes)
        columns = (supply.head["methods"], supply.arrays["steps"].tolist(), supply.arrays["margins"].tolist())
        return [
            Answer(order, proof, str(method), int(steps), float(margin))
            for order, proof, method, steps, margin in zip(orders, _proofs(supply), *columns, strict=True)
        ]

    return FORM.load(path, layer, read)


def _proofs(supply: Supply) -> list[Proof]:
    above, below = (supply.arrays[side].astype(np.intp) for side in ("above", "below"))
    counts, used = iter(supply.arrays["counts"].tolist()), 0
    proofs: list[Proof] = []
    for kind in (KINDS[kind] for kind in supply.arrays["kinds"].tolist()):
        if kind.startswith("witness"):
            proofs.append(supply.witness(kind))
        elif kind.startswith("comparisons"):
            size = next(counts)
            weights = supply.weights(size, exact=kind == "comparisons_exact")
            proofs.append(Comparisons(above[used : used + size], below[used : used + size], weights))
            used += size
        else:
            proofs.append(supply.unknown())
    if not used == len(above) == len(below) or next(counts, None) is not None:
        raise ValueError("it holds comparisons that belong to no order")
    return proofs
