"""Reruns that differ by rounding leave files alone; what a reader could see rewrites them."""

import json

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compendium import book, tolerance
from compendium.tolerance import same


@given(st.floats(-1e12, 1e12), st.floats(-0.9e-6, 0.9e-6))
def test_rounding_is_the_same_in_numbers_cells_and_sentences(x, error):
    near = x * (1 + error) + 0.5e-9
    assert same(x, near)
    said, nearly = ({"a": [f"gap {number!r} nats"]} for number in (x, near))
    assert same(said, nearly) or "e" in f"{x!r}{near!r}"


@pytest.mark.parametrize(
    ("old", "new", "noise", "equal"),
    [
        (1.0, 1.00001, 1e-9, False),
        (0, False, 1e-9, False),
        (1e-8, 3e-8, 1e-9, False),
        ("3 of 4", "3 of 5", 1e-9, False),
        ("a 1.5", "b 1.5", 1e-9, False),
        ([1.0], [1.0, 2.0], 1e-9, False),
        ({"a": 1}, {"b": 1}, 1e-9, False),
        ({"says": "right to 2e-16"}, {"says": "right to 3.1e-15"}, 1e-9, True),
        (2e-16, 0.0, 1e-9, True),
        ("1e-05", "0.00001", 1e-9, True),
        (2000.0, 2000.9, 1e-3, True),
        (2000.0, 2003.0, 1e-3, False),
        (0.002, 0.004, 1e-3, False),
    ],
)
def test_noise_is_relative_above_one_and_what_a_reader_could_see_is_none(old, new, noise, equal):
    assert same(old, new, noise) is same(new, old, noise) is equal


def _record(value, says):
    return json.dumps({"claims": [{"evidence": {"gain": value}, "says": says}]})


def test_a_finding_is_the_same_when_its_evidence_is_however_its_digits_are_cut():
    first = _record(0.012349, "gain 1.23%")
    assert tolerance.same_record(first, _record(0.012351, "gain 1.24%"), 3e-5)
    assert not tolerance.same_record(first, _record(0.0134, "gain 1.34%"), 3e-5)
    assert not tolerance.same_record(first, _record(0.012349, "loss 1.23%"), 3e-5)


@pytest.mark.parametrize(
    ("name", "old", "new", "damaged"),
    [
        ("a.csv", "x\n1.7e-07\n", "x\n4.2e-07\n", ""),
        ("a.json", '{"a": "1.7e-07"}', '{"a": "4.2e-07"}', "{"),
    ],
)
def test_a_notebook_says_how_large_its_noise_is_and_what_is_damaged_is_replaced(
    tmp_path, name, old, new, damaged
):
    path = tmp_path / name
    path.write_text(old)
    tolerance.write(path, new, 1e-6)
    assert path.read_text() == old
    for before in (old, damaged):
        path.write_text(before)
        tolerance.write(path, new)
        assert path.read_text() == new


def _run(write_notebook, x=1 / 3, colour="tab:blue", label="1.23", alt="a line", profile="default"):
    write_notebook("10_demo", 'profile: str = "default"')
    run = book.open_book("10_demo", {"profile": profile})
    numbers = pd.DataFrame({"n": [1, 2], "x": [x, 2.0], "word": ["a", "b"]})
    run.table("numbers", numbers, caption="numbers")
    run.value("x", x)
    fig, ax = plt.subplots()
    ax.plot([0, 1], [x, 1], color=colour)
    ax.set_title(label)
    run.figure("line", fig, caption="A line.", alt=f"{alt} from {x:.15f}")
    plt.close(fig)
    run.save()
    return run.results


FIGURE = ["10_demo-line.pdf", "10_demo-line.png"]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"x": 1 / 3 + 1e-12}, []),  # as another machine rounds
        ({"colour": "tab:green"}, FIGURE),
        ({"label": "1.24"}, FIGURE),
        ({"alt": "a curve"}, [*FIGURE, "record.json"]),
        ({"x": 0.35}, [*FIGURE, "numbers.csv", "record.json"]),
    ],
)
def test_what_changed_is_rewritten_and_nothing_else(compendium, write_notebook, changes, names):
    folder = _run(write_notebook)
    record = json.loads((folder / "record.json").read_text())
    record["versions"]["numpy"] = "another machine's"
    (folder / "record.json").write_text(json.dumps(record))
    tracked = [*folder.iterdir(), *(compendium / "figures" / "default").iterdir()]
    before = {path: path.read_bytes() for path in tracked}
    _run(write_notebook, **changes)
    assert sorted(path.name for path in tracked if path.read_bytes() != before[path]) == names


def test_a_missing_half_of_a_figure_is_made_again_but_in_a_smoke_run(compendium, write_notebook):
    _run(write_notebook)
    (pdf,) = (compendium / "figures" / "default").glob("*.pdf")
    pdf.unlink()
    _run(write_notebook)
    assert pdf.read_bytes().startswith(b"%PDF")
    _run(write_notebook, profile="smoke")
    drawn = [path.name for path in (compendium / "figures" / "smoke").iterdir()]
    assert drawn == ["10_demo-line.png"]
