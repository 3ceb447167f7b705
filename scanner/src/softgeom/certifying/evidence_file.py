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
    BlockingClasses,
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

TEXTS = ("fractions", "methods", "reasons", "tokens")  # JSON lists of texts

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
    blank: int | None = None,
) -> None:
    """Write answers, all or nothing; with k those about experts among the top k, of all classes but
    a ``blank``, where there is one.
    """
    claims = [
        Claim(0, a.order.blocks, a.order.rest, a.evidence, a.method, a.steps, a.margin)
        for a in answers
    ]
    holds = "answers" if k is None else "experts"
    more = {name: str(n) for name, n in (("k", k), ("blank", blank)) if n is not None}
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
    columns: dict[str, list[Any]] = {name: [] for name in ARRAYS}

    def put(**values: Any) -> None:
        for name, value in values.items():
            columns[name].append(value)

    for claim in claims:
        e, kind, margin, radius = claim.evidence, UNDECIDED, claim.margin, np.nan
        if isinstance(e, Witness):
            exact, wide = e.point.dtype == object, e.point.dtype == np.float64
            kind = EXACT_POINT if exact else POINT64 if wide else POINT32
            radius = claim.radius
            put(**{"fractions" if exact else "points64" if wide else "points32": e.point})
        elif isinstance(e, Unknown):
            margin = e.bound
            put(reasons=e.reason)
        elif isinstance(e, Twin):
            kind = TWIN
            put(counts=1, above=claim.blocks[0][:1], below=[e.twin])
        else:
            above, below, weights = _in_order(e, claim.blocks[0][0])
            kind = EXACT_WEIGHTS if weights.dtype == object else WEIGHTS
            put(counts=len(above), above=above, below=below)
            put(**{"fractions" if kind == EXACT_WEIGHTS else "weights": weights})
        columns["sizes"] += map(len, claim.blocks)
        columns["named"] += (i for block in claim.blocks for i in block)
        put(sets=claim.set, blocks=len(claim.blocks), rest=claim.rest, kinds=kind)
        put(steps=claim.steps, margins=margin, radii=radius, methods=claim.method)
    columns["at"] = list(range(len(columns["points64"])))
    columns["tokens"] = list(layer.tokens or ()) if named else []
    columns["fractions"] = _texts(value for values in columns["fractions"] for value in values)
    found: dict[str, Any] = columns
    for name in ("points32", "points64"):
        found[name] = np.array(columns[name]).reshape(-1, layer.dimension)
    for name in ("above", "below", "weights"):
        found[name] = np.concatenate([np.zeros(0), *columns[name]])
    return found | {name: _json(columns[name]) for name in TEXTS}


def _in_order(evidence: BlockingClasses | Comparisons, t: int) -> tuple[Ints, Ints, Array]:
    """Comparisons as they are filed, in increasing order and none without weight."""
    if isinstance(evidence, BlockingClasses):
        evidence = Comparisons(np.full(len(evidence.rivals), t), evidence.rivals, evidence.weights)
    above, below = (np.asarray(of, np.intp) for of in (evidence.above, evidence.below))
    places = np.lexsort((below, above))
    places = places[evidence.weights[places] > 0]
    above, below, weights = above[places], below[places], evidence.weights[places]
    if np.any((np.diff(above) == 0) & (np.diff(below) == 0)):
        raise ValueError("A proof weighs the same comparison twice: add its weights up.")
    return above, below, weights


def _json(texts: Sequence[str]) -> Array:
    return np.frombuffer(json.dumps(texts).encode(), np.uint8)


def _texts(fractions: Iterable[Fraction]) -> list[str]:
    """Numerators and denominators in hexadecimal, in lowest terms."""
    return [f"{value.numerator:x}/{value.denominator:x}" for value in fractions]


# ---- Reading


def load_parts(path: str | Path, layer: SoftmaxLayer, known: str | None = None) -> list[Part]:
    """The feature set and the findings of a saved scan of this layer, in the order of the classes,
    and the same over each further set. Nothing is proven yet: kernel.py does that.

    ValueError if the file is missing, damaged, not canonical, of another kind, or belongs to
    another layer.
    """
    with _reading(path):
        file = _File(Path(path), layer, ("scan",), known)
        file.require_classes()
        found: list[list[Finding]] = [[] for _ in file.sets]
        for claim in file.claims():
            e, t = claim.evidence, claim.blocks[0][0]
            if isinstance(e, Comparisons):
                _require(np.all(e.above == t), "a comparison is about another class")
                e = BlockingClasses(e.below, e.weights)
            found[claim.set].append(Finding(t, e, *claim[4:]))
        return list(zip(file.sets, found, strict=True))


def load_answers(
    path: str | Path, layer: SoftmaxLayer
) -> tuple[FeatureSet, list[Answer], int | None, int | None]:
    """The feature set, the answers about orders of this layer, and where they are about experts k,
    and the blank, if one counts for nobody; ValueError as for `load_parts`.
    """
    with _reading(path):
        file = _File(Path(path), layer, ("answers", "experts"))
        features = file.only_set()
        claims = [(Order(c.blocks, c.rest), *c[3:7]) for c in file.claims()]
        _require(not np.any(file.kinds == TWIN), "an order has a twin")
        return features, [Answer(*claim) for claim in claims], file.k, file.blank


def load_odds(path: str | Path, layer: SoftmaxLayer) -> tuple[FeatureSet, Odds, Readout]:
    """The feature set, the ceilings and the readout, unproven; ValueError as for `load_parts`."""
    with _reading(path):
        file = _File(Path(path), layer, ("ceilings",))
        features, classes = file.only_set(), file.require_classes()
        _require(len(classes) and np.all(file.kinds == ODDS), "a class has no ceiling")
        points, at, ceiling, reached = (
            file.columns[name] for name in ("points64", "at", "ceilings", "reached")
        )
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
    optional = {"experts": {"k", "blank"}, "ceilings": {"readout"}}.get(texts["holds"], set())
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
        texts, arrays = _header(path)
        _require(texts["holds"] in holds, f"it holds {texts['holds']}, not {' or '.join(holds)}")
        if texts["layer"] != (known or fingerprint(layer)):
            raise _OtherLayerError
        self.layer, self.k, self.blank = layer, None, None
        if "k" in texts:
            self.k = _number(texts["k"], 1, layer.classes, "k is not a number of experts")
        if "blank" in texts:
            self.blank = _number(texts["blank"], 0, layer.classes - 1, "the blank is no class")
        stored = json.loads(texts["features"])
        self.sets = [FeatureSet.from_json(one) for one in stored]
        for features in self.sets:
            features.check(layer.dimension)
        again = json.dumps([features.to_json() for features in self.sets], sort_keys=True)
        _require(self.sets and again == texts["features"], "its feature sets are not canonical")
        self.place = dict.fromkeys(ARRAYS, 0)  # how much of each column was handed out
        self.columns: dict[str, Any] = {n: np.array(a) for n, a in arrays.items() if n not in TEXTS}
        self.columns |= {name: _listed(name, arrays[name]) for name in TEXTS}
        self.kinds = self.columns["kinds"]
        self._check_columns()
        odds = np.any(self.kinds == ODDS)
        _require(odds == ("ceilings" in holds), "odds stand beside other evidence")
        self.readout = PLAIN
        if "readout" in texts:
            self.readout = Readout.from_json(json.loads(texts["readout"]))
            said = json.dumps(self.readout.to_json(), sort_keys=True)
            own = self.readout != PLAIN and said == texts["readout"]
            _require(own, "its readout is not canonical")
        tokens = self.columns["tokens"]
        named = not tokens or layer.tokens is None or tuple(tokens) == layer.tokens
        _require(named, "it names the classes otherwise: give the same names as in the scan")

    def _check_columns(self) -> None:
        """ValueError unless each number can stand in its column, and each claim has its own."""
        n, C, d = len(self.kinds), self.layer.classes, self.layer.dimension
        for name in ("points32", "points64"):
            points = self.columns[name]
            _require(points.shape[1:] == (d,), f"{name} has shape {points.shape}")
            _require(np.isfinite(points).all(), "a point is not finite")
        flat = (name for name in ARRAYS if name not in TEXTS and "points" not in name)
        _require(all(self.columns[name].ndim == 1 for name in flat), "a column is no list")
        odds = int(np.sum(self.kinds == ODDS))
        lengths = dict.fromkeys(("sets", "blocks", "rest", "steps"), n)
        lengths |= {"margins": n, "radii": n, "methods": n, "ceilings": odds, "reached": odds}
        for name, length in lengths.items():
            _require(len(self.columns[name]) == length, f"{name} do not fit the claims")
        ranges: dict[str, tuple[float, float]] = {
            "kinds": (POINT32, ODDS),
            "sets": (0, len(self.sets) - 1),
            "rest": (0, 1),
        }
        ranges |= {"steps": (0, np.inf), "counts": (1, 2**31 - 1)}
        ranges |= dict.fromkeys(("blocks", "sizes"), (1, C))
        ranges |= dict.fromkeys(("named", "above", "below"), (0, C - 1))
        ranges |= {"at": (0, len(self.columns["points64"]) - 1)}
        for name, (low, high) in ranges.items():
            column = self.columns[name]
            inside = not len(column) or (low <= column.min() and column.max() <= high)
            _require(inside, f"{name} holds an invalid number")
        used, points = np.unique(self.columns["at"]), self.columns["points64"]
        _require(np.array_equal(used, np.arange(len(points))), "a point is not used")
        methods, weights = self.columns["methods"], self.columns["weights"]
        _require(all(METHOD.fullmatch(method) for method in methods), "a method is not a name")
        _require(np.all((weights > 0) & (weights < np.inf)), "a weight is not positive")
        self._check_margins()

    def _check_margins(self) -> None:
        """ValueError unless each margin and radius can be one for its kind of evidence."""
        kinds, margins, radii = (self.columns[name] for name in ("kinds", "margins", "radii"))
        won, lost = np.isin(kinds, POINTS), np.isin(kinds, (WEIGHTS, EXACT_WEIGHTS))
        _require(np.array_equal(np.isnan(margins), kinds == ODDS), "a margin is not a number")
        _require(np.all(margins[won] > 0), "a margin at a point is not positive")
        _require(np.all(margins[lost] <= 0) and np.isfinite(margins[lost]).all(), "a bound is none")
        _require(not margins[kinds == TWIN].any(), "a twin has a margin")
        with_radius = won & (self.columns["rest"] == 1) & ~np.isnan(radii)
        _require(np.all(np.isnan(radii[~with_radius])), "a radius stands without a point")
        _require(np.all(radii[with_radius] >= 0), "a radius is not one")

    def only_set(self) -> FeatureSet:
        """The feature set, of a file that has one."""
        _require(len(self.sets) == 1, "it has several feature sets")
        return self.sets[0]

    def require_classes(self) -> Ints:
        """The classes of a file whose orders are "this class above all others", set by set."""
        n, classes, sets = len(self.kinds), self.columns["named"], self.columns["sets"]
        alone = all(np.all(self.columns[name] == 1) for name in ("blocks", "rest", "sizes"))
        _require(alone and len(classes) == n, "an order is not about one class")
        step = np.diff(sets)
        rises = (step == 1) | ((step == 0) & (np.diff(classes) > 0))
        _require(np.all(rises), "classes are not in increasing order")
        whole = not n or (sets[0] == 0 and sets[-1] == len(self.sets) - 1)
        _require(whole, "a feature set has no classes")
        return np.asarray(classes)

    def claims(self) -> Iterator[Claim]:
        """Every claim; ValueError where a column holds less than they need, or more."""
        names = ("sets", "blocks", "rest", "kinds", "steps", "margins", "radii")
        each = zip(*(self.columns[name].tolist() for name in names), strict=True)
        self.place |= {name: len(self.kinds) for name in (*names, "methods")}
        for n, (features, blocks, rest, kind, steps, margin, radius) in enumerate(each):
            sizes = self._take("sizes", blocks).tolist()
            order = [self._take("named", size).tolist() for size in sizes]
            evidence, method = self._evidence(kind, order, margin), self.columns["methods"][n]
            yield Claim(features, order, bool(rest), evidence, method, steps, margin, radius)
        free = {"points64", "ceilings", "reached", "tokens"}
        left = [name for name in ARRAYS if self.place[name] < len(self.columns[name])]
        _require({*left} <= free, "some evidence belongs to no claim")

    def _take(self, name: str, count: int) -> Any:
        """The next numbers or texts of a column."""
        start = self.place[name]
        self.place[name] = end = start + count
        _require(end <= len(self.columns[name]), f"{name} holds less than the claims need")
        return self.columns[name][start:end]

    def _fractions(self, count: int) -> Array:
        values = np.empty(count, dtype=object)
        values[:] = read_fractions(self._take("fractions", count))
        return values

    def _evidence(self, kind: int, order: list[list[int]], margin: float) -> Any:
        """The next piece of evidence, of a kind, for an order."""
        if kind == EXACT_POINT:
            return Witness(self._fractions(self.layer.dimension))
        if kind == POINT32:
            return Witness(self._take("points32", 1)[0])
        if kind in (POINT64, ODDS):
            return Witness(self.columns["points64"][self._take("at", 1)[0]])
        if kind == UNDECIDED:
            return Unknown(margin, self._take("reasons", 1)[0])
        size = int(self._take("counts", 1)[0])
        a, b = (self._take(name, size) for name in ("above", "below"))
        if kind == TWIN:
            _require(size == 1 and [a.tolist()] == order and b[0] != a[0], "a twin is another's")
            return Twin(int(b[0]))
        rises = (np.diff(a) > 0) | ((np.diff(a) == 0) & (np.diff(b) > 0))
        _require(np.all(rises), "comparisons are not in increasing order")
        values = self._take("weights", size) if kind == WEIGHTS else self._fractions(size)
        _require(all(value > 0 for value in values), "a weight is not positive")
        return Comparisons(a, b, values)


def _number(text: str, low: int, high: int, reason: str) -> int:
    """A number from ``low`` to ``high``, in the one way in which it is written."""
    written = re.fullmatch("0|[1-9][0-9]{0,8}", text)
    _require(written and low <= int(text) <= high, reason)
    return int(text)


def _listed(name: str, stored: Array) -> list[str]:
    """A list of texts, written as JSON."""
    framed = stored.ndim == 1 and len(stored) > 1 and bytes(stored[[0, -1]]) == b"[]"
    _require(framed, f"{name} is not a list")
    found = json.loads(text := stored.tobytes().decode())
    _require(all(type(one) is str for one in found), f"{name} is not a list of texts")
    _require(json.dumps(found) == text, f"{name} is not canonical")
    return list(found)


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
