"""Folders of results that were damaged or forged, and what the other verbs are given: each must be
answered by `verify`, `diff`, `explain`, ...

A forger can compute SHA-256 too: `_sealed` cases bind a changed table or evidence by fresh hashes,
and only the proofs themselves find them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torture import hostile_files
from torture.trial import ERROR, OK

sys.path.append(str(Path(__file__).parents[2] / "tests" / "forgeries"))
import corpus
import verifiers

SUMMARY, TABLE, EVIDENCE = "summary.json", "verdicts.csv", "evidence.npz"


@dataclass(frozen=True)
class Case:
    """Arguments of `softgeom`, for what was written into a folder."""

    kind: str  # the verb
    name: str
    expect: str
    write: Callable[[Path], list[str]]
    declared: int = 0


def cases() -> Iterator[Case]:
    """Every case, by verb."""
    of_results = (_summaries, _tables, _evidence, _places, _diffs)
    for kind in (*of_results, _explanations, _questions, _new_files):
        yield from kind()


def _layer() -> dict[str, np.ndarray]:
    """Twelve classes that can win, one that cannot, and a twin of the third."""
    W, b = hostile_files.W, hostile_files.B
    mean = (W[0] + W[1]) / 2
    return {"W": np.stack([*W, mean, W[2]]), "b": np.array([*b, min(b[0], b[1]) - 1, b[2]])}


def good(place: Path) -> list[str]:
    """The layer in a file."""
    np.savez(place / "a.npz", **_layer())
    return [str(place / "a.npz")]


@functools.cache
def _scanned() -> dict[str, bytes]:
    """The files of an honest folder; at least one class of the layer can never win."""
    from softgeom.bottleneck import scan
    from softgeom.bottleneck.certifying.folder import write_folder
    from softgeom.layer import SoftmaxLayer

    with tempfile.TemporaryDirectory() as place:
        write_folder(Path(place) / "out", scan(SoftmaxLayer(**_layer())))
        return {path.name: path.read_bytes() for path in (Path(place) / "out").iterdir()}


def _folder(place: Path, **changed: bytes | None) -> Path:
    """The honest folder with some files changed (`summary`, `table`, `evidence`), or left out."""
    out = place / "out"
    out.mkdir()
    names = {SUMMARY: "summary", TABLE: "table", EVIDENCE: "evidence"}
    for name, honest in _scanned().items():
        content = changed.get(names.get(name, ""), honest)
        if content is not None:
            (out / name).write_bytes(content)
    return out


def _verify(name: str, expect: str = ERROR, **changed: bytes | None) -> Case:
    def write(place: Path) -> list[str]:
        return ["verify", str(_folder(place, **changed)), *good(place)]

    return Case("verify", name, expect, write)


def _digested(summary: dict[str, Any]) -> bytes:
    rest = {key: value for key, value in summary.items() if key != "digest"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return json.dumps({**rest, "digest": digest}).encode()


def _sealed(name: str, **changed: bytes) -> Case:
    """A change whose hashes are computed anew."""
    summary = json.loads(_scanned()[SUMMARY])
    for key, file in (("table", TABLE), ("evidence", EVIDENCE)):
        if key in changed:
            summary["sha256"][file] = hashlib.sha256(changed[key]).hexdigest()
    return _verify(f"{name}, hashed anew", summary=_digested(summary), **changed)


def _summaries() -> Iterator[Case]:
    honest = _scanned()[SUMMARY]
    summary = json.loads(honest)
    elsewhere = summary["sha256"] | {"../../etc/passwd": "0"}
    counts = summary["counts"] | {"unargmaxable": 0}
    yield _verify("as it was written", OK)
    yield _verify("without a summary", summary=None)
    for name, content in (
        ("cut", honest[: len(honest) // 2]),
        ("empty", b""),
        ("of zeros", bytes(1000)),
        ("no UTF-8", b'{"\xff": 1}'),
        ("a list", b"[]"),
        ("null", b"null"),
        ("a number", b"1e400"),
        ("nested too deeply", b"[" * 100_000 + b"]" * 100_000),
        ("of 40 MB", b'{"a": "' + b"x" * 40_000_000 + b'"}'),
        ("edited", honest.replace(b'"classes": 14', b'"classes": 15')),
        ("without hashes", _digested({k: v for k, v in summary.items() if k != "sha256"})),
        ("hashes a list", _digested(summary | {"sha256": [TABLE, EVIDENCE]})),
        ("hashes of a file elsewhere", _digested(summary | {"sha256": elsewhere})),
        ("of more classes", _digested(summary | {"classes": 15})),
        ("of classes that are text", _digested(summary | {"classes": "\x1b[31m14"})),
        ("of another feature set", _digested(summary | {"feature_set": "\x1b[2Jthe whole space"})),
        ("of other counts", _digested(summary | {"counts": counts})),
        ("of another layer", _digested(summary | {"layer": None})),
        ("of another scope", _digested(summary | {"scope": {"count": 14, "sha256": "0" * 64}})),
    ):
        yield _verify(f"summary {name}", summary=content)


def _tables() -> Iterator[Case]:
    honest = _scanned()[TABLE]
    lines = honest.splitlines(keepends=True)
    swapped = honest.replace(b'"argmaxable"', b'"unargmaxable"', 1)
    yield _verify("without a table", table=None)
    yield _verify("table edited", table=swapped)
    for name, content in (
        ("with another verdict", swapped),
        ("with a row less", b"".join(lines[:-1])),
        ("with a row twice", b"".join([*lines, lines[-1]])),
        ("without its header", b"".join(lines[1:])),
        ("empty", b""),
        ("no UTF-8", honest.replace(b'"', b"\xff", 1)),
        ("of null bytes", bytes(5000)),
        ("of one field of 40 MB", b'"' + b"x" * 40_000_000),
        ("with escapes", honest.replace(lines[1], b'\x1b[2J,"a"\r\n')),
        ("of other margins", honest.replace(lines[1].rsplit(b",", 2)[1], b"1e9")),
    ):
        yield _sealed(f"table {name}", table=content)


def _evidence() -> Iterator[Case]:
    honest = _scanned()[EVIDENCE]
    yield _verify("without evidence", evidence=None)
    for name, content in (
        ("cut", honest[: len(honest) // 2]),
        ("empty", b""),
        ("of zeros", bytes(1000)),
        ("of text", b"proven, believe me\n" * 20),
    ):
        yield _sealed(f"evidence {name}", evidence=content)
    for name, forgery in corpus.CORPUS.items():
        yield Case("verify", f"forged {name}", ERROR, functools.partial(_forged, forgery))


def _forged(forgery: corpus.Forgery, place: Path) -> list[str]:
    """A folder around a forgery, with every hash computed anew, and the layer."""
    honest = corpus.files()[forgery.of]
    b = {} if honest.layer.b is None else {"b": honest.layer.b}
    np.savez(place / "a.npz", W=honest.layer.W, **b)
    return ["verify", str(verifiers.folder(forgery.content(), honest, place)), str(place / "a.npz")]


def _places() -> Iterator[Case]:
    def of(name: str, arguments: Callable[[Path], list[str]]) -> Case:
        return Case("verify", name, ERROR, arguments)

    def other(place: Path) -> list[str]:
        np.savez(place / "other.npz", W=np.eye(14, 4, dtype=np.float32), b=np.zeros(14, np.float32))
        return ["verify", str(_folder(place)), str(place / "other.npz")]

    def looped(place: Path) -> list[str]:
        (place / "out").symlink_to(place / "out")
        return ["verify", str(place / "out"), *good(place)]

    def nested(place: Path) -> list[str]:
        out = _folder(place, table=None)
        (out / TABLE).mkdir()
        return ["verify", str(out), *good(place)]

    yield of("a folder that is not there", lambda p: ["verify", str(p / "gone"), *good(p)])
    yield of("a file for a folder", lambda place: ["verify", *good(place), *good(place)])
    yield of("a link to itself", looped)
    yield of("a folder for a table", nested)
    yield of("the results of another layer", other)
    yield of("no model", lambda place: ["verify", str(_folder(place)), str(place / "gone.npz")])


def _diffs() -> Iterator[Case]:
    def of(name: str, table: bytes | None, expect: str = ERROR) -> Case:
        def write(place: Path) -> list[str]:
            out = _folder(place, table=table)
            shutil.copytree(out, place / "b")
            return ["diff", str(out), str(place / "b")]

        return Case("diff", name, expect, write)

    honest = _scanned()[TABLE]
    yield of("of equal tables", honest, OK)
    yield of("without tables", None)
    for name, content in (
        ("empty", b""),
        ("of another kind", b"a,b\n1,2\n"),
        ("of null bytes", bytes(5000)),
        ("no UTF-8", b"\xff\xfe" * 500),
        ("of unfinished quotes", b'class,token,verdict\n1,"a'),
        ("with text for numbers", honest.replace(b"\n0,", b"\nzero,")),
        ("with a broken escape", honest.replace(b'"0"', b'"\\U00110000"', 1)),
    ):
        yield of(f"of tables {name}", content)


def _explanations() -> Iterator[Case]:
    def of(name: str, *arguments: str, expect: str = ERROR) -> Case:
        return Case("explain", name, expect, lambda place: ["explain", *good(place), *arguments])

    yield of("class 0", "0", expect=OK)
    for class_ in ("14", "-1", "", "1.5", "\x1b[31mred", "\u0663", "1_0", "9" * 5000, "nan"):
        yield of(f"class {class_!r:.20}", class_)
    yield of("class 0 over nothing", "0", "--features", "ball", "--bound", "0")


def _questions() -> Iterator[Case]:
    def of(name: str, *arguments: str, expect: str = ERROR) -> Case:
        return Case("ask", name, expect, lambda place: ["ask", *good(place), *arguments])

    for name, words, expect in (
        ("among three", "--among 0 1 2", OK),
        ("for random pairs", "--together --sample 3", OK),
        ("nothing", "", ERROR),
        ("among nobody", "--among", ERROR),
        ("two questions", "--order 0 --on 1", ERROR),
        ("for an order with a repetition", "--order 0 0", ERROR),
        ("for more classes than there are", "--order --sample 2 --size 15", ERROR),
        ("for the top 15 of 14", "--experts 15", ERROR),
        ("by queries of length zero", "--together 0 1 --features ball --bound 0", ERROR),
    ):
        yield of(name, *words.split(), expect=expect)
    for class_ in ("14", "-1", "", "1.5", "\x1b[31mred", "\u0663", "9" * 5000, "nan"):
        yield of(f"for class {class_!r:.20}", "--blocked-by", class_)

    for name, out, expect in (
        ("into a new folder", "answers", OK),
        ("into the model", "a.npz", ERROR),
        ("into a name that is too long", "x" * 300, ERROR),
    ):
        yield _out("ask", name, out, "--order", "0", expect=expect)

    def listed(name: str, content: bytes, expect: str = ERROR) -> Case:
        def write(place: Path) -> list[str]:
            (place / "list").write_bytes(content)
            return ["ask", *good(place), "--among", f"@{place / 'list'}"]

        return Case("ask", name, expect, write)

    yield listed("by a list", b"0\n1\n2\n", OK)
    yield listed("by an empty list", b"")
    yield listed("by a list that is no UTF-8", b"\xff\xfe" * 500)
    yield listed("by a list of null bytes", bytes(5000))


def _out(verb: str, name: str, target: str, *more: str, expect: str = ERROR) -> Case:
    def write(place: Path) -> list[str]:
        return [verb, *good(place), "--out", str(place / target), *more]

    return Case(verb, name, expect, write)


def _new_files() -> Iterator[Case]:
    for verb in ("prune", "repair"):
        yield _out(verb, "into a new file", "new.safetensors", expect=OK)
        yield _out(verb, "over the model", "a.npz")
        yield _out(verb, "into an unknown kind of file", "new.xyz")
        yield _out(verb, "into ONNX from no ONNX", "new.onnx")
        yield _out(verb, "below a file", "a.npz/new.safetensors")
        yield _out(verb, "into a name that is too long", f"{'x' * 300}.safetensors")

    def pruned(name: str, **changed: bytes | None) -> Case:
        def write(place: Path) -> list[str]:
            new, results = str(place / "new.safetensors"), str(_folder(place, **changed))
            return ["prune", *good(place), "--out", new, "--results", results]

        return Case("prune", name, ERROR, write)

    yield pruned("by results without evidence", evidence=None)
    yield pruned("by evidence of text", evidence=b"hello")
    for longest in ("nan", "-1", "inf", "text"):
        yield _out(
            "prune", f"for features up to {longest}", "new.safetensors", "--longest", longest
        )
    yield Case("survey", "of nothing", ERROR, lambda place: ["survey", str(place / "gone.npz")])
    yield Case("survey", "of a layer", OK, lambda place: ["survey", *good(place)])
