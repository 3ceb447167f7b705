"""The printed sheet's solutions, computed again by the library."""

import re

import numpy as np
import pytest

from softgeom.bottleneck import Unbounded, scan
from softgeom.bottleneck.ceilings import ceilings
from softgeom.bottleneck.counting.arrangement import braid_arrangement, count_arrangement_regions
from softgeom.layer import SoftmaxLayer

FOUR = np.array([[0.0, 4.0], [-4.0, -2.0], [4.0, -2.0], [0.0, 1.0]])


@pytest.fixture
def solution(repository):
    """`solution(n)`: the text of solution n, its minus signs as Python's."""
    text = (repository / "notebooks" / "lessons" / "PAPER_SOLUTIONS.md").read_text(encoding="utf-8")
    parts = re.split(r"\*\*(\d)\.\*\*", text.replace("−", "-"))
    return lambda n: " ".join(parts[parts.index(str(n)) + 1].split())


def _d_never_wins(W, b=None):
    return scan(SoftmaxLayer(W, b), features=Unbounded()).table.verdict[3] == "unargmaxable"


def test_the_sheet_states_classes_and_scores(repository, solution):
    text = (repository / "notebooks" / "lessons" / "PAPER.md").read_text(encoding="utf-8")
    rows = re.findall(r"[A-D] = \((\S+), (\S+)\)", text.replace("−", "-"))
    assert np.array_equal(np.array(rows[:4], float), FOUR)
    for x in ((1, 0), (0, 1), (-1, 1), (0, -1)):
        assert ", ".join(f"{score:g}" for score in FOUR @ x) in solution(1)


def test_d_is_dead_moved_it_is_free_and_a_bias_frees_it(solution):
    assert _d_never_wins(FOUR)
    assert np.array_equal(np.array([1 / 2, 1 / 4, 1 / 4]) @ FOUR[:3], FOUR[3])
    moved = FOUR.copy()
    moved[3] = 0, -3
    assert not _d_never_wins(moved)
    assert ", ".join(f"{score:g}" for score in moved @ (0, -1)) in solution(3)
    for above, never in ((0, True), (1e-3, False)):
        assert _d_never_wins(FOUR, b=np.array([0, 0, 0, above])) == never


def test_its_ceiling_its_orders_and_both_proofs(solution):
    bound = ceilings(SoftmaxLayer(FOUR), [3], features=Unbounded(), gap=1e-4).ceiling[0]
    assert f"{bound:.1%}" in solution(5)
    regions = count_arrangement_regions(braid_arrangement(FOUR, None))
    assert f"{regions} sectors: {regions} of 24 orders" in solution(6)
    wrong = np.array([0.5, 0.1, 0.4]) @ FOUR[:3]
    assert f"({wrong[0]:g}, {wrong[1]:g})" in solution(7)
    assert np.array_equal(np.array([1 / 2, 1 / 8, 3 / 8]) @ FOUR[:3], [1, 1])
