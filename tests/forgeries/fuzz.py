"""Random forgeries: honest files with one to three random edits, under fresh hashes; whatever a
verifier accepts is judged by the definition.

`python tests/forgeries/fuzz.py --cases 100000 --seed 0 --out results/torture/forgeries.csv` writes
one row for each kind of edit, or raises its counts, so that runs with other seeds add up; the exit
code says whether a falsehood was accepted or anything
crashed.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import math
import multiprocessing
import random
import resource
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from evidence import PROOFS, TWIN, Evidence
from honest import files, text
from judge import falsehoods
from verifiers import VERIFIERS

MEMORY = 4 * 2**30
FLOATS = (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-300, 1.7e308, float("inf"), float("-inf"), float("nan"))
WHOLE = (0, 1, -1, 2, 3, 7, 9, 10, 127, -128, 2**31, 2**62, -(2**63))
VALUES = (None, True, False, 0, 4, 3.5, "", "4", "box", [], {}, [[]], ["1/1"], 10**30, -1)


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


def inflate(r: random.Random, e: Evidence) -> None:
    """A margin, bound or radius somewhat better."""
    claims = e.claims()
    claim = r.choice(claims)
    name = r.choice(["margins", "radii"]) if e.scan else "margins"
    claim[name] *= 1 + 10.0 ** r.uniform(-16, 4)
    e.put(claims)


def point(r: random.Random, e: Evidence) -> None:
    """Coordinates of a point: nudged, at a bound, as fractions."""
    claims = e.claims()
    if some := [c for c in claims if c["kinds"] in (0, 1)]:
        claim = r.choice(some)
        k = r.randrange(len(claim["point"]))
        claim["point"][k] = _nudged(r, claim["point"][k])
        claim["kinds"] = r.choice([0, 1, 1])
        if r.random() < 0.5:
            claim |= {"margins": 5e-324} | ({"radii": 0.0} if e.scan else {})
        if r.random() < 0.2 and all(map(np.isfinite, claim["point"])):
            claim |= {"kinds": 5, "point": [text(v) for v in claim["point"]]}
    e.put(claims)


def proof(r: random.Random, e: Evidence) -> None:
    """Captors and weights: nudged, replaced, dropped, added, as fractions."""
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
    for name in r.choice([names, [r.choice(names)], ["classes", "order"] if e.scan else ["order"]]):
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
    elif e.scan:
        claim["classes"] = r.randrange(-1, 12)
        claims.sort(key=lambda c: c["classes"])
    e.put(claims)


def verdict(r: random.Random, e: Evidence) -> None:
    """Another verdict, with evidence of that kind from elsewhere."""
    claims = e.claims()
    claim, model = r.choice(claims), r.choice(claims)
    for name in ("kinds", "margins", "radii", "point", "proof", "twin", "reason"):
        claim.pop(name, None)
        if name in model:
            claim[name] = model[name]
    if e.scan and claim["kinds"] in PROOFS and r.random() < 0.7:
        claim["proof"] = [[claim["classes"], *row[1:]] for row in model["proof"]]
    if claim["kinds"] == TWIN and r.random() < 0.7:
        claim["twin"] = r.randrange(10)
    e.put(claims)


def order(r: random.Random, e: Evidence) -> None:
    """Other blocks, rest, experts, or k."""
    if e.scan:
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
    elif e.head["holds"] == "experts":
        e.head["k"] = r.randrange(0, 5)
        counts = e.arrays["expert_counts"]
        a, b = r.randrange(len(counts)), r.randrange(len(counts))
        counts[a], counts[b] = counts[a] + what - 5, counts[b] + 5 - what
        e.arrays["expert_verdicts"][a] = r.randrange(3)
    return e.put(claims)


def features(r: random.Random, e: Evidence) -> None:
    """Another number, length, or field of the feature set."""
    held = e.head["features"]
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
        other = r.choice(["box", "ball", "layernorm", "unbounded"])
        e.head["features"] = files()[other].evidence.head["features"]
    else:
        held[r.choice([name, "set", "radius", "low"])] = r.choice(VALUES)


def head(r: random.Random, e: Evidence) -> None:
    """A field of the head: replaced, nested, dropped, added."""
    held: Any = e.head
    while isinstance(held, dict | list) and held:
        place = r.choice(sorted(held) if isinstance(held, dict) else range(len(held)))
        if not isinstance(held[place], dict | list) or not held[place] or r.random() < 0.4:
            break
        held = held[place]
    what = r.randrange(4)
    if what == 0:
        held[place] = r.choice(VALUES)
    elif what == 1:
        held[place] = r.choice([[held[place]], {"set": held[place]}])
    elif what == 2:
        del held[place]
    elif isinstance(held, dict):
        held[r.choice(["k", "note", "sections", ""])] = r.choice(VALUES)


def letters(r: random.Random, e: Evidence) -> None:
    """A letter of the head's text."""
    whole = json.dumps(e.head, sort_keys=True)
    n = r.randrange(len(whole))
    e.text = whole[:n] + r.choice(["", " ", "0", "-", "1", "e", whole[n] * 2]) + whole[n + 1 :]


def length(r: random.Random, e: Evidence) -> None:
    """An array longer, shorter, of another type or shape."""
    name = r.choice(sorted(e.arrays))
    values = e.arrays[name]
    other = r.choice(["<i8", "<f8", "<f4", "|i1", ">i8", ">f8", "<u8", object])
    shapes = [values[:-1], np.concatenate([values, values[-1:]]), values[None], values[::-1].copy()]
    shapes.append(values.astype(other) if np.isfinite(values).all() else values[1:])
    e.arrays[name] = r.choice(shapes)


def raw(r: random.Random, e: Evidence) -> None:
    """A byte of the file or of a member, or the end of one."""

    def change(content: bytes) -> bytes:
        n = r.randrange(len(content) or 1)
        byte = bytes([r.randrange(256)])
        return r.choice([content[:n] + byte + content[n + 1 :], content[:n], content + byte])

    def member(members: dict[str, bytes]) -> None:
        name = r.choice(sorted(members))
        members[name] = change(members[name])

    if r.random() < 0.5:
        e.packed.append(change)
    else:
        e.last.append(member)


EDITS: list[Callable[[random.Random, Evidence], None]] = [
    number, inflate, point, proof, swap, duplicate, verdict, order, features, head, letters,
    length, raw,
]  # fmt: skip
Row = collections.Counter[str]


def attempt(seed: int) -> tuple[str, Row, list[str]]:
    """One forgery: the kind of its first edit, what came of it, and what went wrong."""
    r, found, wrong = random.Random(seed), Row(), list[str]()
    name = r.choice(sorted(files()))
    honest, evidence = files()[name], files()[name].evidence
    edits = [r.choice(EDITS) for _ in range(r.choice([1, 1, 1, 2, 3]))]
    try:
        with np.errstate(all="ignore"):
            for edit in edits:
                edit(r, evidence)
            content = evidence.bytes()
    except (ValueError, OverflowError, TypeError, KeyError, IndexError, StopIteration):
        return edits[0].__name__, Row(impossible=1), wrong  # an earlier edit left nothing to edit
    if content == honest.content:
        return edits[0].__name__, Row(unchanged=1), wrong
    found["tried"] = 1
    with tempfile.TemporaryDirectory() as place:
        for verifier, verify in VERIFIERS.items():
            try:
                sentence = verify(content, honest, Path(place))
            except Exception:
                found[f"crashes of {verifier}"] += 1
                wrong.append(f"{seed} {name} {verifier} {traceback.format_exc()}")
                continue
            if sentence is not None and "MemoryError" not in sentence:
                found[f"refused by {verifier}"] += 1
                continue
            if sentence is not None:
                found[f"crashes of {verifier}"] += 1
                wrong.append(f"{seed} {name} {verifier} {sentence}")
                continue
            try:
                false = falsehoods(Evidence.read(content), honest.layer)
            except Exception as error:
                false = [f"cannot be judged: {error!r}"]
            found["accepted falsehoods" if false else f"true for {verifier}"] += 1
            wrong += [f"{seed} {name} {verifier} accepts {false[:2]}"] if false else []
    return edits[0].__name__, found, wrong


def bounded() -> None:
    """No process of the fuzzer gets more than `MEMORY`: a size that is believed is a crash then."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="end after so many")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    files()
    table: dict[str, Row] = collections.defaultdict(Row)
    failed = 0
    start, end = options.seed * 10**9, time.monotonic() + 60 * options.minutes
    with multiprocessing.get_context("fork").Pool(options.jobs, bounded) as pool:
        for kind, found, wrong in pool.imap_unordered(
            attempt, range(start, start + options.cases), chunksize=50
        ):
            table[kind] += found
            failed += bool(wrong)
            if wrong:
                print(*wrong, sep="\n", flush=True)
            if time.monotonic() > end:
                break
    names = ["tried", "accepted falsehoods"]
    names += [
        f"{what} {one}" for one in VERIFIERS for what in ("refused by", "true for", "crashes of")
    ]
    total = sum(table.values(), Row())
    if options.out:
        if options.out.is_file():
            with options.out.open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    table[row.pop("kind")] += Row({name: int(row[name]) for name in row})
        rows = [{"kind": kind} | {n: table[kind][n] for n in names} for kind in sorted(table)]
        with options.out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ["kind", *names], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    print(f"{total['tried']} forgeries, {failed} of them answered wrongly: {dict(total)}")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
