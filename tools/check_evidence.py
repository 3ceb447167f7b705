"""Checks evidence.npz in exact arithmetic: Python's integers and fractions; NumPy only reads arrays; nothing of softgeom.

    python tools/check_evidence.py scan/evidence.npz layer.npz [--only unargmaxable] [--sample 50] [--seed 0]

layer.npz holds W and, if there is one, b. docs/certificates.md says what the fields mean and why each inequality is a proof.
"""

import argparse
import hashlib
import json
import math
import random
import sys
import time
from fractions import Fraction
from operator import mul

import numpy as np

KINDS = ("witness32", "witness64", "captors", "twin", "unknown", "witness_exact", "captors_exact")
VERDICTS = ("argmaxable", "argmaxable", "unargmaxable", "tied", "undecided", "argmaxable", "unargmaxable")
TINY = 1e-6  # coordinates of v below this share of what was summed must vanish, for weights that must exist


def whole(values):
    """Rationals as integers over one denominator."""
    ratios = [v.as_integer_ratio() for v in values]
    denominator = math.lcm(*(d for _, d in ratios)) if ratios else 1
    return [n * (denominator // d) for n, d in ratios], denominator


def numbers(stored):
    return [Fraction(float.fromhex(v)) for v in ([stored] if isinstance(stored, str) else stored)]


class Features:
    """The feature set: where x may lie, in exact arithmetic."""

    def __init__(self, stored, d):
        self.kind, self.d = stored["set"], d
        if self.kind == "box":
            self.low, self.high = (
                numbers(stored[n]) * (d if isinstance(stored[n], str) else 1) for n in ("low", "high")
            )
        if self.kind in ("ball", "ellipsoid"):
            self.radius = numbers(stored["radius"])[0]
        if self.kind == "ellipsoid":
            self.gain, self.bias, self.centred = numbers(stored["gain"]), numbers(stored["bias"]), stored["centred"]

    def x(self, z):
        """The feature vector of a stored point, or None when that lies outside."""
        if self.kind == "box":
            return z if all(a <= v <= b for a, v, b in zip(self.low, z, self.high, strict=True)) else None
        if self.kind != "unbounded" and sum(v * v for v in z) > self.radius**2:
            return None
        if self.kind == "ellipsoid":
            mean = sum(z) / self.d if self.centred else 0
            return [c + g * (v - mean) for c, g, v in zip(self.bias, self.gain, z, strict=True)]
        return z

    def effective(self, v, c):
        if self.kind != "ellipsoid":
            return v, c
        c, v = c + sum(map(mul, self.bias, v)), list(map(mul, self.gain, v))
        mean = sum(v) / self.d if self.centred else 0
        return [a - mean for a in v], c

    def equalities(self, difference, scale):
        scaled = [g * a / scale for g, a in zip(self.gain, difference, strict=True)]
        return [a - scaled[-1] for a in scaled[:-1]] if self.centred else scaled

    def held(self, v, c, error=None):
        """Whether max of v.x + c <= 0 over the set; for a box also for every v within the error."""
        if self.kind == "box":
            least = [a - e for a, e in zip(v, error, strict=True)] if error else v
            most = [a + e for a, e in zip(v, error, strict=True)] if error else v
            corners = zip(self.low, self.high, least, most, strict=True)
            return sum((max(l * p, l * q, h * p, h * q) for l, h, p, q in corners), c) <= 0  # noqa: E741
        if error and any(v):
            return False
        v, c = self.effective(v, c)
        return c <= 0 and (not any(v) if self.kind == "unbounded" else self.radius**2 * sum(a * a for a in v) <= c * c)


def captive(rows, bias, t, rivals, weights, margin, features):
    """How the weights prove that the best margin of class t is at most `margin` <= 0: "room", "simplex" or None."""
    (W, scale), (L, unit) = rows([t, *rivals]), whole(weights)
    D = [[p - q for p, q in zip(W[0], row, strict=True)] for row in W[1:]]  # (k, d), over scale
    C = [bias[t] - bias[i] - margin for i in rivals]
    v = [sum(map(mul, L, column)) for column in zip(*D, strict=True)]  # over scale * unit
    c = sum(map(mul, C, L)) / unit
    if features.held([Fraction(a, scale * unit) for a in v], c):
        return "room"
    if features.kind == "ellipsoid":  # the support vanishes with gain * v, or, centred, as soon as that is constant
        flat, unit_ = whole([a for row in D for a in features.equalities(row, scale)])
        C = [b + sum(map(mul, features.bias, row)) / scale for b, row in zip(C, D, strict=True)]
        m = len(flat) // len(D)
        D, scale = [flat[n : n + m] for n in range(0, len(flat), m)], unit_
        v, c = [sum(map(mul, L, column)) for column in zip(*D, strict=True)], sum(map(mul, C, L)) / unit
        features = Features({"set": "unbounded"}, m)
    size = [sum(map(mul, L, map(abs, column))) for column in zip(*D, strict=True)]
    tiny = [abs(a) <= TINY * s for a, s in zip(v, size, strict=True)]
    K = [k for k, s in enumerate(size) if s and tiny[k]]
    if len(K) + 1 > len(L):
        return None
    # A: rows of order one, D_k / 2^e_k and ones; over `scale * 2^(lowest e)` in integers.
    powers = [max(abs(row[k]) for row in D).bit_length() for k in K]
    top = max(powers, default=0)
    A = [[row[k] << (top - e) for row in D] for k, e in zip(K, powers, strict=True)] + [[1 << top] * len(L)]
    chosen, R = inverse([[a / (1 << top) for a in row] for row in A], [float(w) for w in weights])
    if R is None:
        return None
    whole_R = [[round(a * 2.0**60) for a in row] for row in R]
    loss = max(identity_error([[row[j] for j in chosen] for row in A], whole_R, 1 << (top + 60)))
    if loss >= Fraction(1, 2):
        return None
    miss = max((Fraction(abs(v[k]), unit << e) for k, e in zip(K, powers, strict=True)), default=Fraction(0))
    delta = [
        Fraction(sum(map(abs, row)), 1 << 60) * miss / (1 - loss) for row in whole_R
    ]  # |change| of the chosen weights
    if any(change >= weights[j] for change, j in zip(delta, chosen, strict=True)):
        return None
    if any(a > 0 for a in C):  # otherwise no weights make the sum positive
        c += sum(change * abs(C[j]) for change, j in zip(delta, chosen, strict=True))
    else:
        c = min(c, Fraction(0))
    rest = [0 if tiny[k] else Fraction(v[k], scale * unit) for k in range(len(v))]
    moved = [
        0 if tiny[k] else sum(change * Fraction(abs(D[j][k]), scale) for change, j in zip(delta, chosen, strict=True))
        for k in range(len(v))
    ]
    return "simplex" if features.held(rest, c, moved) else None


def inverse(T, weights):
    """Columns, one per row, and an approximate inverse of them, by exchanging rows for columns; large weights first."""
    chosen, square = [], len(T) == len(T[0])
    for r, top in enumerate(T):
        free = set(range(len(top))) - set(chosen)
        c = max(free, key=lambda j: abs(top[j]) * (1 if square else weights[j]))
        pivot = top[c]
        if not pivot:
            return chosen, None
        for i, row in enumerate(T):
            if i != r:
                factor = row[c] / pivot
                T[i] = [a - factor * b for a, b in zip(row, top, strict=True)]
                T[i][c] = factor
        T[r] = [-a / pivot for a in top]
        T[r][c] = 1 / pivot
        chosen.append(c)
    return chosen, [[row[j] for j in chosen] for row in T]


def identity_error(A, R, one):
    """Row sums of |I - A R|, exactly: rows of R are packed into long integers, so that a product is a few of their sums."""
    digit = (
        2
        + len(A).bit_length()
        + max(abs(a) for row in A for a in row).bit_length()
        + max(abs(a) for row in R for a in row).bit_length()
    )
    packed = [sum(a << (digit * q) for q, a in enumerate(row)) for row in R]
    for i, row in enumerate(A):
        total, error = sum(map(mul, row, packed)), 0
        for q in range(len(R)):
            value = ((total + (1 << (digit - 1))) & ((1 << digit) - 1)) - (1 << (digit - 1))
            total = (total - value) >> digit
            error += abs((one if i == q else 0) - value)
        yield Fraction(error, one)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("evidence"), parser.add_argument("layer")
    parser.add_argument("--only", choices=sorted(set(VERDICTS)), help="classes of one verdict")
    parser.add_argument("--sample", type=int, help="at most so many classes of each verdict, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    file, layer = np.load(options.evidence, allow_pickle=False), np.load(options.layer, allow_pickle=False)
    head, W = json.loads(str(file["head"])), layer["W"]
    b = layer["b"] if "b" in layer.files else None
    if head["format"] != 3:
        sys.exit(f"format {head['format']} is not the one that this program checks")
    for name, array in (("W", W), ("b", b)):
        stored = head["identity"][name]
        if (stored is None) != (array is None) or (
            array is not None and stored["sha256"] != hashlib.sha256(array.tobytes()).hexdigest()
        ):
            sys.exit(f"the evidence belongs to another layer: the SHA-256 of {name} differs")
    features = Features(head["features"], W.shape[1])
    bias = [Fraction(0)] * len(W) if b is None else [Fraction(v) for v in b.tolist()]
    classes, kinds, margins = (file[name].tolist() for name in ("classes", "kinds", "margins"))
    print(
        f"{len(classes)} classes of {head['of']}, {'each once' if sorted(classes) == list(range(len(W))) else 'NOT all of the layer'}"
    )
    exact = {
        name: iter([[Fraction(*(int(n, 16) for n in v.split("/"))) for v in one] for one in head[name]])
        for name in ("exact_points", "exact_weights")
    }
    points = {kind: iter(file[name]) for kind, name in (("witness32", "points32"), ("witness64", "points64"))}
    counts, captors, weights, twins = (
        iter(file["captor_counts"].tolist()),
        iter(file["captors"].tolist()),
        iter(file["weights"].tolist()),
        iter(file["twins"].tolist()),
    )
    tasks = {}
    for t, kind, margin in zip(classes, (KINDS[k] for k in kinds), margins, strict=True):
        if kind.startswith("witness"):
            found = (
                next(exact["exact_points"])
                if kind == "witness_exact"
                else [Fraction(v) for v in next(points[kind]).tolist()]
            )
        elif kind.startswith("captors"):
            rivals = [next(captors) for _ in range(next(counts))]
            found = (
                rivals,
                next(exact["exact_weights"]) if kind == "captors_exact" else [Fraction(next(weights)) for _ in rivals],
            )
        else:
            found = next(twins) if kind == "twin" else None
        tasks.setdefault(VERDICTS[KINDS.index(kind)], []).append((t, margin, found))
    started, proven, failed, random_ = time.monotonic(), {}, [], random.Random(options.seed)

    def rows(index):
        flat, scale = whole([v for i in index for v in W[i].tolist()])
        return [flat[n : n + W.shape[1]] for n in range(0, len(flat), W.shape[1])], scale

    def note(t, how):
        failed.append(t) if how is None else proven.update({how: proven.get(how, 0) + 1})

    chosen = {
        v: some if options.sample is None or options.sample >= len(some) else random_.sample(some, options.sample)
        for v, some in tasks.items()
        if options.only in (None, v)
    }
    for t, margin, (rivals, some) in chosen.get("unargmaxable", []):
        valid = t not in rivals and min(some) >= 0 and max(some) > 0 and min(rivals) >= 0 and margin <= 0
        used = [(i, w) for i, w in zip(rivals, some, strict=True) if w]
        note(
            t,
            captive(rows, bias, t, [i for i, _ in used], [w for _, w in used], Fraction(margin), features)
            if valid
            else None,
        )
    for t, _, twin in chosen.get("tied", []):
        (own, other), scale = rows([t, twin])
        difference, shift = features.effective(
            [Fraction(p - q, scale) for p, q in zip(own, other, strict=True)], bias[t] - bias[twin]
        )
        note(t, "twin" if t != twin and not any(difference) and not shift else None)
    wins = [
        (t, Fraction(min(margin, sys.float_info.max)), features.x(z)) for t, margin, z in chosen.get("argmaxable", [])
    ]
    logits = {t: (*whole(x), *rows([t])) for t, _, x in wins if x is not None}
    own = {t: Fraction(sum(map(mul, x, w[0])), unit * scale) + bias[t] for t, (x, unit, w, scale) in logits.items()}
    least = {t: math.inf for t in logits}
    for i in range(len(W)) if logits else ():
        (row,), scale = rows([i])
        for t, (x, unit, _, _) in logits.items():
            if i != t:
                least[t] = min(least[t], own[t] - bias[i] - Fraction(sum(map(mul, x, row)), unit * scale))
    for t, margin, _ in wins:
        # A margin below the smallest normal float is only claimed to be positive.
        note(
            t,
            "witness"
            if t in logits and least[t] > 0 and (least[t] >= margin or margin < 1e-300) and margin > 0
            else None,
        )
    print(
        f"proven: {proven or 'none'}; undecided: {len(tasks.get('undecided', []))}; {time.monotonic() - started:.0f} s"
    )
    if failed:
        sys.exit(f"NOT proven: classes {failed[:20]}{' ...' if len(failed) > 20 else ''}, {len(failed)} in all")


if __name__ == "__main__":
    main()
