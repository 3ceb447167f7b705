"""What the lessons and their answers say is true, found by another way than there."""

import itertools
import math
import re

import numpy as np
import pytest
from enumeration import enumerate_verdicts
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from classroom import asking, folding, leaders, parts, rankings, trusting, winning
from papers.bottleneck.counting.arrangement import braid_arrangement, count_arrangement_regions
from papers.explorers import AttentionExplorer
from papers.hardmax.dynamics import attention, trajectory
from papers.margins.scalar import critical_points
from softgeom.ceiling import ceilings
from softgeom.layer import Box, SoftmaxLayer, Unbounded
from softgeom.scanner import scan


def test_what_the_lessons_state_about_their_layers_is_true():
    assert rankings.realised(rankings.LAYER.W) == 12
    assert rankings.realised(rankings.LAYER.W, rankings.BIAS) == 18
    assert rankings.realised(rankings.FIVE.W) == 20
    assert winning.winners(winning.TRIANGLE) == {"A", "B", "C"}
    assert winning.winners(winning.OWN_ROW) == set("ABCD")
    assert np.argmax(winning.OWN_ROW.logits(winning.OWN_ROW.W[3])) == 0
    assert winning.blocking_weights() @ winning.TRIANGLE.W[:3] == pytest.approx(
        winning.TRIANGLE.W[3]
    )
    roof = winning.blocking_weights() @ winning.TRIANGLE_BIAS
    for above, wins in ((1e-6, True), (-1e-6, False)):
        layer = SoftmaxLayer(winning.TRIANGLE.W, [*winning.TRIANGLE_BIAS, roof + above], "ABCD")
        assert ("D" in winning.winners(layer)) == wins


def test_folds_and_layers_needed_have_their_closed_forms():
    coupling = folding.first_folding_coupling(folding.PAIR)
    assert coupling == pytest.approx(4 / np.ptp(folding.PAIR) ** 2)
    for c in (0.5, folding.STRONG):
        widest = folding.largest_distance(c)
        assert widest == pytest.approx(2 / np.sqrt(c))
        assert len(critical_points(np.array([0, 0.99 * widest]), c)) == 0
        assert len(critical_points(np.array([0, 1.01 * widest]), c)) > 0
    start = np.vstack([folding.PAST, [-0.5, 1.75]])  # where the lesson's explorer puts x
    assert folding.determinants(start, folding.PLANE_COUPLING).min() > 0.4
    assert folding.determinants(np.vstack([folding.PAST, [0, 0]]), folding.PLANE_COUPLING)[-1] > 0
    values = np.sort(folding.determinants(folding.SEQUENCE, folding.SEQUENCE_COUPLING))
    assert 0 < values[0] < 0.7 * values[1]
    for alpha in (0.1, 0.5, 1.0):
        assert leaders.layers_needed(alpha) == int(np.ceil(np.log(100) / np.log1p(alpha)))


def test_which_rivals_block_which_are_needless_and_the_largest_mask():
    """By enumeration of all subsets, with nothing of the answers' own search."""
    W = asking.RIVALS.W * 4
    others = [i for i in range(5) if i != 3]

    def wins(rivals) -> bool:
        rows = W[[3, *rivals]].astype(np.int64)
        first, *_ = enumerate_verdicts(rows, np.zeros(len(rows), np.int64), ("unbounded",))
        return first.verdict == "argmaxable"

    assert not wins(others)
    assert {"ABCDE"[i] for i in others if wins([k for k in others if k != i])} == asking.freeing()
    for k in range(1, 5):
        for some in itertools.combinations(others, k):
            least = not wins(some) and all(wins([i for i in some if i != r]) for r in some)
            assert asking.blocks_minimally("ABCDE"[i] for i in some) == least
    W, sizes = asking.VOCABULARY.W, []
    for k in range(1, 8):
        for some in itertools.combinations(range(7), k):
            part = scan(SoftmaxLayer(W[list(some)]), features=Unbounded()).counts
            if 4 in some and part["argmaxable"] == k:
                sizes.append(k)
    assert max(sizes) == len(asking.best_mask("E"))


def test_the_pairs_that_come_back_are_those_met_on_a_turn():
    """By the queries between the ties, with nothing of the answers' own search."""
    turns = np.linspace(0, 2 * np.pi, 3600, endpoint=False) + 1e-4
    logits = np.column_stack([np.cos(turns), np.sin(turns)]) @ asking.INDEX.W.T
    seen = {frozenset(row) for row in np.argsort(-logits, axis=1)[:, :2].tolist()}
    assert len(seen) == asking.pairs_together()
    assert set(scan(asking.INDEX, features=Unbounded()).table["verdict"]) == {"argmaxable"}


def test_what_the_solutions_claim_is_true():
    """Followers keep looking at the same; 24 orders take three features; the digits."""
    for alpha in (leaders.ALPHA, leaders.ALPHA / 8):
        start, *later = trajectory(leaders.START, np.eye(2), alpha, 100, check=False)
        looked = attention(start, np.eye(2))
        assert all(np.array_equal(attention(state, np.eye(2)), looked) for state in later[:20])
    assert rankings.count_regions(4, 3, bias=False) == math.factorial(4)
    classes, features = rankings.GPT2
    about = features * math.log10(classes**2 / 2) - math.lgamma(features + 1) / math.log(10)
    assert about == pytest.approx(rankings.digits(classes, features), rel=0.01)
    x = np.linspace(-3, 3, 61)
    assert max(folding.attention_moments(x, folding.PAIR, 1.0).variance) == pytest.approx(1.0)
    corners = 2 * math.sqrt(2 * math.pi * math.log(100))
    assert len(winning.winners(winning.CROWD)) == pytest.approx(corners, abs=2)


def test_the_library_agrees_that_d_never_wins_up_to_the_largest_bias():
    assert scan(trusting.LAYER, [3], features=Unbounded()).counts["unargmaxable"] == 1
    biases = [float(trusting.BIASES[name]) for name in "ABC"]
    for change, wins in ((-1e-6, False), (1e-6, True)):
        layer = SoftmaxLayer(trusting.LAYER.W, [*biases, float(trusting.largest_bias()) + change])
        assert scan(layer, [3], features=Unbounded()).counts["argmaxable"] == wins


def test_the_printed_weights_prove_it_on_the_largest_box_and_on_no_larger():
    """On a corner of the box the misses add up."""
    u, v = trusting.residual(trusting.printed_weights())
    for L, proven in ((trusting.largest_box(), True), (trusting.largest_box() + 1, False)):
        most = max(float(u) * x + float(v) * y for x in (-L, L) for y in (-L, L))
        assert (most - float(trusting.GAP) <= 1e-12) == proven
    layer = SoftmaxLayer(trusting.LAYER.W, [0.5, 0.5, 0.5, 0.0])
    assert scan(layer, [3], features=Box(25.0)).table["verdict"].iloc[0] == "unargmaxable"


@given(st.fractions(0, 1, max_denominator=97), st.fractions(0, 1, max_denominator=97))
def test_only_the_one_proof_by_three_classes_has_no_flaw(a, b):
    weights = {"A": a, "B": b, "C": 1 - a - b}
    assert (trusting.flaw(weights) is None) == (weights == trusting.exact_weights())


FOUR = np.array([[0.0, 4.0], [-4.0, -2.0], [4.0, -2.0], [0.0, 1.0]])


def d_never_wins(W, b=None):
    return scan(SoftmaxLayer(W, b), features=Unbounded()).table.verdict[3] == "unargmaxable"


def test_parts_of_a_transformer_do_what_the_lesson_says():
    """By the explorer, by softmax of the equation as printed, and by loops."""
    turned = AttentionExplorer(parts.STREAM, coupling=parts.STRENGTH, turn=parts.TURN)
    np.testing.assert_allclose(turned.M.T, parts.W_QK, atol=1e-12)
    weights = np.exp(parts.scores()[:3])
    np.testing.assert_allclose(turned.weights, weights / weights.sum())
    alike = AttentionExplorer(parts.STREAM, coupling=parts.STRENGTH, turn=0.0)
    assert (np.argmax(turned.weights), np.argmax(alike.weights)) == (2, 0)
    assert parts.unchanged() == {"A", "B", "D"}
    grows = {word: 2 * u - v for word, (u, v) in parts.WORDS.items()}
    assert parts.raised(parts.STREAM[2] @ parts.W_OV) == tuple(sorted(grows, key=grows.get))
    z = np.random.default_rng(1).normal(size=parts.FEATURES)
    np.testing.assert_allclose(parts.normalised(10 * z + 5), parts.normalised(z))
    assert np.linalg.norm(parts.normalised(z)) == pytest.approx(4)
    assert parts.spread_of_norms() == parts.FEATURES - 2
    fires = {k + 1 for k in range(4) if 2 * parts.KEYS[0, k] - parts.KEYS[1, k] > 0}
    assert parts.firing() == fires


def test_forty_classes_are_decided_as_by_their_hull():
    corners = len(ConvexHull(winning.CODED.W).vertices)
    assert winning.never_in(Unbounded()) == winning.CODED.classes - corners


def test_the_sheet_on_paper_and_its_solutions_are_right(repository):
    """PAPER.md states the layer, PAPER_SOLUTIONS.md its scores, ceiling, orders and proofs."""
    folder = repository / "notebooks" / "lessons"
    sheet, text = (
        (folder / name).read_text(encoding="utf-8").replace("−", "-")
        for name in ("PAPER.md", "PAPER_SOLUTIONS.md")
    )
    rows = re.findall(r"[A-D] = \((\S+), (\S+)\)", sheet)
    assert np.array_equal(np.array(rows[:4], float), FOUR)
    parts = re.split(r"\*\*(\d)\.\*\*", text)
    solution = {
        int(n): " ".join(part.split()) for n, part in zip(parts[1::2], parts[2::2], strict=True)
    }
    for x in ((1, 0), (0, 1), (-1, 1), (0, -1)):
        assert ", ".join(f"{score:g}" for score in FOUR @ x) in solution[1]
    assert d_never_wins(FOUR)
    assert np.array_equal(np.array([1 / 2, 1 / 4, 1 / 4]) @ FOUR[:3], FOUR[3])
    moved = FOUR.copy()
    moved[3] = 0, -3
    assert not d_never_wins(moved)
    assert ", ".join(f"{score:g}" for score in moved @ (0, -1)) in solution[3]
    for above, never in ((0, True), (1e-3, False)):
        assert d_never_wins(FOUR, b=np.array([0, 0, 0, above])) == never
    bound = ceilings(SoftmaxLayer(FOUR), [3], features=Unbounded(), gap=1e-4).ceiling[0]
    assert f"{bound:.1%}" in solution[5]
    regions = count_arrangement_regions(braid_arrangement(FOUR, None))
    assert f"{regions} sectors: {regions} of 24 orders" in solution[6]
    wrong = np.array([0.5, 0.1, 0.4]) @ FOUR[:3]
    assert f"({wrong[0]:g}, {wrong[1]:g})" in solution[7]
    assert np.array_equal(np.array([1 / 2, 1 / 8, 3 / 8]) @ FOUR[:3], [1, 1])
