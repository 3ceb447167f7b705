"""Veils and gates: closed until the answer that they wait for, and open for good after it."""

import pytest

import classroom
from classroom import desk, rankings
from softgeom.explorers import AttentionExplorer, FoldExplorer, HardmaxExplorer, SoftmaxExplorer


@pytest.fixture(autouse=True)
def nothing_answered(monkeypatch):
    monkeypatch.setattr(desk, "_answered", set())
    monkeypatch.setattr(desk, "_veiled", {})


@pytest.mark.parametrize(
    "make", [SoftmaxExplorer, FoldExplorer, AttentionExplorer, HardmaxExplorer]
)
def test_a_veil_lifts_with_any_guess_that_can_be_read(make):
    explorer = classroom.veil(make(), until="rankings-guess")
    other = classroom.veil(make(), until="winning-guess")
    assert explorer.veiled
    assert explorer.presets == []
    classroom.reveal("rankings-guess", ...)
    classroom.reveal("rankings-guess", "banana")
    assert explorer.veiled
    classroom.reveal("rankings-guess", 7)
    assert not explorer.veiled
    assert other.veiled
    assert not classroom.veil(make(), until="rankings-guess").veiled


def test_exercises_and_gates_wait_for_their_answers():
    explorer = classroom.veil(SoftmaxExplorer(), until="rankings-2")
    classroom.check("rankings-2", 11)
    assert explorer.veiled
    classroom.check("rankings-2", 10)
    assert not explorer.veiled
    calls = []

    def show():
        calls.append(1)
        return rankings.realised(rankings.LAYER.W)

    closed = classroom.after("rankings-guess", show)
    assert closed.heading == "Guess first."
    assert "classroom.reveal('rankings-guess', guess)" in closed.text
    assert not calls
    classroom.reveal("rankings-guess", 7)
    assert classroom.after("rankings-guess", show) == 12
    with pytest.raises(ValueError, match="rankings has rankings-guess"):
        classroom.veil(SoftmaxExplorer(), until="rankings-guss")
    with pytest.raises(ValueError, match="There is no"):
        classroom.after("rankings-1", print)  # an exercise: its answer is not printed by any cell
