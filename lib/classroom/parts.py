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


def spread_of_norms(features: int = FEATURES) -> int:
    """The dimension of the set of LayerNorm's outputs: the rank of its Jacobian at a random z."""
    z, step = np.random.default_rng(0).normal(size=features), 1e-6
    columns = [
        (normalised(z + step * e) - normalised(z - step * e)) / (2 * step) for e in np.eye(features)
    ]
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


@LESSON.exercise("1", reading.members([1, 2, 3, 4]))
def _read_fault(answer: frozenset[int]) -> str | None:
    if answer == {1, 2}:
        return None
    if answer & {3, 4}:
        return say("read ahead")
    return say("read self" if answer == {1} else "read some")


@LESSON.exercise("2", reading.order("ABCD"))
def _raised_fault(answer: tuple[str, ...]) -> str | None:
    right = raised(STREAM[2] @ W_OV)
    if answer == right:
        return None
    if answer == right[::-1]:
        return say("raised turned")
    if answer == raised(STREAM[2]):
        return say("raised read")
    return say("raised last" if answer[-1] == right[-1] else "raised")


@LESSON.exercise("3", reading.whole_number(0, 10**4))
def _rank_fault(answer: int) -> str | None:
    if answer == NARROW:
        return None
    if answer == WIDE:
        return say("rank wide")
    if answer == WIDE // NARROW * HEADS:
        return say("rank heads")
    return say("rank less" if answer < NARROW else "rank more")


@LESSON.exercise("4", reading.members("ABCD"))
def _gauge_fault(answer: frozenset[str]) -> str | None:
    right = unchanged()
    if answer == right:
        return None
    if answer - right:
        return say("gauge both")
    return say("gauge more" if answer else "gauge none")


@LESSON.exercise("5", reading.whole_number(0, 10**4))
def _length_fault(answer: int) -> str | None:
    right = round(float(np.linalg.norm(normalised(np.arange(FEATURES, dtype=float)))))
    if answer == right:
        return None
    thoughts = {1: "length one", FEATURES: "length square"}
    return say(thoughts.get(answer, "length"))


@LESSON.exercise("6", reading.whole_number(0, 10**4))
def _dimension_fault(answer: int) -> str | None:
    right = spread_of_norms()
    if answer == right:
        return None
    thoughts = {right + 1: "dimension one", FEATURES: "dimension all"}
    return say(thoughts.get(answer, "dimension"))


@LESSON.exercise("7", reading.members([1, 2, 3, 4]))
def _firing_fault(answer: frozenset[int]) -> str | None:
    right = firing()
    if answer == right:
        return None
    if answer == {1, 2, 3, 4} - right:
        return say("firing turned")
    return say("firing rows" if answer - right else "firing more")
