"""Checks evidence.npz in exact arithmetic: Python's integers and fractions; NumPy only reads arrays; nothing of softgeom.

    python tools/check_evidence.py scan/evidence.npz layer.npz [--only unargmaxable] [--sample 50] [--seed 0]

layer.npz holds W and, if there is one, b. docs/certificates.md says what the fields mean and why each inequality is a proof.
"""

# ruff: noqa: B905 - lengths are those of the file; a short one ends in an error or in a class that is not proven
import argparse
import hashlib
import json
import math
import random
import sys
from fractions import Fraction
from itertools import islice
from operator import mul

import numpy as np

# By kind: points in float32 and float64, weights, twin, nothing, exact points, exact weights.
VERDICTS = ("argmaxable", "argmaxable", "unargmaxable", "tied", "undecided", "argmaxable", "unargmaxable")
TINY = 1e-6  # coordinates of v below this share of what was summed must vanish, for weights that must exist


def whole(values):
    """Rationals as integers over one denominator."""
    ratios = [v.as_integer_ratio() for v in values]
    denominator = math.lcm(*(d for _, d in ratios))
    return [n * (denominator // d) for n, d in ratios], denominator


def whole_rows(rows):
    flat, scale = whole([value for row in rows for value in row])
    return [flat[n : n + len(rows[0])] for n in range(0, len(flat), len(rows[0]))], scale


class Features:
    """The feature set: where x may lie, in exact arithmetic."""

    def __init__(self, stored, d):
        self.kind, self.d = stored["set"], d
        for name, value in stored.items():  # radius is a number; low, high, gain and bias become lists of d
            if name not in ("set", "centred"):
                some = [Fraction(float.fromhex(v)) for v in ([value] if isinstance(value, str) else value)]
                setattr(self, name, some[0] if name == "radius" else some * (d // len(some)))
        self.centred = stored.get("centred", False)

    def x(self, z):
        """The feature vector of a stored point, or None when that lies outside."""
        if self.kind == "box":
            return z if all(a <= v <= b for a, v, b in zip(self.low, z, self.high)) else None
        if self.kind != "unbounded" and sum(v * v for v in z) > self.radius**2:
            return None
        mean = sum(z) / self.d if self.centred else 0
        return [c + g * (v - mean) for c, g, v in zip(self.bias, self.gain, z)] if self.kind == "ellipsoid" else z

    def effective(self, v, c):
        if self.kind != "ellipsoid":
            return v, c
        c, v = c + sum(map(mul, self.bias, v)), list(map(mul, self.gain, v))
        mean = sum(v) / self.d if self.centred else 0
        return [a - mean for a in v], c

    def held(self, v, c, error=None):
        """Whether max of v.z + c <= 0, for effective v; over a box also for every v within the error."""
        if self.kind == "box":
            ends = zip(self.low, self.high, v, error or [0] * len(v))
            return sum((max(x * (p + e) for x in (l, h) for e in (-q, q)) for l, h, p, q in ends), c) <= 0  # noqa: E741
        if error and any(v):
            return False
        return c <= 0 and (not any(v) if self.kind == "unbounded" else self.radius**2 * sum(a * a for a in v) <= c * c)


def captive(W, bias, t, rivals, weights, margin, features):
    """How the weights prove that the best margin of class t is at most `margin` <= 0: "room", "simplex" or None."""
    ((own, *others), scale), (L, unit) = whole_rows([W[i].tolist() for i in (t, *rivals)]), whole(weights)
    D = [[p - q for p, q in zip(own, row)] for row in others]  # (k, d), over scale
    C = [bias[t] - bias[i] - margin for i in rivals]
    if features.kind == "ellipsoid":
        pairs = [features.effective([Fraction(a, scale) for a in row], c) for row, c in zip(D, C)]
        (D, scale), C = whole_rows([row for row, _ in pairs]), [c for _, c in pairs]
    v = [sum(map(mul, L, column)) for column in zip(*D)]  # over scale * unit
    c = sum(map(mul, C, L)) / unit
    if features.held([Fraction(a, scale * unit) for a in v], c):
        return "room"
    size = [sum(map(mul, L, map(abs, column))) for column in zip(*D)]
    tiny = [abs(a) <= TINY * s for a, s in zip(v, size)]
    K = [k for k, s in enumerate(size) if s and tiny[k]]
    K = K[:-1] if features.centred else K  # centred rows sum to 0: the last equality follows from the others
    if len(K) + 1 > len(L):
        return None
    # A: rows of order one, D_k / 2^e_k and ones; over `scale * 2^(lowest e)` in integers.
    powers = [max(abs(row[k]) for row in D).bit_length() for k in K]
    top = max(powers, default=0)
    A = [[row[k] << (top - e) for row in D] for k, e in zip(K, powers)] + [[1 << top] * len(L)]
    chosen, R = inverse([[a / (1 << top) for a in row] for row in A], [float(w) for w in weights])
    R = [[round(a * 2.0**60) for a in row] for row in R]
    loss = max(identity_error([[row[j] for j in chosen] for row in A], R, 1 << (top + 60)), default=1)
    if loss >= Fraction(1, 2):
        return None
    miss = max((Fraction(abs(v[k]), unit << e) for k, e in zip(K, powers)), default=Fraction(0))
    # How far the chosen weights may move: |R| times the miss, over 1 - loss.
    delta = [Fraction(sum(map(abs, row)), 1 << 60) * miss / (1 - loss) for row in R]
    if any(change >= weights[j] for change, j in zip(delta, chosen)):
        return None
    moves = list(zip(delta, chosen))
    level = not any(a > 0 for a in C)  # then no weights make the sum positive
    c = min(c, Fraction(0)) if level else c + sum(change * abs(C[j]) for change, j in moves)
    rest = [0 if small else Fraction(a, scale * unit) for a, small in zip(v, tiny)]
    moved = [0 if tiny[k] else sum(e * Fraction(abs(D[j][k]), scale) for e, j in moves) for k in range(len(v))]
    return "simplex" if features.held(rest, c, moved) else None


def inverse(T, weights):
    """Columns, one per row, and an approximate inverse of them, by exchanging rows for columns; large weights first."""
    chosen, square = [], len(T) == len(T[0])
    for r, top in enumerate(T):
        free = set(range(len(top))) - set(chosen)
        c = max(free, key=lambda j: abs(top[j]) * (1 if square else weights[j]))
        if not (pivot := top[c]):
            return chosen, []
        for i, row in enumerate(T):
            if i != r and (factor := row[c] / pivot):
                T[i] = [a - factor * b for a, b in zip(row, top)]
                T[i][c] = factor
        T[r] = [-a / pivot for a in top]
        T[r][c] = 1 / pivot
        chosen.append(c)
    return chosen, [[row[j] for j in chosen] for row in T]


def identity_error(A, R, one):
    """Row sums of |I - A R|, exactly: rows of R are packed into long integers, so that a product is a few of their sums."""
    digit = 2 + len(A).bit_length() + sum(max(abs(a) for row in M for a in row).bit_length() for M in (A, R))
    packed = [sum(a << (digit * q) for q, a in enumerate(row)) for row in R]
    for i, row in enumerate(A):
        total, error = sum(map(mul, row, packed)), 0
        for q in range(len(R)):
            value = ((total + (1 << (digit - 1))) & ((1 << digit) - 1)) - (1 << (digit - 1))
            total = (total - value) >> digit
            error += abs((one if i == q else 0) - value)
        yield Fraction(error, one)


def number(stored):
    return Fraction(*(int(n, 16) for n in stored.split("/"))) if isinstance(stored, str) else Fraction(stored)


def read(file, head):
    """Each class with its verdict, margin and evidence: a point, (rivals, weights), a twin, or None."""
    names = ("points32", "points64", "captor_counts", "captors", "weights", "twins")
    points32, points64, sizes, captors, weights, twins = (iter(file[name].tolist()) for name in names)
    points, exact = {0: points32, 1: points64, 5: iter(head["exact_points"])}, iter(head["exact_weights"])
    for t, kind, margin in zip(*(file[name].tolist() for name in ("classes", "kinds", "margins"))):
        found = next(twins) if kind == 3 else None
        if kind in points:
            found = [number(value) for value in next(points[kind])]
        elif kind in (2, 6):
            rivals = list(islice(captors, next(sizes)))
            found = rivals, [number(w) for w in (next(exact) if kind == 6 else islice(weights, len(rivals)))]
        yield t, VERDICTS[kind], margin, found


def least_margins(W, bias, wins):
    """The exact margins of classes t at points x, for `wins` of (t, x): one pass over the rows."""
    scaled = [(t, *whole(x)) for t, x in wins]
    own = {t: Fraction(sum(map(mul, x, map(Fraction, W[t].tolist())))) / unit + bias[t] for t, x, unit in scaled}
    least = {t: math.inf for t, _ in wins}
    for i, values in enumerate(W) if wins else ():
        row, scale = whole(values.tolist())
        for t, x, unit in scaled:
            if i != t:
                least[t] = min(least[t], own[t] - bias[i] - Fraction(sum(map(mul, x, row)), unit * scale))
    return least


def check(W, bias, features, least, t, verdict, margin, found):
    """How the evidence proves the verdict and margin of class t; None if it does not."""
    if verdict == "argmaxable":
        # A margin at the end of the range of floats is only claimed to be positive.
        enough = margin < 1e-300 or least.get(t, 0) >= min(Fraction(sys.float_info.max), margin)
        return "witness" if margin > 0 and least.get(t, 0) > 0 and enough else None
    others = [found] if verdict == "tied" else found[0]
    if not all(0 <= i < len(W) and i != t for i in others):
        return None
    if verdict == "tied":
        difference = [Fraction(p) - Fraction(q) for p, q in zip(W[t].tolist(), W[found].tolist())]
        row, shift = features.effective(difference, bias[t] - bias[found])
        return "twin" if not any(row) and not shift else None
    used = [(i, w) for i, w in zip(*found) if w]
    valid = used and min(found[1]) >= 0 and margin <= 0
    return captive(W, bias, t, *zip(*used), Fraction(margin), features) if valid else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("evidence", "layer"):
        parser.add_argument(name)
    parser.add_argument("--only", choices=sorted(set(VERDICTS)), help="classes of one verdict")
    parser.add_argument("--sample", type=int, default=sys.maxsize, help="at most so many classes of each verdict")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    file, layer = np.load(options.evidence, allow_pickle=False), np.load(options.layer, allow_pickle=False)
    head, W = json.loads(str(file["head"])), layer["W"]
    b = layer["b"] if "b" in layer.files else None
    digests = [None if array is None else hashlib.sha256(array.tobytes()).hexdigest() for array in (W, b)]
    if head["format"] != 3 or [(head["identity"][name] or {}).get("sha256") for name in "Wb"] != digests:
        sys.exit("the evidence is of another format, or belongs to another layer: the SHA-256 of W or b differs")
    everything = list(read(file, head))
    complete = sorted(t for t, *_ in everything) == list(range(len(W)))
    print(f"{len(everything)} classes of {len(W)}: {'each once' if complete else 'NOT all, or some twice'}")
    proven, failed, chosen = {}, [], []
    for verdict in set(VERDICTS) - {"undecided"} if options.only is None else {options.only}:
        some = [task for task in everything if task[1] == verdict]
        chosen += random.Random(options.seed).sample(some, min(len(some), options.sample))
    features, bias = (
        Features(head["features"], W.shape[1]),
        [Fraction(0)] * len(W) if b is None else [*map(Fraction, b.tolist())],
    )
    wins = [(t, features.x(found)) for t, verdict, _, found in chosen if verdict == "argmaxable"]
    least = least_margins(W, bias, [(t, x) for t, x in wins if x is not None])
    for task in chosen:
        how = check(W, bias, features, least, *task)
        failed += [task[0]] * (how is None)
        proven[how] = proven.get(how, 0) + 1
    print(f"proven: {proven}; undecided: {sum(task[1] == 'undecided' for task in everything)}")
    if failed:
        sys.exit(f"NOT proven: {len(failed)} classes, the first {sorted(failed)[:20]}")


if __name__ == "__main__":
    main()
