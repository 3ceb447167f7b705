"""Answers to every question of the lessons, right ones and each mistake known by name."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from classroom import rankings, winning

# Right answers, as a learner types them; the first of each question goes into its notebook.
RIGHT = {
    "rankings-guess": ["12"],
    "rankings-1": ['"CDBA"'],
    "rankings-2": ["10"],
    "rankings-3": ["20"],
    "rankings-4": ["[[1, 1], [-1, 1], [-1, -1], [1, -1]]"],
    "rankings-guess_bias": ["18"],
    "rankings-5": ["[0, 0.1, 1.3, -2.4]", "rankings.BIAS"],
    "rankings-6": ["4", "4.0"],
    "rankings-guess_digits": ["5103"],
    "winning-guess": ["False"],
    "winning-1": ['{"B", "E"}'],
    "winning-2": ["[-3.5, 3.5]"],
    "winning-3": ["[0.5, 0.125, 0.375]"],
    "winning-4": ["0.6875"],
    "winning-5": ["[0, 3, 0, 0, 3, 0, 0]", "-(np.square(winning.SEVEN.W).sum(axis=1)) / 2"],
    "winning-6": ["9"],
    "winning-guess_crowd": ["10"],
    "winning-guess_real": ["202"],
    "folding-guess": ["1"],
    "folding-1": ["8 / 3", "2.67"],
    "folding-2": ["0.5"],
    "folding-guess_mass": ['"more"'],
    "folding-3": ["3"],
    "folding-4": ["[-1, -3]"],
    "folding-guess_real": ['"none"'],
    "folding-5": ["1"],
    "folding-6": ["4"],
    "leaders-guess": ["3"],
    "leaders-1": ["{3}", "3", "[3.0]"],
    "leaders-2": ["[-2 / 3, -5 / 6]", "[-0.667, -0.833]"],
    "leaders-3": ["7"],
    "leaders-4": ["[[2, 0], [-2, 0], [1, 0.25], [-1, 0.25]]"],
    "leaders-5": ["[0.4, 0]", "[0, -0.1]"],
    "leaders-6": ["{4}"],
    "leaders-guess_slower": ["True"],
    "leaders-guess_real": ["93"],
    "trusting-guess": ["False"],
    "trusting-1": ['["22/45", "2/9", "13/45"]', '[Fraction(22, 45), Fraction(10, 45), "13 / 45"]'],
    "trusting-2": ['{"P", "S"}'],
    "trusting-3": ['"8/15"', "[Fraction(8, 15)]"],
    "trusting-4": ["25"],
    "trusting-guess_captors": ["121"],
    "asking-guess": ["2"],
    "asking-1": ['{"A", "B", "C"}', '"BCE"'],
    "asking-2": ['{"A", "C", "D", "E", "G"}'],
    "asking-guess_pairs": ["6"],
    "asking-3": ["[0, 1]"],
    "asking-4": ['["1/3", "2/3", "2/3", "1/3"]'],
    "asking-5": ["4"],
    "asking-guess_real": ["100"],
}

# fmt: off
# Wrong ones, with the words by which the desk names the mistake; so does the first of these.
_WRONG = {
    "rankings-guess": {
        "24": "chosen freely", "math.comb(4, 2)": "cross each of them twice",
        "4": "number of winners", "8": "belongs to a *pair*", "2**6": "whoever beats A",
        "18": "With a bias", "11": "Too few", "13": "Too many",
    },
    "rankings-1": {
        '"ABDC"': "wrong direction", '"CDAB"': "B does not have the largest logit",
        '"DCBA"': "winner is right",
    },
    "rankings-2": {"20": "twice", "5": "pair", "9": "too few", "25": "too many"},
    "rankings-3": {"120": "all orders", "10": "cross each line", "12": "too few", "25": "too many"},
    "rankings-4": {
        "[[1, 1], [2, 2], [3, 3], [4, 4]]": "Too many tie lines",
        "rankings.LAYER.W": "fall together", "[[1, 1], [1, 1], [3, 3], [4, 5]]": "equal",
    },
    "rankings-guess_bias": {
        "24": "a third feature", "12": "without a bias", "1 + 6 + 15": "always meet in one point",
        "17": "Too few",
    },
    "rankings-5": {
        "[2, 2, 2, 2]": "as without a bias", "rankings.LAYER.W @ [3, -1]": "as without a bias",
    },
    "rankings-6": {"5": "fewer features suffice", "2": "With 2 features", "1": "With 1 feature a"},
    "rankings-guess_digits": {
        "768": "not by ten", "214445": "nearly all orders", "9": "two features",
        "107222": "square root", "9999": "Too many",
    },
    "winning-guess": {"True": "lies *farthest*"},
    "winning-1": {
        '{"B"}': "somebody is still missing", "{}": "can never win",
        '"ABE"': "1 class that can win",
    },
    "winning-2": {
        "[0, 0]": "ties", "[1, 1]": "There", "[1, 0]": "There", "[0, 1]": "There",
        "[1, -1]": "There", "winning.OWN_ROW.W[3]": "There A wins, and D is",
    },
    "winning-3": {
        "[1, 0.25, 0.75]": "sum to 2", "[1, -1, 1]": "negative", "[0.4, 0.3, 0.3]": "(0, -0.4)",
        "[0.5, 0.1251, 0.3749]": "rounding spoils",
    },
    "winning-4": {
        "0.5": "plain mean", "1": "weighted mean", "0.6": "still never wins",
        "0.8": "a smaller one would do",
    },
    "winning-5": {
        "[0, 0, 0, 0, 3, 0, 0]": "With this bias B cannot win", "np.zeros(7)": "B, E cannot win",
        "[0, 1, 2, 3, 4, 5, 6]": "With this bias", "[6, 5, 4, 3, 2, 1, 0]": "With this bias",
    },
    "winning-6": {"8": "a tie is no win", "7": "never wins", "10": "a smaller one"},
    "winning-guess_crowd": {
        "50": "even chance", "100": "circle", "1": "turn $x$ round", "3": "a triangle",
        "30": "rubber band",
    },
    "winning-guess_real": {
        "0": "among copies at most one", "6000": "nearly every row is a corner", "20": "Too few",
        "900": "Too many",
    },
    "folding-guess": {
        "0": "slope is one everywhere", "-1": "never below one", "1 / 2**2": "whole distance",
        "1 / np.var([-1, 1], ddof=1)": "one less than the number", "2": "reach the distance",
        "4": "*easier*", "0.7": "Too small", "9": "Too large",
    },
    "folding-1": {
        "4": "one less than the number", "1": "That is the mean", "11 / 3": "mean square",
        "1.633": "standard deviation", "7": "Begin with the weights",
    },
    "folding-2": {"1": "already folded", "0": "positive", "0.25": "may lie farther apart"},
    "folding-guess_mass": {'"equal"': "only where it is one-to-one", '"less"': "slope vanishes"},
    "folding-3": {"2": "odd number", "5": "how often"},
    "folding-4": {"[0, 0]": "not negative", "[1e6, -1e6]": "not negative"},
    "folding-guess_real": {'"some"': "nothing holds the coupling positive"},
    "folding-5": {"0": "no negative eigenvalue", "2": "smaller"},
    "folding-6": {"1": "no covariance", "5": "another has a smaller one"},
    "leaders-guess": {
        "8": "a place for each", "1": "averages", "2": "Two camps", "6": "nearest neighbour",
        "5": "Too many",
    },
    "leaders-1": {
        "{2, 3}": "only the largest", "[]": "never empty", "{7}": "others score more",
        "{5}": "not the distance", "{2}": "0.75; compute all eight",
    },
    "leaders-2": {
        "[-0.5, -2]": "own place", "[-0.625, -1.125]": "1 + \\alpha",
        "[-0.75, -0.25]": "where it stands now", "[9, 9]": "not where it lands",
    },
    "leaders-3": {"6": "1.56%", "8": "fewer layers"},
    "leaders-4": {
        "[[1, 0], [2, 0], [3, 0], [4, 0]]": "1 leader: give",
        "[[2, 0], [-2, 0], [0, 1], [0, -1]]": "4 leaders",
        "[[2, 0], [-2, 0], [0, 0], [1, 0]]": "nonzero",
        "[[2, 0], [-2, 0], [1, 0], [1, 0]]": "distinct",
    },
    "leaders-5": {"[4, 1]": "a leader itself", "[0.4, 0.1]": "leader 1", "[0, 0]": "nonzero"},
    "leaders-6": {"{3, 4}": "leads from the start", "{1}": "never leads", "[]": "Somebody does"},
    "leaders-guess_slower": {"False": "take the lead"},
    "leaders-guess_real": {"40": "whoever leads decides", "80": "Too few", "100": "Too many"},
    "trusting-guess": {"True": "for *every* feature"},
    "trusting-1": {
        '["1/2", "1/4", "1/4"]': "misses D's by (0, -1/4)", '["1/2", "1/2", "1/4"]': "sum to 5/4",
        '["3/2", "-1/4", "-1/4"]': "negative", "[22 / 45, 10 / 45, 13 / 45]": "is stored as",
    },
    "trusting-2": {
        '{"P", "Q", "S"}': "Q is no proof", '{"P"}': "There is another", '{"R"}': "negative",
    },
    "trusting-3": {
        '"1/2"': "plain mean", "0.533": "close", "1": "prove nothing", "0": "larger by 8/15",
    },
    "trusting-4": {"50": "collects both", "26": "more than the gap", "10": "larger boxes too"},
    "trusting-guess_captors": {
        "3": "enough in the plane", "120": "one too few", "6624": "thinned out", "40": "simplex",
    },
    "asking-guess": {
        "0": "a lost class stays lost", "4": "one may stand in for another",
        "1": "Find the triangles",
    },
    "asking-1": {
        '{"A", "B", "C", "E"}': "2 of them can be spared",
        '{"A", "C", "E"}': "D wins for some features", '{"A", "D"}': "cannot block itself",
    },
    "asking-2": {
        '{"A", "B", "C", "D", "E", "F", "G"}': "D, E, F never win",
        '{"A", "B"}': "E is to be among", '{"A", "C", "D", "E"}': "a larger set",
    },
    "asking-guess_pairs": {
        "15": "whoever lies between them", "3": "each document has two of them",
        "0": "halfway both are ahead", "9": "Too many",
    },
    "asking-3": {
        "[1, 1]": "returns B and A", "[0, 0]": "length zero", "[1, 0]": "returns A and",
        "[-2, 3]": "tie for the second place",
    },
    "asking-4": {
        '["1/2", "1/2", "1/2", "1/2"]': "they differ", '["1/3", "1/3", "2/3", "1/3"]': "sum to 2/3",
        '["-1", "2", "1/2", "1/2"]': "negative",
    },
    "asking-5": {"2": "the plane you saw", "3": "five documents", "6": "fewer dimensions will do"},
    "asking-guess_real": {
        "5": "surround nobody", "3": "surround nobody", "50": "captors all around it",
    },
}
# fmt: on
WRONG = [(question, *case) for question, some in _WRONG.items() for case in some.items()]

NAMES = {"np": np, "math": math, "Fraction": Fraction, "rankings": rankings, "winning": winning}


def value(typed: str) -> Any:
    """What Python makes of an answer."""
    return eval(typed, dict(NAMES))


def text_of(output: Any) -> str:
    """What an output of a cell says."""
    data = output.get("data", {})
    if "image/png" in data:
        return "a picture"
    return data.get("text/markdown") or data.get("text/plain") or output.get("text", "")
