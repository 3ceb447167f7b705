"""Forgeries, each made from an honest file by a small edit, with what is wrong about it. Both
verifiers must refuse every one of them.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from evidence import PROOFS, TWIN, UNDECIDED, Evidence, framed, parted
from honest import files, text
from judge import Judge

Edit = Callable[[Evidence], Any]
INF, NAN, EPS = float("inf"), float("nan"), 2.0**-52
A_ROW = 'look",0,9.5,9.5\n0,"0","unargmaxable","lp'
POINT = (0, 1)


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


def twin(kind: int, change: Callable[[int], int], **fields: Any) -> Edit:
    """The first claim of a kind as tied with a class, by the number of its own."""

    def tie(claim: dict[str, Any]) -> None:
        t = claim["order"][0][0]
        claim.update(kinds=TWIN, proof=[[t, change(t), None]], **fields)

    return first(kind, tie)


def times(kind: int, name: str, factor: float) -> Edit:
    """A number of the first claim of a kind, multiplied."""
    return first(kind, lambda claim: claim.update({name: claim[name] * factor}))


def swapped(kinds: tuple[int, ...], *fields: str) -> Edit:
    """The first two claims of these kinds exchange some fields."""

    def change(claims: list[dict[str, Any]]) -> None:
        a, b, *_ = (claim for claim in claims if claim["kinds"] in kinds)
        for name in fields:
            a[name], b[name] = b[name], a[name]

    return listed(change)


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


def texts(**fields: Any) -> Edit:
    """Texts of the header; None leaves one out."""

    def edit(evidence: Evidence) -> None:
        evidence.texts.update(fields)
        for name in [name for name, value in fields.items() if value is None]:
            del evidence.texts[name]

    return edit


def features(**fields: Any) -> Edit:
    """Fields of the feature set; floats are written as the format has them, None leaves one out."""

    def edit(evidence: Evidence) -> None:
        held = evidence.sets[0] | {name: stored(value) for name, value in fields.items()}
        evidence.sets[0] = {key: value for key, value in held.items() if value is not None}

    return edit


def other_set(of: int, **fields: Any) -> Edit:
    """Another feature set in the place of one."""
    return lambda evidence: evidence.sets.__setitem__(of, {k: stored(v) for k, v in fields.items()})


def stored(value: Any) -> Any:
    """A float, or each of a list, in hexadecimal."""
    if isinstance(value, list):
        return [stored(one) for one in value]
    return value.hex() if isinstance(value, float) else value


def said_of(name: str, **fields: Any) -> Edit:
    """What the header says of an array."""
    return lambda e: e.header.append(lambda said: said[name].update(fields))


def packed(change: Callable[[bytes], bytes]) -> Edit:
    """The bytes of the file."""
    return lambda evidence: evidence.packed.append(change)


def written(change: Callable[[str], str]) -> Edit:
    """The text of the header."""

    def again(content: bytes) -> bytes:
        text, body = parted(content)
        return framed(change(text.decode()).encode()) + body

    return packed(again)


def both(*edits: Edit) -> Edit:
    """One edit after the other."""
    return lambda evidence: [edit(evidence) for edit in edits]


def doubled(fraction: str) -> str:
    """The same number, written otherwise."""
    return "/".join(f"{2 * int(part, 16):x}" for part in fraction.split("/"))


def grown(values: Any) -> Any:
    """One entry more."""
    return np.concatenate([values, values[-1:] if len(values) else np.zeros(1, values.dtype)])


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
    exact = Judge(files()["box"].layer, evidence.sets[0]).margin(claims[0])
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
    """One more blocking class, of no weight, in its place."""
    t, there = proof[0][0], {b for _, b, _ in proof}
    fresh = next(b for b in range(10) if b != t and b not in there)
    proof.append([t, fresh, nothing])
    proof.sort(key=lambda row: row[:2])


def of_experts(change: Callable[[list[list[dict[str, Any]]]], Any]) -> Edit:
    """Change the groups of claims, one of each expert."""

    def edit(evidence: Evidence) -> None:
        groups: dict[int, list[dict[str, Any]]] = {}
        for claim in evidence.claims():
            groups.setdefault(claim["order"][0][0], []).append(claim)
        change(listed := [*groups.values()])
        evidence.put([claim for group in listed for claim in group])

    return edit


def impossible(expert: int, blocks: list[list[int]], rest: int, pairs: list[Any]) -> Edit:
    """An expert "impossible" by one order that is impossible indeed."""
    proof = {"kinds": 2, "methods": "said", "steps": 0, "margins": 0.0, "radii": NAN, "sets": 0}
    claim = proof | {"order": blocks, "rest": rest, "proof": pairs}
    return of_experts(lambda groups: groups.__setitem__(expert, [claim]))


def renamed(group: list[dict[str, Any]], expert: int) -> list[dict[str, Any]]:
    """The same orders about another expert."""
    return [claim | {"order": [[expert], *claim["order"][1:]]} for claim in group]


def further(change: Callable[[list[dict[str, Any]]], Any]) -> Edit:
    """Change the claims over the further sets."""

    def edit(evidence: Evidence) -> None:
        claims = evidence.claims()
        change(more := [claim for claim in claims if claim["sets"]])
        evidence.put([claim for claim in claims if not claim["sets"]] + more)

    return edit


def hole(content: bytes) -> bytes:
    """Eight bytes of no array before the last one, as the header says."""
    text, body = parted(content)
    said = json.loads(text)
    last = max(said, key=lambda name: said[name].get("data_offsets", [-1])[0])
    start, end = said[last]["data_offsets"]
    said[last]["data_offsets"] = [start + 8, end + 8]
    text = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
    return framed(text) + body[:start] + bytes(8) + body[start:]


# 5 w_2 + 3 w_4 + 3.5 w_5 = 0: class 0 is never ahead of those three
AROUND = [[0, 2, 5.0], [0, 4, 3.0], [0, 5, 3.5]]
ULP = {name: float(np.nextafter(value, 9)) for name, value in {"5": 5.0, "-1": -1.0}.items()}


def _rotated(proof: list[list[Any]]) -> list[list[Any]]:
    """Each blocking class with the weight of the next."""
    weights = [row[2] for row in proof]
    return [[a, b, w] for (a, b, _), w in zip(proof, weights[1:] + weights[:1], strict=True)]


SMALL = {"set": "box", "low": -0.0625, "high": 0.0625}
FORGERIES: dict[str, dict[str, Edit]] = {
    "box": {
        "a margin 19,700 times as large": times(0, "margins", 19700),
        "a margin one ulp above what the point reaches": one_ulp_above,
        "an infinite margin": said(POINT, margins=INF),
        "a margin that is not a number": said(POINT, margins=NAN),
        "a margin of zero": said(POINT, margins=0.0),
        "a radius a hundredth larger": times(0, "radii", 1.01),
        "an infinite radius": said(POINT, radii=INF),
        "a negative radius": said(POINT, radii=-1.0),
        "no radius of a point": said(POINT, radii=NAN),
        "a radius of an unargmaxable class": said(2, radii=0.0),
        "a bound below what the weights prove": said(2, margins=-50.0),
        "a bound a millionth lower": times(2, "margins", (1 + 1e-6)),
        "a positive bound": said(2, margins=1e-300),
        "an infinite bound": said(2, margins=-INF),
        "a bound that is not a number": said(2, margins=NAN),
        "a twin with a margin": said(TWIN, margins=-1e-300),
        "a point above its box by one ulp": moved(1, 0, ULP["5"]),
        "a fraction above its box by 2^-200": moved(5, 0, f"{5 * 2**200 + 1:x}/{2**200:x}"),
        "a point that is not a number": moved(1, 0, NAN),
        "an infinite point": moved(0, 0, INF),
        "two points exchanged": swapped((0,), "point"),
        "all points at the origin": array("points32", lambda p: p * 0),
        "two points' classes exchanged": swapped((0,), "order"),
        "a weight of zero": put(0, 2, 0.0),
        "a blocking class without weight": weight(lambda p: idle(p, 0.0)),
        "a negative weight": weight(lambda p: p[0].__setitem__(2, -p[0][2])),
        "a weight that is not a number": put(0, 2, NAN),
        "an infinite weight": put(0, 2, INF),
        "the class itself as a blocking class": weight(lambda p: p[0].__setitem__(1, p[0][0])),
        "a blocking class that does not exist": put(-1, 1, 10),
        "a blocking class below zero": put(0, 1, -1),
        "a blocking class twice": weight(lambda p: p.insert(0, p[0])),
        "blocking classes in another order": weight(lambda p: p.reverse()),
        "blocking classes of another class": swapped((2,), "proof"),
        "a comparison of another class": put(0, 0, 9),
        "no blocking classes": weight(lambda p: p.clear()),
        "weights exchanged": first(2, lambda c: c.update(proof=_rotated(c["proof"]))),
        "a twin of itself": twin(TWIN, lambda t: t),
        "a twin with another bias": twin(2, lambda t: 0, margins=0.0),
        "a twin that does not exist": twin(TWIN, lambda t: 10),
        "two twins": first(TWIN, lambda c: c["proof"].append(c["proof"][0])),
        "another class's twin": first(TWIN, lambda c: c["proof"][0].__setitem__(0, 9)),
        "a winner tied with another": nth(
            0, kinds=TWIN, proof=[[0, 9, None]], margins=0.0, radii=NAN
        ),
        "a lesser copy called a twin": nth(9, kinds=TWIN, proof=[[9, 3, None]], margins=0.0),
        "a twin elsewhere": twin(TWIN, lambda t: 4),
        "a kind that does not exist": entry("kinds", 0, 8),
        "a kind below zero": entry("kinds", 0, -1),
        "odds in a scan": entry("kinds", 0, 7),
        "an unargmaxable class again, as a twin": listed(
            lambda c: c.append(c[5] | {"kinds": TWIN, "proof": [[5, 0, None]], "margins": 0.0})
        ),
        "a class twice": listed(lambda c: c.insert(1, c[0])),
        "classes out of order": listed(lambda c: c.reverse()),
        "a class that does not exist": entry("named", -1, 10),
        "a class below zero": entry("named", 0, -1),
        "two classes above the rest": nth(0, order=[[0, 1]]),
        "a class above one other": nth(0, order=[[0], [1]], rest=0),
        "a class above nobody": entry("rest", 0, 0),
        "negative steps": entry("steps", 0, -1),
        "a set that is not there": entry("sets", -1, 1),
        "a point too many": array("points32", grown),
        "a weight too many": array("weights", grown),
        "a count below zero": entry("counts", 0, -1),
        "a ceiling among verdicts": array("ceilings", lambda v: np.ones(1)),
        "a method that is not a text": lambda e: e.lists["methods"].__setitem__(0, 1),
        "a method that makes a row in a table": lambda e: e.lists["methods"].__setitem__(0, A_ROW),
        "a reason too many": lambda e: e.lists["reasons"].append("tired"),
        "a fraction too many": lambda e: e.lists["fractions"].append("1/1"),
        "a list with blanks": lambda e: e.lists.update(reasons=b"[ ]"),
        "bytes that are not text": lambda e: e.lists.update(reasons=b'["\xff"]'),
        "another format": texts(format="softgeom proofs 4"),
        "a field of no meaning": texts(note="believe me"),
        "orders in place of classes": texts(holds="answers"),
        "experts without k": texts(holds="experts"),
        "k of a scan": texts(k="2"),
        "another layer": texts(layer="0" * 64),
        "a wider box": features(high=50.0),
        "a narrower box": features(high=0.125, low=-0.125),
        "swapped bounds": features(high=-1.0, low=5.0),
        "a box of one point": features(high=-1.0),
        "unargmaxable in a box of one point": both(unargmaxable, features(high=-1.0)),
        "unargmaxable in a box turned over": both(unargmaxable, features(high=-1.0, low=5.0)),
        "a bound too many": features(high=[5.0] * 4),
        "a bound in decimal digits": features(high="5.0"),
        "a bound of a billion digits": features(high="1e999999999"),
        "no upper bound": features(high=None),
        "a box with a radius": features(radius=1.0),
        "a ball for the box": other_set(0, set="ball", radius=5.0),
        "a set that is not one": lambda e: setattr(e, "sets", [[]]),
        "a set without classes": lambda e: e.sets.append({"set": "unbounded"}),
        "classes as floats": array("named", lambda v: v.astype(float)),
        "points of another dimension": array("points32", lambda p: np.ascontiguousarray(p[:, :2])),
        "no counts": lambda e: e.arrays.pop("counts"),
        "two arrays in one place": lambda e: e.header.append(
            lambda said: said["radii"].update(said["margins"])
        ),
        "a hole between two arrays": packed(hole),
        "bytes behind the end": packed(lambda c: c + bytes(8)),
        "a shape of floats": said_of("margins", shape=[10.0]),
        "a shape of truths": said_of("points64", shape=[False, 3]),
        "a field more of an array": said_of("margins", note="believe me"),
        "a field twice": written(lambda t: '{"margins":{},' + t[1:]),
        "a text twice": written(lambda t: t.replace('"holds":', '"holds":"answers","holds":', 1)),
        "blanks behind the header": packed(
            lambda c: framed(parted(c)[0] + b" " * 8) + parted(c)[1]
        ),
        "a letter written otherwise": written(lambda t: t.replace("scan", "\\u0073can", 1)),
        "fields in another order": written(
            lambda t: json.dumps(dict(reversed(json.loads(t).items())), separators=(",", ":"))
        ),
        "a header nested deeply": written(lambda t: "[" * 10**5),
        "a header of ten thousand digits": written(lambda t: "4" * 10**4),
        "a header longer than the file": packed(lambda c: b"\xff" * 8 + c[8:]),
        "a file cut": packed(lambda c: c[:-8]),
        "an empty file": packed(lambda c: b""),
        "text": packed(lambda c: b"proven, believe me\n" * 9),
    },
    "box, no bias": {
        "a bound below zero without a bias": said(PROOFS, margins=-1e-9),
        "a fraction a little larger": put(0, 2, "10001/10000", 6),
    },
    "rmsnorm, no bias": {
        "a blocking class left out": weight(lambda p: p.pop()),
        "a weight a thousandth larger": weight(lambda p: p[0].__setitem__(2, p[0][2] * 1.001)),
    },
    "fractions": {
        "a zero denominator": put(0, 2, "1/0", 6),
        "a negative fraction": put(0, 2, "-1/2", 6),
        "a blocking class without weight, exactly": weight(lambda p: idle(p, "0/1"), 6),
        "a fraction not in lowest terms": weight(
            lambda p: p[0].__setitem__(2, doubled(p[0][2])), 6
        ),
        "a fraction with an underscore": put(0, 2, "1_0/3", 6),
        "a decimal number of a billion digits": put(0, 2, "1e999999999", 6),
        "a fraction of a million digits": put(0, 2, f"1/1{'0' * 10**6}", 6),
        "a true fraction of a million digits": slightly_more,
        "a number for a fraction": put(0, 2, 1, 6),
        "fractions exchanged": swapped((5,), "point"),
        "a fraction's margin too large": times(5, "margins", 1.001),
        "the number of another point": entry("at", 0, 1),
        "the number of a point below zero": entry("at", 0, -1),
    },
    "ball": {
        "a point outside the ball by one ulp": said(0, kinds=1, point=[2 * (1 + EPS), 0, 0]),
        "a ball of radius 0": features(radius=0.0),
        "a radius for each coordinate": features(radius=[2.0] * 3),
        "a larger ball": features(radius=99.0),
        "a smaller ball": features(radius=0.5),
    },
    "large": {
        "a margin of 5e-324, taken for one in larger units": said(
            POINT, kinds=1, point=[5e-324], margins=2.0**-74, radii=0.0
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
        "a gain too many": lambda e: e.sets[0]["gain"].append((1.0).hex()),
        "unargmaxable under gains and shifts too many": lambda e: (
            unargmaxable(e),
            [e.sets[0][name].append((1.0).hex()) for name in ("gain", "bias")],
        ),
        "centred as a number": features(centred=1),
        "a normalisation that is not centred": features(centred=False),
        "another shift": features(bias=[9.0] * 3),
        "larger gains": features(gain=[8.0, 4.0, 16.0]),
        "a radius of zero of a normalisation": features(radius=0.0),
        "an ulp outside the sphere": said(0, kinds=1, point=[3**0.5 + EPS, 0, 0]),
    },
    "rmsnorm": {"a normalisation that is centred": features(centred=True)},
    "undecided": {
        "an undecided margin that is not a number": said(4, margins=NAN),
        "a radius of an undecided class": said(4, radii=0.0),
        "a reason that is not a text": lambda e: e.lists["reasons"].__setitem__(0, None),
        "a reason missing": lambda e: e.lists["reasons"].pop(),
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
        "a further set that frees its classes": other_set(1, set="box", low=-9.0, high=9.0),
        "the scan's own set again": other_set(1, **SMALL),
        "the scan's own set again, bound by bound": other_set(
            1, set="box", low=[-0.0625] * 3, high=[0.0625] * 3
        ),
        "a set twice": other_set(1, set="ball", radius=0.0625),
        "further sets exchanged": lambda e: e.sets.reverse(),
        "a further set left out": lambda e: e.sets.pop(),
        "a further set of no classes": lambda e: e.sets.insert(1, {"set": "unbounded"}),
        "a winner filed as unargmaxable elsewhere": further(lambda c: c[0].update(order=[[1]])),
        "a class of a further set twice": further(lambda c: c.insert(1, c[0])),
        "a further bound lower than proven": further(
            lambda c: [one.update(margins=one["margins"] - 1) for one in c]
        ),
        "a further class given up": further(lambda c: c[0].update(kinds=UNDECIDED, reason="far")),
        "a further set before the scan's": entry("sets", 0, 1),
        "a radius over a further set": further(lambda c: c[0].update(radii=1.0)),
    },
    "answers": {
        "a further set among answers": lambda e: e.sets.append({"set": "unbounded"}),
        "a class of an order that does not exist": entry("named", 0, 10),
        "a class below zero in an order": entry("named", 0, -1),
        "a class twice in an order": lambda e: entry("named", 1, e.arrays["named"][2])(e),
        "an empty block": both(entry("sizes", 0, 0), array("named", lambda v: v[1:])),
        "an order without blocks": both(
            entry("blocks", 0, 0), array("sizes", lambda v: v[1:]), array("named", lambda v: v[1:])
        ),
        "an order of blocks that are not there": lambda e: entry(
            "blocks", -1, e.arrays["blocks"][-1] + 1
        )(e),
        "a block of classes that are not there": lambda e: entry(
            "sizes", -1, e.arrays["sizes"][-1] + 1
        )(e),
        "a rest that is neither": entry("rest", 0, 2),
        "a rest that does not follow": entry("rest", 4, 1),
        "a point for the reverse order": listed(
            lambda c: [one.update(order=one["order"][::-1]) for one in c]
        ),
        "an order that was turned": first(PROOFS, lambda c: c.update(order=c["order"][::-1])),
        "a comparison that is turned": weight(lambda p: p[0].reverse() or p[0].append(p[0].pop(0))),
        "an infinite margin of an order": said(0, margins=INF),
        "a margin of an order twice as large": times(0, "margins", 2),
        "an order with a twin": nth(0, kinds=TWIN, proof=[[0, 1, None]], margins=0.0),
        "a radius of an order": nth(1, radii=0.0),
        "two orders' points exchanged": swapped((0,), "point"),
        "answers filed as about experts": texts(holds="experts", k="2"),
    },
    "wide": {
        "blocking classes of another class of many": swapped((2,), "proof"),
        "points of other winners of many": swapped((0,), "point"),
    },
    "experts, one": {
        "the rest of an order ignored": impossible(1, [[1], [0]], 1, AROUND),
        "three blocks": impossible(1, [[1], [0], [2, 4, 5]], 0, AROUND),
    },
    "experts": {
        "one block and its rest": impossible(6, [[6]], 1, [[6, 0, 1.0], [6, 1, 7.0]]),
        "one blocking set where two are needed": of_experts(lambda g: g[0].pop()),
        "another expert's blocking sets": of_experts(lambda g: g.__setitem__(1, renamed(g[0], 1))),
        "two points of an expert": of_experts(lambda g: g[1].append(g[1][0])),
        "a point beside an open question": of_experts(
            lambda g: g[1].append(
                g[1][0] | {"kinds": UNDECIDED, "reason": "", "margins": INF, "radii": NAN}
            )
        ),
        "a larger k": texts(k="3"),
        "a smaller k": texts(k="1"),
        "k of zero": texts(k="0"),
        "k as a number": texts(k=2),
        "k written otherwise": texts(k="02"),
        "more than all experts": texts(k="12"),
        "experts out of order": of_experts(lambda g: g.reverse()),
        "an expert twice": of_experts(lambda g: g.append(g[1])),
        "an expert that does not exist": of_experts(
            lambda g: g.append(renamed([g[-1][0] | {"kinds": 4, "reason": ""}], 11))
        ),
        "no experts at all": of_experts(lambda g: g.clear()),
        "two experts in one order": of_experts(lambda g: g[1][0]["order"][0].append(0)),
    },
    "texts": {
        "one blocking set less": of_experts(lambda g: g[0].pop()),
        "another class as the blank": texts(blank="3"),
        "the class itself as the blank": texts(blank="1"),
        "a blank that does not exist": texts(blank="17"),
        "a negative blank": texts(blank="-1"),
        "a blank written otherwise": texts(blank="00"),
        "a blank as a number": texts(blank=0),
        "a blank without k": texts(k=None),
        "a larger k beside a blank": texts(k="4"),
        "a blank of answers": texts(holds="answers"),
    },
    "ceilings, level": {
        "a ceiling an ulp below a third": entry("ceilings", 0, float(np.nextafter(1 / 3, 0))),
        "a third, which float64 rounds down": entry("ceilings", 0, 1 / 3),
        "more than a third reached": entry("reached", 0, float(np.nextafter(1 / 3, 1))),
    },
    "ceilings, beyond": {
        "a sum of biases that overflows": array("ceilings", lambda v: v * 0 + 1e-304)
    },
    "ceilings, least": {
        "a tiny ceiling a thousandth lower": array("ceilings", lambda v: v * 0.999),
        "a tiny probability a thousandth larger": array(
            "reached", lambda v: np.minimum(1, v * 1.001)
        ),
    },
    "ceilings, box": {
        "ceilings two per cent lower": array("ceilings", lambda v: v * 0.98),
        "a ceiling of zero": entry("ceilings", 0, 0.0),
        "the least ceiling": entry("ceilings", 0, 5e-324),
        "a ceiling above one": entry("ceilings", 0, 1.5),
        "a ceiling that is not a number": entry("ceilings", 0, NAN),
        "more reached than is": array("reached", lambda v: np.minimum(1, v * 1.02 + 1e-6)),
        "a probability that is not a number": entry("reached", 0, NAN),
        "points far out": array("points64", lambda v: v * 1e6),
        "a point that is not a number": entry("points64", (0, 0), NAN),  # type: ignore[arg-type]
        "an infinite point": entry("points64", (0, 0), INF),  # type: ignore[arg-type]
        "a point that nobody uses": array("points64", grown),
        "a point that is not there": entry("at", 0, 10**6),
        "a class twice": entry("named", 1, 0),
        "classes out of order": array("named", lambda v: v[::-1].copy()),
        "a class that does not exist": entry("named", -1, 10),
        "a margin beside odds": entry("margins", 0, 1.0),
        "a radius beside odds": entry("radii", 0, 1.0),
        "a verdict beside odds": nth(0, kinds=UNDECIDED, reason="", margins=0.0),
        "one ceiling for all": array("ceilings", lambda v: v[:1]),
        "a ceiling too many": array("ceilings", grown),
        "no ceilings at all": listed(lambda c: c.clear()),
        "a wider box": features(high=50.0),
        "two sets": lambda e: e.sets.append({"set": "unbounded"}),
        "ceilings filed as a scan": texts(holds="scan"),
        "ceilings filed as answers": texts(holds="answers"),
    },
    "ceilings, ball": {"a larger ball": features(radius=99.0)},
    "ceilings, layernorm": {"larger gains": features(gain=[8.0, 4.0, 16.0])},
}
CORPUS = {
    f"{of}: {wrong}": Forgery(wrong, of, edit)
    for of, edits in FORGERIES.items()
    for wrong, edit in edits.items()
}
