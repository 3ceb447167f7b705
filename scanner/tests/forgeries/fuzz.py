"""Random forgeries: honest files with one to three edits of the corpus, numbers or bytes changed;
whatever a verifier accepts is judged by the definition.
"""

import random
import tempfile
from pathlib import Path

import numpy as np
from corpus import FORGERIES
from evidence import Evidence
from honest import files
from judge import falsehoods
from verifiers import VERIFIERS

FLOATS = (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-300, 1.7e308, float("inf"), float("-inf"), float("nan"))
WHOLE = (0, 1, -1, 2, 3, 7, 9, 10, 127, -128, 2**31, 2**62, -(2**63))


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


def raw(r: random.Random, e: Evidence) -> None:
    """A byte of the file, or its end."""

    def change(content: bytes) -> bytes:
        n = r.randrange(len(content) or 1)
        byte = bytes([r.randrange(256)])
        return r.choice([content[:n] + byte + content[n + 1 :], content[:n], content + byte])

    e.packed.append(change)


CHANGES = [edit for edits in FORGERIES.values() for edit in edits.values()]


def known(r: random.Random, e: Evidence) -> None:
    """An edit of the corpus, made for this file or for another one."""
    r.choice(CHANGES)(e)


def attempt(r: random.Random) -> list[str]:
    """One forgery: what went wrong."""
    name = r.choice(sorted(files()))
    honest, evidence = files()[name], files()[name].evidence
    edits = [r.choice([number, known, known, raw]) for _ in range(r.choice([1, 1, 2, 2, 3]))]
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
