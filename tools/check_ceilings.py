"""Checks ceilings of probability in integers, with nothing of softgeom; NumPy only reads arrays.

    python tools/check_ceilings.py ceilings.npz layer.npz [--sample 200] [--seed 7]

For class t and any weights l >= 0, sum 1, on its rivals, every x of the feature set X has

    1 / p_t - 1 = sum exp(y_i - y_t) >= exp(A),  A = H(l) + sum l_i b_i - b_t - s_X(r),

r = w_t - sum l_i w_i (Jensen's inequality; s_X is the support function). The weights are chosen
here: integers u_i below 2^160 exp(-n_i / 2^64), n_i near 2^64 times how far the logit of class i at
the stored point is below the highest. So log u_i is bounded by n_i, and all else is exact. Over
unbounded features r has to vanish: d of the weights move to make it so, each by a proven bound.
"""

import argparse
import json
import math
import random
from collections import defaultdict
from fractions import Fraction
from operator import mul

import numpy as np
from check_evidence import (
    Features,
    array,
    demand,
    end,
    identity_errors,
    inverse,
    members,
    read_layer,
    whole,
)

BITS, GRID = 160, 64  # u is in units of 2^-160, logarithms are in units of 2^-64
ONE = 1 << BITS


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


def log_down(value):
    """A rational below ``log(value)`` for a rational value > 0, proven by its exponential."""
    power = value.numerator.bit_length() - value.denominator.bit_length()
    part = value / Fraction(2) ** power  # between 1/2 and 2
    n = math.floor((math.log(part) - 1e-15) * 2**GRID)
    holds = exp_up(-n) <= part * ONE if n < 0 else part * exp_down(n) >= ONE
    demand(holds, "a logarithm could not be bounded")
    return Fraction(n, 1 << GRID) + power * (LOG_2 if power > 0 else LOG_2 + Fraction(1, 1 << 48))


LOG_2 = Fraction(math.floor((math.log(2) - 1e-15) * 2**GRID), 1 << GRID)
ABOVE = int(LOG_2 * 2**GRID) + (1 << 16)
if not 2 * exp_down(int(LOG_2 * 2**GRID)) >= ONE >= 2 * exp_up(ABOVE):
    raise ArithmeticError("log 2 does not lie between LOG_2 and LOG_2 + 2^-48")


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
        flat, self.unit = whole(W.ravel().tolist())
        d = W.shape[1]
        self.rows = [flat[n : n + d] for n in range(0, len(flat), d)]
        self.b = [Fraction(0)] * len(W) if b is None else [*map(Fraction, b.tolist())]


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
    chosen = []
    for _ in range(d):
        if not rows:
            return None
        best = max(rows, key=lambda i: sum(a * a for a in rows[i]))
        pivot = rows.pop(best)
        size = sum(a * a for a in pivot)
        if not size > 0:
            return None
        chosen.append(best)
        for i, row in rows.items():
            share = sum(map(mul, row, pivot)) / size
            if share:
                rows[i] = [a - share * b for a, b in zip(row, pivot, strict=True)]
    return chosen


def proves_ceiling(A, ceiling):
    """Whether ``1 / (1 + exp A) <= ceiling``."""
    if ceiling >= 1:
        return ceiling == 1
    if A is None or ceiling <= 0:
        return False
    need = 1 / Fraction(ceiling) - 1
    if A >= 0:
        high = exp_up(math.floor(A * 2**GRID))
        return Fraction(ONE, high) >= need
    return Fraction(exp_down(math.ceil(-A * 2**GRID)), ONE) >= need


def proves_reached(look, t, reached):
    """Whether the softmax at the point gives class t at least so much."""
    high = sum(exp_up(n) for n in look.down)
    low = exp_down(look.down[t] + 1)
    return reached == 0 or (low > 0 and Fraction(high, low) <= 1 / Fraction(reached))


ARRAYS = {"classes": "<i8", "points": "<f8", "at": "<i8", "ceilings": "<f8", "reached": "<f8"}


def read(path, identity, classes, d):
    """The feature set as the head has it, and the arrays."""
    held = members(path)
    written = array(held.pop("head"), "head", "<U")
    head = json.loads(written)
    demand(json.dumps(head, sort_keys=True) == written, "its head is no canonical JSON")
    demand(type(head["format"]) is int and head["format"] == 4, "it is not of format 4")
    scaled = "its probabilities are not softmax(W x + b), and this checker knows no other"
    demand("readout" not in head, scaled)
    known = head.keys() == {"format", "holds", "layer", "features"} and head["holds"] == "ceilings"
    demand(known, "its head is not that of ceilings")
    ours = json.dumps(identity, sort_keys=True)
    demand(json.dumps(head["layer"], sort_keys=True) == ours, "it belongs to another layer")
    demand(held.keys() == ARRAYS.keys(), "it has other arrays")
    arrays = [array(held[name], name, dtype) for name, dtype in ARRAYS.items()]
    named, points, at, *probabilities = arrays
    n = len(named)
    demand(all(a.shape == (n,) for a in (named, at, *probabilities)), "its arrays do not fit")
    demand(points.shape == (len(points), d) and np.isfinite(points).all(), "a point is none")
    rises = (named[1:] > named[:-1]).all() and named[0] >= 0 and named[-1] < classes
    demand(rises, "a class is none of the layer's, occurs twice, or out of order")
    demand(set(at.tolist()) == set(range(len(points))), "a point is not there, or not used")
    demand(all(0 <= p <= 1 for some in probabilities for p in some), "a ceiling is no probability")
    demand(min(probabilities[0]) > 0, "a ceiling is no probability")
    return head["features"], arrays


def check(options):
    """Check a file and print what is proven."""
    W, b, identity = read_layer(options.layer)
    stored, arrays = read(options.ceilings, identity, *W.shape)
    classes, points, at, ceilings, reached = (values.tolist() for values in arrays)
    layer, features, n = Layer(W, b), Features(stored, W.shape[1]), len(classes)
    few = range(n)
    if options.sample is not None:
        few = random.Random(options.seed).sample(few, min(n, options.sample))
    groups = defaultdict(list)
    for k in few:
        groups[at[k]].append(k)
    failed = []
    for point, members_ in groups.items():
        z = [*map(Fraction, points[point])]
        x = features.x(z)
        look = Look(layer, z if x is None else x)  # any point proves a ceiling
        for k in members_:
            good = proves_ceiling(odds(layer, features, look, classes[k]), ceilings[k])
            inside = reached[k] == 0 or x is not None
            if not (good and inside and proves_reached(look, classes[k], reached[k])):
                failed.append(classes[k])
    print(f"feature set: {features}")
    drawn = "" if options.sample is None else f" (drawn with --seed {options.seed})"
    print(f"looked at {len(few)} of {n} classes of {len(W)} x {W.shape[1]}{drawn}")
    print(f"proven: {len(few) - len(failed)}")
    demand(not failed, f"NOT proven: {len(failed)} classes, the first {sorted(failed)[:20]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ceilings")
    parser.add_argument("layer")
    parser.add_argument("--sample", type=int, help="so many classes, drawn at random; default all")
    parser.add_argument("--seed", type=int, help="repeats a sample; default a fresh one, printed")
    options = parser.parse_args()
    end(check, options, options.ceilings)


if __name__ == "__main__":
    main()
