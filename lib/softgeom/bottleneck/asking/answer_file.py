"""Answers in one ``.npz``: plain arrays and one JSON string, as for a scan (certifying/archive.py; docs/certificates.md)."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.asking.answer import Answer, Comparisons, Proof, Unknown, Witness
from softgeom.bottleneck.asking.order import Order
from softgeom.bottleneck.certifying.archive import fingerprint, fraction_text, identity, read_fractions
from softgeom.layer import FeatureSet, SoftmaxLayer

FORMAT = "orders 1"
KINDS = ("point32", "point64", "comparisons", "unknown", "point_exact", "comparisons_exact")
DTYPES = {
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
}


def save_answers(path: str | Path, layer: SoftmaxLayer, features: FeatureSet, answers: Sequence[Answer]) -> None:
    """Write answers to ``path`` under a temporary name and rename."""
    kinds = [_kind(answer.evidence) for answer in answers]

    def chosen(*names: str) -> list[Any]:
        return [a.evidence for a, kind in zip(answers, kinds, strict=True) if kind in names]

    compared = chosen("comparisons", "comparisons_exact")
    head = {
        "format": FORMAT,
        "layer": fingerprint(layer),
        "identity": identity(layer),
        "features": features.to_json(),
        "orders": [{"blocks": a.order.blocks, "rest": a.order.rest} for a in answers],
        "methods": [a.method for a in answers],
        "reasons": [e.reason for e in chosen("unknown")],
        "exact_points": [[fraction_text(v) for v in e.point] for e in chosen("point_exact")],
        "exact_weights": [[fraction_text(v) for v in e.weights] for e in chosen("comparisons_exact")],
    }
    arrays = {
        "kinds": [KINDS.index(kind) for kind in kinds],
        "steps": [a.steps for a in answers],
        "margins": [a.margin for a in answers],
        "points32": [e.point for e in chosen("point32")],
        "points64": [e.point for e in chosen("point64")],
        "counts": [len(e.weights) for e in compared],
        "above": np.concatenate([np.zeros(0), *(e.above for e in compared)]),
        "below": np.concatenate([np.zeros(0), *(e.below for e in compared)]),
        "weights": np.concatenate([np.zeros(0), *(e.weights for e in chosen("comparisons"))]),
        "bounds": [e.bound for e in chosen("unknown")],
    }
    typed = {name: np.array(values, dtype=DTYPES[name]) for name, values in arrays.items()}
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, head=np.array(json.dumps(head)), **typed)
    temporary.replace(path)


def load_answers(path: str | Path, layer: SoftmaxLayer) -> tuple[FeatureSet, list[Answer]]:
    """Read what ``save_answers`` wrote for this layer.

    Raises
    ------
    ValueError
        If the file is missing, damaged, of another kind, or belongs to another layer.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There are no saved answers at {path}.")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        head = json.loads(str(arrays["head"]))
        known = head["format"] == FORMAT
        belongs = known and head["layer"] == fingerprint(layer)
        answers = _answers(arrays, head, layer) if belongs else []
        features = FeatureSet.from_json(head["features"]) if belongs else None
    except (
        KeyError, IndexError, TypeError, ValueError, OSError, EOFError, StopIteration, ArithmeticError, AttributeError,
        RuntimeError, MemoryError, zipfile.BadZipFile, zipfile.LargeZipFile,
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise ValueError(f"{path} holds no saved answers, or is damaged ({reason}): ask the layer again.") from None
    if not known:
        raise ValueError(f"{path} was written in format {head['format']!r:.20}; this version reads {FORMAT!r}.")
    if features is None:
        raise ValueError(f"{path} belongs to another layer: its fingerprint differs from this one's.")
    return features, answers


def _answers(arrays: dict[str, NDArray[Any]], head: dict[str, Any], layer: SoftmaxLayer) -> list[Answer]:
    for name, dtype in DTYPES.items():
        if arrays[name].dtype.str != dtype:
            raise ValueError(f"{name} is stored as {arrays[name].dtype.str}, not {dtype}")
        if name.startswith("points") and len(arrays[name]) and arrays[name].shape[1:] != (layer.dimension,):
            raise ValueError(f"{name} has shape {arrays[name].shape} for {layer.dimension} features")
    orders = [Order(stored["blocks"], stored["rest"]) for stored in head["orders"]]
    for order in orders:
        order.check(layer.classes)
    evidence = list(_evidence(arrays, head, layer.dimension))
    columns = (head["methods"], arrays["steps"].tolist(), arrays["margins"].tolist())
    return [
        Answer(order, proof, str(method), int(steps), float(margin))
        for order, proof, method, steps, margin in zip(orders, evidence, *columns, strict=True)
    ]


def _evidence(arrays: dict[str, NDArray[Any]], head: dict[str, Any], dimension: int) -> Iterator[Proof]:
    points32, points64 = iter(arrays["points32"]), iter(arrays["points64"])
    counts, bounds, reasons = iter(arrays["counts"].tolist()), iter(arrays["bounds"].tolist()), iter(head["reasons"])
    exact_points, exact_weights = iter(head["exact_points"]), iter(head["exact_weights"])
    compared = used = 0
    for kind in arrays["kinds"].tolist():
        name = KINDS[kind]
        if name == "unknown":
            yield Unknown(float(next(bounds)), str(next(reasons)))
        elif name == "point_exact":
            yield Witness(read_fractions(next(exact_points), dimension))
        elif name.startswith("point"):
            yield Witness(next(points32 if name == "point32" else points64))
        else:
            size = next(counts)
            above, below = (arrays[side][compared : compared + size].astype(np.intp) for side in ("above", "below"))
            compared += size
            if name == "comparisons_exact":
                weights = read_fractions(next(exact_weights), size)
            else:
                weights = arrays["weights"][used : used + size]
                used += size
            yield Comparisons(above, below, weights)
    rests = (points32, points64, counts, bounds, reasons, exact_points, exact_weights)
    if (
        compared != len(arrays["above"])
        or used != len(arrays["weights"])
        or any(next(r, None) is not None for r in rests)
    ):
        raise ValueError("it holds evidence that belongs to no order")


def _kind(evidence: Proof) -> str:
    if isinstance(evidence, Witness):
        if evidence.point.dtype == object:
            return "point_exact"
        return "point64" if evidence.point.dtype == np.float64 else "point32"
    if isinstance(evidence, Comparisons):
        return "comparisons_exact" if evidence.weights.dtype == object else "comparisons"
    return "unknown"
