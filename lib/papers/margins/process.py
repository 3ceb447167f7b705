"""Token laws and their consistency across lengths (003, Section 5, Appendix C).

A family of laws p_T on words of length T is consistent if p_T(w_1..w_T) = sum over w of
p_{T+1}(w_1..w_T, w) for every T (Theorem 2); it then extends to one law on infinite sequences
(Theorem 3).  Two kinds of family are enumerated here.

Tokens only.  Token w has embedding x_w (a number); a context is summarised by softmax attention
with logits c x_q x_j, its query being the nearest context token; the law of the missing token is
softmax of u_w h, h = x_q + summary.  Three ways to make a joint law of the conditionals: ``causal``
(each token given those before), ``anticausal`` (given those after) and ``bidirectional`` (product
of all conditionals given all other tokens, normalised).  Arithmetic is that of the numbers put in:
floats with math.exp, or sympy rationals with sympy.exp for exact statements.

Latent embeddings.  x_1..x_T follow the scalar attention prior, tokens are Bernoulli(sigmoid(gain
x_i)).  Integrating x_3 out gives back the law of length 2 only if the one-step conditional (72) is
a density, that is if x -> e(x) is bijective.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import expit, ndtr
from scipy.stats import norm

from papers.margins.prior import check_scale
from softgeom.arrays import Floats

Word = tuple[int, ...]
Law = dict[Word, Any]
Mode = Literal["causal", "anticausal", "bidirectional"]


@dataclass(frozen=True)
class TokenModel:
    """A head with scalar embeddings: x_w, u_w for each token, coupling c, the exponential."""

    embeddings: Sequence[Any]
    outputs: Sequence[Any]
    coupling: Any
    exp: Callable[[Any], Any] = math.exp

    def conditional(self, context: Sequence[int], query: int | None) -> list[Any]:
        """The law of a missing token from its ``context``; ``query`` is the token that asks."""
        h: Any = 0
        if query is not None:
            x = [self.embeddings[w] for w in context]
            weights = [self.exp(self.coupling * self.embeddings[query] * x_j) for x_j in x]
            h = self.embeddings[query] + sum(
                a * x_j for a, x_j in zip(weights, x, strict=True)
            ) / sum(weights)
        scores = [self.exp(u * h) for u in self.outputs]
        return [score / sum(scores) for score in scores]


def token_law(model: TokenModel, T: int, mode: Mode = "causal") -> Law:
    """p_T of all words of length T: {word: probability}. ValueError: T < 1 or an unknown mode."""
    if T < 1 or mode not in ("causal", "anticausal", "bidirectional"):
        raise ValueError(
            f"T = {T} must be at least 1 and mode one of causal, anticausal, bidirectional, "
            f"not {mode!r}."
        )
    law: Law = {}
    for word in itertools.product(range(len(model.embeddings)), repeat=T):
        law[word] = math.prod(_position_probability(model, word, i, mode) for i in range(T))
    if mode == "bidirectional":
        total = sum(law.values())
        law = {word: p / total for word, p in law.items()}
    return law


def _position_probability(model: TokenModel, word: Word, i: int, mode: Mode) -> Any:
    before, after = word[:i], word[i + 1 :]
    context = {"causal": before, "anticausal": after, "bidirectional": before + after}[mode]
    nearest = after[:1] if mode == "anticausal" else (before[-1:] or after[:1])
    return model.conditional(context, nearest[0] if context else None)[word[i]]


def consistency_gaps(shorter: Mapping[Word, Any], longer: Mapping[Word, Any]) -> Law:
    """sum_w p_{T+1}(word, w) - p_T(word) for every word: zero iff consistent (eq. 32)."""
    marginal: Law = {}
    for word, p in longer.items():
        marginal[word[:-1]] = marginal.get(word[:-1], 0) + p
    return {word: marginal[word] - p for word, p in shorter.items()}


def cylinder_probability(laws: Mapping[int, Mapping[Word, Any]], fixed: Mapping[int, int]) -> Any:
    """P(W_i = w for every (i, w) in ``fixed``), positions from 1 (eq. 33)."""
    return sum(
        p for word, p in laws[max(fixed)].items() if all(word[i - 1] == w for i, w in fixed.items())
    )


def latent_token_law(
    T: int,
    c: float,
    s: float,
    gain: float,
    *,
    one_sheet: bool = False,
    nodes: int = 80,
    cells: int = 800,
) -> Floats:
    """Integrate the embeddings out of p(w | x) p(x) for T = 2 or 3: array (2,) * T.

    x_1 = e_1 and x_2 = x_1 + e_2 by the trapezoidal rule with ``nodes`` nodes each (the mass has a
    kink where the line begins to fold, which Gauss rules resolve badly), x_3 on ``cells`` cells
    with differences of the Gaussian distribution function as weights, so that its mass is exact.
    ``one_sheet`` keeps, for each e_3, the smallest solution x_3 only, which is a density for every
    c. ValueError: T is neither 2 nor 3, or s is not positive.
    """
    if T not in (2, 3):
        raise ValueError(f"T = {T}: the quadrature is written for the lengths 2 and 3.")
    check_scale(s)
    z = np.linspace(-7.0, 7.0, nodes)
    weight = norm.pdf(z) / norm.pdf(z).sum()
    x1 = np.repeat(s * z[:, None], nodes, axis=1)
    x2 = x1 + s * z
    W = weight[:, None] * weight
    first, second = _emit(x1, gain), _emit(x2, gain)  # (2, nodes, nodes) each
    if T == 2:
        return np.einsum("ab,iab,jab->ij", W, first, second)
    third = np.array(
        [_last_token_law(u, v, c, s, gain, one_sheet, cells) for u, v in zip(x1, x2, strict=True)]
    )
    return np.einsum("ab,iab,jab,akb->ijk", W, first, second, third)


def _last_token_law(
    x1: Floats, x2: Floats, c: float, s: float, gain: float, one_sheet: bool, cells: int
) -> Floats:
    """Integrate x_3 out after many pasts of two tokens: (n,), (n,) -> (2, n)."""
    half, middle = 0.5 * (x2 - x1), 0.5 * (x1 + x2)
    reach = np.abs(half) + 9.0 * s
    x = middle + reach * np.linspace(-1.0, 1.0, cells + 1)[:, None]  # (cells + 1, n)
    e = x - middle - half * np.tanh(c * half * x)  # two tokens: softmax is a logistic function
    if one_sheet:
        e = np.maximum.accumulate(e, axis=0)  # the smallest solution is where e(x) first reaches e
    share = np.abs(np.diff(ndtr(e / s), axis=0))
    return np.einsum("xn,kxn->kn", share, _emit(0.5 * (x[1:] + x[:-1]), gain))


def _emit(x: Floats, gain: float) -> Floats:
    """p(w | x) for w = 0, 1, stacked in front."""
    one = expit(gain * x)
    return np.stack([1.0 - one, one])
