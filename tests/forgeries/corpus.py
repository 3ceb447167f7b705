"""Forgeries, each made from an honest file by a small edit, with what is wrong about it. Every
verifier must refuse every one of them.
"""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from evidence import POINTS, PROOFS, TWIN, UNDECIDED, Evidence
from honest import files, text
from judge import Judge

Edit = Callable[[Evidence], Any]
INF, NAN, EPS = float("inf"), float("nan"), 2.0**-52
A_ROW = 'look",0,9.5,9.5\n0,"0","unargmaxable","lp'


@dataclass(frozen=True)
class Forgery:
    """What is wrong, the honest file that it is made of, and the edit."""

    wrong: str
    of: str
    edit: Edit

    def content(self) -> bytes:
        """The forged file."""
        evidence = files()[self.of].evidence
        self.edit(evidence)
        return evidence.bytes()


def first(kinds: int | tuple[int, ...], change: Callable[[dict[str, Any]], Any]) -> Edit:
    """Change the first claim of these kinds."""

    def edit(evidence: Evidence) -> None:
        claims, wanted = evidence.claims(), kinds if isinstance(kinds, tuple) else (kinds,)
        change(next(claim for claim in claims if claim["kinds"] in wanted))
        evidence.put(claims)

    return edit


def said(of: int | tuple[int, ...], /, **fields: Any) -> Edit:
    """Other fields of the first claim of these kinds."""
    return first(of, lambda claim: claim.update(fields))


def weight(change: Callable[[list[list[Any]]], Any], kind: int = 2) -> Edit:
    """Change the proof, rows (ahead, behind, weight), of the first claim with weights."""
    return first(kind, lambda claim: change(claim["proof"]))


def put(row: int, column: int, value: Any, kind: int = 2) -> Edit:
    """One entry of such a proof."""
    return weight(lambda proof: proof[row].__setitem__(column, value), kind)


def times(kind: int, name: str, factor: float) -> Edit:
    """A number of the first claim of a kind, multiplied."""
    return first(kind, lambda claim: claim.update({name: claim[name] * factor}))


def swapped(kinds: tuple[int, ...], *fields: str) -> Edit:
    """The first two claims of these kinds exchange some fields."""
    return listed(lambda claims: swap(claims, kinds, *fields))


def nth(n: int, **fields: Any) -> Edit:
    """Other fields of that claim."""
    return listed(lambda claims: claims[n].update(fields))


def listed(change: Callable[[list[dict[str, Any]]], Any]) -> Edit:
    """Change the list of claims."""

    def edit(evidence: Evidence) -> None:
        change(claims := evidence.claims())
        evidence.put(claims)

    return edit


def entry(name: str, place: int, value: Any) -> Edit:
    """One number of an array."""
    return lambda evidence: evidence.arrays[name].__setitem__(place, value)


def array(name: str, change: Callable[[Any], Any]) -> Edit:
    """A whole array."""
    return lambda evidence: evidence.arrays.update({name: change(evidence.arrays[name])})


def head(**fields: Any) -> Edit:
    """Fields of the head; None leaves one out."""

    def edit(evidence: Evidence) -> None:
        evidence.head.update(fields)
        for name in [name for name, value in fields.items() if value is None]:
            del evidence.head[name]

    return edit


def written(change: Callable[[str], str]) -> Edit:
    """The text of the head."""
    return lambda e: setattr(e, "text", change(json.dumps(e.head, sort_keys=True)))


def within(name: str, **fields: Any) -> Edit:
    """Fields of `layer` or `features`; None leaves one out."""

    def edit(evidence: Evidence) -> None:
        held = evidence.head[name] | fields
        evidence.head[name] = {key: value for key, value in held.items() if value is not None}

    return edit


def features(**fields: Any) -> Edit:
    """Fields of the feature set; floats are written as the format has them."""
    return within("features", **{name: stored(value) for name, value in fields.items()})


def stored(value: Any) -> Any:
    """A float, or each of a list, in hexadecimal."""
    if isinstance(value, list):
        return [stored(one) for one in value]
    return value.hex() if isinstance(value, float) else value


def reworded(old: str, new: str) -> Edit:
    """Other words in the text of the head."""
    return written(lambda text: text.replace(old, new))


def member(name: str, change: Callable[[bytes], bytes]) -> Edit:
    """The bytes of a member."""

    def last(members: dict[str, bytes]) -> None:
        members[f"{name}.npy"] = change(members.get(f"{name}.npy", b""))

    return lambda evidence: evidence.last.append(last)


def packed(change: Callable[[bytes], bytes]) -> Edit:
    """The bytes of the file."""
    return lambda evidence: evidence.packed.append(change)


def both(*edits: Edit) -> Edit:
    """One edit after the other."""
    return lambda evidence: [edit(evidence) for edit in edits]


def swap(claims: list[dict[str, Any]], kinds: tuple[int, ...], *fields: str) -> None:
    """Two claims of these kinds exchange some fields."""
    a, b, *_ = (claim for claim in claims if claim["kinds"] in kinds)
    for name in fields:
        a[name], b[name] = b[name], a[name]


def doubled(fraction: str) -> str:
    """The same number, written otherwise."""
    return "/".join(f"{2 * int(part, 16):x}" for part in fraction.split("/"))


def repacked(
    content: bytes,
    compression: int = zipfile.ZIP_STORED,
    comment: bytes = b"",
    again: tuple[str, Callable[[bytes], bytes]] | None = None,
    **more: bytes,
) -> bytes:
    """The members packed again, with more of them, or one changed and once more."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {one.filename: archive.read(one) for one in archive.infolist()}
    with io.BytesIO() as stream:
        with zipfile.ZipFile(stream, "w", compression) as archive:
            archive.comment = comment
            for name, held in [*members.items(), *more.items()]:
                archive.writestr(name, held)
            if again is not None:
                archive.writestr(again[0], again[1](members[again[0]]))
        return stream.getvalue()


def bomb(size: int) -> bytes:
    """A .npy file of so many zero bytes."""
    with io.BytesIO() as stream:
        np.save(stream, np.zeros(size, np.int8))
        return stream.getvalue()


def file_outside(members: dict[str, bytes]) -> None:
    """A member of a name that no array has."""
    members["../margins.npy"] = members["margins.npy"]


def grown(values: Any) -> Any:
    """One entry more."""
    return np.concatenate([values, values[-1:]])


def moved(kind: int, place: int, value: float | str) -> Edit:
    """One coordinate of a stored point; another kind of point where that is asked for."""

    def change(claim: dict[str, Any]) -> None:
        point = [float(v) for v in claim["point"]]
        point[place] = value  # type: ignore[call-overload]
        if kind == 5:
            point = [v if isinstance(v, str) else text(v) for v in point]  # type: ignore[misc]
        claim.update(kinds=kind, point=point, margins=5e-324, radii=0.0)

    return first((0, 1), change)


def blocked(weights: list[float]) -> Edit:
    """Class 0 as unargmaxable, by weights on those after it."""
    proof = [[0, n, weight / 1024] for n, weight in enumerate(weights, 1)]
    return nth(0, kinds=2, proof=proof, margins=0.0, radii=NAN)


def one_ulp_above(evidence: Evidence) -> None:
    """The first point's margin as it is, rounded up, and to the next float."""
    claims = evidence.claims()
    exact = Judge(files()["box"].layer, evidence.head["features"]).margin(claims[0])
    claims[0]["margins"] = float(np.nextafter(float(exact), INF))
    evidence.put(claims)


def unargmaxable(evidence: Evidence) -> None:
    """The unargmaxable classes alone, whose weights claim no more than that."""
    claims = [claim | {"margins": 0.0} for claim in evidence.claims() if claim["kinds"] == 2]
    evidence.put(claims)


def slightly_more(evidence: Evidence) -> None:
    """A weight larger by 2^-4194304: what it proves is true, and takes minutes to be reduced."""
    claims = evidence.claims()
    claim = next(claim for claim in claims if claim["kinds"] == 6)
    n, unit = (int(part, 16) for part in claim["proof"][0][2].split("/"))
    grown, unit = (n << 2**22) + 1, unit << 2**22
    claim["proof"][0][2] = f"{grown:x}/{unit:x}"
    evidence.put([claim | {"margins": 0.0} if claim["kinds"] == 6 else claim for claim in claims])


def idle(proof: list[list[Any]], nothing: float | str) -> None:
    """One more captor, of no weight, in its place."""
    t, there = proof[0][0], {b for _, b, _ in proof}
    fresh = next(b for b in range(10) if b != t and b not in there)
    proof.append([t, fresh, nothing])
    proof.sort(key=lambda row: row[:2])


def last(evidence: Evidence, name: str, more: int) -> None:
    """The last number of an array, raised."""
    evidence.arrays[name][-1] += more


def twice(content: bytes) -> bytes:
    """A member again, with other numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zipfile, about just that
        return repacked(content, again=("steps.npy", lambda held: held[:-1] + b"\x01"))


def overlapping(content: bytes) -> bytes:
    """The first member's length, in the directory and where it lies, is that of all members."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        one, directory = archive.infolist()[0], archive.start_dir
    start = content.index(one.filename.encode()) + len(one.filename)
    start += int.from_bytes(content[one.header_offset + 28 : one.header_offset + 30], "little")
    size = (directory - start).to_bytes(4, "little")
    crc = zlib.crc32(content[start:directory]).to_bytes(4, "little")
    said = crc + size + size
    return content[:14] + said + content[26 : directory + 16] + said + content[directory + 28 :]


def entries(content: bytes) -> tuple[bytes, list[bytes], bytes]:
    """What stands before a file's list of members, its entries, and the end."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        at = start = archive.start_dir
    found = []
    while content[at : at + 4] == b"PK\1\2":
        end = at + 46 + sum(struct.unpack("<3H", content[at + 28 : at + 34]))
        found.append(content[at:end])
        at = end
    return content[:start], found, content[at:]


def listing(front: bytes, found: list[bytes], behind: bytes = b"") -> bytes:
    """A list of members and an end that says what comes behind it."""
    size = sum(map(len, found))
    numbers = 0, 0, len(found), len(found), size, len(front), len(behind)
    return b"".join([front, *found, b"PK\5\6", struct.pack("<4H2LH", *numbers), behind])


def two_ends(content: bytes) -> bytes:
    """Other margins for whoever looks for the end of the file from its front."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        held = archive.read("margins.npy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = ("margins.npy", lambda _: held[:-8] + np.float64(9).tobytes())
        front, found, _ = entries(repacked(content, again=more))
    place = next(n for n, one in enumerate(found) if b"margins.npy" in one)
    outer = listing(front, found[:place] + found[place + 1 :])
    inner = listing(outer, found[:-1])[len(outer) :]
    return outer[:-2] + struct.pack("<H", len(inner)) + inner


def between(content: bytes) -> bytes:
    """Bytes that belong to no member, before the second one."""
    front, found, _ = entries(content)
    second = int.from_bytes(found[1][42:46], "little")
    moved = [
        one[:42] + struct.pack("<L", int.from_bytes(one[42:46], "little") + 8) + one[46:]
        for one in found[1:]
    ]
    return listing(front[:second] + bytes(8) + front[second:], [found[0], *moved])


def large_end(content: bytes) -> bytes:
    """The end of an archive of gigabytes, which says where the list is in a field of its own."""
    front, found, end = entries(content)
    count, size = len(found), sum(map(len, found))
    numbers = 44, 45, 45, 0, 0, count, count, size, len(front)
    wide = b"PK\6\6" + struct.pack("<Q2H2L4Q", *numbers)
    wide += b"PK\6\7" + struct.pack("<LQL", 0, len(front) + size, 1)
    return front + b"".join(found) + wide + end


def other_names(content: bytes) -> bytes:
    """Margins and radii exchange their names for readers who know the field for such names."""
    front, found, _ = entries(content)
    for n, one in enumerate(found):
        size = int.from_bytes(one[28:30], "little")
        name, extra = one[46 : 46 + size], one[46 + size :]
        other = {b"margins.npy": b"radii.npy", b"radii.npy": b"margins.npy"}.get(name)
        if other:
            extra += struct.pack("<2HBL", 0x7075, 5 + len(other), 1, zlib.crc32(name)) + other
            found[n] = one[:30] + struct.pack("<H", len(extra)) + one[32 : 46 + size] + extra
    return listing(front, found)


def own_sizes(content: bytes) -> bytes:
    """The fields that an archive of gigabytes has, in a small one."""
    front, found, _ = entries(content)
    extra = struct.pack("<2HQ", 1, 8, 0)
    first = found[0][:30] + struct.pack("<H", len(extra)) + found[0][32:] + extra
    return listing(front, [first, *found[1:]])


def behind_a_zero(content: bytes) -> bytes:
    """A member whose name goes on where other readers see it end."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive, io.BytesIO() as stream:
        with zipfile.ZipFile(stream, "w") as fresh:
            for one in archive.infolist():
                info = zipfile.ZipInfo(one.filename)
                info.filename += "\0.old" * (one.filename == "radii.npy")
                fresh.writestr(info, archive.read(one))
        return stream.getvalue()


def encrypted(content: bytes) -> bytes:
    """The first member, as the list says."""
    front, found, _ = entries(content)
    return listing(front, [found[0][:8] + b"\1" + found[0][9:], *found[1:]])


def said_twice(content: bytes) -> bytes:
    """A shape before the shape."""
    told = b"'shape': (9,), "
    return content.replace(b"'shape'", told + b"'shape'", 1).replace(b" " * len(told), b"", 1)


def turned(content: bytes) -> bytes:
    """The fields of a header in another order."""
    told = b"'fortran_order': False, "
    return content.replace(told, b"", 1).replace(b"{", b"{" + told, 1)


def head_as(dtype: str, more: str = "") -> Edit:
    """The head's text in another dtype, and with more behind it."""

    def edit(evidence: Evidence) -> None:
        text = json.dumps(evidence.head, sort_keys=True) + more
        with io.BytesIO() as stream:
            np.save(stream, np.array(text, f"{dtype}{len(text)}"))
            content = stream.getvalue()
        evidence.last.append(lambda members: members.update({"head.npy": content}))

    return edit


def without_suffix(name: str, change: Callable[[bytes], bytes]) -> Edit:
    """False numbers under an array's name, the true ones under that name without its suffix."""

    def last(members: dict[str, bytes]) -> None:
        members[name] = members[f"{name}.npy"]
        members[f"{name}.npy"] = change(members[name])

    return lambda evidence: evidence.last.append(last)


def _expert(
    evidence: Evidence, expert: int, blocks: list[list[int]], rest: int, pairs: list[Any]
) -> None:
    """An expert "impossible" by one order that is impossible indeed."""
    proof = {"kinds": 2, "methods": "said", "steps": 0, "margins": 0.0}
    claims, counts = evidence.claims(), evidence.arrays["expert_counts"]
    start = int(counts[:expert].sum())
    claims[start : start + counts[expert]] = [
        proof | {"order": blocks, "rest": rest, "proof": pairs}
    ]
    evidence.put(claims)
    counts[expert], evidence.arrays["expert_verdicts"][expert] = 1, 1


def _groups(evidence: Evidence, order: Any) -> None:
    """The experts at these places, each with its orders."""
    claims, arrays = evidence.claims(), evidence.arrays
    ends = np.cumsum(arrays["expert_counts"]).tolist()
    starts, places = [0, *ends], list(order)
    evidence.put([claim for n in places for claim in claims[starts[n] : ends[n]]])
    for name in ("experts", "expert_verdicts", "expert_counts"):
        evidence.arrays[name] = arrays[name][places]
    methods = evidence.head["expert_methods"]
    evidence.head["expert_methods"] = [methods[n] for n in places]


def _open(evidence: Evidence, expert: int) -> None:
    """An open question about that expert, without orders; those that the last one had stay."""
    held = {"experts": expert, "expert_verdicts": 2, "expert_counts": 0}
    for name, value in held.items():
        values = evidence.arrays[name]
        evidence.arrays[name] = np.append(values[:expert], np.array([value], values.dtype))
    evidence.head["expert_methods"] = [*evidence.head["expert_methods"][:expert], "said"]


def _one_blocking_set(evidence: Evidence) -> None:
    """Of expert 0's blocking sets the first alone."""
    claims = evidence.claims()
    del claims[1 : evidence.arrays["expert_counts"][0]]
    evidence.put(claims)
    evidence.arrays["expert_counts"][0] = 1


def _other_expert(evidence: Evidence) -> None:
    """Expert 0's blocking sets stand for expert 1 too."""
    claims, counts = evidence.claims(), evidence.arrays["expert_counts"]
    claims[counts[0] : counts[0] + counts[1]] = claims[: counts[0]]
    evidence.put(claims)
    counts[1], evidence.arrays["expert_verdicts"][1] = counts[0], 1


EVERYWHERE = {"set": "unbounded"}
OWN = {"set": "box", "low": (-0.0625).hex(), "high": (0.0625).hex()}
FAR = {"set": "box", "low": (-9.0).hex(), "high": (9.0).hex()}
NOTHING: dict[str, Any] = {"exact_points": [], "exact_weights": [], "methods": [], "reasons": []}
NOTHING["features"] = EVERYWHERE


def section(n: int, **fields: Any) -> Edit:
    """Fields of a section; None leaves one out."""

    def edit(evidence: Evidence) -> None:
        held = evidence.head["sections"][n] | fields
        evidence.head["sections"][n] = {k: v for k, v in held.items() if v is not None}

    return edit


def _copied(evidence: Evidence) -> None:
    """The second captor of the first class that has two as its first."""
    counts = evidence.arrays["section1_counts"]
    n = int((counts > 1).argmax())
    start = int(counts[:n].sum())
    evidence.arrays["section1_below"][start + 1] = evidence.arrays["section1_below"][start]


def _given_up(evidence: Evidence) -> None:
    """The first class of the first section without its proof."""
    arrays = evidence.arrays
    size = int(arrays["section1_counts"][0])
    arrays["section1_kinds"][0] = UNDECIDED
    evidence.head["sections"][0]["reasons"] = ["too far"]
    for name, cut in (("counts", 1), ("below", size), ("weights", size)):
        arrays[f"section1_{name}"] = arrays[f"section1_{name}"][cut:]


def _emptied(evidence: Evidence) -> None:
    """The first section without any class."""
    evidence.head["sections"][0] |= {"methods": []}
    for name in [name for name in evidence.arrays if name.startswith("section1_")]:
        evidence.arrays[name] = evidence.arrays[name][:0]


# 5 w_2 + 3 w_4 + 3.5 w_5 = 0: class 0 is never ahead of those three
AROUND = [[0, 2, 5.0], [0, 4, 3.0], [0, 5, 3.5]]
ULP = {name: float(np.nextafter(value, 9)) for name, value in {"5": 5.0, "-1": -1.0}.items()}


def _rotated(proof: list[list[Any]]) -> list[list[Any]]:
    """Each captor with the weight of the next."""
    weights = [row[2] for row in proof]
    return [[a, b, w] for (a, b, _), w in zip(proof, weights[1:] + weights[:1], strict=True)]


FORGERIES: dict[str, dict[str, Edit]] = {
    "box": {
        "a margin 19,700 times as large": times(0, "margins", 19700),
        "a margin one ulp above what the point reaches": one_ulp_above,
        "the largest margin": said(POINTS, margins=1.7e308),
        "an infinite margin": said(POINTS, margins=INF),
        "a margin that is no number": said(POINTS, margins=NAN),
        "a margin of zero": said(POINTS, margins=0.0),
        "a negative margin of a winner": said(POINTS, margins=-1.0),
        "a radius a hundredth larger": times(0, "radii", 1.01),
        "an infinite radius": said(POINTS, radii=INF),
        "a negative radius": said(POINTS, radii=-1.0),
        "no radius of a point": said(POINTS, radii=NAN),
        "a radius of an unargmaxable class": said(2, radii=0.0),
        "a bound below what the weights prove": said(2, margins=-50.0),
        "a bound a millionth lower": times(2, "margins", (1 + 1e-6)),
        "a positive bound": said(2, margins=1e-300),
        "an infinite bound": said(2, margins=-INF),
        "a bound that is no number": said(2, margins=NAN),
        "a twin with a margin": said(TWIN, margins=-1e-300),
        "a point above its box by one ulp": moved(1, 0, ULP["5"]),
        "a fraction above its box by 2^-200": moved(5, 0, f"{5 * 2**200 + 1:x}/{2**200:x}"),
        "a point that is no number": moved(1, 0, NAN),
        "an infinite point": moved(0, 0, INF),
        "two points exchanged": swapped((0,), "point"),
        "all points at the origin": array("points32", lambda p: p * 0),
        "points far out": array("points32", lambda p: p * np.float32(1e6)),
        "a point filed under the other width": entry("kinds", 0, 1),
        "two points' classes exchanged": swapped((0,), "classes"),
        "an unargmaxable class's weights for a winner": swapped((0, 2), "classes"),
        "a weight of zero": put(0, 2, 0.0),
        "a weight of minus zero": put(0, 2, -0.0),
        "a captor without weight": weight(lambda p: idle(p, 0.0)),
        "a negative weight": weight(lambda p: p[0].__setitem__(2, -p[0][2])),
        "a weight that is no number": put(0, 2, NAN),
        "an infinite weight": put(0, 2, INF),
        "the class itself as a captor": weight(lambda p: p[0].__setitem__(1, p[0][0])),
        "a captor that does not exist": put(-1, 1, 10),
        "a captor below zero": put(0, 1, -1),
        "a captor twice": weight(lambda p: p.insert(0, p[0])),
        "captors in another order": weight(lambda p: p.reverse()),
        "captors of another class": swapped((2,), "proof"),
        "no captors": weight(lambda p: p.clear()),
        "weights exchanged": first(2, lambda c: c.update(proof=_rotated(c["proof"]))),
        "a twin of itself": first(TWIN, lambda c: c.update(twin=c["classes"])),
        "a twin with another bias": said(2, kinds=TWIN, twin=0, margins=0.0),
        "a twin that does not exist": said(TWIN, twin=10),
        "a winner tied with another": said(0, kinds=TWIN, twin=9, margins=0.0, radii=NAN),
        "a lesser copy called a twin": nth(9, kinds=TWIN, twin=3, margins=0.0),
        "a twin's twin elsewhere": said(TWIN, twin=4),
        "a kind that does not exist": entry("kinds", 0, 7),
        "a kind below zero": entry("kinds", 0, -1),
        "a kind below zero, with weights": entry("kinds", 5, -1),
        "orders within a scan": head(holds="orders"),
        "an unargmaxable class again, as a twin": listed(
            lambda c: c.append(c[5] | {"kinds": TWIN, "twin": 0, "margins": 0.0})
        ),
        "a class twice": listed(lambda c: c.insert(1, c[0])),
        "classes out of order": listed(lambda c: c.reverse()),
        "a class that does not exist": entry("classes", -1, 10),
        "a class below zero": entry("classes", 0, -1),
        "negative steps": entry("steps", 0, -1),
        "a point too many": array("points32", grown),
        "a weight too many": array("weights", grown),
        "a captor too many": array("below", grown),
        "a twin too many": array("twins", grown),
        "a count too many": array("counts", grown),
        "a count below zero": entry("counts", 0, -1),
        "a count beyond all": entry("counts", 0, 2**40),
        "a margin too few": array("margins", lambda v: v[:-1]),
        "a radius too many": array("radii", grown),
        "a method too few": lambda e: e.head["methods"].pop(),
        "a method that is no text": lambda e: e.head["methods"].__setitem__(0, 1),
        "a method that makes a row of its own in the table": lambda e: e.head[
            "methods"
        ].__setitem__(0, A_ROW),
        "a reason that nothing asks for": head(reasons=["tired"]),
        "a reason as text": head(reasons=""),
        "no exact points, written otherwise": head(exact_points={}),
        "an exact point that nothing asks for": head(exact_points=[["1/1"] * 3]),
        "another format": head(format=3),
        "a format as a float": head(format=4.0),
        "a format as text": head(format="4"),
        "a format as a truth": head(format=True),
        "a format of ten thousand digits": reworded('"format": 4', f'"format": {"4" * 10**4}'),
        "no format": head(format=None),
        "an unknown field": head(note="believe me"),
        "no sections": head(sections=None),
        "no sections, written otherwise": head(sections={}),
        "an unknown section": head(sections=["ceilings"]),
        "orders that are none": head(holds="answers"),
        "a field twice": written(lambda t: '{"format": 4, ' + t[1:]),
        "blanks": written(lambda t: t + " "),
        "fields in another order": written(
            lambda t: '{"sections": [], ' + t[1:].replace(', "sections": []', "")
        ),
        "a head without end": written(lambda t: t[:-1]),
        "a head nested deeply": written(lambda t: "[" * 10**5),
        "a head that is a list": written(lambda t: f"[{t}]"),
        "a number that is none": reworded('"format": 4', '"format": NaN'),
        "a layer of another shape": lambda e: e.head["layer"]["W"].update(shape=[10, 4]),
        "a shape of floats": lambda e: e.head["layer"]["W"].update(shape=[10.0, 3]),
        "a layer of another dtype": lambda e: e.head["layer"]["W"].update(dtype="<f8"),
        "a hash in capitals": lambda e: e.head["layer"]["W"].update(
            sha256=e.head["layer"]["W"]["sha256"].upper()
        ),
        "the hash of another layer": lambda e: e.head["layer"]["b"].update(sha256="0" * 64),
        "a layer without its bias": lambda e: e.head["layer"].update(b=None),
        "a layer with more": lambda e: e.head["layer"].update(c=None),
        "no layer": head(layer=[]),
        "a wider box": features(high=50.0),
        "a narrower box": features(high=0.125, low=-0.125),
        "swapped bounds": features(high=-1.0, low=5.0),
        "a box of one point": features(high=-1.0),
        "unargmaxable in a box of one point": both(unargmaxable, features(high=-1.0)),
        "unargmaxable in a box turned over": both(unargmaxable, features(high=-1.0, low=5.0)),
        "a bound too many": features(high=[5.0] * 4),
        "a bound too few": features(high=[5.0] * 2),
        "bounds of no coordinates": features(high=[], low=[]),
        "one box within another's numbers": features(high=[5.0, [5.0], 5.0]),
        "an infinite bound of the box": features(high="inf"),
        "a bound that is no number at all": features(high="nan"),
        "a bound in words": features(high="one"),
        "a bound beyond all floats": features(high="0x1p5000"),
        "a bound as a number": features(high=5),
        "a bound in decimal digits": features(high="5.0"),
        "a bound written otherwise": features(high="0x5p0"),
        "a bound in capitals": features(high=(5.0).hex().upper()),
        "no lower bound": features(low=None),
        "no upper bound": features(high=None),
        "a box with a radius": features(radius=1.0),
        "a ball for the box": head(features={"set": "ball", "radius": (5.0).hex()}),
        "no bounds at all": head(features={"set": "unbounded"}),
        "an unknown set": head(features={"set": "everything"}),
        "a set that is a list": head(
            features={"set": ["box"], "low": "0x0.0p+0", "high": "0x1.0000000000000p+0"}
        ),
        "no set": head(features=[]),
        "classes as floats": array("classes", lambda v: v.astype(float)),
        "narrow integers": array("classes", lambda v: v.astype("<i4")),
        "unsigned kinds": array("kinds", lambda v: v.astype("u1")),
        "big-endian weights": array("weights", lambda v: v.astype(">f8")),
        "weights as objects": array("weights", lambda v: v.astype(object)),
        "points column by column": array("points32", np.asfortranarray),
        "no points, column by column": member(
            "points64", lambda b: b.replace(b"False,", b"True,").replace(b"}", b"} ", 1)
        ),
        "points of another dimension": array("points32", lambda p: np.ascontiguousarray(p[:, :2])),
        "no points, of another dimension": array("points64", lambda p: np.zeros((0, 4))),
        "margins in two dimensions": array("margins", lambda v: v[None]),
        "a margin alone": array("margins", lambda v: v[0]),
        "an array cut": member("weights", lambda b: b[:-4]),
        "an array with more behind it": member("weights", lambda b: b + bytes(8)),
        "a shape beyond all": member(
            "weights", lambda b: b.replace(b"'shape': (", b"'shape': (9999999999, ", 1)
        ),
        "a negative shape": member("twins", lambda b: b.replace(b"(2,), } ", b"(-1,), }")),
        "a header that ends nowhere": member("twins", lambda b: b.replace(b"(2,)", b"\xb32,)")),
        "a header of Python 2": member("twins", lambda b: b.replace(b"(2,), }", b"(2L,),}")),
        "another version of .npy": member("twins", lambda b: b[:6] + b"\x02" + b[7:]),
        "version 1.1 of .npy": member("twins", lambda b: b[:7] + b"\x01" + b[8:]),
        "an empty member": member("twins", lambda b: b""),
        "no twins": lambda e: e.arrays.pop("twins"),
        "an array of no name": lambda e: e.arrays.update(extra=np.zeros(3)),
        "a member elsewhere": lambda e: e.last.append(file_outside),
        "a head of bytes": member("head", lambda b: bomb(40)),
        "a name of one letter that no character is": member(
            "head", lambda b: b.replace(b"W\0\0\0", b"\xff\xff\xff\x7f")
        ),
        "a list of one head": member("head", lambda b: b.replace(b"(), }  ", b"(1,), }")),
        "no head": lambda e: e.last.append(lambda members: members.pop("head.npy")),
        "a member compressed": packed(lambda c: repacked(c, zipfile.ZIP_DEFLATED)),
        "a member compressed, in a file that is large enough": packed(
            lambda c: repacked(c, zipfile.ZIP_DEFLATED, comment=b"believe me" * 4000)
        ),
        "a member encrypted": packed(encrypted),
        "a member twice": packed(twice),
        "a member that runs on to the end of the file": packed(overlapping),
        "an extra member of 30 MB": packed(
            lambda c: repacked(c, zipfile.ZIP_DEFLATED, extra=bomb(3 * 10**7))
        ),
        "another file before it": packed(lambda c: c + c),
        "words behind the end": packed(lambda c: repacked(c, comment=b"believe me")),
        "two ends, with other margins by the first": packed(two_ends),
        "an end for gigabytes": packed(large_end),
        "bytes of no member between two": packed(between),
        "names exchanged for newer readers": packed(other_names),
        "sizes in a field of their own": packed(own_sizes),
        "a name that goes on behind a zero": packed(behind_a_zero),
        "a member that ends sooner from the front": packed(
            lambda c: c[:18] + struct.pack("<2L", 8, 8) + c[26:]
        ),
        "a member without end, from the front": packed(lambda c: c[:18] + b"\xff" * 8 + c[26:]),
        "a member packed, from the front": packed(lambda c: c[:8] + b"\x08" + c[9:]),
        "a member once more, without its suffix": without_suffix(
            "margins", lambda b: b[:-1] + b"A"
        ),
        "a shape twice in a header": member("margins", said_twice),
        "a header in another order": member("margins", turned),
        "a head that goes on behind a zero": head_as("<U", "\0"),
        "a big-endian head": head_as(">U"),
        "a file cut": packed(lambda c: c[:-200]),
        "an empty file": packed(lambda c: b""),
        "text": packed(lambda c: b"proven, believe me\n" * 9),
        "a flipped bit": packed(lambda c: c.replace(b"NUMPY", b"NUMPX", 1)),
    },
    "box, no bias": {
        "a bound below zero without a bias": said(PROOFS, margins=-1e-9),
        "a fraction a little larger": put(0, 2, "10001/10000", 6),
    },
    "rmsnorm, no bias": {
        "a captor left out": weight(lambda p: p.pop()),
        "a weight a thousandth larger": weight(lambda p: p[0].__setitem__(2, p[0][2] * 1.001)),
    },
    "fractions": {
        "a zero denominator": put(0, 2, "1/0", 6),
        "a negative denominator": put(0, 2, "-1/-2", 6),
        "a negative fraction": put(0, 2, "-1/2", 6),
        "a weight of zero, exactly": put(0, 2, "0/1", 6),
        "a captor without weight, exactly": weight(lambda p: idle(p, "0/1"), 6),
        "a fraction not in lowest terms": weight(
            lambda p: p[0].__setitem__(2, doubled(p[0][2])), 6
        ),
        "a fraction with a prefix": put(0, 2, "0x1/2", 6),
        "a leading zero": weight(lambda p: p[0].__setitem__(2, f"0{p[0][2]}"), 6),
        "a fraction with blanks": put(0, 2, " 1/2", 6),
        "a fraction with an underscore": put(0, 2, "1_0/3", 6),
        "a whole number": put(0, 2, "1", 6),
        "a fraction of three parts": put(0, 2, "1/2/3", 6),
        "a fraction of a million digits": put(0, 2, f"1/1{'0' * 10**6}", 6),
        "a true fraction of a million digits": slightly_more,
        "a number for a fraction": put(0, 2, 1, 6),
        "a fraction missing": lambda e: e.head["exact_weights"][0].pop(),
        "fractions missing": lambda e: e.head["exact_weights"].pop(),
        "a coordinate too many": lambda e: e.head["exact_points"][0].append("0/1"),
        "fractions exchanged": swapped((5,), "point"),
        "a fraction's margin too large": times(5, "margins", 1.001),
    },
    "ball": {
        "a point outside the ball by one ulp": said(0, kinds=1, point=[2 * (1 + EPS), 0, 0]),
        "a ball of radius 0": features(radius=0.0),
        "a negative radius of the ball": features(radius=-2.0),
        "an infinite radius of the ball": features(radius="inf"),
        "a list of radii": features(radius=[2.0]),
        "a radius for each coordinate": features(radius=[2.0] * 3),
        "a larger ball": features(radius=99.0),
        "a smaller ball": features(radius=0.5),
    },
    "large": {
        "a margin of 5e-324, taken for one in larger units": said(
            POINTS, kinds=1, point=[5e-324], margins=2.0**-74, radii=0.0
        )
    },
    "vanishing shift": {"a product that vanishes, taken for zero": blocked([1, 1])},
    "vanishing radius": {"a radius that vanishes, taken for none": blocked([1024])},
    "far apart": {"entries that the unit takes, taken for zero": blocked([1, 1024, 1])},
    "overflow": {
        "a sum that overflows on its way, taken for the least": nth(
            0, kinds=0, point=[1.0] * 5, margins=1e37, radii=0.0
        )
    },
    "intervals": {
        "swapped intervals": features(low=[4.0] * 3),
        "an interval too many": features(low=[-1.0] * 4, high=[1.0] * 4),
        "an interval of one point": features(low=[3.0, -4.0, 0.5]),
    },
    "layernorm": {
        "a gain too many": lambda e: e.head["features"]["gain"].append((1.0).hex()),
        "unargmaxable under gains and shifts too many": lambda e: (
            unargmaxable(e),
            [e.head["features"][name].append((1.0).hex()) for name in ("gain", "bias")],
        ),
        "a gain too few": lambda e: e.head["features"]["gain"].pop(),
        "one gain for all": features(gain=1.0),
        "a shift too many": lambda e: e.head["features"]["bias"].append((1.0).hex()),
        "centred as a number": features(centred=1),
        "no word on centred": features(centred=None),
        "a normalisation that is not centred": features(centred=False),
        "another shift": features(bias=[9.0] * 3),
        "larger gains": features(gain=[8.0, 4.0, 16.0]),
        "a radius of zero of a normalisation": features(radius=0.0),
        "an ulp outside the sphere": said(0, kinds=1, point=[3**0.5 + EPS, 0, 0]),
    },
    "rmsnorm": {"a normalisation that is centred": features(centred=True)},
    "undecided": {
        "an undecided margin that is no number": said(4, margins=NAN),
        "a radius of an undecided class": said(4, radii=0.0),
        "a reason that is no text": lambda e: e.head["reasons"].__setitem__(0, None),
        "a reason missing": lambda e: e.head["reasons"].pop(),
    },
    "one class": {
        "one class, beaten by itself": said(0, kinds=2, proof=[[0, 0, 1.0]], margins=0.0, radii=NAN)
    },
    "tiny": {
        "a point that float64 takes for another": nth(
            0, kinds=5, point=[f"1/{2**1076:x}"], margins=5e-324, radii=0.0
        )
    },
    "wider": {
        "a section over a set that frees its classes": section(0, features=FAR),
        "a section over the scan's own set": section(0, features=OWN),
        "a section over the scan's own set, bound by bound": section(
            0, features=OWN | {name: [OWN[name]] * 3 for name in ("low", "high")}
        ),
        "a set twice": section(0, features={"set": "ball", "radius": (0.0625).hex()}),
        "a section's box without end": section(0, features=OWN | {"high": "inf"}),
        "a section of an unknown set": section(0, features={"set": "everything"}),
        "a section with a name": section(0, name="trust me"),
        "a section without methods": section(0, methods=None),
        "sections exchanged": lambda e: e.head["sections"].reverse(),
        "a section left out": lambda e: e.head["sections"].pop(),
        "a section without arrays": lambda e: e.head["sections"].append(NOTHING),
        "a winner filed as lost elsewhere": entry("section1_classes", 0, 1),
        "a class of a section twice": entry("section1_classes", 1, 0),
        "a section's bound lower than proven": array("section1_margins", lambda m: m - 1),
        "a section's weights as a point": entry("section1_kinds", 0, 1),
        "a section's class given up": _given_up,
        "a section about nothing": _emptied,
        "captors missing from a section": array("section1_below", lambda b: b[:-1]),
        "a section's captor twice": _copied,
        "weights of a section that vary": array("section1_weights", lambda w: w[::-1]),
        "a radius in a section": array("section1_radii", np.ones_like),
    },
    "answers": {
        "a section among orders": head(sections=[NOTHING]),
        "a class of an order that does not exist": entry("named", 0, 10),
        "a class below zero in an order": entry("named", 0, -1),
        "a class twice in an order": lambda e: e.arrays["named"].__setitem__(
            1, e.arrays["named"][2]
        ),
        "an empty block": both(entry("sizes", 0, 0), array("named", lambda v: v[1:])),
        "an order without blocks": both(
            entry("blocks", 0, 0), array("sizes", lambda v: v[1:]), array("named", lambda v: v[1:])
        ),
        "an order of blocks that are not there": lambda e: last(e, "blocks", 1),
        "a block of classes that are not there": lambda e: last(e, "sizes", 1),
        "a rest that is neither": entry("rest", 0, 2),
        "a rest that does not follow": entry("rest", 4, 1),
        "a point for the reverse order": lambda e: e.put(
            [c | {"order": c["order"][::-1]} for c in e.claims()]
        ),
        "an order that was turned": first(PROOFS, lambda c: c.update(order=c["order"][::-1])),
        "a comparison that is turned": weight(lambda p: p[0].reverse() or p[0].append(p[0].pop(0))),
        "an infinite margin of an order": said(0, margins=INF),
        "a margin of an order twice as large": times(0, "margins", 2),
        "an order with a twin": entry("kinds", 0, TWIN),
        "two orders' points exchanged": swapped((0,), "point"),
        "experts that are none": head(holds="experts"),
    },
    "wide": {
        "captors of another class of many": swapped((2,), "proof"),
        "points of other winners of many": swapped((0,), "point"),
    },
    "experts, one": {
        "the rest of an order ignored": lambda e: _expert(e, 1, [[1], [0]], 1, AROUND),
        "three blocks": lambda e: _expert(e, 1, [[1], [0], [2, 4, 5]], 0, AROUND),
        "answers that forget their experts": lambda e: [
            e.arrays.pop(n) for n in ("experts", "expert_verdicts", "expert_counts")
        ],
    },
    "experts": {
        "one block and its rest": lambda e: _expert(e, 6, [[6]], 1, [[6, 0, 1.0], [6, 1, 7.0]]),
        "one blocking set where two are needed": _one_blocking_set,
        "an impossible expert called possible": entry("expert_verdicts", 0, 0),
        "a possible expert called impossible": entry("expert_verdicts", 1, 1),
        "another expert's blocking sets": _other_expert,
        "a larger k": head(k=3),
        "a smaller k": head(k=1),
        "k of zero": head(k=0),
        "k as a float": head(k=2.0),
        "k as a truth": head(k=True),
        "more than all experts": head(k=12),
        "no k": head(k=None),
        "an expert twice": entry("experts", 1, 0),
        "experts out of order": array("experts", lambda v: v[::-1].copy()),
        "an expert that does not exist": entry("experts", -1, 11),
        "a verdict that does not exist": entry("expert_verdicts", 0, 3),
        "a verdict below zero": entry("expert_verdicts", 0, -1),
        "an expert twice, with its orders": lambda e: _groups(e, [0, *range(11)]),
        "experts and their orders backwards": lambda e: _groups(e, range(11)[::-1]),
        "no experts at all": lambda e: _groups(e, []),
        "an open question about nobody": lambda e: _open(e, 11),
        "an order after the last expert's": lambda e: _open(e, 10),
        "a method of an expert that is no text": lambda e: e.head["expert_methods"].__setitem__(
            0, 1
        ),
        "a method of an expert that makes a row of its own in the table": lambda e: e.head[
            "expert_methods"
        ].__setitem__(0, A_ROW),
        "orders moved to the next expert": lambda e: e.arrays["expert_counts"].__iadd__(
            [-1, 1] + [0] * 9
        ),
        "an expert without orders": both(
            entry("expert_counts", 1, 0), entry("expert_counts", 0, 3)
        ),
        "orders below zero": lambda e: e.arrays["expert_counts"].__iadd__([-3, 3] + [0] * 9),
        "an order of no expert": lambda e: e.arrays["expert_counts"].__setitem__(-1, 0),
        "a method of an expert missing": lambda e: e.head["expert_methods"].pop(),
        "an impossible expert without orders": lambda e: (
            e.put(e.claims()[2:]),
            entry("expert_counts", 0, 0)(e),
        ),
        "a point filed as a reason to give up": entry("expert_verdicts", 1, 2),
    },
}
CORPUS = {
    f"{of}: {wrong}": Forgery(wrong, of, edit)
    for of, edits in FORGERIES.items()
    for wrong, edit in edits.items()
}
