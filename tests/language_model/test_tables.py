import itertools

import numpy as np
import pytest

from softgeom.language_model.tables import table_losses


def test_losses_of_tables_against_loops():
    rng = np.random.default_rng(0)
    training, held_out, size = rng.integers(0, 5, 300), rng.integers(0, 6, 40), 6
    single = {t: (list(training).count(t) + 1) / (len(training) + size) for t in range(size)}
    unigram, bigram = table_losses(training, held_out, size)
    assert unigram == pytest.approx(-np.mean([np.log(single[t]) for t in held_out[1:]]))
    pairs = list(itertools.pairwise(training))

    def mixed(w):
        p = []
        for s, t in itertools.pairwise(held_out):
            after = [b for a, b in pairs if a == s]
            p.append(w * (after.count(t) / len(after) if after else 0) + (1 - w) * single[t])
        return -np.mean(np.log(p))

    assert bigram == pytest.approx(min(mixed(w) for w in np.linspace(0.05, 0.95, 19)))


def test_a_chain_is_known_to_pairs_only():
    chain = np.arange(400) % 8
    unigram, bigram = table_losses(chain, chain[:50], 8)
    assert unigram == pytest.approx(np.log(8), rel=1e-3)
    assert bigram < 0.2
    with pytest.raises(ValueError, match="hold no pair"):
        table_losses(chain[:1], chain, 8)
