"""Tables of n-grams: against the formulas written with dictionaries, and as probabilities."""

from collections import Counter

import numpy as np
import pytest

from compendium.models.ngrams import NGramTable


def by_dictionaries(training, d_vocab, order, kneser_ney):
    """p(w | context) from counted tuples, by recursion."""
    counts = {}
    for k in range(1, order + 1):
        places = [(row, i) for row in training.tolist() for i in range(len(row) - k + 1)]
        counts[k] = Counter(tuple(row[i : i + k]) for row, i in places)
    if kneser_ney:
        counts |= {k - 1: Counter(gram[1:] for gram in counts[k]) for k in range(2, order + 1)}

    def probability(word, context):
        k = len(context) + 1
        if k == 0:
            return 1 / d_vocab
        lower = probability(word, context[1:]) if context else 1 / d_vocab
        table = counts[k]
        followers = {gram: c for gram, c in table.items() if gram[:-1] == context}
        total = sum(followers.values())
        if not total:
            return lower
        once, twice = (sum(c == n for c in table.values()) for n in (1, 2))
        D = once / (once + 2 * twice) if once and twice else 0.5
        return (max(table[*context, word] - D, 0) + D * len(followers) * lower) / total

    return probability


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("kneser_ney", [False, True])
def test_agrees_with_the_formulas_written_with_dictionaries(order, kneser_ney):
    rng = np.random.default_rng(0)
    # token 6 is never seen
    training, held_out = rng.integers(0, 6, (12, 7)), rng.integers(0, 7, (5, 6))
    table = NGramTable(training, 7, order, kneser_ney=kneser_ney)
    probability = by_dictionaries(training, 7, order, kneser_ney)
    for row, found in zip(held_out.tolist(), table.log_probabilities(held_out), strict=True):
        for t in range(1, len(row)):
            context = tuple(row[max(0, t - order + 1) : t])
            assert found[t - 1] == pytest.approx(np.log(probability(row[t], context)), abs=1e-12)


@pytest.mark.parametrize(
    ("windows", "order", "message"),
    [
        (np.zeros((0, 4), int), 2, "not an array of shape"),
        (np.zeros((3, 1), int), 1, "at least 2 tokens"),
        (np.full((3, 4), 9), 2, "do not fit a vocabulary of 5"),
        (np.zeros((3, 4), int), 4, "order 4"),
    ],
)
def test_bad_input_is_named(windows, order, message):
    with pytest.raises(ValueError, match=message):
        NGramTable(windows, 5, order)
