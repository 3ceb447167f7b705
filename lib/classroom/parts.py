"""Lesson 7, the parts of a transformer: what a head reads and writes, the sphere of the norm, and
the feed-forward network as a memory (002).

States are rows, as in the source: x W_QK x_j^T is the score of token j, x_j W_OV what the head
writes. `STREAM` holds the states of four tokens in the plane, `WORDS` the rows of an unembedding.
NumPy only.
"""

import numpy as np

from classroom import reading, recorded
from classroom.lesson import Lesson

STREAM = np.array([[2.0, 0.0], [0.0, 1.0], [-1.0, 2.0], [1.0, 0.0]])
STRENGTH, TURN = 2.0, 90.0  # of the query-key matrix: the explorer's coupling and turn
W_QK = np.array([[0.0, 2.0], [-2.0, 0.0]])
W_OV = np.array([[0.0, 1.0], [1.0, 0.0]])
WORDS = {"A": (1.0, 1.0), "B": (0.0, 2.0), "C": (2.0, 0.0), "D": (-1.0, -1.0)}
WIDE, NARROW, HEADS = 64, 16, 4  # d, d_h and the number of heads of exercise 3
FEATURES = 16  # of exercises 5 and 6
KEYS = np.array([[1.0, -1.0, 0.0, 1.0], [1.0, 0.0, -2.0, 3.0]])  # (2, 4), a column a neuron
STATE = np.array([2.0, -1.0])  # what the neurons of exercise 7 read

LESSON = Lesson("parts")
say = LESSON.say


def scores() -> np.ndarray:
    """The scores (4,) of all positions for token 4."""
    return STREAM @ (STREAM[3] @ W_QK)


def raised(write: np.ndarray) -> tuple[str, ...]:
    """The words by how much a write (2,) to the stream changes their logits, lowest first."""
    return tuple(sorted(WORDS, key=lambda word: float(write @ WORDS[word])))


def unchanged() -> frozenset[str]:
    """Which changes of exercise 4 leave every score x W_Q W_K^T y^T as it is, on random weights."""
    rng = np.random.default_rng(0)
    W_Q, W_K, M = (rng.normal(size=shape) for shape in ((6, 3), (6, 3), (3, 3)))
    R = np.linalg.qr(M)[0]
    changes = {
        "A": (2 * W_Q, W_K / 2),
        "B": (W_Q @ R, W_K @ R),
        "C": (W_Q @ M, W_K @ M),
        "D": (W_Q @ M, W_K @ np.linalg.inv(M).T),
    }
    same = W_Q @ W_K.T
    return frozenset(name for name, (Q, K) in changes.items() if np.allclose(Q @ K.T, same))


def normalised(z: np.ndarray) -> np.ndarray:
    """LayerNorm without gain and bias: the mean taken away, then divided by the deviation."""
    return (z - z.mean()) / z.std()


def firing() -> frozenset[int]:
    """The neurons, from 1, that ReLU leaves above zero at `STATE`."""
    return frozenset((np.flatnonzero(STATE @ KEYS > 0) + 1).tolist())


def spread_of_norms() -> int:
    """The dimension of the set of LayerNorm's outputs: the rank of its Jacobian at a random z."""
    z, steps = np.random.default_rng(0).normal(size=FEATURES), 1e-6 * np.eye(FEATURES)
    columns = [(normalised(z + e) - normalised(z - e)) / 2e-6 for e in steps]
    return int(np.linalg.matrix_rank(np.array(columns), tol=1e-6))


@LESSON.prediction("guess", reading.whole_number(1, 4))
def _compare_position(guess: int) -> str:
    found = say("position found", guess=guess, right=int(np.argmax(scores())) + 1)
    thoughts = {3: "position", 1: "position like", 4: "position self", 2: "position second"}
    return f"{found} {say(thoughts[guess])}"


@LESSON.prediction("guess_norm", reading.choice("same", "longer", "other direction"))
def _compare_norm(guess: str) -> str:
    thought = {"same": "norm", "longer": "norm longer", "other direction": "norm turned"}[guess]
    return f"{say('norm found', guess=guess)} {say(thought)}"


@LESSON.prediction("guess_real", reading.choice("none", "some", "most"))
def _compare_real(guess: str) -> str:
    share = recorded.value("30_normalisation", "changed_without_norm_gpt")
    right = "none" if share < 0.05 else "some" if share < 0.5 else "most"
    found = say("real found", guess=guess, share=share)
    return f"{found} {say('real' if guess == right else 'real wrong')}"


@LESSON.exercise("1", reading.members([1, 2, 3, 4]), right=lambda: frozenset({1, 2}))
def _read_fault(answer: frozenset[int], _: frozenset[int]) -> str:
    if answer & {3, 4}:
        return say("read ahead")
    return say("read self" if answer == {1} else "read some")


@LESSON.exercise("2", reading.order("ABCD"), right=lambda: raised(STREAM[2] @ W_OV))
def _raised_fault(answer: tuple[str, ...], right: tuple[str, ...]) -> str:
    if answer == right[::-1]:
        return say("raised turned")
    if answer == raised(STREAM[2]):
        return say("raised read")
    return say("raised last" if answer[-1] == right[-1] else "raised")


@LESSON.exercise("3", reading.whole_number(0, 10**4), right=lambda: NARROW)
def _rank_fault(answer: int, right: int) -> str:
    if answer == WIDE:
        return say("rank wide")
    if answer == WIDE // NARROW * HEADS:
        return say("rank heads")
    return say("rank less" if answer < right else "rank more")


@LESSON.exercise("4", reading.members("ABCD"), right=unchanged)
def _gauge_fault(answer: frozenset[str], right: frozenset[str]) -> str:
    if answer - right:
        return say("gauge both")
    return say("gauge more" if answer else "gauge none")


def length_of_norms() -> int:
    """The length of LayerNorm's output on `FEATURES` numbers, sqrt(d), for any that differ."""
    return round(float(np.linalg.norm(normalised(np.arange(FEATURES, dtype=float)))))


@LESSON.exercise("5", reading.whole_number(0, 10**4), right=length_of_norms)
def _length_fault(answer: int, _: int) -> str:
    thoughts = {1: "length one", FEATURES: "length square"}
    return say(thoughts.get(answer, "length"))


@LESSON.exercise("6", reading.whole_number(0, 10**4), right=spread_of_norms)
def _dimension_fault(answer: int, right: int) -> str:
    thoughts = {right + 1: "dimension one", FEATURES: "dimension all"}
    return say(thoughts.get(answer, "dimension"))


@LESSON.exercise("7", reading.members([1, 2, 3, 4]), right=firing)
def _firing_fault(answer: frozenset[int], right: frozenset[int]) -> str:
    if answer == {1, 2, 3, 4} - right:
        return say("firing turned")
    return say("firing rows" if answer - right else "firing more")
