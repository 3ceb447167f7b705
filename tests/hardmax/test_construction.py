"""The written-down classifier: exact, as small as promised, clear about the others."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from papers.hardmax.construction import classify_exactly, separating_elements

coordinates = st.one_of(st.integers(-3, 3), st.fractions(-2, 2, max_denominator=5))


@st.composite
def tasks(draw):
    """Sequences that differ as sets, of few distinct tokens, so that hulls agree; and labels."""
    d = draw(st.integers(2, 4))
    token = st.tuples(*[coordinates] * d)
    pool = draw(st.lists(token, min_size=3, max_size=6, unique=True))
    sequence = st.lists(st.sampled_from(pool), min_size=1, max_size=7)
    sequences = draw(st.lists(sequence, min_size=1, max_size=7, unique_by=lambda s: frozenset(s)))
    labels = draw(st.lists(st.integers(-1, 3), min_size=len(sequences), max_size=len(sequences)))
    return sequences, labels, draw(st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(7, 3)]))


@given(tasks())
@example(([[(0, 0), (4, 1), (1, 3)], [(0, 0), (4, 1), (1, 3), (2, 1)]], [0, 1], 1))  # one hull
@settings(max_examples=30)
def test_every_sequence_gets_its_label_exactly(task):
    sequences, labels, alpha = task
    classifier = classify_exactly(sequences, labels, alpha)
    assert [classifier.label(sequence) for sequence in sequences] == labels
    for sequence in sequences:
        states = classifier.states(sequence)
        for state in states[1::3]:  # after the first layer and after each block all tokens agree
            assert len({z[1] for z in state}) == 1
        for state in states:  # and keep their positions
            assert np.dot(state, classifier.u).tolist() == np.dot(sequence, classifier.u).tolist()
    N, d = len(sequences), len(sequences[0][0])
    assert len(classifier.tests) <= N - 1
    assert classifier.blocks <= N + 1
    assert classifier.parameters <= 40 * N * d
    # Neither the order of the tokens nor how often one is said matters to a set.
    assert classifier.label(list(reversed(sequences[0])) * 2) == labels[0]


@given(st.lists(st.frozensets(st.integers(0, 7)), min_size=1, max_size=12, unique=True))
def test_fewer_elements_than_sets_tell_them_apart(sets):
    sets = [frozenset((Fraction(x),) for x in held) for held in sets]
    chosen = separating_elements(sets)
    assert len(chosen) < len(sets)
    assert len({frozenset(held & set(chosen)) for held in sets}) == len(sets)


@given(tasks(), st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=6))
@settings(max_examples=15)
def test_the_tokens_of_a_new_sequence_agree_too(task, new):
    (sequence, *_), (label, *_), alpha = task
    classifier = classify_exactly([[z[:2] for z in sequence], [(9, 9)]], [label, 1], alpha)
    assert len({z[1] for z in classifier.states(new)[-1]}) == 1


@pytest.mark.parametrize(
    ("sequences", "labels", "alpha", "message"),
    [
        ([[(0, 0)], [(0, 0), (0, 0)]], [0, 1], 1, "same tokens as an earlier one"),
        ([[(0, 0)], []], [0, 1], 1, "Sequence 1 is empty"),
        ([[(0,)], [(1,)]], [0, 1], 1, "dimension of at least 2"),
        ([[(0, 0)], [(0, 0, 1)]], [0, 1], 1, "same dimension"),
        ([[(0, 0)]], [0, 1], 1, "1 sequences but 2 labels"),
        ([[(0, 0)]], [0], 0, "alpha must be positive"),
    ],
)
def test_sequences_that_no_classifier_separates_are_refused(sequences, labels, alpha, message):
    with pytest.raises(ValueError, match=message):
        classify_exactly(sequences, labels, alpha)
