"""A hardmax transformer that classifies given sequences without an error, written down instead of
trained, in exact arithmetic.

Literature: A. Alcalde, G. Fantuzzi, E. Zuazua, "Exact sequence classification with hardmax
transformers" (arXiv 2502.02270): N sequences in R^d, d >= 2, need O(N) blocks of attention and
feed-forward layers with O(N d) parameters, however long they are. The construction here is ours and
has the same counts. It answers the poster of source 004, which asks how to choose A and alpha: A of
rank one, and any alpha.

The plan. A direction u = (1, k, k^2, ...) gives every distinct token its own position t = <u, z>.
The vector p = (-k, 1, 0, ...) is orthogonal to u, so that moving tokens along p changes their
second coordinate w and no position. First w becomes 1 for all. N sequences that differ as sets are
distinguished by at most N - 1 *test tokens* (Bondy's theorem). For the k-th of them

* a feed-forward layer lifts w by h at the position of the test token and nowhere else (a hat of
  three ReLUs),
* a hardmax layer with A = e_2 e_2^T draws the w of every token the share g = alpha / (1 + alpha) of
  the way to the largest in its sequence: by g h where the sequence holds the test token, else by
  nothing,
* a feed-forward layer takes the share 1 - g of the lift back: all tokens of a sequence have one w.

With g h = 2^k the tokens of a sequence end with w = 1 + the sum of 2^k over its test tokens, a
number of its own, and a layer of N ReLUs interpolates the label from that number.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

Token = tuple[Fraction, ...]


@dataclass(frozen=True)
class FeedForward:
    """z <- z + p * sum over neurons (a, b, c) of c max(0, <a, z> + b)."""

    neurons: tuple[tuple[Token, Fraction, Fraction], ...]
    p: Token

    def __call__(self, tokens: Sequence[Token]) -> list[Token]:
        def added(z: Token) -> Fraction:
            terms = (c * max(Fraction(0), _dot(a, z) + b) for a, b, c in self.neurons)
            return sum(terms, Fraction(0))

        return [_moved(z, self.p, added(z)) for z in tokens]

    @property
    def parameters(self) -> int:
        return len(self.p) + len(self.neurons) * (len(self.p) + 2)


@dataclass(frozen=True)
class Attention:
    """Hardmax with A = s s^T, V = p s^T: z + alpha / (1 + alpha) p <s, mean over C(z) - z>."""

    s: Token
    p: Token
    alpha: Fraction

    def __call__(self, tokens: Sequence[Token]) -> list[Token]:
        heights = [_dot(self.s, z) for z in tokens]
        share = self.alpha / (1 + self.alpha)
        out = []
        for z, height in zip(tokens, heights, strict=True):
            best = max(height * other for other in heights)
            tied = [other for other in heights if height * other == best]
            out.append(_moved(z, self.p, share * (sum(tied, Fraction(0)) / len(tied) - height)))
        return out

    @property
    def parameters(self) -> int:
        return len(self.s) + len(self.p) + 1


@dataclass(frozen=True)
class ExactClassifier:
    """Layers written down for given sequences; the label is each token's last second coordinate."""

    layers: tuple[FeedForward | Attention, ...]
    u: Token  # positions are <u, z>
    tests: tuple[Token, ...]  # the test tokens

    def states(self, sequence: Sequence[Sequence[int | Fraction]]) -> list[list[Token]]:
        """The tokens of a sequence before, between and after the layers."""
        states = [[_exact(z) for z in sequence]]
        for layer in self.layers:
            states.append(layer(states[-1]))
        return states

    def label(self, sequence: Sequence[Sequence[int | Fraction]]) -> Fraction:
        """The label on which all tokens agree, those of a new sequence too."""
        return self.states(sequence)[-1][0][1]

    @property
    def blocks(self) -> int:
        """Attention layers with the feed-forward layers around them."""
        return len(self.tests) + 2

    @property
    def parameters(self) -> int:
        """Numbers in all layers."""
        return sum(layer.parameters for layer in self.layers)


def classify_exactly(
    sequences: Sequence[Sequence[Sequence[int | Fraction]]],
    labels: Sequence[int],
    alpha: int | Fraction = 1,
) -> ExactClassifier:
    """Write down layers that give each of N sequences of tokens, tuples of d >= 2 integers or
    fractions, its integer label; lengths may differ, tokens may repeat, and ``alpha`` > 0 is the
    step size of the attention. ValueError if a sequence is empty, dimensions differ or are below 2,
    alpha is not positive, or two sequences with the same tokens have different labels.
    """
    sets = [frozenset(_exact(z) for z in sequence) for sequence in sequences]
    _check(sets, labels, alpha)
    wanted: dict[frozenset[Token], int] = dict(zip(sets, labels, strict=True))
    tokens = sorted(frozenset[Token]().union(*sets))
    d, share = len(tokens[0]), Fraction(alpha) / (1 + Fraction(alpha))
    u = _separating_direction(tokens)
    p = _exact((-u[1], 1, *(0 for _ in range(d - 2))))
    s = _exact(1 if i == 1 else 0 for i in range(d))
    positions = sorted(_dot(u, z) for z in tokens)
    width = min((b - a for a, b in pairwise(positions)), default=Fraction(1))
    tests = separating_elements(list(wanted))
    minus = tuple(-x for x in s)
    one = _exact([0] * d)
    # -w + 1 of a token: max(0, -w) - max(0, w), and a neuron that is always 1.
    zero, unit = Fraction(0), Fraction(1)
    first = FeedForward(((minus, zero, unit), (s, zero, -unit), (one, unit, unit)), p)
    layers: list[FeedForward | Attention] = [first]
    for k, test in enumerate(tests):
        height, place = Fraction(2) ** k / share, _dot(u, test)
        layers.append(FeedForward(_hat(u, place, width, height), p))
        layers.append(Attention(s, p, Fraction(alpha)))
        layers.append(FeedForward(_hat(u, place, width, -(1 - share) * height), p))
    codes = {
        1 + sum((2**k for k, test in enumerate(tests) if test in held), 0): label
        for held, label in wanted.items()
    }
    layers.append(FeedForward(tuple(_interpolation(s, codes)), p))
    return ExactClassifier(tuple(layers), u, tuple(tests))


def separating_elements(sets: Sequence[frozenset[Token]]) -> list[Token]:
    """At most N - 1 elements whose presence distinguishes N sets (Bondy 1972)."""
    groups, chosen = [list(sets)], []
    while crowd := next((group for group in groups if len(group) > 1), None):
        element = min(crowd[0] ^ crowd[1])
        chosen.append(element)
        parts = (
            [held for held in group if (element in held) is there]
            for group in groups
            for there in (True, False)
        )
        groups = [part for part in parts if part]
    return chosen


def _separating_direction(tokens: Sequence[Token]) -> Token:
    """The first u = (1, k, k^2, ...) that separates all tokens; at most d - 1 of k tie two."""
    k = 1
    while True:
        u = _exact(k**i for i in range(len(tokens[0])))
        if len({_dot(u, z) for z in tokens}) == len(tokens):
            return u
        k += 1


def _hat(
    u: Token, place: Fraction, width: Fraction, height: Fraction
) -> tuple[tuple[Token, Fraction, Fraction], ...]:
    """Three neurons that add `height` at a position and nothing beyond `width` from it."""
    slope = height / width
    return ((u, width - place, slope), (u, -place, -2 * slope), (u, -width - place, slope))


def _interpolation(s: Token, codes: dict[int, int]) -> list[tuple[Token, Fraction, Fraction]]:
    """N neurons, linear between codes, whose sum at w = code is label - code."""
    ordered = sorted(codes)
    needs = [Fraction(codes[code] - code) for code in ordered]
    neurons, slope = [(_exact(0 for _ in s), Fraction(1), needs[0])], Fraction(0)
    for (a, b), (low, high) in zip(pairwise(ordered), pairwise(needs), strict=True):
        change = (high - low) / (b - a) - slope
        neurons.append((s, Fraction(-a), change))
        slope += change
    return neurons


def _check(sets: Sequence[frozenset[Token]], labels: Sequence[int], alpha: int | Fraction) -> None:
    if len(sets) != len(labels) or not sets:
        given = f"{len(sets)} sequences but {len(labels)} labels"
        raise ValueError(f"{given}: give one label a sequence, and one sequence at least.")
    if Fraction(alpha) <= 0:
        raise ValueError(f"alpha must be positive, got {alpha}.")
    seen: dict[Hashable, int] = {}
    dimensions = {len(z) for held in sets for z in held}
    for i, (held, label) in enumerate(zip(sets, labels, strict=True)):
        if not held:
            raise ValueError(f"Sequence {i} is empty: there is no token to carry its label.")
        if seen.setdefault(held, label) != label:
            same = f"Sequence {i} has the same tokens as an earlier one with another label"
            raise ValueError(f"{same}: no attention can tell them apart.")
    if len(dimensions) > 1 or min(dimensions) < 2:
        given = f"of at least 2, got {sorted(dimensions)}"
        raise ValueError(f"Tokens must all have the same dimension {given}.")


def _exact(numbers: Iterable[int | Fraction]) -> Token:
    return tuple(Fraction(x) for x in numbers)


def _dot(a: Token, z: Token) -> Fraction:
    return sum((x * y for x, y in zip(a, z, strict=True)), Fraction(0))


def _moved(z: Token, p: Token, by: Fraction) -> Token:
    return tuple(x + by * y for x, y in zip(z, p, strict=True))
