"""What a page, a table or a record must keep to by itself: each is broken once, and found."""

import json

import pytest

from compendium import accounts, agreement

CODE = """
book.figure("dots", fig, caption="Seven dots", alt="Dots")
book.table("counts", frame, caption="Counts")
book.value("share", 18.6, about="per cent of the dots")
book.value("change", 0.2, about=f"change of {name}")
"""


RECORD = {
    "values": {
        "share": {"value": 18.6, "about": "per cent of the dots"},
        "change": {"value": 0.2, "about": "change of perplexity"},
    },
    "tables": {"counts": "Counts"},
    "figures": {"dots": {"caption": "Seven dots", "alt": "Dots", "headline": "7 dots"}},
}
SCAN = "head,classes,argmaxable,tied,unargmaxable,undecided\n"
SETS = "experts,possible,impossible,undecided\n3,1,2,0\n"


def _told(key, text, sign=""):
    return f"<!-- value: 10_demo/{key} -->{text}<!-- /value -->{sign}"


def _notebook(code):
    return json.dumps({"cells": [{"cell_type": "code", "metadata": {}, "source": [code]}]})


@pytest.fixture
def faults(plant, record):
    """`faults({place: text})`: what is found in a compendium that keeps to everything else."""
    files = {
        "README.md": _told("share", "18.6", "%") + f"; it costs {_told('change', '20%')}.",
        "report/story/story.html": "<p>{{10_demo/share}}% of 7 fell by {{10_demo/change|.1f}}</p>",
        "results/bench/scan.csv": SCAN + '"a","1,000",990,2,8,0\nb,,1,1,1,1\n',
        "results/default/10_demo/sets.csv": SETS,
        "results/default/10_demo/parts.csv": "possible,impossible,undecided\n1,2,0\n",
        "notebooks/10_demo.ipynb": _notebook(CODE),
    }
    record(content=RECORD)

    def found(changed):
        plant(files | changed)
        return accounts.faults(agreement.committed_runs())

    return found


@pytest.mark.parametrize(
    ("place", "text", "told"),
    [
        ("README.md", _told("share", "18.6"), "10_demo/share: a per cent sign is missing"),
        ("README.md", _told("change", "0.2", "%"), "10_demo/change: a per cent sign too many"),
        ("README.md", f"It lowers x by {_told('change', '20%')}.", "'lowers x by' of 20%"),
        ("docs/answers.md", _told("share", "18.6"), "docs/answers.md, 10_demo/share: a per cent"),
        ("report/story/story.html", "{{10_demo/share}} of 7", "story.html, 10_demo/share: a per"),
        ("results/bench/scan.csv", SCAN + "a,1000,990,2,9,0\n", "scan.csv, row 1: argmaxable 990"),
        ("results/default/10_demo/sets.csv", SETS + "4,1,2,0\n", "sets.csv, row 2: possible 1"),
        ("notebooks/10_demo.ipynb", _notebook(CODE.replace("Seven", "Eight")), "of figure dots"),
        ("notebooks/10_demo.ipynb", _notebook(CODE.replace("Counts", "Shares")), "table counts"),
        ("notebooks/10_demo.ipynb", _notebook(CODE.replace("the dots", "all")), "value share"),
    ],
)
def test_what_does_not_is_found(faults, place, text, told):
    (fault,) = faults({place: text})
    assert told in fault


def test_a_fall_is_no_rise_in_the_run_that_pages_show(faults, record):
    record("hour", content={"values": {"change": {"value": -0.2, "about": ""}}})
    told = _told("change", "-20%")
    text = f"It raises perplexity by {told}, or lowers it by {told}."
    found = faults({"README.md": text, "report/story/story.html": ""})
    assert found == ["README.md, 10_demo/change: 'raises perplexity by' of -20%"]
