"""Checks the evidence of a scan (evidence.npz) or of other questions (answers.npz) in exact
arithmetic: Python's integers and fractions; NumPy only reads arrays; nothing of softgeom.

    python tools/check_evidence.py scan/evidence.npz layer.npz [--only unargmaxable] [--sample 50]

layer.npz holds W and, if there is one, b. docs/certificates.md says what the fields mean and why
each inequality is a proof. Everything is one question: can the logits obey an order, blocks of
classes, each above the next? A class of a scan stands above all others, and its captors are
comparisons with it.
"""

import argparse
import hashlib
import io
import json
import math
import random
import re
import struct
import sys
import warnings
import zipfile
from fractions import Fraction
from itertools import islice
from operator import mul
from pathlib import Path
from typing import NamedTuple

import numpy as np

KINDS = ("point", "point", "weights", "twin", "nothing", "point", "weights")
EXACT = (5, 6)  # of these, those in fractions
VERDICTS = {
    "scan": {"point": "argmaxable", "weights": "unargmaxable", "twin": "tied"},
    "answers": {"point": "possible", "weights": "impossible"},
}
EXPERT_VERDICTS = ("possible", "impossible", "undecided")
HEAD = {"format", "holds", "layer", "features", "methods", "reasons", "exact_points"}
HEAD |= {"exact_weights", "sections"}
SECTION = {"features", "methods", "reasons", "exact_points", "exact_weights"}
EVERY = {"kinds": "|i1", "steps": "<i8", "margins": "<f8", "points32": "<f4", "points64": "<f8"}
EVERY |= {"counts": "<i8", "below": "<i8", "weights": "<f8"}
ORDERS = {"blocks": "<i8", "rest": "|i1", "sizes": "<i8", "named": "<i8", "above": "<i8"}
EXPERTS = {"experts": "<i8", "expert_verdicts": "|i1", "expert_counts": "<i8"}
ARRAYS = {
    "scan": EVERY | {"classes": "<i8", "radii": "<f8", "twins": "<i8"},
    "answers": EVERY | ORDERS,
    "experts": EVERY | ORDERS | EXPERTS,
}
# Each feature set in words, and its fields.
FEATURES = {
    "box": ("low <= x <= high", {"low", "high"}),
    "ball": ("||x|| <= radius", {"radius"}),
    "unbounded": ("every x", set()),
    "ellipsoid": ("x = bias + gain * u, ||u|| <= radius", {"gain", "bias", "radius", "centred"}),
}
LARGE = 2**31  # bytes from which on a ZIP has places and sizes in extra fields
LONGEST = 10**6  # characters of a fraction
MOST_BRANCHES = 10**6  # of the search for experts that meet all blocking sets


class RefusedError(Exception):
    """What is wrong, in one sentence."""


def demand(condition, sentence):
    if not condition:
        raise RefusedError(sentence)


# ---- Reading: the file holds what it declares, and nothing else


def members(path):
    """The bytes of each array: stored as they are, one after the other, then their list, then the
    end; so whoever reads from the front, or by another end, finds the same under the same names.
    """
    content, place, behind = Path(path).read_bytes(), 0, 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        listed = archive.infolist()
        demand(len({one.filename for one in listed}) == len(listed), "a member occurs twice")
        for one in listed:
            # what stands before it, but for version and time
            said = content[place + 6 : place + 10] + content[place + 14 : place + 14 + 2**8]
            front = next((known for known in fronts(one) if said.startswith(known)), b"")
            stored = one.compress_type == zipfile.ZIP_STORED and one.compress_size == one.file_size
            there = front and stored and one.header_offset == place
            place += 10 + len(front) + one.file_size
            behind += 46 + len(one.filename) + len(one.extra)
            # another field may hold another name
            sizes = (
                place >= LARGE and one.extra[:2] == b"\1\0" and len(one.extra) == 4 + one.extra[2]
            )
            alone = one.filename == one.orig_filename and (sizes or not one.extra)
            named = alone and one.filename.endswith(".npy")
            demand(there and named, f"{one.filename} is stored or named in a second way")
        rest = len(content) - archive.start_dir - behind
        ends = (22, 98) if place >= LARGE else (22,)
        demand(place == archive.start_dir and rest in ends, "it holds more than its members")
        return {one.filename.removesuffix(".npy"): archive.read(one) for one in listed}


def fronts(one):
    """The ways to write flags, method, sum, both sizes, name and long sizes before a member."""
    n, name = one.file_size, one.filename.encode()
    long = struct.pack("<HHQQ", 1, 16, n, n)
    for size, more in ((n, b""), (n, long), (2**32 - 1, long)):
        if size < 2**32:
            numbers = struct.pack("<4L2H", 0, one.CRC, size, size, len(name), len(more))
            yield numbers + name + more


def array(content, name, dtype):
    """The numbers of a .npy file: of this dtype, row by row, to the last byte. Text is `<U`."""
    stream = io.BytesIO(content)
    demand(np.lib.format.read_magic(stream) == (1, 0), f"{name} is of another version")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of headers written otherwise
        shape, fortran, found = np.lib.format.read_array_header_1_0(stream)
    told = found.str.rstrip("0123456789") if dtype == "<U" else found.str
    demand(told == dtype and not fortran, f"{name} is {found.str}, not {dtype}, or by columns")
    said = content[10 : stream.tell()].decode().rstrip(" \n")
    plain = f"{{'descr': '{found.str}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    demand(said == plain, f"{name} says otherwise what it is")
    size = math.prod(shape) * found.itemsize
    demand(len(content) == stream.tell() + size, f"{name} is not as long as it says")
    if dtype == "<U":
        demand(shape == (), f"{name} has the shape {shape}")
        return content[stream.tell() :].decode("utf-32-le")
    return np.frombuffer(content[stream.tell() :], found).reshape(shape)


def read(path, d):
    """The heads of a file and of its sections, and the arrays of each. What is not finite never
    becomes a fraction.
    """
    held = members(path)
    written = array(held.pop("head"), "head", "<U")
    head = json.loads(written)
    demand(json.dumps(head, sort_keys=True) == written, "its head is no canonical JSON")
    demand(type(head["format"]) is int and head["format"] == 4, "it is not of format 4")
    holds = head["holds"]
    more = {"k", "expert_methods"} if holds == "experts" else set()
    demand(head.keys() == HEAD | more, "its head has other fields")
    sections = head["sections"]
    demand(type(sections) is list and (holds == "scan" or not sections), "its sections are none")
    demand(all(type(one) is dict and one.keys() == SECTION for one in sections), "of no kind")
    before = ["", *(f"section{n}_" for n in range(1, len(sections) + 1))]
    expected = {start + name: dtype for start in before for name, dtype in ARRAYS[holds].items()}
    demand(held.keys() == expected.keys(), "it has other arrays")
    arrays = {name: array(held[name], name, dtype) for name, dtype in expected.items()}
    for name, values in arrays.items():
        shape = (len(values), d) if "points" in name else (values.size,)
        demand(values.shape == shape, f"{name} has the shape {values.shape}")
    heads = [head, *(one | {"holds": "scan"} for one in sections)]
    columns = [{name: arrays[start + name] for name in ARRAYS[holds]} for start in before]
    return [*zip(heads, columns, strict=True)]


class Supply:
    """Columns, handed out from the front; in the end nothing may be left."""

    def __init__(self, columns):
        self.columns, self.used = columns, dict.fromkeys(columns, 0)

    def take(self, name, count):
        start = self.used[name]
        self.used[name] += count
        found = self.columns[name][start : start + count]
        demand(0 <= count == len(found), f"there are too few {name}")
        return found if isinstance(found, list) else found.tolist()

    def one(self, name):
        return self.take(name, 1)[0]

    def demand_spent(self):
        left = [name for name, values in self.columns.items() if self.used[name] < len(values)]
        demand(not left, f"{left[:1]} holds more than the claims need")


def plain(method):
    """Whether this is a name that makes no line and no formula of its own in a table."""
    return re.fullmatch("[a-z ]{0,40}", method)


def rational(stored):
    """Numerator and denominator in hexadecimal, in lowest terms."""
    demand(len(stored) <= LONGEST, "a fraction is too long")
    value = Fraction(*(int(part, 16) for part in stored.split("/")))
    demand(f"{value.numerator:x}/{value.denominator:x}" == stored, "a fraction is not canonical")
    return value


class Claim(NamedTuple):
    """An order (for a scan: a class above the rest) with what is said about it, and the evidence:
    a point; pairs of classes, the first of which is to be ahead, with weights; a twin; or None.
    """

    name: object
    level: dict  # the block of each class that is named
    rest: object  # the block of all others, or None
    way: str
    margin: float
    radius: float
    found: object


def claims(head, arrays, classes, d):
    """Every claim of a file."""
    lists = ("methods", "reasons", "exact_points", "exact_weights")
    lists += ("expert_methods",) * (head["holds"] == "experts")
    demand(all(type(head[name]) is list for name in lists), "a list of its head is none")
    supply = Supply(
        {name: arrays[name] for name in arrays.keys() - EXPERTS.keys() - {"kinds"}}
        | {name: head[name] for name in lists[:4]}
    )
    scan, scanned = head["holds"] == "scan", -1
    for code in arrays["kinds"].tolist():
        demand(0 <= code < len(KINDS) and (scan or code != 3), f"there is no kind {code}")
        way, margin, radius = KINDS[code], supply.one("margins"), math.nan
        demand(plain(supply.one("methods")), "a method is no plain name")
        demand(not math.isnan(margin), "a margin is no number")
        demand(supply.one("steps") >= 0, "steps are negative")
        if scan:
            radius, name = supply.one("radii"), supply.one("classes")
            demand(scanned < name, "a class occurs twice, or out of order")
            demand(radius >= 0 if way == "point" else math.isnan(radius), "a radius is amiss")
            scanned, blocks, rest = name, [[name]], 1
        else:
            sizes = supply.take("sizes", supply.one("blocks"))
            name = blocks = [supply.take("named", size) for size in sizes]
            rest = supply.one("rest")
            demand(rest in (0, 1) and blocks and all(blocks), "a block of an order is empty")
        level = {i: n for n, block in enumerate(blocks) for i in block}
        demand(all(0 <= i < classes for i in level), "a class is none of the layer's")
        demand(len(level) == sum(map(len, blocks)), "an order names a class twice")
        rest, found = len(blocks) if rest else None, None
        if way == "point":
            one = supply.one(("points32", "points64")[code] if code < 2 else "exact_points")
            found = [*map(rational, one)] if code in EXACT else one
            demand(len(found) == d, "a point has another number of coordinates")
        elif way == "weights":
            size = supply.one("counts")
            behind = supply.take("below", size)  # refuses a size that is none, before it is used
            ahead = [name] * size if scan else supply.take("above", size)
            pairs = [*zip(ahead, behind, strict=True)]
            exact = code in EXACT
            found = supply.one("exact_weights") if exact else supply.take("weights", size)
            found = pairs, [*map(rational if exact else Fraction, found)]
            demand(pairs and pairs == sorted(set(pairs)), "its comparisons are not in order")
            valid = len(found[1]) == size and min(found[1]) > 0
            demand(valid, "a weight is missing or not positive")
            steps = (a in level and level.get(b, rest) == level[a] + 1 for a, b in pairs)
            inside = all(0 <= b < classes for _, b in pairs)
            demand(inside and all(steps), "the order asks for no such comparison")
        elif way == "twin":
            found = supply.one("twins")
            demand(0 <= found < classes and found != name, "a twin is no other class")
        else:
            demand(type(supply.one("reasons")) is str, "a reason is no text")
        yield Claim(name, level, rest, way, margin, radius, found)
    supply.demand_spent()


# ---- The feature set


class Features:
    """The feature set: where x may lie, in exact arithmetic."""

    def __init__(self, stored, d):
        self.kind, self.d, self.stored = stored["set"], d, stored
        self.words, fields = FEATURES[self.kind]
        demand(stored.keys() == fields | {"set"}, "its feature set has other fields")
        self.centred = stored.get("centred", False)
        demand(type(self.centred) is bool, "centred is neither true nor false")
        self.floats = {name: self.numbers(name) for name in sorted(fields - {"centred"})}
        exact = {name: [*map(Fraction, values)] for name, values in self.floats.items()}
        self.low, self.high = exact.get("low", []), exact.get("high", [])
        self.gain, self.bias = exact.get("gain"), exact.get("bias")
        self.radius = exact.get("radius", [Fraction(1)])[0]
        bounds = zip(self.low, self.high, strict=True)
        demand(all(a < b for a, b in bounds), "a lower bound is not below the upper one")
        demand(self.radius > 0, "its radius is not positive")
        self.meaning = self.kind, self.centred, self.floats

    def numbers(self, name):
        """A field as d floats; a radius as one."""
        one = isinstance(self.stored[name], str)
        demand(one == (name == "radius") or self.kind == "box", f"{name} is misshapen")
        given = [self.stored[name]] if one else self.stored[name]
        values = [float.fromhex(value) for value in given]
        canonical = all(map(math.isfinite, values)) and [v.hex() for v in values] == given
        demand(canonical, f"{name} of its feature set is not finite, or not canonical")
        demand(one or len(values) == self.d, f"{name} has {len(values)} entries, not {self.d}")
        return values * self.d if one and name != "radius" else values

    def __str__(self):
        """In words and numbers, lists by their ends; no two have the same SHA-256."""
        ends = (f", {name} {min(v)!r} to {max(v)!r}" for name, v in self.floats.items())
        digest = hashlib.sha256(json.dumps(self.stored, sort_keys=True).encode()).hexdigest()
        centred = ", u less its mean" * self.centred
        return f"{self.words}{centred} in R^{self.d}{''.join(ends)}; SHA-256 {digest}"

    def x(self, z):
        """The feature vector of a stored point, or None when that lies outside."""
        if self.kind == "box":
            inside = all(map(lambda a, v, b: a <= v <= b, self.low, z, self.high))
            return z if inside else None
        if self.kind != "unbounded" and sum(v * v for v in z) > self.radius**2:
            return None
        if self.kind != "ellipsoid":
            return z
        mean = sum(z) / self.d if self.centred else 0
        return [c + g * (v - mean) for c, g, v in zip(self.bias, self.gain, z, strict=True)]

    def difference(self, W, bias, a, b):
        """Effective row and bias of class a less those of class b."""
        v = [Fraction(p) - Fraction(q) for p, q in zip(W[a].tolist(), W[b].tolist(), strict=True)]
        c = bias[a] - bias[b]
        if self.kind == "ellipsoid":
            c, v = c + sum(map(mul, self.bias, v)), list(map(mul, self.gain, v))
            mean = sum(v) / self.d if self.centred else 0
            v = [value - mean for value in v]
        return v, c

    def held(self, v, c, error=None):
        """Whether max of v.z + c <= 0, for effective v; over a box also for every v within the
        error.
        """
        if self.kind == "box":
            ends = zip(self.low, self.high, v, error or [0] * len(v), strict=True)
            reach = (max(x * (p + e) for x in (a, b) for e in (-q, q)) for a, b, p, q in ends)
            return sum(reach, c) <= 0
        free = self.kind == "unbounded" or error  # then v has to vanish
        return c <= 0 and (not any(v) if free else self.radius**2 * sum(a * a for a in v) <= c * c)


# ---- Points


def whole(values):
    """Rationals as integers over one denominator."""
    ratios = [value.as_integer_ratio() for value in values]
    denominator = math.lcm(*(d for _, d in ratios))
    return [n * (denominator // d) for n, d in ratios], denominator


def least_margins(W, bias, asked, features):
    """The exact smallest difference that each order demands at its point, -inf outside the
    feature set; and the squared length of each row. One pass over the rows.
    """
    points, squares = [], []
    for claim in asked:
        x = features.x([*map(Fraction, claim.found)])
        points += [] if x is None else [(claim, {}, {}, *whole(x))]
    for i, (row, scale) in enumerate(whole(row.tolist()) for row in W) if points else ():
        squares.append(Fraction(sum(map(mul, row, row)), scale**2))
        for claim, low, high, x, unit in points:
            n = claim.level.get(i, claim.rest)
            if n is not None:
                y = Fraction(sum(map(mul, x, row)), unit * scale) + bias[i]
                low[n], high[n] = min(low.get(n, y), y), max(high.get(n, y), y)
    least = {
        id(claim): min((low[n] - high[n + 1] for n in low if n + 1 in high), default=math.inf)
        for claim, low, high, *_ in points
    }
    return [least.get(id(claim), -math.inf) for claim in asked], squares


def root(square):
    """A rational just above the square root."""
    power = (160 + square.denominator.bit_length() - square.numerator.bit_length()) // 2
    unit = Fraction(2) ** power
    return Fraction(math.isqrt(int(square * unit**2)) + 1) / unit if square else square


def reached(claim, least, squares):
    """Whether margin and radius are at most what the point reaches; of the radius as
    docs/certificates.md defines it. The smallest float only claims to be positive.
    """
    if not 0 < claim.margin <= least and not (claim.margin == 5e-324 and least > 0):
        return False
    if math.isnan(claim.radius) or least == math.inf:  # an order, or nothing to compare
        return True
    span = root(squares[claim.name]) + root(max(squares))
    return not span or (math.isfinite(claim.radius) and Fraction(claim.radius) * span <= least)


# ---- Weights


def unargmaxable(W, bias, pairs, weights, margin, features):
    """How the weights prove that the smallest difference of the pairs is at most `margin` <= 0:
    "room", "simplex" or None.
    """
    rows, C = zip(*(features.difference(W, bias, a, b) for a, b in pairs), strict=True)
    (L, unit), (flat, scale) = whole(weights), whole([a for row in rows for a in row])
    C = [c - margin for c in C]
    D = [flat[n : n + features.d] for n in range(0, len(flat), features.d)]  # (k, d), over scale
    v = [sum(map(mul, L, column)) for column in zip(*D, strict=True)]  # over scale * unit
    c = sum(map(mul, C, L)) / unit
    if features.held([Fraction(a, scale * unit) for a in v], c):
        return "room"
    # What must vanish, for weights that must exist: coordinates in which nearly everything cancels.
    columns = [*zip(*D, strict=True)]
    tiny = [
        10**6 * abs(a) <= sum(map(mul, L, map(abs, column)))
        for a, column in zip(v, columns, strict=True)
    ]
    K = [k for k, column in enumerate(columns) if tiny[k] and any(column)]
    # centred rows sum to 0: the last equality follows from the others
    K = K[:-1] if features.centred else K
    # A: rows of order one, D_k / 2^e_k and ones, of as many captors; over `scale * 2^(lowest e)` in
    # integers.
    chosen = sorted(range(len(L)), key=L.__getitem__)[-len(K) - 1 :]
    powers = [max(map(abs, columns[k])).bit_length() for k in K]
    top = max(powers, default=0)
    A = [[D[j][k] << (top - e) for j in chosen] for k, e in zip(K, powers, strict=True)]
    A += [[1 << top] * len(chosen)]
    R = len(chosen) == len(A) and inverse([[a / (1 << top) for a in row] for row in A])
    loss = Fraction(max(identity_errors(A, R, 1 << (top + 60))), 1 << (top + 60)) if R else 1
    if loss >= 1:
        return None
    misses = (Fraction(abs(v[k]), unit << e) for k, e in zip(K, powers, strict=True))
    miss = max(misses, default=0)
    # How far the chosen weights may move: |R| times the miss, over 1 - loss.
    moves = [
        (Fraction(sum(map(abs, row)), 1 << 60) * miss / (1 - loss), j)
        for row, j in zip(R, chosen, strict=True)
    ]
    if any(change >= weights[j] for change, j in moves):
        return None
    c += sum(change * abs(C[j]) for change, j in moves)
    c = c if any(a > 0 for a in C) else min(c, 0)  # then no weights make the sum positive
    rest = [0 if small else Fraction(a, scale * unit) for a, small in zip(v, tiny, strict=True)]
    moved = [
        0 if small else sum(e * Fraction(abs(D[j][k]), scale) for e, j in moves)
        for k, small in enumerate(tiny)
    ]
    return "simplex" if features.held(rest, c, moved) else None


def inverse(T):
    """An approximate inverse of T in units of 2^-60, by Gauss and Jordan; None if there is none."""
    M = [row + [float(i == j) for j in range(len(T))] for i, row in enumerate(T)]
    for k in range(len(M)):
        best = max(range(k, len(M)), key=lambda i: abs(M[i][0]))
        M[k], M[best] = M[best], M[k]
        if not (pivot := M[k][0]):
            return None
        top = M[k] = [a / pivot for a in M[k][1:]]  # the first column is done with
        M = [
            row if row is top else [a - row[0] * b for a, b in zip(row[1:], top, strict=True)]
            for row in M
        ]
    return [[round(a * 2.0**60) for a in row] for row in M]


def identity_errors(A, R, one):
    """Row sums of |I - A R|, exactly. Rows of R are packed into long integers: a product is a few
    of their sums.
    """
    largest = [max(max(map(abs, row)) for row in M) for M in (A, R)]
    bits, n = (len(A) * largest[0] * largest[1] + one).bit_length() + 1, range(len(A))
    packed = [sum(a << (bits * q) for q, a in enumerate(row)) for row in R]
    halves = sum(1 << (bits * q + bits - 1) for q in n)  # added, so that no digit is negative
    for i, row in enumerate(A):
        total = sum(map(mul, row, packed)) - (one << (bits * i)) + halves
        yield sum(abs((total >> (bits * q)) % (1 << bits) - (1 << (bits - 1))) for q in n)


def prove(W, bias, features, claim):
    """How a twin or weights prove what is said; None if they do not."""
    if claim.way == "twin":
        row, shift = features.difference(W, bias, claim.name, claim.found)
        return None if any(row) or shift or claim.margin else "twin"
    if not -math.inf < claim.margin <= 0:
        return None
    return unargmaxable(W, bias, *claim.found, Fraction(claim.margin), features)


# ---- Experts


def met(blocking_sets, size, left=None):
    """Whether at most `size` experts can be chosen so that each blocking set holds one of them:
    never where more blocking sets than that are disjoint.
    """
    left = iter(range(MOST_BRANCHES)) if left is None else left
    demand(next(left, None) is not None, "too many experts may meet the blocking sets of another")
    apart = []
    for blocking_set in sorted(blocking_sets, key=len):
        if all(blocking_set.isdisjoint(other) for other in apart):
            apart.append(blocking_set)
    return len(apart) <= size and (
        not blocking_sets
        or any(met([p for p in blocking_sets if e not in p], size - 1, left) for e in apart[0])
    )


def check_experts(head, arrays, everything, classes):
    """Each expert's verdict follows from its orders."""
    k, claimed = head["k"], iter(everything)
    demand(type(k) is int and 1 <= k <= classes, "k is no number of experts")
    columns = [arrays[name].tolist() for name in EXPERTS] + [head["expert_methods"]]
    listed = columns[0] and columns[0] == sorted(set(columns[0]))
    demand(listed, "no expert is there, or one occurs twice, or out of order")
    for expert, verdict, count, method in zip(*columns, strict=True):
        group = list(islice(claimed, count))
        about_it = all(
            claim.name[0] == [expert] and claim.rest is None and len(claim.name) < 3
            for claim in group
        )
        demand(plain(method), f"the method of expert {expert} is no plain name")
        demand(about_it, f"an order of expert {expert} is about another")
        ways, blocking_sets = (
            [claim.way for claim in group],
            [{*claim.level} - {expert} for claim in group],
        )
        demand(0 <= expert < classes and 0 <= verdict < 3, "there is no such expert or verdict")
        if verdict == 0:
            follows = ways == ["point"] and classes - 1 - len(blocking_sets[0]) < k
        elif verdict == 1:
            follows = {*ways} == {"weights"} and not met(blocking_sets, k - 1)
        else:
            follows = "point" not in ways
        told = EXPERT_VERDICTS[verdict]
        demand(follows, f"that expert {expert} is {told} does not follow from its orders")
    demand(next(claimed, None) is None, "an order belongs to no expert")
    said = [f"{columns[1].count(n)} {told}" for n, told in enumerate(EXPERT_VERDICTS)]
    return f"experts among the top k = {k}: {', '.join(said)}"


# ---- The whole file


def digest(values):
    """Shape, dtype and SHA-256 of the little-endian bytes, row by row."""
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    found = hashlib.sha256(values.tobytes()).hexdigest()
    return {"shape": list(values.shape), "dtype": values.dtype.str, "sha256": found}


def read_layer(path):
    """W, b (or None) and what identifies them."""
    with np.load(path, allow_pickle=False) as file:
        demand({"W"} <= {*file.files} <= {"W", "b"}, f"{path} does not hold W and b alone")
        W, b = file["W"], file["b"] if "b" in file.files else None
    for values in [W] if b is None else [W, b]:
        demand(values.dtype.kind == "f" and values.dtype.itemsize <= 8, f"{path} holds no floats")
        demand(np.isfinite(values).all(), f"{path} holds a NaN or an infinite number")
    demand(W.ndim == 2 and W.size and (b is None or b.shape == W.shape[:1]), "W or b is misshapen")
    return W, b, {"W": digest(W), "b": None if b is None else digest(b)}


def check(options):
    """Check a file and print what is proven."""
    W, b, identity = read_layer(options.layer)
    (head, arrays), *sections = read(options.evidence, W.shape[1])
    ours = json.dumps(identity, sort_keys=True)
    demand(json.dumps(head["layer"], sort_keys=True) == ours, "it belongs to another layer")
    digest = hashlib.sha256(ours.encode()).hexdigest()
    print(f"layer: {len(W)} classes x {W.shape[1]} features, {digest}")
    everything, d = check_part(options, W, b, head, arrays), W.shape[1]
    sets = [Features(head["features"], d).meaning]
    lost = [claim.name for claim in everything if claim.way == "weights"]
    lost = set(lost if sections else ())
    for part, columns in sections:
        meaning = Features(part["features"], d).meaning
        demand(meaning not in sets and columns["kinds"].size, "a section says nothing new")
        sets.append(meaning)
        print("whose unargmaxable classes are so over another set, too:")
        found = check_part(options, W, b, part, columns)
        useful = all(claim.way == "weights" and claim.name in lost for claim in found)
        demand(useful, "a section is not about unargmaxable classes of the scan")


def check_part(options, W, b, head, arrays):
    """Check the claims over one feature set, say what is proven, and return them."""
    features = Features(head["features"], W.shape[1])
    everything = list(claims(head, arrays, len(W), W.shape[1]))
    print(f"feature set: {features}")
    if head["holds"] == "experts":
        print(check_experts(head, arrays, everything, len(W)))
    verdicts, groups = VERDICTS.get(head["holds"], VERDICTS["answers"]), {}
    for claim in everything:
        groups.setdefault(verdicts.get(claim.way, "undecided"), []).append(claim)
    counts = [f"{len(some)} {verdict}" for verdict, some in groups.items()]
    print(f"{head['holds']}: {', '.join(counts)}")
    asked = [some for verdict, some in groups.items() if options.only in (None, verdict)]
    draw = random.Random(options.seed).sample
    chosen = [claim for some in asked for claim in draw(some, min(len(some), options.sample))]
    bias = [Fraction(0)] * len(W) if b is None else [*map(Fraction, b.tolist())]
    least, squares = least_margins(W, bias, [c for c in chosen if c.way == "point"], features)
    least, ways, failed = iter(least), {}, []
    for claim in chosen:
        if claim.way == "point":
            how = "witness" if reached(claim, next(least), squares) else None
        else:
            how = "nothing" if claim.way == "nothing" else prove(W, bias, features, claim)
        ways[how] = ways.get(how, 0) + 1
        failed += [claim.name] * (how is None)
    drawn = f" (drawn with --seed {options.seed})" if len(chosen) < len(everything) else ""
    print(f"looked at {len(chosen)} of {len(everything)}{drawn}, proven by: {ways}")
    demand(not failed, f"NOT proven: {len(failed)}, the first {failed[:20]}")
    return everything


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("evidence")
    parser.add_argument("layer")
    known = [verdict for some in VERDICTS.values() for verdict in some.values()]
    parser.add_argument("--only", choices=known, help="claims of one verdict")
    parser.add_argument("--sample", type=int, default=sys.maxsize, help="so many of each verdict")
    parser.add_argument("--seed", type=int, help="repeats a sample; each prints its own")
    options = parser.parse_args()
    end(check, options, options.evidence)


def end(check, options, path):
    """Check a file with a fresh seed unless one is given; what is wrong with it, as the last
    words.
    """
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(2**64)
    try:
        check(options)
    except RefusedError as error:
        sys.exit(f"{path}: {error}.")
    except Exception as error:  # whatever a damaged file makes of a reader
        told = " ".join(str(error).split())[:100]
        sys.exit(f"{path} or the layer is damaged ({type(error).__name__}: {told}).")


if __name__ == "__main__":
    main()
