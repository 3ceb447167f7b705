"""Random forgeries: honest files with one to three random edits; whatever a verifier accepts is
judged by the definition.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from corpus import FORGERIES
from evidence import PROOFS, TWIN, Evidence
from honest import files, text
from judge import falsehoods
from verifiers import VERIFIERS

FLOATS = (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-300, 1.7e308, float("inf"), float("-inf"), float("nan"))
WHOLE = (0, 1, -1, 2, 3, 7, 9, 10, 127, -128, 2**31, 2**62, -(2**63))
VALUES = (None, True, 0, 3.5, "", "box", [], 10**30)


def _nudged(r: random.Random, value: float) -> float:
    """A float near another, or far from it."""
    factor = r.choice([1 + 1e-15, 1 - 1e-15, 1 + 1e-9, 1 - 1e-6, 1.001, 0.5, 2.0, 1e4, -1.0])
    with np.errstate(all="ignore"):
        near = float(np.nextafter(np.float64(value), r.choice([-np.inf, np.inf])))
    return r.choice([value * factor, value * factor, near, r.choice(FLOATS), r.uniform(-3, 3)])


def number(r: random.Random, e: Evidence) -> None:
    """One number of one array."""
    names = [name for name, values in e.arrays.items() if values.size]
    values = e.arrays[r.choice(names)]
    place = tuple(r.randrange(size) for size in values.shape)
    if values.dtype.kind == "f":
        with np.errstate(all="ignore"):
            values[place] = _nudged(r, float(values[place]))
    else:
        info, near = np.iinfo(values.dtype), int(values[place]) + r.choice([-1, 1])
        values[place] = max(min(r.choice([near, near, r.choice(WHOLE)]), info.max), info.min)


def proof(r: random.Random, e: Evidence) -> None:
    """Blocking classes and weights: nudged, replaced, dropped, added, as fractions."""
    claims = e.claims()
    if some := [c for c in claims if c["kinds"] in PROOFS]:
        claim = r.choice(some)
        rows, n = claim["proof"], r.randrange(len(claim["proof"]))
        what = r.randrange(5)
        if what == 0 and claim["kinds"] == 2:
            rows[n][2] = _nudged(r, rows[n][2])
        elif what == 1:
            rows[n][r.randrange(2)] = r.randrange(-1, 12)
        elif what == 2 and len(rows) > 1:
            del rows[n]
        elif what == 3:
            rows.append([rows[n][0], r.randrange(10), rows[n][2]])
        elif claim["kinds"] == 2:
            claim["kinds"] = 6
            for row in rows:
                row[2] = text(row[2])
        if r.random() < 0.8:
            rows.sort(key=lambda row: row[:2])
        if r.random() < 0.5:
            claim["margins"] = r.choice([0.0, claim["margins"] * 0.5])
    e.put(claims)


def swap(r: random.Random, e: Evidence) -> None:
    """Two claims exchange everything, or a part."""
    claims = e.claims()
    a, b = r.choice(claims), r.choice(claims)
    names = sorted({*a} & {*b})
    for name in r.choice([names, [r.choice(names)], ["order"]]):
        a[name], b[name] = b[name], a[name]
    e.put(claims)


def duplicate(r: random.Random, e: Evidence) -> None:
    """A claim twice, one dropped, or one under another number."""
    claims = e.claims()
    claim, what = r.choice(claims), r.randrange(3)
    if what == 0:
        claims.insert(r.randrange(len(claims) + 1), dict(claim))
    elif what == 1:
        claims.remove(claim)
    elif e.holds == "scan":
        claim["order"] = [[r.randrange(-1, 12)]]
        claims.sort(key=lambda c: (c["sets"], c["order"]))
    e.put(claims)


def verdict(r: random.Random, e: Evidence) -> None:
    """Another verdict, with evidence of that kind from elsewhere."""
    claims = e.claims()
    claim, model = r.choice(claims), r.choice(claims)
    for name in ("kinds", "margins", "radii", "point", "proof", "reason"):
        claim.pop(name, None)
        if name in model:
            claim[name] = model[name]
    if e.holds == "scan" and claim["kinds"] in PROOFS and r.random() < 0.7:
        claim["proof"] = [[claim["order"][0][0], *row[1:]] for row in model["proof"]]
    if claim["kinds"] == TWIN and r.random() < 0.7:
        claim["proof"] = [[claim["order"][0][0], r.randrange(10), None]]
    e.put(claims)


def order(r: random.Random, e: Evidence) -> None:
    """Other blocks, rest, experts, or k."""
    if e.holds == "scan":
        return duplicate(r, e)
    claims = e.claims()
    claim, what = r.choice(claims), r.randrange(6)
    blocks = claim["order"]
    if what == 0:
        r.choice(blocks).append(r.randrange(12))
    elif what == 1:
        blocks.append(blocks.pop(0))
    elif what == 2:
        claim["rest"] = 1 - claim["rest"]
    elif what == 3 and len(blocks) > 1:
        blocks.pop(r.randrange(len(blocks)))
    elif what == 4 and len(r.choice(blocks)) > 1:
        max(blocks, key=len).pop()
    elif e.holds == "experts":
        e.texts["k"] = str(r.randrange(0, 5))
    return e.put(claims)


def features(r: random.Random, e: Evidence) -> None:
    """Another number, length, or field of the feature set."""
    if e.holds == "ceilings":  # nobody knows what is true over another set
        return number(r, e)
    held = r.choice(e.sets)
    name = r.choice(sorted(held))
    if isinstance(held[name], list):
        values, n = held[name], r.randrange(len(held[name]))
        what = r.randrange(3)
        if what == 0:
            values[n] = _nudged(r, float.fromhex(values[n])).hex()
        else:
            values[n : n + 1] = [values[n]] * (what == 1) * 2
    elif isinstance(held[name], str) and held[name].lstrip("-").startswith("0x"):
        held[name] = _nudged(r, float.fromhex(held[name])).hex()
    elif r.random() < 0.3:
        e.sets[0] = files()[r.choice(["box", "ball", "layernorm", "unbounded"])].evidence.sets[0]
    else:
        held[r.choice([name, "set", "radius", "low"])] = r.choice(VALUES)
    return None


def raw(r: random.Random, e: Evidence) -> None:
    """A byte of the file, or its end."""

    def change(content: bytes) -> bytes:
        n = r.randrange(len(content) or 1)
        byte = bytes([r.randrange(256)])
        return r.choice([content[:n] + byte + content[n + 1 :], content[:n], content + byte])

    e.packed.append(change)


def known(r: random.Random, e: Evidence) -> None:
    """An edit of the corpus, made for this file or for another one."""
    r.choice(CHANGES)(e)


CHANGES = [edit for edits in FORGERIES.values() for edit in edits.values()]
EDITS: list[Callable[[random.Random, Evidence], None]] = [
    number, number, proof, swap, duplicate, verdict, order, features, raw, known,
]  # fmt: skip


def attempt(r: random.Random) -> list[str]:
    """One forgery: what went wrong."""
    name = r.choice(sorted(files()))
    honest, evidence = files()[name], files()[name].evidence
    edits = [r.choice(EDITS) for _ in range(r.choice([1, 1, 1, 2, 3]))]
    try:
        with np.errstate(all="ignore"):
            for edit in edits:
                edit(r, evidence)
            content = evidence.bytes()
    except (ValueError, ArithmeticError, TypeError, LookupError, AttributeError, StopIteration):
        return []  # an earlier edit left nothing to edit
    wrong = []
    with tempfile.TemporaryDirectory() as place:
        for verifier, verify in VERIFIERS.items():
            sentence = verify(content, honest, Path(place))  # a crash passes through
            if sentence is not None:
                wrong += [f"{verifier}: {sentence}"] * ("MemoryError" in sentence)
            elif false := falsehoods(Evidence.read(content), honest.layer, honest.evidence):
                wrong.append(f"{name}: {verifier} accepts {false[:2]}")
    return wrong
