"""Evidence in one ``.npz``, format 4: typed arrays and one JSON text, nothing that executes when it
is read (docs/certificates.md).

One form for the findings of a scan, for answers about orders, and for verdicts on experts, which
follow from such answers. There is one way to write each piece of evidence: reading refuses whatever
is unknown, missing, doubled, of another size, or written otherwise. The SHA-256 of W and b go with
it, so that evidence is never checked against another layer unnoticed.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.order import Order
from softgeom.bottleneck.certifying.verdict import (
    Answer,
    Captors,
    Comparisons,
    Evidence,
    Finding,
    Proof,
    Twin,
    Unknown,
    Witness,
)
from softgeom.layer import FeatureSet, SoftmaxLayer, identity
from softgeom.writing import whole

FORMAT = 4
POINT32, POINT64, WEIGHTS, TWIN, UNDECIDED, EXACT_POINT, EXACT_WEIGHTS = range(7)  # kinds
METHOD = re.compile("[a-z ]{0,40}")
LARGE = 2**31  # bytes from which on a ZIP has places and sizes in extra fields
LONGEST = 10**6  # characters of a fraction: reducing one to lowest terms takes quadratic time
VERDICTS = ("possible", "impossible", "undecided")  # on experts, by their number
HEAD = {"exact_points", "exact_weights", "features", "format", "holds", "layer", "methods"}
HEAD |= {"reasons", "sections"}
# of a section: the same classes, proven over one more feature set
SECTION = {"exact_points", "exact_weights", "features", "methods", "reasons"}
ARRAYS = {
    "kinds": "|i1",
    "steps": "<i8",
    "margins": "<f8",
    "points32": "<f4",
    "points64": "<f8",
    "counts": "<i8",
    "below": "<i8",
    "weights": "<f8",
}
ORDERS = {"blocks": "<i8", "rest": "|i1", "sizes": "<i8", "named": "<i8", "above": "<i8"}
MORE = {
    "scan": {"classes": "<i8", "radii": "<f8", "twins": "<i8"},
    "answers": ORDERS,
    "experts": {**ORDERS, "experts": "<i8", "expert_verdicts": "|i1", "expert_counts": "<i8"},
}
DAMAGE = (
    KeyError, IndexError, TypeError, ValueError, OSError, EOFError, StopIteration, ArithmeticError,
    AttributeError, RuntimeError, MemoryError, SyntaxError, zipfile.BadZipFile,
    zipfile.LargeZipFile, zlib.error, tokenize.TokenError, Warning,
)  # fmt: skip

# findings over a feature set
Part = tuple[FeatureSet, Sequence[Finding]]
Group = tuple[int, str, str, list[Answer]]  # an expert, its verdict, the method, and its evidence


# ---- Reading


def load_findings(
    path: str | Path, layer: SoftmaxLayer, known: Mapping[str, Any] | None = None
) -> tuple[FeatureSet, list[Finding]]:
    """The feature set and the findings of a saved scan of this layer that has no sections, in the
    order of the classes; as ``load_parts``.
    """
    (features, findings), *more = load_parts(path, layer, known)
    if more:
        raise ValueError(f"{path} has sections where none belong.")
    return features, list(findings)


def load_parts(
    path: str | Path, layer: SoftmaxLayer, known: Mapping[str, Any] | None = None
) -> list[Part]:
    """The feature set and the findings of a saved scan of this layer, in the order of the classes,
    and the same of each of its sections.

    ``known`` is the layer's identity where that was computed already.

    Raises
    ------
    ValueError
        If the file is missing, damaged, not canonical, of another kind, or belongs to another
        layer. Nothing is proven yet: kernel.py does that.
    """
    with _reading(path):
        head, arrays = _open(Path(path), "scan", layer, known)
        parts = [_findings(_File(head, arrays, layer), layer)]
        for n, section in enumerate(head["sections"], 1):
            held = {name: arrays[_of_section(n, name)] for name in ARRAYS | MORE["scan"]}
            parts.append(_findings(_File({"holds": "scan", **section}, held, layer), layer))
        return parts


def _findings(file: _File, layer: SoftmaxLayer) -> Part:
    """A scan, or a section of one."""
    kinds, classes = file.kinds, file.integers("classes", len(file.kinds), 0, layer.classes - 1)
    _require(np.all(np.diff(classes) > 0), "classes are not in increasing order")
    radii = file.array("radii", len(kinds))
    won = np.isin(kinds, (POINT32, POINT64, EXACT_POINT))
    _require(np.all(np.isnan(radii[~won])) and np.all(radii[won] >= 0), "a radius is no radius")
    twins = iter(file.integers("twins", int(np.sum(kinds == TWIN)), 0, layer.classes - 1))
    indices, found = classes.tolist(), list[Evidence]()
    for t, kind in zip(indices, kinds.tolist(), strict=True):
        if kind == TWIN:
            found.append(Twin(int(next(twins))))
        else:
            proof = file.evidence(kind, t)
            found.append(
                Captors(proof.below, proof.weights) if isinstance(proof, Comparisons) else proof
            )
    file.check_spent()
    columns = (file.methods, file.steps, file.margins, radii.tolist())
    return file.features, [Finding(*row) for row in zip(indices, found, *columns, strict=True)]


def load_answers(path: str | Path, layer: SoftmaxLayer) -> tuple[FeatureSet, list[Answer]]:
    """The feature set and the answers about orders of this layer; ValueError as for
    ``load_findings``.
    """
    with _reading(path):
        file = _File(*_open(Path(path), "answers", layer), layer)
        answers = _answers(file, layer)
        return file.features, answers


def load_groups(path: str | Path, layer: SoftmaxLayer) -> tuple[FeatureSet, int, list[Group]]:
    """The feature set, k, and the verdicts on experts among the top k, each with its answers;
    ValueError as for ``load_findings``.
    """
    with _reading(path):
        file = _File(*_open(Path(path), "experts", layer), layer)
        answers = iter(_answers(file, layer))
        k, methods = file.head["k"], _methods(file.head["expert_methods"])
        _require(type(k) is int and 1 <= k <= layer.classes, "k is no number of experts")
        _require(methods, "it names no expert")
        experts = file.integers("experts", len(methods), 0, layer.classes - 1)
        _require(np.all(np.diff(experts) > 0), "experts are not in increasing order")
        verdicts = file.integers("expert_verdicts", len(methods), 0, len(VERDICTS) - 1)
        counts = file.integers("expert_counts", len(methods), 0, len(file.kinds))
        _require(counts.sum() == len(file.kinds), "orders do not add up to those of the experts")
        rows = zip(experts.tolist(), verdicts.tolist(), methods, counts.tolist(), strict=True)
        groups = [(e, VERDICTS[v], m, [next(answers) for _ in range(n)]) for e, v, m, n in rows]
        return file.features, k, groups


def read_head(path: str | Path) -> dict[str, Any]:
    """What an evidence file says of itself, before any layer is at hand; ValueError if it is
    missing, damaged, or of another format.
    """
    with _reading(path):
        return _head(Path(path))


def _answers(file: _File, layer: SoftmaxLayer) -> list[Answer]:
    n, C = len(file.kinds), layer.classes
    _require(not np.any(file.kinds == TWIN), "an order has no twin")
    blocks, rest = file.integers("blocks", n, 1, C), file.integers("rest", n, 0, 1)
    sizes = file.integers("sizes", int(blocks.sum()), 1, C)
    parts = iter(np.split(file.integers("named", int(sizes.sum()), 0, C - 1), np.cumsum(sizes)))
    found = []
    rows = zip(blocks.tolist(), rest.tolist(), file.kinds.tolist(), strict=True)
    for (count, others, kind), method, steps, margin in zip(
        rows, file.methods, file.steps, file.margins, strict=True
    ):
        order = Order([next(parts).tolist() for _ in range(count)], bool(others))
        found.append(Answer(order, file.evidence(kind), method, steps, margin))
    file.check_spent()
    return found


class _File:
    """The columns that every file has, and the evidence, handed out in the order in which it was
    written.
    """

    def __init__(
        self, head: dict[str, Any], arrays: dict[str, NDArray[Any]], layer: SoftmaxLayer
    ) -> None:
        self.head, self._arrays = head, arrays
        self.features = FeatureSet.from_json(self.head["features"])
        self.features.check(layer.dimension)
        same = _canonical(self.features.to_json()) == _canonical(self.head["features"])
        _require(same, "its feature set is not written as it should be")
        self._classes, d = layer.classes, layer.dimension
        self.kinds = self._arrays["kinds"]
        n = len(self.kinds)
        self.integers("kinds", n, POINT32, EXACT_WEIGHTS)
        self.steps = self.integers("steps", n, 0, np.iinfo(np.int64).max).tolist()
        self.methods, reasons = _methods(self.head["methods"]), _strings(self.head["reasons"])
        self.margins = self._checked_margins().tolist()
        points = {
            kind: self.array(name, int(np.sum(self.kinds == kind)), d)
            for kind, name in ((POINT32, "points32"), (POINT64, "points64"))
        }
        _require(all(np.isfinite(some).all() for some in points.values()), "a point is not finite")
        exact = {name: _lists(self.head[name]) for name in ("exact_points", "exact_weights")}
        self._points = {
            **{kind: iter(some) for kind, some in points.items()},
            EXACT_POINT: (read_fractions(texts, d) for texts in exact["exact_points"]),
        }
        proofs = self.kinds[np.isin(self.kinds, (WEIGHTS, EXACT_WEIGHTS))]
        counts = self.integers("counts", len(proofs), 1, np.iinfo(np.int32).max)
        total, floats = int(counts.sum()), int(counts[proofs == WEIGHTS].sum())
        below = self.integers("below", total, 0, self._classes - 1)
        above = (
            below
            if head["holds"] == "scan"
            else self.integers("above", total, 0, self._classes - 1)
        )
        ends = np.cumsum(counts)
        self._pairs = zip(np.split(above, ends), np.split(below, ends), strict=True)
        weights = self.array("weights", floats)
        _require(np.all((weights > 0) & (weights < np.inf)), "a weight is not positive")
        self._weights = iter(np.split(weights, np.cumsum(counts[proofs == WEIGHTS])))
        self._exact_weights = iter(exact["exact_weights"])
        self._reasons = iter(reasons)
        self._bounds = iter(np.array(self.margins)[self.kinds == UNDECIDED].tolist())

    def array(self, name: str, *shape: int) -> NDArray[Any]:
        """The array of a name, of this shape."""
        found = self._arrays[name]
        _require(found.shape == shape, f"{name} has shape {found.shape}, not {shape}")
        return found

    def integers(self, name: str, size: int, low: int, high: int) -> NDArray[np.intp]:
        """The integers (size,) of a name, between these numbers."""
        found = self.array(name, size)
        if size:
            _require(low <= found.min() and found.max() <= high, f"{name} holds an invalid number")
        return found.astype(np.intp)

    def evidence(self, kind: int, t: int | None = None) -> Witness | Comparisons | Unknown:
        """The next piece of a kind; of class t, comparisons with rivals."""
        if kind in self._points:
            return Witness(next(self._points[kind]))
        if kind == UNDECIDED:
            return Unknown(next(self._bounds), next(self._reasons))
        above, below = next(self._pairs)
        above = above if t is None else np.full(len(below), t)
        rises = (np.diff(above) > 0) | ((np.diff(above) == 0) & (np.diff(below) > 0))
        _require(np.all(rises), "comparisons are not in increasing order")
        if kind == WEIGHTS:
            return Comparisons(above, below, next(self._weights))
        weights = read_fractions(next(self._exact_weights), len(below))
        _require(all(weight > 0 for weight in weights), "a weight is not positive")
        return Comparisons(above, below, weights)

    def check_spent(self) -> None:
        """ValueError unless everything was asked for."""
        rests = [*self._points.values(), self._exact_weights, self._reasons]
        _require(all(next(rest, None) is None for rest in rests), "nothing asks for some evidence")

    def _checked_margins(self) -> NDArray[np.float64]:
        margins, kinds = self.array("margins", len(self.kinds)), self.kinds
        won = np.isin(kinds, (POINT32, POINT64, EXACT_POINT))
        lost = np.isin(kinds, (WEIGHTS, EXACT_WEIGHTS))
        _require(not np.isnan(margins).any(), "a margin is no number")
        _require(np.all(margins[won] > 0), "a margin at a point is not positive")
        _require(np.all(margins[lost] <= 0) and np.isfinite(margins[lost]).all(), "a bound is none")
        _require(not margins[kinds == TWIN].any(), "a twin has a margin")
        return margins


class _OtherLayerError(Exception):
    pass


@contextmanager
def _reading(path: str | Path) -> Iterator[None]:
    """Whatever a file that is missing or damaged raises, as one sentence."""
    if not Path(path).is_file():
        raise ValueError(f"There is no file of evidence at {path}.")
    try:
        yield
    except _OtherLayerError:
        raise ValueError(
            f"{path} belongs to another layer: its fingerprint differs from this one's."
        ) from None
    except DAMAGE as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise ValueError(
            f"{path} is not a valid file of evidence ({reason}): scan, or ask, again."
        ) from None


def _require(condition: Any, reason: str) -> None:
    if not condition:
        raise ValueError(reason)


def _canonical(content: Any) -> str:
    return json.dumps(content, sort_keys=True)


def _strings(stored: Any) -> list[str]:
    _require(type(stored) is list and all(type(s) is str for s in stored), "a list of text is none")
    return list(stored)


def _methods(stored: Any) -> list[str]:
    """Plain names: they stand in tables, where a line break would make a row of a forger's own."""
    methods = _strings(stored)
    _require(all(METHOD.fullmatch(method) for method in methods), "a method is no plain name")
    return methods


def _lists(stored: Any) -> list[list[str]]:
    _require(type(stored) is list, "a list of fractions is none")
    return [_strings(some) for some in stored]


def _head(path: Path) -> dict[str, Any]:
    """The head, canonical, with the keys of its kind of file."""
    with _opened(path) as archive:
        text = read_text(_read_member(archive, "head"))
    head = json.loads(text)
    if type(head.get("format")) is not int or head["format"] != FORMAT:
        raise ValueError(f"format {head.get('format')!r:.20}, not {FORMAT}")
    _require(text == _canonical(head), "its head is not written as it should be")
    _require(type(head["holds"]) is str and head["holds"] in MORE, "it holds something unknown")
    keys = HEAD | ({"k", "expert_methods"} if head["holds"] == "experts" else set())
    _require(set(head) == keys, "its head has other fields")
    sections = head["sections"]
    known = type(sections) is list and all(
        type(one) is dict and set(one) == SECTION for one in sections
    )
    _require(known and not (sections and head["holds"] != "scan"), "it has sections of no kind")
    return head


def _open(
    path: Path, holds: str, layer: SoftmaxLayer, known: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The head and the arrays of a file that holds this, about this layer."""
    head, arrays = _content(path)
    _require(head["holds"] == holds, f"it holds {head['holds']!r}, not {holds!r}")
    ours = identity(layer) if known is None else known
    if _canonical(head["layer"]) != _canonical(ours):
        raise _OtherLayerError
    return head, arrays


def _of_section(n: int, name: str) -> str:
    """The name of an array of section n = 1, 2, ..."""
    return f"section{n}_{name}"


def _dtypes(holds: str, sections: int) -> dict[str, str]:
    """Every array that a file holds, and its dtype."""
    plain = ARRAYS | MORE[holds]
    more = {_of_section(n, name): plain[name] for n in range(1, sections + 1) for name in plain}
    return plain | more


def _content(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The head and the arrays: exactly those of its kind of file, stored as they are."""
    head = _head(path)
    dtypes = _dtypes(head["holds"], len(head["sections"]))
    arrays = read_members(path, ("head", *dtypes))
    del arrays["head"]
    for name, dtype in dtypes.items():
        _require(arrays[name].dtype.str == dtype, f"{name} is {arrays[name].dtype}, not {dtype}")
    return head, arrays


def read_members(path: Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """The arrays of a file that holds these and nothing else."""
    with _opened(path) as archive:
        there = sorted(member.filename for member in archive.infolist())
        _require(there == sorted(f"{name}.npy" for name in names), "it has other arrays")
        return {name: _read_member(archive, name) for name in names}


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive, if there is one way to read it."""
    with zipfile.ZipFile(path) as archive:
        _require_one_reading(path, archive)
        yield archive


def _require_one_reading(path: Path, archive: zipfile.ZipFile) -> None:
    """ValueError unless members, stored as they are, their list and the end follow one another
    without a gap: none is larger than the file, and who goes by the list, from the front, or by
    another end finds the same arrays under the same names.
    """
    end = listed = 0
    with path.open("rb") as file:
        for one in archive.infolist():
            size, name = one.file_size, one.filename.encode()
            file.seek(one.header_offset)
            front = file.read(30)
            extra = file.read(len(name) + int.from_bytes(front[28:], "little"))[len(name) :]
            wide = struct.pack("<HHQQ", 1, 16, size, size)
            said = {int.from_bytes(front[n : n + 4], "little") for n in (18, 22)}
            same = (
                one.header_offset == end
                and (one.compress_type, one.compress_size) == (zipfile.ZIP_STORED, size)
                and front[6:10] + front[14:18] == struct.pack("<LL", 0, one.CRC)
                and extra in (b"", wide)
                and (said == {size} or (said == {2**32 - 1} and extra == wide))
            )
            _require(same, f"another reader takes {one.filename} elsewhere")
            # a name may go on behind a zero, and a field beside it give another one
            alone = len(one.extra) == 4 + int.from_bytes(one.extra[2:4], "little")
            far = end + size >= LARGE and one.extra[:2] == b"\1\0" and alone
            named = one.filename == one.orig_filename and (far or not one.extra)
            _require(named, f"another reader knows {one.filename} by another name")
            end += 30 + len(name) + len(extra) + size
            listed += 46 + len(name) + len(one.extra)
        rest = file.seek(0, os.SEEK_END) - archive.start_dir - listed
    last = rest == 22 or (rest == 98 and end >= LARGE)
    _require(end == archive.start_dir and last, "its members do not fill it")


def read_text(stored: NDArray[Any]) -> str:
    """The text of a head: one string, to the last letter, each letter in one way. What NumPy takes
    for a letter may be no character, and Python fails at it with a SystemError.
    """
    _require(stored.shape == () and stored.dtype.str[:2] == "<U", "its head is no text")
    return stored.tobytes().decode("utf-32-le")


def _read_member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """One array, whole."""
    with archive.open(f"{name}.npy") as member, warnings.catch_warnings():
        warnings.simplefilter("error")
        start = member.read(10)
        header = member.read(int.from_bytes(start[8:], "little"))
        stream = io.BytesIO(start + header)
        _require(npy.read_magic(stream) == (1, 0), f"{name} is no array of version 1.0")
        shape, fortran, dtype = npy.read_array_header_1_0(stream)
        content = member.read()
    said = f"{{'descr': '{dtype.str}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    _require(header.decode().rstrip(" \n") == said, f"{name} says twice what it is, or otherwise")
    _require(not fortran, f"{name} is stored column by column")
    exact = len(content) == math.prod(shape) * dtype.itemsize and all(n >= 0 for n in shape)
    _require(exact, f"{name} has another size than it says")
    return np.frombuffer(content, dtype).reshape(shape)


# ---- Writing


def save_findings(
    path: str | Path,
    layer: SoftmaxLayer,
    features: FeatureSet,
    findings: Sequence[Finding],
    known: Mapping[str, Any] | None = None,
    wider: Iterable[Part] = (),
) -> None:
    """Write findings to ``path``, all or nothing, in the order of the classes; as sections those
    about the same classes over ``wider`` sets.

    Raises
    ------
    ValueError
        If a class or a rival occurs twice.
    """
    head, arrays = _scan_columns(layer, features, findings)
    head["sections"] = []
    for n, (others, more) in enumerate(wider, 1):
        section, columns = _scan_columns(layer, others, more)
        head["sections"].append(section)
        arrays |= {_of_section(n, name): values for name, values in columns.items()}
    _write(path, "scan", layer, head, arrays, known)


def _scan_columns(
    layer: SoftmaxLayer, features: FeatureSet, findings: Sequence[Finding]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Head and arrays of findings over a feature set."""
    findings = sorted(findings, key=lambda f: f.index)
    if len({f.index for f in findings}) < len(findings):
        raise ValueError("A class occurs twice: each is decided once.")
    proofs: list[Proof | Twin] = [
        Comparisons(np.full(len(f.evidence.rivals), f.index), f.evidence.rivals, f.evidence.weights)
        if isinstance(f.evidence, Captors)
        else f.evidence
        for f in findings
    ]
    arrays = {
        "classes": [f.index for f in findings],
        "radii": [f.radius if isinstance(f.evidence, Witness) else np.nan for f in findings],
        "twins": [f.evidence.twin for f in findings if isinstance(f.evidence, Twin)],
    }
    head, columns = _columns(layer, features, proofs, findings)
    del columns["above"]
    return head, columns | arrays


def save_answers(
    path: str | Path, layer: SoftmaxLayer, features: FeatureSet, answers: Sequence[Answer]
) -> None:
    """Write answers to ``path``, all or nothing."""
    proofs = [a.evidence for a in answers]
    head, columns = _columns(layer, features, proofs, answers)
    _write(path, "answers", layer, head, columns | _orders(answers))


def save_groups(
    path: str | Path, layer: SoftmaxLayer, features: FeatureSet, k: int, groups: Sequence[Group]
) -> None:
    """Write verdicts on experts among the top k, each with its answers, in the order of the
    experts, all or nothing.
    """
    groups = sorted(groups, key=lambda group: group[0])
    answers = [a for *_, some in groups for a in some]
    arrays = _orders(answers) | {
        "experts": [expert for expert, *_ in groups],
        "expert_verdicts": [VERDICTS.index(verdict) for _, verdict, *_ in groups],
        "expert_counts": [len(some) for *_, some in groups],
    }
    proofs = [a.evidence for a in answers]
    head, columns = _columns(layer, features, proofs, answers)
    head |= {"k": k, "expert_methods": [method for _, _, method, _ in groups]}
    _write(path, "experts", layer, head, columns | arrays)


def _orders(answers: Iterable[Answer]) -> dict[str, Any]:
    orders = [a.order for a in answers]
    return {
        "blocks": [len(order.blocks) for order in orders],
        "rest": [order.rest for order in orders],
        "sizes": [len(block) for order in orders for block in order.blocks],
        "named": [i for order in orders for block in order.blocks for i in block],
    }


def _columns(
    layer: SoftmaxLayer,
    features: FeatureSet,
    evidence: Sequence[Proof | Twin],
    found: Sequence[Finding] | Sequence[Answer],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Head and arrays that claims of every kind have, over a feature set."""
    points = [e.point for e in evidence if isinstance(e, Witness)]
    proofs = [_in_order(e) for e in evidence if isinstance(e, Comparisons)]
    exact = [proof.weights for proof in proofs if proof.weights.dtype == object]
    head = {
        "features": features.to_json(),
        "methods": [f.method for f in found],
        "reasons": [e.reason for e in evidence if isinstance(e, Unknown)],
        "exact_points": [_texts(point) for point in points if point.dtype == object],
        "exact_weights": [_texts(weights) for weights in exact],
    }
    d = layer.dimension
    return head, {
        "kinds": [_kind(e) for e in evidence],
        "steps": [f.steps for f in found],
        "margins": [
            e.bound if isinstance(e, Unknown) else f.margin
            for e, f in zip(evidence, list[Finding | Answer](found), strict=True)
        ],
        "points32": _stacked((p for p in points if p.dtype not in (object, np.float64)), d),
        "points64": _stacked((p for p in points if p.dtype == np.float64), d),
        "counts": [len(proof.weights) for proof in proofs],
        "above": _joined(proof.above for proof in proofs),
        "below": _joined(proof.below for proof in proofs),
        "weights": _joined(proof.weights for proof in proofs if proof.weights.dtype != object),
    }


def _write(
    path: str | Path,
    holds: str,
    layer: SoftmaxLayer,
    head: Mapping[str, Any],
    arrays: Mapping[str, Any],
    known: Mapping[str, Any] | None = None,
) -> None:
    identified = identity(layer) if known is None else known
    head = {"sections": [], **head, "format": FORMAT, "holds": holds, "layer": identified}
    dtypes = _dtypes(holds, len(head["sections"]))
    typed = {name: np.array(arrays[name], dtype=dtype) for name, dtype in dtypes.items()}
    with whole(path) as fresh, fresh.open("wb") as file:
        np.savez(file, allow_pickle=False, head=np.array(_canonical(head)), **typed)


def _kind(evidence: Proof | Twin) -> int:
    """The number of the kind under which a piece of evidence is filed."""
    if isinstance(evidence, Twin | Unknown):
        return TWIN if isinstance(evidence, Twin) else UNDECIDED
    if isinstance(evidence, Witness):
        exact, wide = evidence.point.dtype == object, evidence.point.dtype == np.float64
        return EXACT_POINT if exact else POINT64 if wide else POINT32
    return EXACT_WEIGHTS if evidence.weights.dtype == object else WEIGHTS


def _in_order(proof: Comparisons) -> Comparisons:
    """The same proof as it is filed: comparisons in increasing order, none without weight."""
    above, below = np.asarray(proof.above, np.intp), np.asarray(proof.below, np.intp)
    places = np.lexsort((below, above))
    places = places[proof.weights[places] > 0]
    above, below, weights = above[places], below[places], proof.weights[places]
    if np.any((np.diff(above) == 0) & (np.diff(below) == 0)):
        raise ValueError("A proof weighs the same comparison twice: add its weights up.")
    return Comparisons(above, below, weights)


def _joined(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """The arrays (k,) one after the other; of none, no entries."""
    return np.concatenate([np.zeros(0), *arrays])


def _stacked(points: Iterable[NDArray[Any]], d: int) -> NDArray[Any]:
    return np.array(list(points)).reshape(-1, d)


def text_size(fractions: NDArray[Any]) -> int:
    """Bytes that exact weights or points (k,) take in the file."""
    return len(json.dumps(_texts(fractions)))


def _texts(fractions: NDArray[Any]) -> list[str]:
    """Numerators and denominators in hexadecimal, in lowest terms."""
    return [f"{value.numerator:x}/{value.denominator:x}" for value in fractions]


def read_fractions(texts: Sequence[str], size: int) -> NDArray[Any]:
    """Fractions from their text, of ``size`` numbers; ValueError when there are more or fewer, or
    one is written otherwise.
    """
    _require(len(texts) == size, f"{len(texts)} fractions where {size} belong")
    found = np.empty(size, dtype=object)
    for n, text in enumerate(texts):
        _require(len(text) <= LONGEST, "a fraction is too long")
        numerator, denominator = text.split("/")
        found[n] = Fraction(int(numerator, 16), int(denominator, 16))
    _require(_texts(found) == list(texts), "a fraction is not in lowest terms")
    return found
