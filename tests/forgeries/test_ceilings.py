"""Forged ceilings are refused by the library and by the checker in integers; honest ones are
accepted by both.
"""

from __future__ import annotations

import contextlib
import functools
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from corpus import (
    array,
    bomb,
    both,
    entry,
    features,
    grown,
    head,
    head_as,
    member,
    packed,
    repacked,
    said_twice,
    without_suffix,
    written,
)
from honest import SETS, Honest, layer, saved
from verifiers import sceptic

from softgeom.bottleneck.ceilings import Ceilings, ceilings
from softgeom.layer import Box, SoftmaxLayer, Unbounded

LEVEL = SoftmaxLayer(np.ones((3, 2)))  # each is as probable as the others, everywhere
# sums over biases overflow
BEYOND = SoftmaxLayer(np.zeros((100, 2)), np.full(100, 0.8e308))


def thin() -> SoftmaxLayer:
    """Rows in a plane, but for one above it, so short that their squares vanish: nothing bounds
    that one from above.
    """
    rng = np.random.default_rng(4)
    turned = np.linalg.qr([[1.0, 2, 3], [2, 1, 1], [1, 0, 1]])[0]
    rows = rng.normal(size=(429, 3)) @ np.diag([1, 1, 0]) @ turned
    rows[0] = rows[1:].mean(axis=0) + 1e-4 * turned[2]
    return SoftmaxLayer(rows * 1.21e-162)


@functools.cache
def files() -> dict[str, Honest]:
    """Honest ceilings of a layer over each set, and of what is harder."""
    cases = {name: (layer(bias=True), where) for name, where in SETS.items()}
    cases |= {
        "level": (LEVEL, Box(1.0)),
        "beyond": (BEYOND, Box(1.0)),
        "thin": (thin(), Unbounded()),
    }
    found = {}
    with contextlib.redirect_stderr(io.StringIO()), np.errstate(all="ignore"):
        for name, (one, where) in cases.items():
            asked = None if name != "thin" else [0]
            found[name] = Honest(one, saved(ceilings(one, asked, features=where)))
    return found


FORGERIES = {
    "level: a ceiling an ulp below a third": entry("ceilings", 0, float(np.nextafter(1 / 3, 0))),
    "level: a third, which float64 rounds down": entry("ceilings", 0, 1 / 3),
    "level: more than a third reached": entry("reached", 0, float(np.nextafter(1 / 3, 1))),
    "beyond: biases whose sum overflows": array("ceilings", lambda v: v * 0 + 1e-304),
    "thin: rows whose squares vanish": array("ceilings", lambda v: v * 0 + 0.01),
    "box: ceilings two per cent lower": array("ceilings", lambda v: v * 0.98),
    "box: a ceiling of zero": entry("ceilings", 0, 0.0),
    "box: the least ceiling": entry("ceilings", 0, 5e-324),
    "box: a negative ceiling": entry("ceilings", 0, -0.5),
    "box: a ceiling above one": entry("ceilings", 0, 1.5),
    "box: a ceiling that is no number": entry("ceilings", 0, np.nan),
    "box: more reached than is": array("reached", lambda v: np.minimum(1, v * 1.02 + 1e-6)),
    "box: a probability that is no number": entry("reached", 0, np.nan),
    "box: a negative probability": entry("reached", 0, -1e-300),
    "box: points far out": array("points", lambda v: v * 1e6),
    "box: a point that is no number": entry("points", (0, 0), np.nan),
    "box: an infinite point": entry("points", (0, 0), np.inf),
    "box: a point that nobody uses": array("points", grown),
    "box: a point that is not there": entry("at", 0, 10**6),
    "box: a point before the first": entry("at", 0, -1),
    "box: points of another dimension": array("points", lambda v: np.ascontiguousarray(v[:, :2])),
    "box: points one after the other": array("points", np.ravel),
    "box: another file before it": packed(lambda content: content + content),
    "box: a class twice": entry("classes", 1, 0),
    "box: classes out of order": array("classes", lambda v: v[::-1].copy()),
    "box: a class that does not exist": entry("classes", -1, 10),
    "box: a class below zero": entry("classes", 0, -1),
    "box: classes as floats": array("classes", lambda v: v.astype(float)),
    "box: narrow numbers": array("ceilings", lambda v: v.astype("<f4")),
    "box: big-endian numbers": array("ceilings", lambda v: v.astype(">f8")),
    "box: one ceiling for all": array("ceilings", lambda v: v[:1]),
    "box: a ceiling too many": array("ceilings", grown),
    "box: no ceilings at all": both(
        *(array(name, lambda v: v[:0]) for name in "classes points at ceilings reached".split())
    ),
    "box: words behind the end": packed(lambda c: repacked(c, comment=b"believe me")),
    "box: a shape twice in a header": member("ceilings", said_twice),
    "box: a head that goes on behind a zero": head_as("<U", "\0"),
    "box: ceilings again, without a suffix": without_suffix("ceilings", lambda b: b[:-8] + b[:8]),
    "box: another layer's": lambda e: e.head["layer"]["W"].update(sha256="0" * 64),
    "box: a layer without its bias": lambda e: e.head["layer"].update(b=None),
    "box: a layer of another shape": lambda e: e.head["layer"]["W"].update(shape=[15, 2]),
    "box: a shape of floats": lambda e: e.head["layer"]["W"].update(shape=[10.0, 3]),
    "box: a wider box": features(high=(50.0).hex()),
    "box: a narrower box": features(high=(0.125).hex(), low=(-0.125).hex()),
    "box: an empty box": features(high=(-1.0).hex()),
    "box: a bound too many": features(high=[(5.0).hex()] * 4),
    "box: no bounds at all": head(features={"set": "unbounded"}),
    "box: a ball for the box": head(features={"set": "ball", "radius": (50.0).hex()}),
    "box: an unknown set": head(features={"set": "everything"}),
    "ball: a larger ball": features(radius=(99.0).hex()),
    "ball: a ball of radius 0": features(radius=(0.0).hex()),
    "layernorm: larger gains": features(gain=[(8.0).hex(), (4.0).hex(), (16.0).hex()]),
    "layernorm: a shift too many": lambda e: e.head["features"]["bias"].append((1.0).hex()),
    "layernorm: centred as a number": features(centred=1),
    "box: another format": head(format=5),
    "box: a format as a float": head(format=4.0),
    "box: a scan": head(holds="scan"),
    "box: an unknown field": head(note="believe me"),
    "box: no feature set": head(features=None),
    "box: blanks": written(lambda t: t + " "),
    "box: a head that is a list": written(lambda t: f"[{t}]"),
    "box: an array of no name": lambda e: e.arrays.update(extra=np.zeros(3)),
    "box: no points": lambda e: e.arrays.pop("points"),
    "box: a member compressed": packed(lambda c: repacked(c, zipfile.ZIP_DEFLATED)),
    "box: an extra member of 3 MB": packed(
        lambda c: repacked(c, zipfile.ZIP_DEFLATED, extra=bomb(3 * 10**6))
    ),
    "box: an array cut": member("points", lambda b: b[:-4]),
    "box: a file cut": packed(lambda c: c[:-200]),
    "box: text": packed(lambda c: b"proven, believe me\n" * 9),
}  # fmt: skip


def answers(content: bytes, honest: Honest, place: Path) -> dict[str, str | None]:
    """What each says; None where it accepts."""
    path = place / "ceilings.npz"
    path.write_bytes(content)
    library = None
    try:
        Ceilings.load(path, honest.layer)
    except ValueError as error:
        library = str(error)
    return {"library": library, "sceptic": sceptic(content, honest, place, "check_ceilings")}


@pytest.mark.parametrize("name", SETS | {"level": 0, "beyond": 0})
def test_honest_ceilings_are_accepted(name, tmp_path):
    said = answers(files()[name].content, files()[name], tmp_path)
    assert said == {"library": None, "sceptic": None}
    assert files()[name].holds == "ceilings"


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_ceilings_are_refused(name, tmp_path):
    honest = files()[name.split(":")[0]]
    evidence = honest.evidence
    FORGERIES[name](evidence)
    said = answers(evidence.bytes(), honest, tmp_path)
    assert [of for of, sentence in said.items() if sentence is None] == []
    assert all("\n" not in sentence for sentence in said.values())
