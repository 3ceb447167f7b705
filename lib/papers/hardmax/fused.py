"""Training steps and evaluation in compiled loops: the numbers of the recorded way, several times
sooner. Needs numba (the extra `fast`).

Source 004, equations (1a) and (1b) with A = identity. The recorded way (`hardmax_step` and
`softmax_step` under autograd) is the reference, and what runs where numba is not installed; results
agree up to the order of additions. On the hard way each set C_i holds one token j(i) away from ties
(of tokens that tie one is taken), so the mean after K layers is sum_j m_j z_j^0 with weights that
depend on the sets alone: they start as the tokens' shares, and going back through the layers each
token hands c m_i on to the one that it looked to,

    m_j  <-  (1 - c) m_j + c * sum of m_i over i with j(i) = j.

These weights are the derivative of the mean with respect to the embeddings, and the tokens' moves
under them are its derivative in c. A review is small, some seventy distinct words, so everything
about it stays in the fastest memory: its tokens lie coordinate by coordinate, Z (d, n), and each
loop over the n tokens is one the compiler turns into wide instructions. No matrix of size n x n is
stored on the hard way, and on the soft one only the weights that count: at temperature 0.001 they
are few. All loops stand in one file, since numba notices a change of compiled code by the file of
the function called.

Symbols: B reviews of at most n distinct words, counts 0 for padding; E (W, d) embedding, w (d,) and
v decoder, c = alpha / (1 + alpha).
"""

from typing import Any

import numpy as np
from numba import njit

MEMORY, MEMORY_OF_SQUARES, LEAST_SCALE = 0.9, 0.999, 1e-8  # of Adam (Kingma and Ba 2015)
# a momentum below this moves no weight any more; left alone it would reach numbers that processors
# handle a hundred times slower
_VANISHED = 1e-30

_compiled = njit(cache=True, error_model="numpy")


@_compiled
def _gather(E, words, counts, Z, share, word):
    """The words that are there into Z (d, n), with shares and numbers; returns how many."""
    n, total = 0, counts[0] * 0
    for i in range(len(words)):
        if counts[i] > 0:
            for k in range(Z.shape[0]):
                Z[k, n] = E[words[i], k]
            share[n], word[n] = counts[i], words[i]
            total += counts[i]
            n += 1
    for i in range(n):
        share[i] /= total
    return n


@_compiled
def _inner(a, b, n):
    total = a[0] * b[0]
    for i in range(1, n):
        total += a[i] * b[i]
    return total


@_compiled
def _score(Z, j, n, scores):
    """<z_i, z_j> for all i. Written out in the plane, where most of the time goes."""
    if Z.shape[0] == 2:
        x, y = Z[0, j], Z[1, j]
        for i in range(n):
            scores[i] = Z[0, i] * x + Z[1, i] * y
        return
    for i in range(n):
        scores[i] = Z[0, i] * Z[0, j]
    for k in range(1, Z.shape[0]):
        x = Z[k, j]
        for i in range(n):
            scores[i] += Z[k, i] * x


@_compiled
def _farthest(Z, n, scores, best, chosen):
    """The largest score of each token, and the first token that has it."""
    _score(Z, 0, n, best)
    chosen[:n] = 0
    for j in range(1, n):
        _score(Z, j, n, scores)
        for i in range(n):
            larger = scores[i] > best[i]
            best[i] = scores[i] if larger else best[i]
            chosen[i] = np.int32(j) if larger else chosen[i]


@_compiled
def hard_gradients(E, w, v, c, words, counts, goals, layers, dE, dw):
    """Add the mean cross-entropy's gradient, argmax held, to dE and dw; loss, those in v and c."""
    B, width = words.shape
    d = E.shape[1]
    Z, moved = np.empty((d, width), E.dtype), np.empty((d, width), E.dtype)
    scores, best = np.empty(width, E.dtype), np.empty(width, E.dtype)
    share, weight = np.empty(width, E.dtype), np.empty(width, E.dtype)
    word = np.empty(width, np.int32)
    looks_to, climb = np.empty((layers, width), np.int32), np.empty((layers, width), E.dtype)
    loss, dv, dc = 0.0, 0.0, 0.0
    for r in range(B):
        n = _gather(E, words[r], counts[r], Z, share, word)
        for layer in range(layers):
            chosen, rise = looks_to[layer], climb[layer]
            _farthest(Z, n, scores, best, chosen)
            rise[:n] = 0
            for k in range(d):
                for i in range(n):
                    moved[k, i] = Z[k, chosen[i]] - Z[k, i]
                for i in range(n):
                    rise[i] += w[k] * moved[k, i]  # <w, move>: all that the derivative in c needs
                    Z[k, i] += c * moved[k, i]
        logit = float(v)
        for k in range(d):
            logit += w[k] * _inner(share, Z[k], n)
        slope = _cross_entropy_slope(logit, goals[r]) / B
        loss += _cross_entropy(logit, goals[r]) / B
        dv += slope
        for k in range(d):
            dw[k] += slope * _inner(share, Z[k], n)
        weight[:n] = share[:n]
        for layer in range(layers - 1, -1, -1):
            chosen = looks_to[layer]
            dc += slope * _inner(weight, climb[layer], n)
            for i in range(n):
                best[i] = c * weight[i]
                weight[i] -= best[i]
            for i in range(n):
                weight[chosen[i]] += best[i]
        for i in range(n):
            for k in range(d):
                dE[word[i], k] += E.dtype.type(slope) * weight[i] * w[k]
    return loss, dv, dc


@_compiled
def soft_gradients(E, w, v, c, temperature, cut, words, counts, goals, layers, dE, dw):
    """The same through softmax attention; weights below exp(-cut) of the largest left out."""
    B, width = words.shape
    d = E.shape[1]
    states, means = np.empty((layers + 1, d, width), E.dtype), np.empty((layers, d, width), E.dtype)
    scores, share = np.empty(width, E.dtype), np.empty(width, E.dtype)
    best, second = np.empty(width, E.dtype), np.empty(width, E.dtype)
    word, chosen = np.empty(width, np.int32), np.empty(width, np.int32)
    first = np.empty((layers, width + 1), np.int64)
    most = layers * width * width
    p, to = np.empty(most, E.dtype), np.empty(most, np.int32)
    G, H = np.empty((d, width), E.dtype), np.empty((d, width), E.dtype)
    loss, dv, dc = 0.0, 0.0, 0.0
    for r in range(B):
        n = _gather(E, words[r], counts[r], states[0], share, word)
        kept = 0
        for layer in range(layers):
            Z, after, mean = states[layer], states[layer + 1], means[layer]
            _two_farthest(Z, n, scores, best, second, chosen)
            for i in range(n):
                first[layer, i], total = kept, 0.0
                least = best[i] - cut * temperature
                if second[i] < least:  # the farthest token has all the weight that counts
                    p[kept], to[kept], total = 1, chosen[i], 1.0
                    kept += 1
                else:
                    _score(Z, i, n, scores)
                    for j in range(n):
                        if scores[j] >= least:
                            p[kept] = share[j] * np.exp((scores[j] - best[i]) / temperature)
                            to[kept] = j
                            total += p[kept]
                            kept += 1
                for k in range(d):
                    mean[k, i] = 0
                for e in range(first[layer, i], kept):
                    p[e] /= total
                    for k in range(d):
                        mean[k, i] += p[e] * Z[k, to[e]]
                for k in range(d):
                    after[k, i] = Z[k, i] + c * (mean[k, i] - Z[k, i])
            first[layer, n] = kept
        logit = float(v)
        for k in range(d):
            logit += w[k] * _inner(share, states[layers, k], n)
        slope = _cross_entropy_slope(logit, goals[r]) / B
        loss += _cross_entropy(logit, goals[r]) / B
        dv += slope
        for k in range(d):
            dw[k] += slope * _inner(share, states[layers, k], n)
            for i in range(n):
                G[k, i] = slope * share[i] * w[k]
        for layer in range(layers - 1, -1, -1):
            Z, mean = states[layer], means[layer]
            for k in range(d):
                for i in range(n):
                    dc += G[k, i] * (mean[k, i] - Z[k, i])
                    H[k, i] = G[k, i] - c * G[k, i]
            for i in range(n):
                for e in range(first[layer, i], first[layer, i + 1]):
                    j, along = to[e], 0.0
                    for k in range(d):
                        along += G[k, i] * (Z[k, j] - mean[k, i])
                    # d p_ij / d score_ij = p_ij (1 - p_ij) / T and so on, gathered: the score's
                    # gradient is c p_ij <G_i, z_j - mean_i> / T.
                    pull = E.dtype.type(c * p[e] * along / temperature)
                    for k in range(d):
                        H[k, j] += c * p[e] * G[k, i] + pull * Z[k, i]
                        H[k, i] += pull * Z[k, j]
            G, H = H, G
        for i in range(n):
            for k in range(d):
                dE[word[i], k] += G[k, i]
    return loss, dv, dc


@_compiled
def _cross_entropy(logit, goal):
    return max(logit, 0.0) - logit * goal + np.log1p(np.exp(-abs(logit)))


@_compiled
def _cross_entropy_slope(logit, goal):
    return 1.0 / (1.0 + np.exp(-logit)) - goal if logit > -500 else -goal


@_compiled
def _means(E, c, words, counts, layers, tol):
    """The mean token (B, d) after the layers: tokens that tie share the pull by counts."""
    B, width = words.shape
    d = E.shape[1]
    Z, goal = np.empty((d, width), E.dtype), np.empty((d, width), E.dtype)
    scores, best = np.empty(width, E.dtype), np.empty(width, E.dtype)
    second, share = np.empty(width, E.dtype), np.empty(width, E.dtype)
    word, chosen = np.empty(width, np.int32), np.empty(width, np.int32)
    out = np.empty((B, d), E.dtype)
    for r in range(B):
        n = _gather(E, words[r], counts[r], Z, share, word)
        for _ in range(layers):
            _two_farthest(Z, n, scores, best, second, chosen)
            largest = E.dtype.type(0)
            for i in range(n):
                scores[i] = 0
                for k in range(d):
                    scores[i] += Z[k, i] * Z[k, i]
                largest = max(largest, scores[i])
            for i in range(n):
                least = best[i] - tol * np.sqrt(scores[i] * largest)
                if second[i] < least:
                    for k in range(d):
                        goal[k, i] = Z[k, chosen[i]]
                else:
                    _share_pull(Z, i, n, least, share, goal)
            for k in range(d):
                for i in range(n):
                    Z[k, i] += c * (goal[k, i] - Z[k, i])
        for k in range(d):
            out[r, k] = _inner(share, Z[k], n)
    return out


@_compiled
def _two_farthest(Z, n, scores, best, second, chosen):
    """`_farthest`, and the next largest score: where that is clearly smaller, nothing ties."""
    _score(Z, 0, n, best)
    chosen[:n] = 0
    second[:n] = -np.inf
    for j in range(1, n):
        _score(Z, j, n, scores)
        for i in range(n):
            larger = scores[i] > best[i]
            loser = best[i] if larger else scores[i]
            second[i] = loser if loser > second[i] else second[i]
            best[i] = scores[i] if larger else best[i]
            chosen[i] = np.int32(j) if larger else chosen[i]


@_compiled
def _share_pull(Z, i, n, least, share, goal):
    """The mean of the tokens whose score with i is so large, by counts, into goal[:, i]."""
    total = share[0] * 0
    for k in range(Z.shape[0]):
        goal[k, i] = 0
    for j in range(n):
        score = Z[0, i] * Z[0, j]
        for k in range(1, Z.shape[0]):
            score += Z[k, i] * Z[k, j]
        if score >= least:
            total += share[j]
            for k in range(Z.shape[0]):
                goal[k, i] += share[j] * Z[k, j]
    for k in range(Z.shape[0]):
        goal[k, i] /= total


def mean_tokens(
    E: np.ndarray, alpha: float, words: np.ndarray, counts: np.ndarray, layers: int, tol: float
) -> np.ndarray:
    """The mean (B, d) of the tokens after `layers` layers, ties as in `hardmax_step`."""
    c = E.dtype.type(alpha / (1 + alpha))
    return _means(E, c, words, counts.astype(E.dtype, copy=False), layers, E.dtype.type(tol))


class FusedStep:
    """A training step of a classifier on the CPU, in place (its parameters' memory is worked on
    directly): call it with words and counts (B, n), targets (B,) and the learning rate. ``rates``
    are factors on that, of each trainable parameter; ``clip`` is the gradient's largest norm, 0 for
    any.
    """

    def __init__(self, model: Any, rates: dict[Any, float], clip: float = 0.0) -> None:
        self._model, self._clip, self._steps = model, clip, 0
        trained = [(p, factor) for p, factor in rates.items() if p.requires_grad]
        flat = [(p, p.detach().numpy().reshape(-1), factor) for p, factor in trained]
        # with the gradient and both means of Adam
        self._slots = [(*slot, *(np.zeros_like(slot[1]) for _ in range(3))) for slot in flat]

    def __call__(
        self, words: np.ndarray, counts: np.ndarray, goals: np.ndarray, rate: float
    ) -> float:
        """Take the step; returns the mean cross-entropy before it."""
        model, recipe = self._model, self._model.recipe
        E, w = model.embedding.detach().numpy(), model.w.detach().numpy()
        kind, alpha = E.dtype.type, model.alpha.item()
        c, v = kind(alpha / (1 + alpha)), kind(model.v.item())
        gradients = {id(p): g for p, _, _, g, _, _ in self._slots}
        dE, dw = gradients[id(model.embedding)].reshape(E.shape), gradients[id(model.w)]
        sizes, signs = counts.astype(kind, copy=False), goals.astype(np.float64, copy=False)
        data = (words, sizes, signs, recipe.layers, dE, dw)
        if recipe.attention == "softmax":
            # 128 weights this small are still below rounding
            cut = kind(5.0 - np.log(np.finfo(kind).eps))
            loss, dv, dc = soft_gradients(E, w, v, c, kind(recipe.temperature), cut, *data)
        else:
            loss, dv, dc = hard_gradients(E, w, v, c, *data)
        gradients[id(model.v)][0] = dv
        if id(model.step) in gradients and recipe.layers:
            gradients[id(model.step)][0] = dc / (1 + alpha) ** 2 * model.slope_of_alpha()
        self._descend(rate)
        return loss

    def _descend(self, rate: float) -> None:
        self._steps += 1
        if self._clip > 0:
            norm = np.sqrt(sum(float(np.dot(g, g)) for _, _, _, g, _, _ in self._slots))
            for _, _, _, g, _, _ in self._slots:
                g *= min(1.0, self._clip / (norm + 1e-6))
        first, second = (1 - memory**self._steps for memory in (MEMORY, MEMORY_OF_SQUARES))
        constants = 1 / second, 1 - MEMORY, MEMORY_OF_SQUARES, 1 - MEMORY_OF_SQUARES, LEAST_SCALE
        for _, flat, factor, g, mean, square in self._slots:
            kind = flat.dtype.type
            _adam(flat, g, mean, square, kind(rate * factor / first), *map(kind, constants))


@_compiled
def _adam(p, g, mean, square, rate, stretch, take, memory_of_squares, take_squares, least):
    """One step of Adam on flat arrays in their precision; the gradient is left zero."""
    for i in range(len(p)):
        if g[i] == 0 and mean[i] == 0:
            square[i] *= memory_of_squares
            continue
        mean[i] += take * (g[i] - mean[i])
        square[i] = square[i] * memory_of_squares + take_squares * g[i] * g[i]
        p[i] -= rate * mean[i] / (np.sqrt(square[i] * stretch) + least)
        if abs(mean[i]) < _VANISHED:
            mean[i] = 0
        g[i] = 0
