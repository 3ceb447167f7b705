"""The table of verdicts, and its copy as a file that any spreadsheet and any terminal can bear.

Vocabularies hold everything: line breaks, quotes, ``NA``, the empty string, escape sequences,
``=1+1``. In ``verdicts.csv`` a token stands as it is, except that control characters, line
separators, unpaired surrogates and backslashes are written as backslash escapes (``\\\\n``,
``\\\\x1b``, ``\\\\u2028``, ``\\\\\\\\``), and so is a first character that a spreadsheet would take
for a formula (``=``, ``+``, ``-``, ``@`` and their full-width forms). `unescape_token` undoes this.
"""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from softgeom.certifying.evidence_file import PAIRS, POINTS, TWIN, read_columns
from softgeom.certifying.verdict import BlockingClasses, Finding, Twin, Unknown, Witness
from softgeom.layer import Box, FeatureSet, SoftmaxLayer, Unbounded
from softgeom.writing import whole

VERDICTS = ("argmaxable", "tied", "unargmaxable", "undecided")
EVIDENCE = "evidence.safetensors"  # in the folder of a scan

# controls, invisible formats, surrogates, line and paragraph separators
_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# and their full-width forms, which spreadsheets of East Asia take for the same
_FORMULAS = "=+-@＝＋－＠"
_ESCAPE = re.compile(r"\\(\\|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")


def escape_token(token: str) -> str:
    """The token on one line, without control characters, and no formula."""
    first, rest = token[:1], token[1:]
    return (_code(first) if first and first in _FORMULAS else _plain(first)) + _plain(rest)


def unescape_token(text: str) -> str:
    """What `escape_token` was given."""
    return _ESCAPE.sub(lambda match: "\\" if match[1] == "\\" else chr(int(match[1][1:], 16)), text)


def verdict_table(
    layer: SoftmaxLayer,
    features: FeatureSet,
    findings: Sequence[Finding],
    wider: Iterable[tuple[FeatureSet, Sequence[Finding]]] = (),
) -> pd.DataFrame:
    """``Scan.table``: one row per class, with token, verdict, method, steps, margin, radius; and
    where proofs are there over ``wider`` sets, the conditions under which each lost class is lost.
    """
    wider = list(wider)
    columns = {
        "class": [f.index for f in findings],
        # a byte-level vocabulary may hold unpaired surrogates, which a column of strings refuses
        "token": pd.Series([layer.token(f.index) for f in findings], dtype=object),
        "verdict": [f.evidence.verdict for f in findings],
        "method": [f.method for f in findings],
        "steps": [f.steps for f in findings],
        "margin": [f.margin for f in findings],
        "radius": [f.radius for f in findings],
    }
    if wider:
        columns["holds"] = pd.Series(_conditions(features, findings, wider), dtype=object)
    return pd.DataFrame(columns)


def _conditions(
    features: FeatureSet,
    findings: Sequence[Finding],
    wider: Sequence[tuple[FeatureSet, Sequence[Finding]]],
) -> list[str]:
    """Of each unargmaxable class every set in which that is proven; all of R^d says it alone, and a
    box what lies inside it.
    """
    also: dict[int, list[FeatureSet]] = {}
    for others, more in wider:
        for f in more:
            also.setdefault(f.index, []).append(others)
    found = []
    for f in findings:
        sets = [features, *also.get(f.index, [])] if f.evidence.verdict == "unargmaxable" else []
        everywhere = [one for one in sets if isinstance(one, Unbounded)]
        largest = [one for one in sets if not any(_inside(one, other) for other in sets)]
        found.append("; ".join(one.condition() for one in everywhere or largest))
    return found


def _inside(one: FeatureSet, other: FeatureSet) -> bool:
    """Whether a box is part of another, larger box."""
    if not (isinstance(one, Box) and isinstance(other, Box)):
        return False
    sides = [np.asarray(side, float) for side in (other.low, one.low, one.high, other.high)]
    within = np.all(sides[0] <= sides[1]) and np.all(sides[2] <= sides[3])
    return bool(within and (np.any(sides[0] < sides[1]) or np.any(sides[2] < sides[3])))


def count_verdicts(found: Iterable[Any], verdicts: Iterable[str] = VERDICTS) -> dict[str, int]:
    """How many findings (or answers) have each verdict."""
    each = Counter(one.verdict for one in found)
    return {verdict: each[verdict] for verdict in verdicts}


def write_verdicts(table: pd.DataFrame, path: str | Path) -> None:
    """Write ``Scan.table`` as text."""
    tokens = [escape_token(token) for token in table["token"]]
    escaped = table.assign(token=pd.Series(tokens, index=table.index, dtype=object))
    with whole(path) as fresh:
        escaped.to_csv(fresh, index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")


def read_verdicts(path: str | Path) -> pd.DataFrame:
    """``Scan.table`` of a folder or of its file of proofs, with the names that it holds. Nothing is
    proven again here. ValueError if there is none.
    """
    path = Path(path) / EVIDENCE if Path(path).is_dir() else Path(path)
    texts, arrays = read_columns(path)
    try:
        sets = [FeatureSet.from_json(one) for one in json.loads(texts["features"])]
        methods, tokens = (json.loads(bytes(arrays[name])) for name in ("methods", "tokens"))
        columns = (arrays[name].tolist() for name in ("named", "steps", "margins", "radii"))
        parts: list[list[Finding]] = [[] for _ in sets]
        kinds = arrays["kinds"].tolist()
        for n, kind, method, t, *rest in zip(arrays["sets"], kinds, methods, *columns, strict=True):
            evidence = _OF_KIND.get(kind, Unknown(np.inf, ""))
            parts[int(n)].append(Finding(t, evidence, method, *rest))
        name = (lambda t: tokens[t]) if tokens else str
        layer: Any = SimpleNamespace(token=name)
        return verdict_table(layer, sets[0], parts[0], zip(sets[1:], parts[1:], strict=True))
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{path} is not a whole file of proofs ({error}).") from None


# what a table needs to know of a piece of evidence
_LOST, _WON = BlockingClasses(np.zeros(0, np.intp), np.zeros(0)), Witness(np.zeros(0))
_OF_KIND = dict.fromkeys(PAIRS, _LOST) | dict.fromkeys(POINTS, _WON) | {TWIN: Twin(0)}


def _plain(text: str) -> str:
    escaped = (c == "\\" or unicodedata.category(c) in _CATEGORIES for c in text)
    return "".join(_code(c) if odd else c for c, odd in zip(text, escaped, strict=True))


def _code(character: str) -> str:
    if character == "\\":
        return "\\\\"
    point = ord(character)
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def up(value: float, places: int = 0) -> str:
    """Three digits, not below the value, whose point moves to the right: by 2 in a percentage."""
    return f"{Context(prec=3, rounding=ROUND_CEILING).scaleb(Decimal(value), places):f}"


def down(value: float, places: int = 0) -> str:
    """The same, not above the value."""
    return f"{Context(prec=3, rounding=ROUND_FLOOR).scaleb(Decimal(value), places):f}"


def at_most(value: float) -> str:
    """Four digits of a bound from above, of whatever size: not below it."""
    return f"{Context(prec=4, rounding=ROUND_CEILING).create_decimal(Decimal(value)):g}"


def at_least(value: float) -> str:
    """The same of a bound from below: not above it."""
    return f"{Context(prec=4, rounding=ROUND_FLOOR).create_decimal(Decimal(value)):g}"
