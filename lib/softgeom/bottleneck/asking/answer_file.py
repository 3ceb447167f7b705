"""Answers about orders in a file of evidence (certifying/evidence_file.py; docs/certificates.md).

Answers about a router carry along which of them belong to which expert: whether an expert can be
chosen follows from several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

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


Group = tuple[int, str, str, list[Answer]]  # an expert, its verdict, the method, and its evidence


def save_answers(
    path: str | Path,
    layer: SoftmaxLayer,
    features: FeatureSet,
    answers: Sequence[Answer],
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write answers to ``path``, all or nothing; ``about`` is more for the head."""
    evidence = [a.evidence for a in answers]
    compared = [e for e in evidence if isinstance(e, Comparisons)]
    head = {
        "orders": [{"blocks": a.order.blocks, "rest": a.order.rest} for a in answers],
        "methods": [a.method for a in answers],
        **(about or {}),
    }
    arrays = {
        "kinds": [
            KINDS.index(filed_as(e, "comparisons" if isinstance(e, Comparisons) else "unknown"))
            for e in evidence
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
    return FORM.load(path, layer, lambda supply: _answers(supply, layer))


def save_groups(
    path: str | Path, layer: SoftmaxLayer, features: FeatureSet, k: int, groups: Sequence[Group]
) -> None:
    """Write verdicts on experts among the top k, each with its answers, all or nothing."""
    about = {
        "k": k,
        "chosen": [
            [expert, verdict, method, len(answers)] for expert, verdict, method, answers in groups
        ],
    }
    save_answers(
        path, layer, features, [a for *_, answers in groups for a in answers], {"experts": about}
    )


def load_groups(path: str | Path, layer: SoftmaxLayer) -> tuple[FeatureSet, int, list[Group]]:
    """Read what ``save_groups`` wrote for this layer; ValueError as for ``load_answers``."""

    def read(supply: Supply) -> list[tuple[int, Group]]:
        answers, about = iter(_answers(supply, layer)), supply.head["experts"]
        chosen = [
            (int(e), str(verdict), str(method), int(count))
            for e, verdict, method, count in about["chosen"]
        ]
        counts = [count for *_, count in chosen]
        if not counts or min(counts) < 0 or sum(counts) != len(supply.head["orders"]):
            raise ValueError("its orders do not add up to those of its experts")
        return [(int(about["k"]), (*row[:3], list(islice(answers, row[3])))) for row in chosen]

    features, found = FORM.load(path, layer, read)
    return features, found[0][0], [group for _, group in found]


def _answers(supply: Supply, layer: SoftmaxLayer) -> list[Answer]:
    orders = [Order(stored["blocks"], stored["rest"]) for stored in supply.head["orders"]]
    for order in orders:
        order.check(layer.classes)
    columns = (
        supply.head["methods"],
        supply.arrays["steps"].tolist(),
        supply.arrays["margins"].tolist(),
    )
    return [
        Answer(order, proof, str(method), int(steps), float(margin))
        for order, proof, method, steps, margin in zip(
            orders, _proofs(supply), *columns, strict=True
        )
    ]


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
            proofs.append(
                Comparisons(above[used : used + size], below[used : used + size], weights)
            )
            used += size
        else:
            proofs.append(supply.unknown())
    if not used == len(above) == len(below) or next(counts, None) is not None:
        raise ValueError("it holds comparisons that belong to no order")
    return proofs
