"""Readers take every sensible form of an answer, and say in a sentence what they do not take."""

from fractions import Fraction

import numpy as np
import pytest

from classroom import reading
from classroom.reading import ReadingError

NUMBER, COUNT, TRUTH = reading.number("the weight"), reading.whole_number(1, 50), reading.truth()
MATRIX = reading.array(((2, 4), 2), "W")
FRACTIONS = reading.fractions(3, "the weights")
LETTERS, ORDER, TOKENS = reading.members("ABC"), reading.order("ABC"), reading.members(range(1, 6))


@pytest.mark.parametrize(
    ("read", "written", "value"),
    [
        (NUMBER, 1, 1.0),
        (NUMBER, Fraction(1, 4), 0.25),
        (NUMBER, np.array(2), 2.0),
        (COUNT, np.int64(3), 3),
        (TRUTH, np.True_, True),
        (reading.choice("less", "more"), " More", "more"),
        (LETTERS, {"C", "A"}, {"A", "C"}),
        (LETTERS, "a, c", {"A", "C"}),
        (LETTERS, {}, set()),
        (ORDER, "B<A<C", ("B", "A", "C")),
        (ORDER, ("b", "a", "c"), ("B", "A", "C")),
        (TOKENS, {1, np.int64(4)}, {1, 4}),
        (TOKENS, np.array([1, 5]), {1, 5}),
        (lambda rows: MATRIX(rows).tolist(), [[1, 2], (3, 4)], [[1.0, 2.0], [3.0, 4.0]]),
        (lambda rows: MATRIX(rows).dtype, np.ones((3, 2), dtype=np.int8), np.float64),
    ],
)
def test_every_sensible_form_is_read(read, written, value):
    assert read(written) == value


@pytest.mark.parametrize(
    ("read", "written", "says"),
    [
        (NUMBER, [0.5], "without quotes or brackets.*a list"),
        (NUMBER, True, "a truth value"),
        (NUMBER, 10**400, "not finite"),
        (NUMBER, 1j, "complex"),
        (COUNT, float("inf"), "whole number"),
        (COUNT, 0, "between 1 and 50"),
        (TRUTH, "True", "without quotes"),
        (reading.choice("less", "more"), "equal", "'less', 'more'"),
        (MATRIX, [[1, 2], [3]], "rows of equal length"),
        (MATRIX, [[True, False], [False, True]], "numbers only"),
        (MATRIX, [1, 2], r"shape \(2 to 4, 2\).*yours has \(2,\)"),
        (MATRIX, 5, r"yours is a single number"),
        (MATRIX, [[np.nan, 1], [1, 1]], "finite"),
        (MATRIX, [[1e300, 1], [1, 1]], "million"),
        (LETTERS, {"A", "Z"}, "'Z' is none of them"),
        (LETTERS, 3, "a number"),
        (ORDER, {"A", "B", "C"}, "no order"),
        (ORDER, "AAB", "exactly once; you wrote A, A, B"),
        (TOKENS, {0, 1}, "a set of numbers.*0 is none of them"),
        (TOKENS, [True], "True is none of them"),
        (FRACTIONS, "1/3", "yours are 1"),
        (FRACTIONS, ["1/3", "1/3", "a third"], "is none"),
        (FRACTIONS, ["1/0", "1/3", "1/3"], "divides by zero"),
        (FRACTIONS, [True, 0, 0], "a truth value"),
        (FRACTIONS, ["1e999999999", 0, 0], "is none"),
        (FRACTIONS, [10**9, 0, 0], "none beyond a million"),
        (TOKENS, object(), "of type object"),
    ],
)
def test_what_cannot_be_read_gets_one_sentence(read, written, says):
    with pytest.raises(ReadingError, match=says) as caught:
        read(written)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
