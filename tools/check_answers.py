"""Check answers about orders in exact arithmetic, with nothing of softgeom: `python
tools/check_answers.py ANSWERS.npz layer.npz`.

An order puts blocks of classes above each other (docs/certificates.md, "Orders"). A point proves
that logits can obey it: all of them are computed as fractions. Weights l on comparisons (a, b)
prove that they cannot: with rows `w_b - w_a` and biases `b_b - b_a` as rivals of a row of zeros,
that is the captivity which check_evidence.py proves. Where the answers are about experts, each
expert's verdict is checked to follow from its orders: at most k - 1 others are left out of a
possible one, or no k - 1 others meet all impossible ones.
"""

import argparse
import hashlib
import json
import random
import sys
from fractions import Fraction
from itertools import islice, pairwise
from operator import mul

import numpy as np
from check_evidence import Features, captive, whole

POINTS, WEIGHTS, UNKNOWN = (0, 1, 4), (2, 5), 3  # kinds, by their number


def number(stored):
    """A float, or numerator and denominator in hexadecimal, as the rational that it is."""
    return (
        Fraction(*(int(n, 16) for n in stored.split("/")))
        if isinstance(stored, str)
        else Fraction(stored)
    )


def blocks(order, classes):
    """The blocks of an order, the rest as the last one."""
    named = [list(block) for block in order["blocks"]]
    flat = [i for block in named for i in block]
    assert sorted(set(flat)) == sorted(flat)
    assert set(flat) <= set(range(classes))
    assert all(named)
    others = sorted(set(range(classes)) - set(flat)) if order["rest"] else []
    return named + [others] * bool(others)


def read(file, head):
    """Each order with its kind, margin and evidence: a point, or (above, below, weights)."""
    points = {
        0: iter(file["points32"].tolist()),
        1: iter(file["points64"].tolist()),
        4: iter(head["exact_points"]),
    }
    above, below, weights, counts = (
        iter(file[name].tolist()) for name in ("above", "below", "weights", "counts")
    )
    exact = iter(head["exact_weights"])
    for order, kind, margin in zip(
        head["orders"], file["kinds"].tolist(), file["margins"].tolist(), strict=True
    ):
        found = None
        if kind in POINTS:
            found = [number(value) for value in next(points[kind])]
        elif kind in WEIGHTS:
            k = next(counts)
            pairs = list(zip(islice(above, k), islice(below, k), strict=True))
            found = pairs, [number(w) for w in (next(exact) if kind == 5 else islice(weights, k))]
        yield order, kind, margin, found


def obeys(W, bias, order, x, margin):
    """Whether the logits at x obey the order, by at least the margin (at the end of the range of
    floats: at all).
    """
    named = blocks(order, len(W))

    z, unit = whole(x)

    def logit(i):
        row, scale = whole(W[i].tolist())
        return Fraction(sum(map(mul, row, z)), unit * scale) + bias[i]

    y = {i: logit(i) for block in named for i in block}
    gaps = [min(y[i] for i in upper) - max(y[i] for i in lower) for upper, lower in pairwise(named)]
    return all(
        gap > 0 and (margin < 1e-300 or gap >= min(Fraction(sys.float_info.max), margin))
        for gap in gaps
    )


def forbids(W, bias, order, pairs, weights, margin, features):
    """How the weights prove that the order's best margin is at most `margin` <= 0; None if they do
    not.
    """
    named = blocks(order, len(W))
    level = {i: n for n, block in enumerate(named) for i in block}
    demanded = all(a in level and level.get(b) == level[a] + 1 for a, b in pairs)
    if not demanded or not any(weights) or min(weights) < 0 or margin > 0:
        return None
    used = [(pair, weight) for pair, weight in zip(pairs, weights, strict=True) if weight]
    rows = [[Fraction(0)] * W.shape[1]]
    rows += [
        [Fraction(q) - Fraction(p) for p, q in zip(W[a].tolist(), W[b].tolist(), strict=True)]
        for (a, b), _ in used
    ]
    shifts = [Fraction(0)] + [bias[b] - bias[a] for (a, b), _ in used]
    rivals = range(1, len(rows))
    return captive(
        np.array(rows, dtype=object),
        shifts,
        0,
        [*rivals],
        [w for _, w in used],
        Fraction(margin),
        features,
    )


def met(prisons, size):
    """Whether at most `size` experts can be chosen so that each prison holds one of them."""
    return not prisons or (
        size > 0
        and any(met([p for p in prisons if e not in p], size - 1) for e in min(prisons, key=len))
    )


def follows(expert, verdict, k, proven, classes):
    """Whether an expert's verdict follows from its orders, each with its kind."""
    rivals = []
    for order, _ in proven:
        own, *others = order["blocks"]
        if own != [expert] or order["rest"] or len(others) > 1:
            return False
        rivals.append(set(others[0]) if others else set())
    kinds = [kind for _, kind in proven]
    if verdict == "possible":
        return len(kinds) == 1 and kinds[0] in POINTS and classes - 1 - len(rivals[0]) < k
    if verdict == "impossible":
        return all(kind in WEIGHTS for kind in kinds) and not met(rivals, k - 1)
    return verdict == "undecided"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("answers")
    parser.add_argument("layer", help="an .npz with W and, if there is one, b")
    parser.add_argument("--sample", type=int, default=sys.maxsize, help="at most so many orders")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    file, layer = (
        np.load(options.answers, allow_pickle=False),
        np.load(options.layer, allow_pickle=False),
    )
    head, W = json.loads(str(file["head"])), layer["W"]
    b = layer["b"] if "b" in layer.files else None
    digests = [
        None if array is None else hashlib.sha256(array.tobytes()).hexdigest() for array in (W, b)
    ]
    if (
        head["format"] != "orders 1"
        or [(head["identity"][n] or {}).get("sha256") for n in "Wb"] != digests
    ):
        sys.exit(
            "the answers are of another format, or belong to another layer: the SHA-256 of W "
            "or b differs"
        )
    features = Features(head["features"], W.shape[1])
    bias = [Fraction(0)] * len(W) if b is None else [*map(Fraction, b.tolist())]
    everything = list(read(file, head))
    chosen = random.Random(options.seed).sample(everything, min(len(everything), options.sample))
    proven, failed = {}, []
    for order, kind, margin, found in chosen:
        if kind == UNKNOWN:
            how = "undecided"
        elif kind in POINTS:
            x = features.x(found)
            how = (
                "point"
                if margin > 0 and x is not None and obeys(W, bias, order, x, margin)
                else None
            )
        else:
            how = forbids(W, bias, order, *found, margin, features)
        failed += [order] * (how is None)
        proven[how] = proven.get(how, 0) + 1
    print(f"{len(chosen)} of {len(everything)} orders: {proven}")
    if about := head.get("experts"):
        rest = iter([(order, kind) for order, kind, *_ in everything])
        groups = [(e, verdict, [*islice(rest, count)]) for e, verdict, _, count in about["chosen"]]
        wrong = [
            e for e, verdict, group in groups if not follows(e, verdict, about["k"], group, len(W))
        ]
        print(f"{len(groups) - len(wrong)} of {len(groups)} verdicts on experts follow")
        if wrong or next(rest, None):
            sys.exit(
                f"NOT proven: the verdict on expert {wrong[:1]}, or an order that belongs to none"
            )
    if failed:
        sys.exit(f"NOT proven: {len(failed)} orders, the first {failed[0]}")


if __name__ == "__main__":
    main()
