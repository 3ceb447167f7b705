"""One file for every kind of proof, format 5: typed arrays in one container (container.py).

A proof is an order of classes with evidence for it (docs/certificates.md). A scan is a list of
orders "class t above all others", answers are any orders, experts are answers in groups, ceilings
are orders with the odds of their first class. The same columns hold all of them. Each piece of
evidence can be written in one way: reading refuses whatever is unknown, missing, doubled, of
another size, or written otherwise. The fingerprint of W and b goes with the proofs, so that they
are never checked against another layer unnoticed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softgeom.arrays import Array, Floats, Ints
from softgeom.certifying import container
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import (
    Answer,
    Captors,
    Comparisons,
    Finding,
    Twin,
    Unknown,
    Witness,
)
from softgeom.layer import FeatureSet, SoftmaxLayer, fingerprint
from softgeom.readout import PLAIN, Readout

FORMAT = "softgeom proofs 5"
# the kinds of evidence
POINT32, POINT64, WEIGHTS, TWIN, UNDECIDED, EXACT_POINT, EXACT_WEIGHTS, ODDS = range(8)
POINTS, PAIRS = (POINT32, POINT64, EXACT_POINT), (WEIGHTS, TWIN, EXACT_WEIGHTS)
VERDICTS = ("possible", "impossible", "undecided")  # on orders and experts
METHOD = re.compile("[a-z ]{0,40}")  # methods stand in tables: no line breaks, no formulas
LONGEST = 10**6  # characters of a fraction: reducing one to lowest terms takes quadratic time
LARGEST = 2**31  # bytes of an array other than points, whose number the kinds say
ARRAYS = {
    **{"sets": "<i8", "blocks": "<i8", "rest": "|i1", "sizes": "<i8", "named": "<i8"},
    **{"kinds": "|i1", "steps": "<i8", "margins": "<f8", "radii": "<f8"},
    **{"points32": "<f4", "points64": "<f8", "at": "<i8"},
    **{"counts": "<i8", "above": "<i8", "below": "<i8", "weights": "<f8"},
    **{"ceilings": "<f8", "reached": "<f8"},
    **{"fractions": "|u1", "methods": "|u1", "reasons": "|u1", "tokens": "|u1"},
}

Part = tuple[FeatureSet, Sequence[Finding]]  # findings over a feature set


class Claim(NamedTuple):
    """One row of a file: an order over the feature set of a number, and the evidence for it."""

    set: int
    blocks: Sequence[Sequence[int]]
    rest: bool
    evidence: Any
    method: str
    steps: int
    margin: float
    radius: float = np.nan


@dataclass(frozen=True, eq=False)
class Odds:
    """Ceilings of classes (n,): at no x has one a higher probability than ``ceiling`` (n,), and at
    ``points[at]`` it has at least ``reached`` (n,).
    """

    classes: Ints
    points: Floats
    at: Ints
    ceiling: Floats
    reached: Floats


# ---- Writing


def save_parts(
    path: str | Path, layer: SoftmaxLayer, parts: Sequence[Part], known: str | None = None
) -> None:
    """Write a scan, and after it the same of some of its classes over further sets, all or nothing.

    ``known`` is the layer's fingerprint where that was computed already: of a checkpoint's block,
    which leaves out the names of the classes. ValueError if a class or a rival occurs twice.
    """
    claims = []
    for n, (_, findings) in enumerate(parts):
        ordered = sorted(findings, key=lambda f: f.index)
        if len({f.index for f in ordered}) < len(ordered):
            raise ValueError("A class is listed twice.")
        for f in ordered:
            rest = (f.evidence, f.method, f.steps, f.margin)
            claims.append(Claim(n, [[f.index]], True, *rest, f.radius))
    arrays = _columns(layer, claims, named=known is None)
    _write(path, "scan", layer, [features for features, _ in parts], arrays, known=known)


def save_answers(
    path: str | Path,
    layer: SoftmaxLayer,
    features: FeatureSet,
    answers: Sequence[Answer],
    k: int | None = None,
) -> None:
    """Write answers, all or nothing; with k those about experts among the top k."""
    claims = [
        Claim(0, a.order.blocks, a.order.rest, a.evidence, a.method, a.steps, a.margin)
        for a in answers
    ]
    holds = "answers" if k is None else "experts"
    more = {} if k is None else {"k": str(k)}
    _write(path, holds, layer, [features], _columns(layer, claims), **more)


def save_odds(
    path: str | Path,
    layer: SoftmaxLayer,
    features: FeatureSet,
    odds: Odds,
    readout: Readout = PLAIN,
) -> None:
    """Write ceilings, all or nothing; ValueError where a point is not finite."""
    _require(np.isfinite(odds.points).all(), "A point of the ceilings is not finite.")
    n = len(odds.classes)
    ones, none = np.ones(n), np.full(n, np.nan)
    used, at = np.unique(odds.at, return_inverse=True)
    arrays = _columns(layer, []) | {
        **{"sets": 0 * ones, "blocks": ones, "rest": ones, "sizes": ones, "named": odds.classes},
        **{"kinds": ODDS * ones, "steps": 0 * ones, "margins": none, "radii": none},
        **{"points64": odds.points[used], "at": at, "methods": _json([""] * n)},
        **{"ceilings": odds.ceiling, "reached": odds.reached},
    }
    more = {} if readout == PLAIN else {"readout": json.dumps(readout.to_json(), sort_keys=True)}
    _write(path, "ceilings", layer, [features], arrays, **more)


def _write(
    path: str | Path,
    holds: str,
    layer: SoftmaxLayer,
    sets: Sequence[FeatureSet],
    arrays: dict[str, Any],
    *,
    known: str | None = None,
    **more: str,
) -> None:
    texts = {"format": FORMAT, "holds": holds, "layer": known or fingerprint(layer)}
    texts["features"] = json.dumps([features.to_json() for features in sets], sort_keys=True)
    typed = {name: np.array(arrays[name], dtype=dtype) for name, dtype in ARRAYS.items()}
    container.write(path, texts | more, typed)


def _columns(layer: SoftmaxLayer, claims: Sequence[Claim], *, named: bool = True) -> dict[str, Any]:
    """Every array, for these claims."""
    evidence = [claim.evidence for claim in claims]
    points = [e.point for e in evidence if isinstance(e, Witness)]
    proofs = [proof for proof in map(_proof, claims) if proof is not None]
    floats = [w for *_, w in proofs if w is not None and w.dtype != object]
    fractions = [
        value
        for claim, proof in zip(claims, map(_proof, claims), strict=True)
        for value in _exact(claim.evidence, proof)
    ]
    wide = _stacked((p for p in points if p.dtype == np.float64), layer.dimension)
    return {
        "sets": [claim.set for claim in claims],
        "blocks": [len(claim.blocks) for claim in claims],
        "rest": [claim.rest for claim in claims],
        "sizes": [len(block) for claim in claims for block in claim.blocks],
        "named": [i for claim in claims for block in claim.blocks for i in block],
        "kinds": [_kind(e) for e in evidence],
        "steps": [claim.steps for claim in claims],
        "margins": [c.evidence.bound if _is_open(c) else c.margin for c in claims],
        "radii": [c.radius if isinstance(c.evidence, Witness) else np.nan for c in claims],
        "points32": _stacked(
            (p for p in points if p.dtype not in (object, np.float64)), layer.dimension
        ),
        "points64": wide,
        "at": np.arange(len(wide)),
        "counts": [len(above) for above, *_ in proofs],
        "above": _joined(above for above, *_ in proofs),
        "below": _joined(below for _, below, _ in proofs),
        "weights": _joined(floats),
        "ceilings": [],
        "reached": [],
        "fractions": _json(_texts(fractions)),
        "methods": _json([claim.method for claim in claims]),
        "reasons": _json([e.reason for e in evidence if isinstance(e, Unknown)]),
        "tokens": _json(list(layer.tokens or ()) if named else []),
    }


def _is_open(claim: Claim) -> bool:
    return isinstance(claim.evidence, Unknown)


def _kind(evidence: Any) -> int:
    """The number of the kind under which a piece of evidence is filed."""
    if isinstance(evidence, Twin | Unknown):
        return TWIN if isinstance(evidence, Twin) else UNDECIDED
    if isinstance(evidence, Witness):
        exact, wide = evidence.point.dtype == object, evidence.point.dtype == np.float64
        return EXACT_POINT if exact else POINT64 if wide else POINT32
    return EXACT_WEIGHTS if evidence.weights.dtype == object else WEIGHTS


def _proof(claim: Claim) -> tuple[Ints, Ints, Array | None] | None:
    """Comparisons as they are filed, in increasing order and none without weight; a twin has no
    weights.
    """
    e = claim.evidence
    if isinstance(e, Twin):
        return np.array([claim.blocks[0][0]]), np.array([e.twin]), None
    if not isinstance(e, Captors | Comparisons):
        return None
    below = np.asarray(e.rivals if isinstance(e, Captors) else e.below, np.intp)
    above = np.full(len(below), claim.blocks[0][0]) if isinstance(e, Captors) else e.above
    places = np.lexsort((below, above))
    places = places[e.weights[places] > 0]
    above, below, weights = np.asarray(above, np.intp)[places], below[places], e.weights[places]
    if np.any((np.diff(above) == 0) & (np.diff(below) == 0)):
        raise ValueError("A proof weighs the same comparison twice: add its weights up.")
    return above, below, weights


def _exact(evidence: Any, proof: tuple[Ints, Ints, Array | None] | None) -> Iterable[Fraction]:
    """The fractions of a claim."""
    values = evidence.point if isinstance(evidence, Witness) else proof and proof[2]
    return values if values is not None and values.dtype == object else ()


def _joined(arrays: Iterable[Array]) -> Array:
    """The arrays (k,) one after the other; of none, no entries."""
    return np.concatenate([np.zeros(0), *arrays])


def _stacked(points: Iterable[Array], d: int) -> Array:
    return np.array(list(points)).reshape(-1, d)


def _json(texts: Sequence[str]) -> Array:
    return np.frombuffer(json.dumps(texts).encode(), np.uint8)


def text_size(fractions: Array) -> int:
    """Bytes that exact weights or points (k,) take in the file."""
    return len(_json(_texts(fractions)))


def _texts(fractions: Iterable[Fraction]) -> list[str]:
    """Numerators and denominators in hexadecimal, in lowest terms."""
    return [f"{value.numerator:x}/{value.denominator:x}" for value in fractions]


# ---- Reading


def load_parts(path: str | Path, layer: SoftmaxLayer, known: str | None = None) -> list[Part]:
    """The feature set and the findings of a saved scan of this layer, in the order of the classes,
    and the same over each further set.

    Raises
    ------
    ValueError
        If the file is missing, damaged, not canonical, of another kind, or belongs to another
        layer. Nothing is proven yet: kernel.py does that.
    """
    with _reading(path):
        file = _File(Path(path), layer, ("scan",), known)
        file.require_classes()
        sets = file.integers("sets", len(file.kinds), 0, len(file.sets) - 1)
        found: list[list[Finding]] = [[] for _ in file.sets]
        for n, claim in zip(sets.tolist(), file.claims(), strict=True):
            e, t = claim.evidence, claim.blocks[0][0]
            if isinstance(e, Comparisons):
                _require(np.all(e.above == t), "a comparison is about another class")
                e = Captors(e.below, e.weights)
            found[n].append(Finding(t, e, claim.method, claim.steps, claim.margin, claim.radius))
        return list(zip(file.sets, found, strict=True))


def load_answers(
    path: str | Path, layer: SoftmaxLayer
) -> tuple[FeatureSet, list[Answer], int | None]:
    """The feature set, the answers about orders of this layer, and k where they are about experts;
    ValueError as for `load_parts`.
    """
    with _reading(path):
        file = _File(Path(path), layer, ("answers", "experts"))
        features = file.only_set()
        claims = [(Order(c.blocks, c.rest), *c[3:7]) for c in file.claims()]
        _require(not np.any(file.kinds == TWIN), "an order has a twin")
        return features, [Answer(*claim) for claim in claims], file.k


def load_odds(path: str | Path, layer: SoftmaxLayer) -> tuple[FeatureSet, Odds, Readout]:
    """The feature set, the ceilings and the readout, unproven; ValueError as for `load_parts`."""
    with _reading(path):
        file = _File(Path(path), layer, ("ceilings",))
        features, n = file.only_set(), len(file.kinds)
        classes = file.require_classes()
        _require(n and np.all(file.kinds == ODDS), "a class has no ceiling")
        points, at = file.wide_points()
        ceiling, reached = file.array("ceilings", n), file.array("reached", n)
        _require(np.all((ceiling > 0) & (ceiling <= 1)), "a ceiling is not a probability")
        _require(np.all((reached >= 0) & (reached <= 1)), "a probability is not one")
        _require(all(claim.method == "" for claim in file.claims()), "a ceiling has a method")
        return features, Odds(classes, points, at, ceiling, reached), file.readout


def read_header(path: str | Path) -> dict[str, str]:
    """What a file of proofs says of itself before any layer is at hand: format, holds, layer,
    features, and k of experts; ValueError if it is not such a file.
    """
    with _reading(path):
        return _header(Path(path))[0]


def read_columns(path: str | Path) -> tuple[dict[str, str], dict[str, Array]]:
    """The header and the arrays of a file, as they are: nothing is checked against a layer."""
    with _reading(path):
        return _header(Path(path))


def _header(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    texts, arrays = container.read(path)
    _require(texts.get("format") == FORMAT, f"its format is not {FORMAT!r}")
    optional = {"experts": {"k"}, "ceilings": {"readout"}}.get(texts["holds"], set())
    names = {"format", "holds", "layer", "features"} | (optional & set(texts))
    _require(set(texts) == names, "its header has other fields")
    known = texts["holds"] in ("scan", "answers", "experts", "ceilings")
    _require(known and ("k" in texts) == (texts["holds"] == "experts"), "it holds something else")
    _require({n: a.dtype.str for n, a in arrays.items()} == ARRAYS, "it has other arrays")
    small = (array.nbytes <= LARGEST for name, array in arrays.items() if "points" not in name)
    _require(all(small), "an array is too large")
    return texts, arrays


class _File:
    """The columns of a file, of which evidence is handed out in the order in which it stands."""

    def __init__(
        self, path: Path, layer: SoftmaxLayer, holds: Sequence[str], known: str | None = None
    ) -> None:
        texts, self._arrays = _header(path)
        _require(texts["holds"] in holds, f"it holds {texts['holds']}, not {' or '.join(holds)}")
        if texts["layer"] != (known or fingerprint(layer)):
            raise _OtherLayerError
        self.layer, self.k = layer, None
        if "k" in texts:
            self.k = int(texts["k"]) if re.fullmatch("[0-9]{1,9}", texts["k"]) else 0
            fits = str(self.k) == texts["k"] and 1 <= self.k <= layer.classes
            _require(fits, "k is not a number of experts")
        stored = json.loads(texts["features"])
        self.sets = [FeatureSet.from_json(one) for one in stored]
        for features in self.sets:
            features.check(layer.dimension)
        again = json.dumps([features.to_json() for features in self.sets], sort_keys=True)
        _require(self.sets and again == texts["features"], "its feature sets are not canonical")
        self.kinds = np.array(self._arrays["kinds"])
        self.integers("kinds", len(self.kinds), POINT32, ODDS)
        odds = np.any(self.kinds == ODDS)
        _require(odds == ("ceilings" in holds), "odds stand beside other evidence")
        self.readout = PLAIN
        if "readout" in texts:
            self.readout = Readout.from_json(json.loads(texts["readout"]))
            said = json.dumps(self.readout.to_json(), sort_keys=True)
            own = self.readout != PLAIN and said == texts["readout"]
            _require(own, "its readout is not canonical")
        tokens = self.texts("tokens")
        named = not tokens or layer.tokens is None or tuple(tokens) == layer.tokens
        _require(named, "it names the classes otherwise: give the same names as in the scan")

    def array(self, name: str, *shape: int) -> Array:
        """The array of a name, of this shape."""
        found = self._arrays[name]
        _require(found.shape == shape, f"{name} has shape {found.shape}, not {shape}")
        return np.array(found)

    def integers(self, name: str, size: int, low: int, high: int) -> Ints:
        """The integers (size,) of a name, between these numbers."""
        found = self.array(name, size)
        if size:
            _require(low <= found.min() and found.max() <= high, f"{name} holds an invalid number")
        return found.astype(np.intp)

    def texts(self, name: str) -> list[str]:
        """A list of texts, written as JSON."""
        stored = self._arrays[name]
        framed = stored.ndim == 1 and len(stored) > 1 and bytes(stored[[0, -1]]) == b"[]"
        _require(framed, f"{name} is not a list")
        found = json.loads(text := stored.tobytes().decode())
        _require(all(type(one) is str for one in found), f"{name} is not a list of texts")
        _require(json.dumps(found) == text, f"{name} is not canonical")
        return list(found)

    def only_set(self) -> FeatureSet:
        """The feature set, of a file that has one."""
        _require(len(self.sets) == 1, "it has several feature sets")
        self.integers("sets", len(self.kinds), 0, 0)
        return self.sets[0]

    def require_classes(self) -> Ints:
        """The classes of a file whose orders are "this class above all others", set by set."""
        n, last = len(self.kinds), self.layer.classes - 1
        for name in ("blocks", "rest", "sizes"):
            self.integers(name, n, 1, 1)
        classes, sets = self.integers("named", n, 0, last), self.array("sets", n)
        step = np.diff(sets)
        rises = (step == 1) | ((step == 0) & (np.diff(classes) > 0))
        _require(np.all(rises), "classes are not in increasing order")
        whole = not n or (sets[0] == 0 and sets[-1] == len(self.sets) - 1)
        _require(whole, "a feature set has no classes")
        return classes

    def wide_points(self) -> tuple[Floats, Ints]:
        """The points in float64 (m, d), each used, and the one of each claim that has such one."""
        n = int(np.sum(np.isin(self.kinds, (POINT64, ODDS))))
        m = len(self._arrays["points64"])
        _require(m <= n, "a point is not used")
        at, points = self.integers("at", n, 0, max(m - 1, 0)), self._points("points64", m)
        _require(np.array_equal(np.unique(at), np.arange(m)), "a point is not used")
        return points, at

    def _points(self, name: str, count: int) -> Array:
        points = self.array(name, count, self.layer.dimension)
        _require(np.isfinite(points).all(), "a point is not finite")
        return points

    def claims(self) -> Iterator[Claim]:
        """Every claim; ValueError where a column does not fit, or holds more than they need."""
        n, kinds, C = len(self.kinds), self.kinds, self.layer.classes
        sets = self.integers("sets", n, 0, len(self.sets) - 1).tolist()
        steps = self.integers("steps", n, 0, np.iinfo(np.int64).max).tolist()
        blocks, rest = self.integers("blocks", n, 1, C), self.integers("rest", n, 0, 1)
        sizes = self.integers("sizes", int(blocks.sum()), 1, C)
        named = self.integers("named", int(sizes.sum()), 0, C - 1).tolist()
        margins, radii = self._checked_numbers()
        methods = self.texts("methods")
        _require(len(methods) == n, "methods do not fit")
        _require(all(METHOD.fullmatch(method) for method in methods), "a method is not a name")
        evidence, place, named_place = self._evidence(), 0, 0
        for row in range(n):
            order = []
            for size in sizes[place : place + blocks[row]].tolist():
                order.append(named[named_place : named_place + size])
                named_place += size
            place += int(blocks[row])
            kind = int(kinds[row])
            more = (methods[row], steps[row], float(margins[row]), float(radii[row]))
            yield Claim(sets[row], order, bool(rest[row]), evidence(kind, order), *more)
        evidence(None, [])

    def _checked_numbers(self) -> tuple[Floats, Floats]:
        """Margins and radii, each of which can be one for its kind of evidence."""
        n, kinds = len(self.kinds), self.kinds
        margins, radii = self.array("margins", n), self.array("radii", n)
        won, lost = np.isin(kinds, POINTS), np.isin(kinds, (WEIGHTS, EXACT_WEIGHTS))
        _require(np.array_equal(np.isnan(margins), kinds == ODDS), "a margin is not a number")
        _require(np.all(margins[won] > 0), "a margin at a point is not positive")
        _require(np.all(margins[lost] <= 0) and np.isfinite(margins[lost]).all(), "a bound is none")
        _require(not margins[kinds == TWIN].any(), "a twin has a margin")
        with_radius = won & (self.array("rest", n) == 1) & ~np.isnan(radii)
        _require(np.all(np.isnan(radii[~with_radius])), "a radius stands without a point")
        _require(np.all(radii[with_radius] >= 0), "a radius is not one")
        return margins, radii

    def _evidence(self) -> Any:
        """A function of a kind and an order: the next piece. Asked for None it raises ValueError
        unless all was handed out.
        """
        kinds, d, C = self.kinds, self.layer.dimension, self.layer.classes
        narrow = iter(self._points("points32", int(np.sum(kinds == POINT32))))
        wide, at = self.wide_points()
        places = iter(at.tolist())
        proofs = kinds[np.isin(kinds, PAIRS)]
        counts = self.integers("counts", len(proofs), 1, np.iinfo(np.int32).max)
        _require(np.all(counts[proofs == TWIN] == 1), "a twin is not one class")
        total = int(counts.sum())
        above, below = (self.integers(name, total, 0, C - 1) for name in ("above", "below"))
        weights = self.array("weights", int(counts[proofs == WEIGHTS].sum()))
        _require(np.all((weights > 0) & (weights < np.inf)), "a weight is not positive")
        ends, floats = np.cumsum(counts), np.cumsum(counts[proofs == WEIGHTS])
        pairs = zip(np.split(above, ends), np.split(below, ends), strict=True)
        shares, reasons = iter(np.split(weights, floats)), iter(self.texts("reasons"))
        fractions = iter(read_fractions(self.texts("fractions")))
        bounds = iter(self.array("margins", len(kinds))[kinds == UNDECIDED].tolist())
        for name in ("ceilings", "reached"):
            self.array(name, int(np.sum(kinds == ODDS)))

        def exact(size: int) -> Array:
            values = np.empty(size, dtype=object)
            values[:] = [next(fractions) for _ in range(size)]
            return values

        def piece(kind: int | None, order: list[list[int]]) -> Any:
            if kind is None:
                left = [next(rest, None) for rest in (reasons, fractions)]
                return _require(left == [None, None], "some evidence belongs to no claim")
            if kind in (POINT32, EXACT_POINT):
                return Witness(next(narrow) if kind == POINT32 else exact(d))
            if kind in (POINT64, ODDS):
                return Witness(wide[next(places)])
            if kind == UNDECIDED:
                return Unknown(next(bounds), next(reasons))
            a, b = next(pairs)
            if kind == TWIN:
                _require([[int(a[0])]] == order and b[0] != a[0], "a twin is another class's")
                return Twin(int(b[0]))
            rises = (np.diff(a) > 0) | ((np.diff(a) == 0) & (np.diff(b) > 0))
            _require(np.all(rises), "comparisons are not in increasing order")
            values = next(shares) if kind == WEIGHTS else exact(len(a))
            _require(all(value > 0 for value in values), "a weight is not positive")
            return Comparisons(a, b, values)

        return piece


def read_fractions(texts: Sequence[str]) -> list[Fraction]:
    """Fractions from their text; ValueError where one is written otherwise than `save` does it."""
    found = []
    for text in texts:
        _require(len(text) <= LONGEST, "a fraction is too long")
        numerator, denominator = text.split("/")
        found.append(Fraction(int(numerator, 16), int(denominator, 16)))
    _require(_texts(found) == list(texts), "a fraction is not in lowest terms")
    return found


class _OtherLayerError(Exception):
    pass


@contextmanager
def _reading(path: str | Path) -> Iterator[None]:
    """Whatever a file that is missing or damaged raises, as one sentence."""
    if not Path(path).is_file():
        raise ValueError(f"There is no file of proofs at {path}.")
    try:
        yield
    except _OtherLayerError:
        raise ValueError(
            f"{path} belongs to another layer: its fingerprint differs from this one's."
        ) from None
    except (ValueError, TypeError, KeyError, IndexError, ArithmeticError, OSError) as error:
        reason: Exception = error
    except (AttributeError, RuntimeError, MemoryError) as error:  # of a header's strange JSON
        reason = error
    else:
        return
    said = " ".join(str(reason).split())[:120] or type(reason).__name__
    raise ValueError(f"{path} is not a valid file of proofs ({said}): make it again.")


def _require(condition: Any, reason: str) -> None:
    if not condition:
        raise ValueError(reason)
