"""Checks a file of proofs (scan, answers, experts or ceilings) in exact arithmetic: integers and
fractions of Python's standard library, for logarithms its decimals, and nothing of softgeom.

    python tools/check_proofs.py FOLDER/evidence.safetensors layer.safetensors [--only unargmaxable]

The layer file holds W and, if there is one, b. docs/certificates.md says what the columns mean and
why each inequality is a proof. Everything is an order of classes with evidence: can the logits obey
blocks of classes, each above the next? A class of a scan stands above all others, a ceiling is such
an order with odds. `--sample 50` checks that many claims of each verdict, drawn at random.
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
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import cached_property
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
        self.width = struct.calcsize(self.code)

    def take(self, count):
        """The next numbers."""
        demand(0 <= count <= self.left, "an array holds less than the claims need")
        found = struct.unpack_from(f"<{count}{self.code}", self.content, self.place)
        self.place, self.left = self.place + count * self.width, self.left - count
        return list(found)

    def row(self, i):
        """Row i of a matrix, whatever was read."""
        size = self.shape[1]
        place = self.place + i * size * self.width
        return struct.unpack_from(f"<{size}{self.code}", self.content, place)


class Texts:
    """A list of texts, written as JSON in an array of bytes."""

    def __init__(self, column):
        framed = column.left >= 2 and column.content[column.place] == ord("[")
        written = bytes(column.take(column.left)).decode() if framed else ""
        self.rest = json.loads(written) if framed else None
        plain = framed and json.dumps(self.rest) == written
        demand(plain and all(type(one) is str for one in self.rest), "a list of texts is not one")
        self.rest, self.left = iter(self.rest), len(self.rest)

    def take(self, count):
        """The next texts."""
        demand(count <= self.left, "a list holds less than the claims need")
        self.left -= count
        return [next(self.rest) for _ in range(count)]


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
    strings = type(texts) is dict and all(type(text) is str for text in texts.values())
    demand(strings, "a text of the header is not one")
    again, columns, end = {"__metadata__": texts}, {}, 0
    width = {name: struct.calcsize(DTYPES[one["dtype"]]) for name, one in listed.items()}
    for name in sorted(listed, key=lambda name: (-width[name], name)):
        dtype, shape = listed[name]["dtype"], listed[name]["shape"]
        demand(all(type(n) is int and 0 <= n < 2**48 for n in shape), f"{name} has no shape")
        start = end if canonical else listed[name]["data_offsets"][0]
        end = start + math.prod(shape) * width[name]
        demand(0 <= start <= end <= size - 8 - length, f"{name} lies outside the file")
        again[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
        columns[name] = Column(content, dtype, shape, 8 + length + start)
    plain = json.dumps(again, sort_keys=True, separators=(",", ":")).encode()
    whole = plain + b" " * (-len(plain) % 8) == header and size == 8 + length + end
    demand(whole or not canonical, "its header or its size is not as it must be for its arrays")
    return texts, columns


def read(path, fingerprint, d):
    """The texts of a file of proofs, and its columns, of which those of text are lists."""
    texts, columns = read_container(path)
    demand(texts.get("format") == FORMAT, f"its format is not {FORMAT!r}")
    demand(texts.get("holds") in VERDICTS, "it holds something unknown")
    fields = {"format", "holds", "layer", "features"}
    if texts["holds"] == "experts":
        fields |= {"k"} | ({"blank"} & texts.keys())
    demand("readout" not in texts, "its probabilities are not a plain softmax: not checked here")
    demand(texts.keys() == fields, "its header has other fields")
    demand(texts["layer"] == fingerprint, "it belongs to another layer")
    demand({name: one.dtype for name, one in columns.items()} == ARRAYS, "it has other arrays")
    for name, column in columns.items():
        flat = len(column.shape) == 1 and column.left * column.width <= LARGEST
        fits = column.shape[1:] == [d] if "points" in name else flat
        demand(fits, f"{name} has the shape {column.shape}")
    for name in COLUMNS["U8"].split():
        columns[name] = Texts(columns[name])
    return texts, columns


def rational(stored):
    """Numerator and denominator in hexadecimal, in lowest terms."""
    demand(len(stored) <= LONGEST, "a fraction is too long")
    value = Fraction(*(int(part, 16) for part in stored.split("/")))
    demand(f"{value.numerator:x}/{value.denominator:x}" == stored, "a fraction is not canonical")
    return value


class Claim(NamedTuple):
    """An order with what is said about it, and the evidence: a point or its number; pairs of
    classes, the first of which is to be ahead, with weights; a twin; or None.
    """

    set: int  # the number of its feature set
    blocks: list
    level: dict  # the block of each class that is named
    rest: object  # the block of all others, or None
    way: str
    margin: float
    radius: float
    found: object
    odds: tuple  # ceiling and reached


def claims(holds, columns, classes, d):
    """Every claim of a file; points in float64 are named by their numbers. Nothing may be left."""
    used, m = set(), columns["points64"].shape[0]
    one = {name: lambda name=name: columns[name].take(1)[0] for name in columns}
    for code in columns["kinds"].take(columns["kinds"].left):
        known = 0 <= code < len(KINDS) and (KINDS[code] == "odds") == (holds == "ceilings")
        demand(known, "a kind of evidence is unknown, or does not belong here")
        way, margin, radius = KINDS[code], one["margins"](), one["radii"]()
        plain = re.fullmatch("[a-z ]{0,40}", one["methods"]())
        demand(plain and one["steps"]() >= 0, "a method is not a plain name, or steps are negative")
        demand(math.isnan(margin) == (way == "odds"), "a margin is not a number")
        demand(math.isnan(radius) or (way == "point" and radius >= 0), "a radius is not one")
        sizes = columns["sizes"].take(one["blocks"]())
        blocks, rest = [columns["named"].take(size) for size in sizes], one["rest"]()
        demand(rest in (0, 1) and blocks and all(blocks), "a block of an order is empty")
        level = {i: n for n, block in enumerate(blocks) for i in block}
        demand(all(0 <= i < classes for i in level), "a class is none of the layer's")
        demand(len(level) == sum(map(len, blocks)), "an order names a class twice")
        alone = rest and len(level) == 1
        demand(alone or holds in ("answers", "experts"), "an order is not about one class")
        measured = alone and way == "point" and (holds == "scan" or radius >= 0)
        demand(measured != math.isnan(radius), "a radius is missing, or an order has one")
        rest, odds, exact = len(blocks) if rest else None, (), code in EXACT
        if way == "odds":
            odds = one["ceilings"](), one["reached"]()
            demand(0 < odds[0] <= 1 and 0 <= odds[1] <= 1, "a ceiling is no probability")
        if code in (1, 7):
            found = one["at"]()
            demand(0 <= found < m, "a point is not there")
            used.add(found)
        elif way == "point":
            found = columns["fractions" if exact else "points32"].take(d)
            found = [*map(rational, found)] if exact else found
        elif way == "weights":
            found = compared(columns, one["counts"](), exact)
            steps = (a in level and level.get(b, rest) == level[a] + 1 for a, b in found[0])
            inside = all(0 <= b < classes for _, b in found[0])
            demand(inside and all(steps), "the order asks for no such comparison")
        elif way == "twin":
            demand(holds == "scan" and one["counts"]() == 1, "an order has a twin")
            own, found = one["above"](), one["below"]()
            good = own == blocks[0][0] != found and 0 <= found < classes
            demand(good, "a twin is not one of its class")
        else:
            found = one["reasons"]() and None
        yield Claim(one["sets"](), blocks, level, rest, way, margin, radius, found, odds)
    left = [name for name, column in columns.items() if column.left]
    demand({*left} <= {"points64", "tokens"}, f"{left} holds more than is needed")
    demand(len(used) == m, "a point is not used")


def compared(columns, size, exact):
    """The next comparisons, and their weights."""
    demand(0 < size < 2**31, "a proof has no comparisons")
    pairs = [*zip(columns["above"].take(size), columns["below"].take(size), strict=True)]
    weights = columns["fractions" if exact else "weights"].take(size)
    weights = [*map(rational, weights)] if exact else weights
    demand(all(0 < weight < math.inf for weight in weights), "a weight is not positive")
    demand(pairs == sorted(set(pairs)), "its comparisons are not in order")
    return pairs, [*map(Fraction, weights)]


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

    def effective(self, v, c):
        """Row and bias in the coordinates of points."""
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

    def support(self, v):
        """An upper bound of ``max v.x``; None where there is none."""
        if self.kind == "box":
            return sum(max(a * p, b * p) for a, b, p in zip(self.low, self.high, v, strict=True))
        if self.kind == "unbounded":
            return None if any(v) else Fraction(0)
        v, shift = self.effective(v, Fraction(0))
        return shift + root(sum(a * a for a in v) * self.radius**2)


def root(square):
    """A rational just above the square root."""
    power = (400 + square.denominator.bit_length() - square.numerator.bit_length()) // 2
    unit = Fraction(2) ** power
    return Fraction(math.isqrt(math.ceil(square * unit**2)) + 1) / unit if square else square


# ---- The layer, and a point


def whole(values):
    """Rationals as integers over one denominator."""
    ratios = [value.as_integer_ratio() for value in values]
    denominator = math.lcm(*(d for _, d in ratios))
    return [n * (denominator // d) for n, d in ratios], denominator


class Layer:
    """W and b as integers, each over a common denominator."""

    def __init__(self, W, b):
        d = len(W[0])
        flat, self.unit = whole([value for row in W for value in row])
        self.rows = [flat[n : n + d] for n in range(0, len(flat), d)]
        self.bias, self.bias_unit = whole(b)
        self.b = [Fraction(value, self.bias_unit) for value in self.bias]

    def difference(self, features, a, b):
        """Effective row and bias of class a less those of class b."""
        v = zip(self.rows[a], self.rows[b], strict=True)
        v = [Fraction(p - q, self.unit) for p, q in v]
        return features.effective(v, self.b[a] - self.b[b])

    def sum_of_leads(self, features, pairs, weights, margin):
        """Effective row and bias of ``sum l (y_a - y_b - margin)`` over pairs (a, b)."""
        (L, scale), own = whole(weights), defaultdict(int)
        for (a, b), share in zip(pairs, L, strict=True):
            own[a] += share
            own[b] -= share
        columns = zip(*(self.rows[i] for i in own), strict=True)
        v = [Fraction(sum(map(mul, own.values(), one)), scale * self.unit) for one in columns]
        c = sum(self.b[i] * share for i, share in own.items()) - margin * sum(L)
        return features.effective(v, c / scale)

    @cached_property
    def lengths(self):
        """Squared, of the rows."""
        return [sum(map(mul, row, row)) for row in self.rows]

    def span(self, t):
        """An upper bound on how far the row of class t is from any other."""
        return sum(root(Fraction(n, self.unit**2)) for n in (self.lengths[t], max(self.lengths)))

    def logits(self, x):
        """Logits at x as integers, and their denominator."""
        z, scale = whole(x)
        products = (sum(map(mul, row, z)) for row in self.rows)
        left, right = self.bias_unit, self.unit * scale
        y = [p * left + c * right for p, c in zip(products, self.bias, strict=True)]
        return y, left * right


def lead(claim, y):
    """The smallest difference of logits that the order demands; infinite where it demands none."""
    low, high = {}, {}
    for i, value in enumerate(y):
        n = claim.level.get(i, claim.rest)
        if n is not None:
            low[n], high[n] = min(low.get(n, value), value), max(high.get(n, value), value)
    return min((low[n] - high[n + 1] for n in low if n + 1 in high), default=math.inf)


def wins(layer, features, claim):
    """Whether margin and radius are at most what the point reaches; of the radius as
    docs/certificates.md defines it. The smallest float only claims to be positive.
    """
    x = features.x([*map(Fraction, claim.found)])
    if x is None:
        return False
    y, unit = layer.logits(x)
    least = lead(claim, y)
    least = least if least == math.inf else Fraction(least, unit)
    if not 0 < claim.margin <= least and not (claim.margin == 5e-324 and least > 0):
        return False
    if math.isnan(claim.radius) or least == math.inf:  # an order, or nothing to compare
        return True
    span = layer.span(claim.blocks[0][0])
    return not span or (math.isfinite(claim.radius) and Fraction(claim.radius) * span <= least)


# ---- Weights


def blocked(layer, features, claim):
    """How the weights prove that the smallest difference of the pairs is at most the margin <= 0:
    "room", "simplex" or None.
    """
    if not -math.inf < claim.margin <= 0:
        return None
    pairs, weights = claim.found
    if features.held(*layer.sum_of_leads(features, pairs, weights, Fraction(claim.margin))):
        return "room"
    rows, C = zip(*(layer.difference(features, a, b) for a, b in pairs), strict=True)
    (L, unit), (flat, scale) = whole(weights), whole([a for row in rows for a in row])
    C = [c - Fraction(claim.margin) for c in C]
    D = [flat[n : n + features.d] for n in range(0, len(flat), features.d)]  # (k, d), over scale
    columns = [*zip(*D, strict=True)]
    v = [sum(map(mul, L, column)) for column in columns]  # over scale * unit
    c = sum(map(mul, C, L)) / unit
    # What must vanish, for weights that must exist: coordinates in which nearly everything cancels.
    sizes = [sum(map(mul, L, map(abs, column))) for column in columns]
    tiny = [10**6 * abs(a) <= size for a, size in zip(v, sizes, strict=True)]
    K = [k for k, column in enumerate(columns) if tiny[k] and any(column)]
    # centred rows sum to 0: the last equality follows from the others
    K = K[:-1] if features.centred else K
    equations = {j: [*(D[j][k] for k in K), 1] for j in range(len(L))}  # the sum stays
    moves = moves_of(equations, weights, [*(Fraction(abs(v[k]), unit) for k in K), 0])
    if moves is None or any(change >= weights[j] for j, change in moves.items()):
        return None
    c += sum(change * abs(C[j]) for j, change in moves.items())
    c = c if any(a > 0 for a in C) else min(c, 0)  # then no weights make the sum positive
    left = [0 if small else Fraction(a, scale * unit) for a, small in zip(v, tiny, strict=True)]
    moved = [
        0 if small else sum(e * Fraction(abs(D[j][k]), scale) for j, e in moves.items())
        for k, small in enumerate(tiny)
    ]
    return "simplex" if features.held(left, c, moved) else None


def moves_of(rows, weights, misses):
    """Weights l with ``sum l_j row_j = 0`` exist near the given ones, which miss it by so much:
    bounds {j: at most so far} on how some of them move; None where that is not proven.

    With A the rows of as many j as equations, and an approximate inverse R in units of 2^-60,
    ``|I - A R| < 1`` proves that they exist, within |R| times the miss over 1 - |I - A R|.
    """
    powers = [max(map(abs, column)).bit_length() for column in zip(*rows.values(), strict=True)]
    top = max(powers)
    level = {
        j: [a << (top - e) for a, e in zip(row, powers, strict=True)] for j, row in rows.items()
    }
    largest, unit = max(weights[j] for j in rows), 1 << top
    chosen = independent(
        {j: [a / unit * float(weights[j] / largest) for a in row] for j, row in level.items()}
    )
    A = [list(row) for row in zip(*(level[j] for j in chosen or ()), strict=True)]
    R = inverse([[a / unit for a in row] for row in A])
    if not chosen or R is None:
        return None
    loss = Fraction(max(identity_errors(A, R, unit << 60)), unit << 60)
    if loss >= 1:
        return None
    miss = max(Fraction(size) / (1 << e) for size, e in zip(misses, powers, strict=True))
    reach = miss / (1 - loss) / (1 << 60)
    return {j: sum(map(abs, row)) * reach for j, row in zip(chosen, R, strict=True)}


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


def check_experts(k, blank, everything, classes):
    """Say what follows about each expert from the orders about it, which stand together. A blank is
    no rival: no order names it, and where it is does not count.
    """
    demand(re.fullmatch("[1-9][0-9]{0,8}", k) and int(k) <= classes, "k is not a number of experts")
    k, last, said = int(k), -1, dict.fromkeys(("possible", "impossible", "undecided"), 0)
    strictly = 0
    if blank is not None:
        known = re.fullmatch("0|[1-9][0-9]{0,8}", blank) and int(blank) < classes
        demand(known, "the blank is no class")
        named = any(int(blank) in claim.level for claim in everything)
        demand(not named, "an order names the blank, which is no rival")
        classes -= 1
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
            strictly += all(claim.margin < 0 for claim in group)
        demand(follows, f"that expert {expert} is {verdict} does not follow from its orders")
        said[verdict] += 1
    demand(last >= 0, "it names no expert")
    told = ", ".join(f"{count} {verdict}" for verdict, count in said.items())
    told = f"experts among the top k = {k}: {told}"
    if blank is None:
        return told
    text = f"; {strictly} of them are never in a most probable text of CTC" * (k >= 3)
    return f"{told}; class {blank} is the blank and no rival{text}"


# ---- Odds: 1 / p - 1 = sum exp(y_i - y_t) >= exp(A), A = H(l) + sum l_i b_i - b_t - s_X(r)
#
# for any weights l >= 0, sum 1, on the rivals of class t, with r = w_t - sum l_i w_i and s_X the
# support function of the set (Jensen's inequality). The weights are chosen here: integers u_i below
# 2^160 exp(-n_i / 2^64), n_i near 2^64 times how far the logit of class i at the stored point is
# below the highest. So log u_i is bounded by n_i, and all else is exact. Over unbounded features r
# has to vanish: d of the weights move to make it so, each by a proven bound.

BITS, GRID = 160, 64  # u is in units of 2^-160, logarithms are in units of 2^-64
ONE = 1 << BITS
# 80 digits, in which exp and log are rounded correctly, as the decimal module promises
DIGITS = Context(prec=80, Emax=MAX_EMAX, Emin=MIN_EMIN)
UNIT = Fraction(1, 10**70)  # more than rounding takes of a logarithm below 10^8


def exp_down(n):
    """``2^160 exp(-n / 2^64)`` for an integer n >= 0, rounded down by two or less."""
    if n >= 111 << GRID:  # exp(-111) < 2^-160
        return 0
    power = DIGITS.divide(-n, 1 << GRID)  # exact
    return max(0, int(DIGITS.multiply(DIGITS.exp(power), ONE)) - 1)


def log_bounds(value):
    """Rationals below and above ``log(value)`` for a rational value > 0."""
    near = DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))
    near = Fraction(DIGITS.ln(near))
    return near - UNIT, near + UNIT


class Look:
    """A point's weights u and the sums over them, in integers."""

    def __init__(self, layer, features, z):
        z = [*map(Fraction, z)]
        x = features.x(z)
        self.inside, (y, unit) = x is not None, layer.logits(z if x is None else x)
        top = max(y)
        self.down = [((top - v) << GRID) // unit for v in y]  # floor: n_i
        self.u = [exp_down(n) for n in self.down]
        self.total = sum(self.u)
        self.mean = [sum(map(mul, self.u, column)) for column in zip(*layer.rows, strict=True)]
        self.terms = [Fraction(n, 1 << GRID) + b for n, b in zip(self.down, layer.b, strict=True)]
        self.value = Fraction(sum(map(mul, self.u, self.down)), 1 << GRID)
        self.value += Fraction(sum(map(mul, self.u, layer.bias)), layer.bias_unit)


def exponent(layer, features, look, t):
    """A rational below A for class t; None where the point proves none."""
    total, own = look.total - look.u[t], look.u[t]
    if not total:
        return None
    lost = [m - look.total * w for m, w in zip(look.mean, layer.rows[t], strict=True)]
    value = look.value - own * look.terms[t] - total * layer.b[t]
    reach = features.support([Fraction(-v, layer.unit * total) for v in lost])
    if reach is not None:
        return value / total + log_bounds(Fraction(total, ONE))[0] - reach
    # d weights move so that ``sum u_i (w_i - w_t)`` vanishes
    heavy = sorted(range(len(look.u)), key=look.u.__getitem__, reverse=True)
    heavy = [i for i in heavy[: 40 * features.d] if i != t and look.u[i]]
    own_row = layer.rows[t]
    rows = {i: [w - v for w, v in zip(layer.rows[i], own_row, strict=True)] for i in heavy}
    weights = {i: Fraction(look.u[i]) for i in rows}
    moves = moves_of(rows, weights, [*map(abs, lost)]) if rows else None
    if moves is None or any(change * 2 >= look.u[i] for i, change in moves.items()):
        return None
    moved = sum(moves.values())
    for i, change in moves.items():
        share = change / look.u[i]
        value -= change * (abs(look.terms[i] - layer.b[t]) + share) + 2 * look.u[i] * share
    value /= total + moved if value > 0 else total - moved
    return value + log_bounds((total - moved) / ONE)[0]


def bounded(layer, features, look, claim):
    """Whether no x gives the class a probability above its ceiling, ``1 / (1 + exp A)``, and the
    point gives it what is reached.
    """
    t, (ceiling, reached) = claim.blocks[0][0], claim.odds
    if ceiling < 1:
        A = exponent(layer, features, look, t)
        if A is None or log_bounds(1 / Fraction(ceiling) - 1)[1] > A:
            return False
    if not reached:
        return True
    high = Fraction(look.total + 3 * len(look.u), ONE)
    least = -Fraction(look.down[t] + 1, 1 << GRID) - log_bounds(high)[1]
    return look.inside and least >= log_bounds(Fraction(reached))[1]


# ---- The whole file


def proofs(layer, features, chosen, points):
    """Each claim, and how it is proven: None if it is not. Those of one point follow each other."""
    look = number = None
    for claim in sorted(chosen, key=lambda c: c.found if c.way == "odds" else 0):
        way, how = claim.way, claim.way
        if way in ("point", "odds"):
            point = claim.found if type(claim.found) is list else points.row(claim.found)
            demand(all(map(math.isfinite, point)), "a point is not finite")
        if way == "point":
            how = "witness" if wins(layer, features, claim._replace(found=point)) else None
        elif way == "weights":
            how = blocked(layer, features, claim)
        elif way == "twin":
            row, shift = layer.difference(features, claim.blocks[0][0], claim.found)
            how = None if any(row) or shift or claim.margin else "twin"
        elif way == "odds":
            look = look if number == claim.found else Look(layer, features, point)
            number = claim.found
            how = "odds" if bounded(layer, features, look, claim) else None
        yield claim, how


def read_layer(path):
    """W and b, and the fingerprint of both."""
    _, columns = read_container(path, canonical=False)
    demand({"W"} <= columns.keys() <= {"W", "b"}, f"{path} does not hold W and b alone")
    W, b = columns["W"], columns.get("b")
    demand(len(W.shape) == 2 and 0 not in W.shape, "W is not a matrix")
    demand(b is None or b.shape == W.shape[:1], "b does not fit W")
    identity = {"W": identified(W), "b": None if b is None else identified(b)}
    rows = [W.row(i) for i in range(W.shape[0])]
    bias = [0.0] * len(rows) if b is None else b.take(b.left)
    finite = all(map(math.isfinite, bias)) and all(all(map(math.isfinite, row)) for row in rows)
    demand(finite, f"{path} holds a NaN or an infinite number")
    fingerprint = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return Layer(rows, bias), fingerprint


def identified(column):
    """Shape, dtype and SHA-256 of the little-endian bytes, row by row."""
    demand(column.code in "efd", "a layer does not consist of floats")
    end = column.place + column.left * column.width
    digest = hashlib.sha256(memoryview(column.content)[column.place : end]).hexdigest()
    return {"shape": column.shape, "dtype": f"<f{column.width}", "sha256": digest}


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
    demand(holds == "scan" or (everything and len(sets) == 1), "no ceilings, or of several sets")
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
    layer, fingerprint = read_layer(options.layer)
    C, d = len(layer.rows), len(layer.rows[0])
    texts, columns = read(options.proofs, fingerprint, d)
    holds, sets = texts["holds"], read_sets(texts["features"], d)
    everything = list(claims(holds, columns, C, d))
    check_scope(holds, everything, sets)
    print(f"layer: {C} classes x {d} features, {fingerprint}")
    if holds == "experts":
        print(check_experts(texts["k"], texts.get("blank"), everything, C))
    failed, draw = [], random.Random(options.seed).sample
    for number, features in enumerate(sets):
        print(f"feature set: {features}")
        groups = defaultdict(list)
        for claim in everything:
            if claim.set == number:
                groups[VERDICTS[holds].get(claim.way, "undecided")].append(claim)
        counts = [f"{len(some)} {verdict}" for verdict, some in groups.items()]
        print(f"{holds}: {', '.join(counts)}")
        asked = [some for verdict, some in groups.items() if options.only in (None, verdict)]
        chosen = [claim for some in asked for claim in draw(some, min(len(some), options.sample))]
        ways, all_ = defaultdict(int), sum(map(len, groups.values()))
        for claim, how in proofs(layer, features, chosen, columns["points64"]):
            ways[how] += 1
            failed += [claim.blocks] * (how is None)
        drawn = f" (drawn with --seed {options.seed})" if len(chosen) < all_ else ""
        print(f"looked at {len(chosen)} of {all_}{drawn}, proven by: {dict(ways)}")
    demand(not failed, f"NOT proven: {len(failed)}, the first {failed[:20]}")


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
