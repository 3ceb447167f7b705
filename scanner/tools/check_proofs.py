"""Checks a file of proofs (scan, answers, experts or ceilings) in exact arithmetic: integers and
fractions of Python's standard library, and nothing of softgeom.

    python tools/check_proofs.py FOLDER/evidence.safetensors layer.safetensors [--only unargmaxable]

The layer file holds W and, if there is one, b. docs/certificates.md says what the columns mean and
why each inequality is a proof. Everything is one question: can the logits obey an order, blocks of
classes, each above the next? A class of a scan stands above all others. `--sample 50` checks that
many claims of each verdict, drawn at random.
"""

import argparse
import hashlib
import json
import math
import mmap
import os
import random
import re
import struct
import sys
from collections import defaultdict
from fractions import Fraction
from itertools import groupby, pairwise
from operator import mul
from typing import NamedTuple

FORMAT = "softgeom proofs 5"
KINDS = ("point", "point", "weights", "twin", "nothing", "point", "weights", "odds")
EXACT = (5, 6)  # of these, those in fractions
VERDICTS = {
    "scan": {"point": "argmaxable", "weights": "unargmaxable", "twin": "tied"},
    "answers": {"point": "possible", "weights": "impossible"},
    "experts": {"point": "possible", "weights": "impossible"},
    "ceilings": {"odds": "ceilings"},
}
DTYPES = {"F64": "d", "I64": "q", "F32": "f", "F16": "e", "I8": "b", "U8": "B"}
COLUMNS = {
    "I64": "sets blocks sizes named steps at counts above below",
    "I8": "rest kinds",
    "F64": "margins radii points64 weights ceilings reached",
    "F32": "points32",
    "U8": "fractions methods reasons tokens",
}
ARRAYS = {name: dtype for dtype, names in COLUMNS.items() for name in names.split()}
# Each feature set in words, and its fields.
FEATURES = {
    "box": ("low <= x <= high", {"low", "high"}),
    "ball": ("||x|| <= radius", {"radius"}),
    "unbounded": ("every x", set()),
    "ellipsoid": ("x = bias + gain * u, ||u|| <= radius", {"gain", "bias", "radius", "centred"}),
}
LONGEST = 10**6  # characters of a fraction
LONGEST_HEADER = 2**20  # bytes
LARGEST = 2**31  # bytes of an array other than points, whose number the kinds say
MOST_BRANCHES = 10**6  # of the search for experts that meet all blocking sets


class RefusedError(Exception):
    """What is wrong, in one sentence."""


def demand(condition, sentence):
    if not condition:
        raise RefusedError(sentence)


# ---- Reading: 8 bytes of length, a JSON header, the numbers; there is one way to write them


class Column:
    """An array in a file: numbers are read from the front, when they are asked for."""

    def __init__(self, content, dtype, shape, start):
        self.content, self.code, self.place = content, DTYPES[dtype], start
        self.dtype, self.shape, self.left = dtype, shape, math.prod(shape)

    def take(self, count):
        """The next numbers."""
        demand(0 <= count <= self.left, "an array holds less than the claims need")
        found = struct.unpack_from(f"<{count}{self.code}", self.content, self.place)
        self.place += count * struct.calcsize(self.code)
        self.left -= count
        return list(found)

    def all(self):
        return self.take(self.left)

    def row(self, i):
        """Row i of a matrix, whatever was read."""
        size = self.shape[1]
        place = self.place + i * size * struct.calcsize(self.code)
        return struct.unpack_from(f"<{size}{self.code}", self.content, place)


def read_container(path, canonical=True):
    """The texts and the columns of a file; of proofs the header is the only one possible."""
    size = os.stat(path).st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        demand(size >= 8 and length <= min(LONGEST_HEADER, size - 8), "it is cut short")
        header = file.read(length)
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    listed = json.loads(header)
    demand(type(listed) is dict, "its header is not a list of arrays")
    texts = listed.pop("__metadata__", None if canonical else {})
    demand(type(texts) is dict, "it has no texts")
    demand(all(type(text) is str for text in texts.values()), "a text of the header is not one")
    again, columns, place = {"__metadata__": texts}, {}, 0
    width = {name: struct.calcsize(DTYPES[one["dtype"]]) for name, one in listed.items()}
    for name in sorted(listed, key=lambda name: (-width[name], name)):
        dtype, shape = listed[name]["dtype"], listed[name]["shape"]
        demand(all(type(n) is int and 0 <= n < 2**48 for n in shape), f"{name} has no shape")
        place = place if canonical else listed[name]["data_offsets"][0]
        end = place + math.prod(shape) * width[name]
        demand(0 <= place <= end <= size - 8 - length, f"{name} lies outside the file")
        again[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, end]}
        columns[name] = Column(content, dtype, shape, 8 + length + place)
        place = end
    if not canonical:
        return texts, columns
    plain = json.dumps(again, sort_keys=True, separators=(",", ":")).encode()
    demand(plain + b" " * (-len(plain) % 8) == header, "its header is not written as it must be")
    demand(size == 8 + length + place, "it is not as long as its arrays")
    return texts, columns


def listed_texts(column, name):
    """A list of texts, written as JSON."""
    demand(column.left >= 2 and column.content[column.place] == ord("["), f"{name} is not a list")
    written = bytes(column.all()).decode()
    found = json.loads(written)
    demand(json.dumps(found) == written, f"{name} is not canonical")
    demand(all(type(one) is str for one in found), f"{name} is not a list of texts")
    return found


def read(path, fingerprint, d):
    """The texts of a file of proofs, and its columns, of which those of text are lists."""
    texts, columns = read_container(path)
    demand(texts.get("format") == FORMAT, f"its format is not {FORMAT!r}")
    demand(texts.get("holds") in VERDICTS, "it holds something unknown")
    fields = {"format", "holds", "layer", "features", *("k" * (texts["holds"] == "experts"))}
    demand("readout" not in texts, "its probabilities are not a plain softmax: not checked here")
    demand(texts.keys() == fields, "its header has other fields")
    demand(texts["layer"] == fingerprint, "it belongs to another layer")
    demand({name: one.dtype for name, one in columns.items()} == ARRAYS, "it has other arrays")
    for name, column in columns.items():
        flat = len(column.shape) == 1 and column.left * struct.calcsize(column.code) <= LARGEST
        fits = column.shape[1:] == [d] if "points" in name else flat
        demand(fits, f"{name} has the shape {column.shape}")
    for name in COLUMNS["U8"].split():
        columns[name] = listed_texts(columns[name], name)
    return texts, columns


def rational(stored):
    """Numerator and denominator in hexadecimal, in lowest terms."""
    demand(len(stored) <= LONGEST, "a fraction is too long")
    value = Fraction(*(int(part, 16) for part in stored.split("/")))
    demand(f"{value.numerator:x}/{value.denominator:x}" == stored, "a fraction is not canonical")
    return value


class Claim(NamedTuple):
    """An order with what is said about it, and the evidence: a point; pairs of classes, the first
    of which is to be ahead, with weights; a twin; the number of a point; or None.
    """

    set: int  # the number of its feature set
    blocks: list
    level: dict  # the block of each class that is named
    rest: object  # the block of all others, or None
    way: str
    margin: float
    radius: float
    found: object


class Supply:
    """Columns and lists, handed out from the front; in the end nothing may be left."""

    def __init__(self, columns):
        self.columns = columns
        self.texts = {name: iter(columns[name]) for name in ("fractions", "methods", "reasons")}

    def take(self, name, count):
        return self.columns[name].take(count)

    def one(self, name):
        return self.take(name, 1)[0]

    def text(self, name):
        found = next(self.texts[name], None)
        demand(found is not None, f"{name} holds less than the claims need")
        return found

    def demand_spent(self):
        left = [name for name, column in self.columns.items() if getattr(column, "left", 0)]
        left += [name for name, texts in self.texts.items() if next(texts, None) is not None]
        demand({*left} <= {"points64", "ceilings", "reached"}, f"{left} holds more than is needed")


def claims(holds, columns, classes, d):
    """Every claim of a file; points in float64 are named by their numbers."""
    supply, used = Supply(columns), set()
    m = columns["points64"].shape[0]
    for code in columns["kinds"].all():
        known = 0 <= code < len(KINDS) and (KINDS[code] == "odds") == (holds == "ceilings")
        demand(known, "a kind of evidence is unknown, or does not belong here")
        way, margin, radius = KINDS[code], supply.one("margins"), supply.one("radii")
        method = supply.text("methods")
        demand(re.fullmatch("[a-z ]{0,40}", method), "a method is not a plain name")
        demand(math.isnan(margin) == (way == "odds"), "a margin is not a number")
        demand(supply.one("steps") >= 0, "steps are negative")
        demand(math.isnan(radius) or (way == "point" and radius >= 0), "a radius is not one")
        sizes = supply.take("sizes", supply.one("blocks"))
        blocks, rest = [supply.take("named", size) for size in sizes], supply.one("rest")
        demand(rest in (0, 1) and blocks and all(blocks), "a block of an order is empty")
        level = {i: n for n, block in enumerate(blocks) for i in block}
        demand(all(0 <= i < classes for i in level), "a class is none of the layer's")
        demand(len(level) == sum(map(len, blocks)), "an order names a class twice")
        alone = rest and len(level) == 1
        demand(alone or holds in ("answers", "experts"), "an order is not about one class")
        demand(alone or math.isnan(radius), "an order has a radius")
        demand(not alone or way != "point" or holds != "scan" or radius >= 0, "a radius is missing")
        rest, found = len(blocks) if rest else None, None
        if code in (1, 7):
            found = supply.one("at")
            demand(0 <= found < m, "a point is not there")
            used.add(found)
        elif way == "point":
            exact = code in EXACT
            found = [rational(supply.text("fractions")) for _ in range(d * exact)]
            found = found if exact else supply.take("points32", d)
        elif way == "weights":
            size = supply.one("counts")
            demand(0 < size < 2**31, "a proof has no comparisons")
            pairs = [*zip(supply.take("above", size), supply.take("below", size), strict=True)]
            exact = code in EXACT
            weights = [rational(supply.text("fractions")) for _ in range(size * exact)]
            weights = weights if exact else supply.take("weights", size)
            demand(all(0 < weight < math.inf for weight in weights), "a weight is not positive")
            found = pairs, [*map(Fraction, weights)]
            demand(pairs == sorted(set(pairs)), "its comparisons are not in order")
            steps = (a in level and level.get(b, rest) == level[a] + 1 for a, b in pairs)
            inside = all(0 <= b < classes for _, b in pairs)
            demand(inside and all(steps), "the order asks for no such comparison")
        elif way == "twin":
            demand(holds == "scan" and supply.one("counts") == 1, "an order has a twin")
            own, found = supply.one("above"), supply.one("below")
            demand(own == blocks[0][0] and 0 <= found < classes, "a twin is not one")
            demand(found != own, "a class is its own twin")
        else:
            supply.text("reasons")
        yield Claim(supply.one("sets"), blocks, level, rest, way, margin, radius, found)
    supply.demand_spent()
    demand(len(used) == m, "a point is not used")


def placed(claim, points):
    """The claim with its point itself, where that is named by its number."""
    if claim.way != "point":
        return claim
    point = claim.found if type(claim.found) is list else list(points.row(claim.found))
    demand(all(map(math.isfinite, point)), "a point is not finite")
    return claim._replace(found=point)


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
        v = [Fraction(p) - Fraction(q) for p, q in zip(W[a], W[b], strict=True)]
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
    for i, (row, scale) in enumerate(whole(row) for row in W) if points else ():
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
    span = root(squares[claim.blocks[0][0]]) + root(max(squares))
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
    powers = [max(map(abs, columns[k])).bit_length() for k in K]
    top = max(powers, default=0)
    every = [[D[j][k] << (top - e) for k, e in zip(K, powers, strict=True)] for j in range(len(L))]
    every = [[*row, 1 << top] for row in every]
    heaviest = sorted(range(len(L)), key=L.__getitem__)[-len(K) - 1 :]
    for find in (lambda: heaviest, lambda: independent_captors(every, weights, top)):
        chosen = find()  # the heaviest captors; where those are dependent, others
        A = [list(row) for row in zip(*(every[j] for j in chosen), strict=True)]
        R = len(chosen) == len(A) and inverse([[a / (1 << top) for a in row] for row in A])
        loss = Fraction(max(identity_errors(A, R, 1 << (top + 60))), 1 << (top + 60)) if R else 1
        if loss < 1:
            break
    else:
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


def independent_captors(rows, weights, top):
    """As many captors as equations, heavy ones whose rows are far from dependent."""
    largest = max(weights)
    heavy = {j: float(weight / largest) for j, weight in enumerate(weights)}
    return independent({j: [a / (1 << top) * heavy[j] for a in rows[j]] for j in heavy}) or []


def independent(rows):
    """Keys of independent rows, as many as there are columns: each the longest of what the former
    leave, in floats; None without that many.
    """
    chosen, columns = [], len(next(iter(rows.values()), ()))
    for _ in range(columns):
        best = max(rows, key=lambda i: sum(a * a for a in rows[i]), default=None)
        pivot = rows.pop(best, ())
        size = sum(a * a for a in pivot)
        if not size > 0:
            return None
        chosen.append(best)
        for i, row in rows.items():
            if share := sum(map(mul, row, pivot)) / size:
                rows[i] = [a - share * b for a, b in zip(row, pivot, strict=True)]
    return chosen


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
        row, shift = features.difference(W, bias, claim.blocks[0][0], claim.found)
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


def check_experts(k, everything, classes):
    """Say what follows about each expert from the orders about it, which stand together."""
    demand(re.fullmatch("[1-9][0-9]{0,8}", k) and int(k) <= classes, "k is not a number of experts")
    k, last, said = int(k), -1, dict.fromkeys(("possible", "impossible", "undecided"), 0)
    for first, some in groupby(everything, key=lambda claim: claim.blocks[0]):
        group, expert = list(some), first[0]
        about_it = all(claim.rest is None and len(claim.blocks) < 3 for claim in group)
        demand(len(first) == 1 and about_it, f"an order of expert {expert} is about another")
        demand(last < expert, "an expert occurs twice, or out of order")
        last, ways = expert, [claim.way for claim in group]
        blocking_sets = [{*claim.level} - {expert} for claim in group]
        if "nothing" in ways:
            verdict, follows = "undecided", "point" not in ways
        elif "point" in ways:
            verdict = "possible"
            follows = len(ways) == 1 and classes - 1 - len(blocking_sets[0]) < k
        else:
            verdict, follows = "impossible", not met(blocking_sets, k - 1)
        demand(follows, f"that expert {expert} is {verdict} does not follow from its orders")
        said[verdict] += 1
    demand(last >= 0, "it names no expert")
    told = ", ".join(f"{count} {verdict}" for verdict, count in said.items())
    return f"experts among the top k = {k}: {told}"


# ---- Odds: 1 / p - 1 = sum exp(y_i - y_t) >= exp(A), A = H(l) + sum l_i b_i - b_t - s_X(r)
#
# for any weights l >= 0, sum 1, on the rivals of class t, with r = w_t - sum l_i w_i and s_X the
# support function of the set (Jensen's inequality). The weights are chosen here: integers u_i below
# 2^160 exp(-n_i / 2^64), n_i near 2^64 times how far the logit of class i at the stored point is
# below the highest. So log u_i is bounded by n_i, and all else is exact. Over unbounded features r
# has to vanish: d of the weights move to make it so, each by a proven bound.

BITS, GRID = 160, 64  # u is in units of 2^-160, logarithms are in units of 2^-64
ONE = 1 << BITS
LOG_2 = sum(Fraction(1, n << n) for n in range(1, 240))  # a lower bound,
LOG_2_UP = LOG_2 + Fraction(1, 1 << 239)  # and an upper one


def small_exponentials():
    """Lower bounds of ``2^160 exp(-j 256^-k)``, j < 256, for k = 0 ... 8: the bytes of -log u."""
    extra, tables = 64, []
    for k in range(9):
        # exp(256^-k) by its series, in integers with 64 more bits; each division rounds down
        term = total = 1 << (BITS + extra)
        for n in range(1, 500):
            term //= n << (8 * k)
            total += term
        growth = total + 1000  # above: what the divisions lost, and the rest of the series
        lower = (1 << 2 * (BITS + extra)) // growth
        powers = [1 << (BITS + extra)]
        for _ in range(255):
            powers.append(powers[-1] * lower >> (BITS + extra))
        tables.append([power >> extra for power in powers])
    return tables


TABLES = small_exponentials()


def exp_down(n):
    """A lower bound of ``2^160 exp(-n / 2^64)`` for an integer n >= 0."""
    value = ONE if n < 256 << GRID else 0
    for k, table in enumerate(TABLES):
        if byte := n >> (GRID - 8 * k) & 255:
            value = value * table[byte] >> BITS
    return value


def exp_up(n):
    """An upper bound: nine tables and products are each off by less than two units."""
    return exp_down(n) + 64


def exp_bounds(a):
    """Rationals below and above ``exp(-a)`` for a rational a >= 0, of whatever size."""
    q = math.floor(a / LOG_2_UP)  # whole factors of two
    demand(q < 2**24, "odds are beyond all bounds")
    least, most = a - q * LOG_2_UP, a - q * LOG_2
    low, high = exp_down(math.ceil(most * 2**GRID)), exp_up(math.floor(least * 2**GRID))
    return Fraction(low, ONE << q), Fraction(high, ONE << q)


def log_down(value):
    """A rational below ``log(value)`` for a rational value > 0, proven by its exponential."""
    power = value.numerator.bit_length() - value.denominator.bit_length()
    part = value / Fraction(2) ** power  # between 1/2 and 2
    n = math.floor((math.log(part) - 1e-15) * 2**GRID)
    holds = exp_up(-n) <= part * ONE if n < 0 else part * exp_down(n) >= ONE
    demand(holds, "a logarithm could not be bounded")
    return Fraction(n, 1 << GRID) + power * (LOG_2 if power > 0 else LOG_2_UP)


def support(features, v):
    """An upper bound of ``max v.x`` over the set; None where there is none."""
    if features.kind == "box":
        return sum(
            max(a * p, b * p) for a, b, p in zip(features.low, features.high, v, strict=True)
        )
    if features.kind == "unbounded":
        return None if any(v) else Fraction(0)
    shift = Fraction(0)
    if features.kind == "ellipsoid":
        shift = sum(map(mul, features.bias, v))
        v = list(map(mul, features.gain, v))
        mean = sum(v) / len(v) if features.centred else 0
        v = [a - mean for a in v]
    square = sum(a * a for a in v) * features.radius**2
    scale = 1 << 200
    return shift + Fraction(math.isqrt(math.ceil(square * scale * scale)) + 1, scale)


class Layer:
    """W as integers over a common denominator, b as fractions."""

    def __init__(self, W, b):
        flat, self.unit = whole([value for row in W for value in row])
        d = len(W[0])
        self.rows = [flat[n : n + d] for n in range(0, len(flat), d)]
        self.b = b


class Look:
    """A point's weights u and the sums over them, in integers."""

    def __init__(self, layer, x):
        z, scale = whole(x)
        bias, bias_unit = whole(layer.b)
        products = (sum(map(mul, row, z)) for row in layer.rows)
        y = [p * bias_unit + c * layer.unit * scale for p, c in zip(products, bias, strict=True)]
        self.unit, self.top = layer.unit * scale * bias_unit, max(y)
        self.down = [((self.top - v) << GRID) // self.unit for v in y]  # floor: n_i
        self.u = [exp_down(n) for n in self.down]
        self.total = sum(self.u)
        self.mean = [sum(map(mul, self.u, column)) for column in zip(*layer.rows, strict=True)]
        gain = zip(self.down, bias, strict=True)
        self.terms = [Fraction(n, 1 << GRID) + Fraction(c, bias_unit) for n, c in gain]
        self.value = Fraction(sum(map(mul, self.u, self.down)), 1 << GRID)
        self.value += Fraction(sum(map(mul, self.u, bias)), bias_unit)


def odds(layer, features, look, t):
    """A rational below A for class t."""
    total, own = look.total - look.u[t], look.u[t]
    if not total:
        return None
    lost = [m - look.total * w for m, w in zip(look.mean, layer.rows[t], strict=True)]
    reach = support(features, [Fraction(-v, layer.unit * total) for v in lost])
    if reach is None:
        return odds_of_exact_mean(layer, look, t, lost)
    value = (look.value - own * look.terms[t]) / total + log_down(Fraction(total, ONE))
    return value - layer.b[t] - reach


def odds_of_exact_mean(layer, look, t, lost):
    """The same where d weights move so that ``sum u_i (w_i - w_t)`` = ``lost`` vanishes."""
    chosen = basis(layer, look, t)
    if chosen is None:
        return None
    A = [[w - v for w, v in zip(layer.rows[i], layer.rows[t], strict=True)] for i in chosen]
    top = max(abs(a) for row in A for a in row)
    columns = [
        list(column) for column in zip(*A, strict=True)
    ]  # columns: sum_i delta_i A_i = -lost
    R = inverse([[a / top for a in row] for row in columns])
    if R is None:
        return None
    one = top << 60
    loss = Fraction(max(identity_errors(columns, R, one)), one)
    if loss >= 1:
        return None
    miss = Fraction(max(map(abs, lost)), top)
    delta = [Fraction(sum(map(abs, row)), 1 << 60) * miss / (1 - loss) for row in R]
    if any(change * 2 >= look.u[i] for change, i in zip(delta, chosen, strict=True)):
        return None
    total, own = look.total - look.u[t], look.u[t]
    moved = sum(delta)
    value = look.value - own * look.terms[t] - total * layer.b[t]
    for change, i in zip(delta, chosen, strict=True):
        share = change / look.u[i]
        value -= change * (abs(look.terms[i] - layer.b[t]) + share) + 2 * look.u[i] * share
    value /= total + moved if value > 0 else total - moved
    return value + log_down((total - moved) / ONE)


def basis(layer, look, t):
    """d heavy rivals with independent ``w_i - w_t``, by elimination in floats; None without
    them.
    """
    d = len(layer.rows[t])
    order = sorted(range(len(look.u)), key=look.u.__getitem__, reverse=True)
    rows = {}
    for i in order[: 40 * d]:
        if i != t and look.u[i]:
            there = zip(layer.rows[i], layer.rows[t], strict=True)
            weight = math.sqrt(look.u[i] / look.u[order[0]]) / layer.unit
            rows[i] = [(w - v) * weight for w, v in there]
    return independent(rows)


def proves_ceiling(A, ceiling):
    """Whether ``1 / (1 + exp A) <= ceiling``."""
    if not 0 < ceiling < 1 or A is None:
        return ceiling == 1
    need = 1 / Fraction(ceiling) - 1
    return 1 / exp_bounds(A)[1] >= need if A >= 0 else exp_bounds(-A)[0] >= need


def proves_reached(look, t, reached):
    """Whether the softmax at the point gives class t at least so much."""
    high = Fraction(sum(exp_up(n) for n in look.down), ONE)
    low = exp_bounds(Fraction(look.down[t] + 1, 1 << GRID))[0]
    return reached == 0 or (low > 0 and high / low <= 1 / Fraction(reached))


def check_odds(W, b, features, chosen, points, bounds):
    """Which of these claims are not proven; ``bounds`` are ceiling and reached of each class."""
    layer, groups, failed = Layer(W, b), defaultdict(list), []
    for claim in chosen:
        groups[claim.found].append(claim.blocks[0][0])
    for n, members in groups.items():
        z = points.row(n)
        demand(all(map(math.isfinite, z)), "a point is not finite")
        z = [*map(Fraction, z)]
        x = features.x(z)
        look = Look(layer, z if x is None else x)  # any point proves a ceiling
        for t in members:
            ceiling, reached = bounds[t]
            inside = reached == 0 or x is not None
            good = proves_ceiling(odds(layer, features, look, t), ceiling)
            if not (good and inside and proves_reached(look, t, reached)):
                failed.append(t)
    return failed


# ---- The whole file


def read_layer(path):
    """The rows of W, b as fractions, and the fingerprint of both."""
    _, columns = read_container(path, canonical=False)
    demand({"W"} <= columns.keys() <= {"W", "b"}, f"{path} does not hold W and b alone")
    W, b = columns["W"], columns.get("b")
    demand(len(W.shape) == 2 and 0 not in W.shape, "W is not a matrix")
    demand(b is None or b.shape == W.shape[:1], "b does not fit W")
    identity = {"W": identified(W), "b": None if b is None else identified(b)}
    rows = [W.row(i) for i in range(W.shape[0])]
    bias = [0.0] * len(rows) if b is None else b.all()
    finite = all(map(math.isfinite, bias)) and all(all(map(math.isfinite, row)) for row in rows)
    demand(finite, f"{path} holds a NaN or an infinite number")
    fingerprint = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return rows, [*map(Fraction, bias)], fingerprint


def identified(column):
    """Shape, dtype and SHA-256 of the little-endian bytes, row by row."""
    size = struct.calcsize(column.code)
    demand(column.code in "efd", "a layer does not consist of floats")
    end = column.place + column.left * size
    digest = hashlib.sha256(memoryview(column.content)[column.place : end]).hexdigest()
    return {"shape": column.shape, "dtype": f"<f{size}", "sha256": digest}


def read_sets(stored, d):
    """The feature sets; no two of them are the same."""
    given = json.loads(stored)
    demand(json.dumps(given, sort_keys=True) == stored, "its feature sets are not canonical")
    demand(type(given) is list and given, "it has no feature set")
    found = [Features(one, d) for one in given]
    demand(
        all(a.meaning != b.meaning for n, a in enumerate(found) for b in found[:n]),
        "a feature set occurs twice",
    )
    return found


def check_scope(holds, everything, sets):
    """Classes rise, over one set after the other; further sets are about unargmaxable classes."""
    demand(all(0 <= c.set < len(sets) for c in everything), "a feature set is not there")
    if holds in ("answers", "experts"):
        demand(len(sets) == 1, "answers are over one feature set")
        return
    names = [(claim.set, claim.blocks[0][0]) for claim in everything]
    rises = all(a < b for a, b in pairwise(names))
    demand(rises, "a class occurs twice, or out of order")
    there = {claim.set for claim in everything} | {0}
    demand(len(there) == len(sets), "a feature set has no classes")
    lost = {c.blocks[0][0] for c in everything if c.way == "weights" and not c.set}
    useful = all(c.way == "weights" and c.blocks[0][0] in lost for c in everything if c.set)
    demand(useful, "a further set is not about unargmaxable classes of the scan")


def check(options):
    """Check a file and print what is proven."""
    W, b, fingerprint = read_layer(options.layer)
    C, d = len(W), len(W[0])
    texts, columns = read(options.proofs, fingerprint, d)
    holds, sets = texts["holds"], read_sets(texts["features"], d)
    everything = list(claims(holds, columns, C, d))
    check_scope(holds, everything, sets)
    print(f"layer: {C} classes x {d} features, {fingerprint}")
    if holds == "experts":
        print(check_experts(texts["k"], everything, C))
    bounds = {}
    if holds == "ceilings":
        demand(everything and len(sets) == 1, "there are no ceilings, or over several sets")
        pairs = zip(columns["ceilings"].all(), columns["reached"].all(), strict=True)
        pairs = list(pairs)
        demand(len(pairs) == len(everything), "ceilings do not fit their classes")
        demand(all(0 < p <= 1 and 0 <= q <= 1 for p, q in pairs), "a ceiling is no probability")
        bounds = {c.blocks[0][0]: pair for c, pair in zip(everything, pairs, strict=True)}
    left = columns["ceilings"].left + columns["reached"].left
    demand(not left, "odds stand beside other evidence")
    failed = []
    for number, features in enumerate(sets):
        print(f"feature set: {features}")
        part = [claim for claim in everything if claim.set == number]
        failed += check_part(options, W, b, features, holds, part, columns["points64"], bounds)
    demand(not failed, f"NOT proven: {len(failed)}, the first {failed[:20]}")


def check_part(options, W, b, features, holds, part, points, bounds):
    """Check the claims over one feature set, say what is proven, and return those that are not."""
    groups = defaultdict(list)
    for claim in part:
        groups[VERDICTS[holds].get(claim.way, "undecided")].append(claim)
    counts = [f"{len(some)} {verdict}" for verdict, some in groups.items()]
    print(f"{holds}: {', '.join(counts)}")
    asked = [some for verdict, some in groups.items() if options.only in (None, verdict)]
    draw = random.Random(options.seed).sample
    chosen = [claim for some in asked for claim in draw(some, min(len(some), options.sample))]
    ways, failed = defaultdict(int), []
    if holds == "ceilings":
        failed = check_odds(W, b, features, chosen, points, bounds)
        ways["odds"] = len(chosen) - len(failed)
    else:
        chosen = [placed(claim, points) for claim in chosen]
        won = [claim for claim in chosen if claim.way == "point"]
        least, squares = least_margins(W, b, won, features)
        least = iter(least)
        for claim in chosen:
            if claim.way == "point":
                how = "witness" if reached(claim, next(least), squares) else None
            else:
                how = "nothing" if claim.way == "nothing" else prove(W, b, features, claim)
            ways[how] += 1
            failed += [claim.blocks] * (how is None)
    drawn = f" (drawn with --seed {options.seed})" if len(chosen) < len(part) else ""
    print(f"looked at {len(chosen)} of {len(part)}{drawn}, proven by: {dict(ways)}")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("proofs", help="evidence, answers or ceilings .safetensors")
    parser.add_argument("layer", help="a .safetensors file of W and b")
    known = {verdict for some in VERDICTS.values() for verdict in some.values()}
    parser.add_argument("--only", choices=sorted(known), help="claims of one verdict")
    parser.add_argument("--sample", type=int, default=sys.maxsize, help="so many of each verdict")
    parser.add_argument("--seed", type=int, help="repeats a sample; each prints its own")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(2**64)
    try:
        check(options)
    except RefusedError as error:
        sys.exit(f"{options.proofs}: {error}.")
    except Exception as error:  # whatever a damaged file makes of a reader
        told = " ".join(str(error).split())[:100]
        sys.exit(f"{options.proofs} or the layer is damaged ({type(error).__name__}: {told}).")


if __name__ == "__main__":
    main()
