"""Checks evidence.npz in exact arithmetic: Python's integers and fractions; NumPy only reads
arrays; nothing of softgeom.

    python tools/check_evidence.py scan/evidence.npz layer.npz [--only unargmaxable] [--sample 50]
    [--seed 0]

layer.npz holds W and, if there is one, b. docs/certificates.md says what the fields mean and why
each inequality is a proof.
"""

# ruff: noqa: B905 - lengths are those of the file; a short one ends in an error or in a class that
# is not proven
import argparse
import hashlib
import json
import math
import random
import sys
from fractions import Fraction
from operator import mul

import numpy as np

# By kind: points in float32 and float64, weights, twin, nothing, exact points, exact weights.
VERDICTS = (
    "argmaxable",
    "argmaxable",
    "unargmaxable",
    "tied",
    "undecided",
    "argmaxable",
    "unargmaxable",
)
CLAIMS = ("argmaxable", "tied", "unargmaxable")


def whole(values):
    """Rationals as integers over one denominator."""
    ratios = [v.as_integer_ratio() for v in values]
    denominator = math.lcm(*(d for _, d in ratios))
    return [n * (denominator // d) for n, d in ratios], denominator


class Features:
    """The feature set: where x may lie, in exact arithmetic."""

    def __init__(self, stored, d):
        self.kind, self.centred, self.d = stored.pop("set"), stored.pop("centred", False), d
        # radius is a number; low, high, gain and bias become lists of d
        for name, value in stored.items():
            values = [
                Fraction(float.fromhex(v)) for v in ([value] if isinstance(value, str) else value)
            ]
            setattr(self, name, values[0] if name == "radius" else values * (d // len(values)))

    def x(self, z):
        """The feature vector of a stored point, or None when that lies outside."""
        if self.kind == "box":
            return z if all(a <= v <= b for a, v, b in zip(self.low, z, self.high)) else None
        if self.kind != "unbounded" and sum(v * v for v in z) > self.radius**2:
            return None
        mean = sum(z) / self.d if self.centred else 0
        return (
            [c + g * (v - mean) for c, g, v in zip(self.bias, self.gain, z)]
            if self.kind == "ellipsoid"
            else z
        )

    def difference(self, W, bias, t, i):
        """Effective row and bias of class t less those of class i."""
        v, c = (
            [Fraction(p) - Fraction(q) for p, q in zip(W[t].tolist(), W[i].tolist())],
            bias[t] - bias[i],
        )
        if self.kind == "ellipsoid":
            c, v = c + sum(map(mul, self.bias, v)), list(map(mul, self.gain, v))
            mean = sum(v) / self.d if self.centred else 0
            v = [a - mean for a in v]
        return v, c

    def held(self, v, c, error=None):
        """Whether max of v.z + c <= 0, for effective v; over a box also for every v within the
        error.
        """
        if self.kind == "box":
            ends = zip(self.low, self.high, v, error or [0] * len(v))
            reach = (max(x * (p + e) for x in (a, b) for e in (-q, q)) for a, b, p, q in ends)
            return sum(reach, c) <= 0
        free = self.kind == "unbounded" or error  # then v has to vanish
        return c <= 0 and (not any(v) if free else self.radius**2 * sum(a * a for a in v) <= c * c)


def captive(W, bias, t, rivals, weights, margin, features):
    """How the weights prove that the best margin of class t is at most `margin` <= 0: "room",
    "simplex" or None.
    """
    rows, C = zip(*(features.difference(W, bias, t, i) for i in rivals))
    (L, unit), (flat, scale), C = (
        whole(weights),
        whole([a for row in rows for a in row]),
        [c - margin for c in C],
    )
    D = [flat[n : n + features.d] for n in range(0, len(flat), features.d)]  # (k, d), over scale
    v = [sum(map(mul, L, column)) for column in zip(*D)]  # over scale * unit
    c = sum(map(mul, C, L)) / unit
    if features.held([Fraction(a, scale * unit) for a in v], c):
        return "room"
    # What must vanish, for weights that must exist: coordinates in which nearly everything cancels.
    tiny = [10**6 * abs(a) <= sum(map(mul, L, map(abs, column))) for a, column in zip(v, zip(*D))]
    K = [k for k, column in enumerate(zip(*D)) if tiny[k] and any(column)]
    # centred rows sum to 0: the last equality follows from the others
    K = K[:-1] if features.centred else K
    # A: rows of order one, D_k / 2^e_k and ones, of as many captors; over `scale * 2^(lowest e)` in
    # integers.
    chosen = sorted(range(len(L)), key=L.__getitem__)[-len(K) - 1 :]
    powers = [max(abs(row[k]) for row in D).bit_length() for k in K]
    top = max(powers, default=0)
    A = [[D[j][k] << (top - e) for j in chosen] for k, e in zip(K, powers)] + [
        [1 << top] * len(chosen)
    ]
    R = len(chosen) == len(A) and inverse([[a / (1 << top) for a in row] for row in A])
    loss = Fraction(max(identity_errors(A, R, 1 << (top + 60))), 1 << (top + 60)) if R else 1
    if loss >= 1:
        return None
    miss = max((Fraction(abs(v[k]), unit << e) for k, e in zip(K, powers)), default=0)
    # How far the chosen weights may move: |R| times the miss, over 1 - loss.
    moves = [
        (Fraction(sum(map(abs, row)), 1 << 60) * miss / (1 - loss), j) for row, j in zip(R, chosen)
    ]
    if any(change >= weights[j] for change, j in moves):
        return None
    c += sum(change * abs(C[j]) for change, j in moves)
    c = c if any(a > 0 for a in C) else min(c, 0)  # then no weights make the sum positive
    rest = [0 if small else Fraction(a, scale * unit) for a, small in zip(v, tiny)]
    moved = [
        0 if tiny[k] else sum(e * Fraction(abs(D[j][k]), scale) for e, j in moves)
        for k in range(len(v))
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
        M = [row if row is top else [a - row[0] * b for a, b in zip(row[1:], top)] for row in M]
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


def read(file, head):
    """Each class with its verdict, margin and evidence: a point, (rivals, weights), a twin, or
    None.
    """
    number = lambda stored: Fraction(*(int(n, 16) for n in stored.split("/")))  # noqa: E731
    names = ("points32", "points64", "captor_counts", "captors", "weights", "twins")
    points32, points64, sizes, captors, weights, twins = (
        iter(file[name].tolist()) for name in names
    )
    points, exact = (
        {0: points32, 1: points64, 5: iter(head["exact_points"])},
        iter(head["exact_weights"]),
    )
    for t, kind, margin in zip(*(file[name].tolist() for name in ("classes", "kinds", "margins"))):
        found = next(twins) if kind == 3 else None
        if kind in points:
            found = list(map(number if kind == 5 else Fraction, next(points[kind])))
        elif kind in (2, 6):
            rivals = [next(captors) for _ in range(next(sizes))]
            found = (
                rivals,
                list(map(number, next(exact)))
                if kind == 6
                else [Fraction(next(weights)) for _ in rivals],
            )
        yield t, VERDICTS[kind], margin, found


def least_margins(W, bias, wins):
    """The exact margins of classes t at points x, for `wins` of (t, x): one pass over the rows."""
    points = [
        (t, *whole(x), [Fraction(w) for w in W[t].tolist()]) for t, x in wins if x is not None
    ]
    own = [sum(map(mul, x, row)) / unit + bias[t] for t, x, unit, row in points]
    least = [math.inf] * len(points)
    for i, (row, scale) in enumerate(whole(row.tolist()) for row in W) if points else ():
        for n, (t, x, unit, _) in enumerate(points):
            if i != t:
                least[n] = min(
                    least[n], own[n] - bias[i] - Fraction(sum(map(mul, x, row)), unit * scale)
                )
    return dict(zip([point[0] for point in points], least))


def check(W, bias, features, least, t, verdict, margin, found):
    """How the evidence proves the verdict and margin of class t; None if it does not."""
    # a margin at the end of the range of floats is only claimed to be positive
    if verdict == "argmaxable":
        enough = margin < 1e-300 or least.get(t, 0) >= min(Fraction(sys.float_info.max), margin)
        return "witness" if margin > 0 and least.get(t, 0) > 0 and enough else None
    if not all(0 <= i < len(W) and i != t for i in ([found] if verdict == "tied" else found[0])):
        return None
    if verdict == "tied":
        row, shift = features.difference(W, bias, t, found)
        return "twin" if not any(row) and not shift and not margin else None
    used = [(i, w) for i, w in zip(*found) if w]
    valid = used and min(found[1]) >= 0 and margin <= 0
    return captive(W, bias, t, *zip(*used), Fraction(margin), features) if valid else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("evidence")
    parser.add_argument("layer")
    parser.add_argument("--only", choices=CLAIMS, help="classes of one verdict")
    parser.add_argument(
        "--sample", type=int, default=sys.maxsize, help="at most so many classes of each verdict"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    file, layer = (
        np.load(options.evidence, allow_pickle=False),
        np.load(options.layer, allow_pickle=False),
    )
    head, W, b = (
        json.loads(str(file["head"])),
        layer["W"],
        layer["b"] if "b" in layer.files else None,
    )
    digests = [
        None if array is None else hashlib.sha256(array.tobytes()).hexdigest() for array in (W, b)
    ]
    if (
        head["format"] != 3
        or [(head["identity"][name] or {}).get("sha256") for name in "Wb"] != digests
    ):
        sys.exit(
            "the evidence is of another format, or belongs to another layer: the SHA-256 of "
            "W or b differs"
        )
    everything = list(read(file, head))
    if len({t for t, *_ in everything} & {*range(len(W))}) < len(everything):
        sys.exit("a class is named twice, or is none of the layer's")
    print(f"{len(everything)} classes of {len(W)}, each once")
    groups = [
        [task for task in everything if task[1] == v] for v in CLAIMS if options.only in (None, v)
    ]
    draw = random.Random(options.seed).sample
    chosen = [task for some in groups for task in draw(some, min(len(some), options.sample))]
    features = Features(head["features"], W.shape[1])
    bias = [Fraction(0)] * len(W) if b is None else [*map(Fraction, b.tolist())]
    least = least_margins(
        W, bias, [(t, features.x(z)) for t, verdict, _, z in chosen if verdict == CLAIMS[0]]
    )
    proven = [check(W, bias, features, least, *task) for task in chosen]
    ways = {how: proven.count(how) for how in sorted({*proven} - {None})}
    print(f"proven: {ways}; undecided: {sum(task[1] == 'undecided' for task in everything)}")
    if failed := sorted(task[0] for task, how in zip(chosen, proven) if how is None):
        sys.exit(f"NOT proven: {len(failed)} classes, the first {failed[:20]}")


if __name__ == "__main__":
    main()
