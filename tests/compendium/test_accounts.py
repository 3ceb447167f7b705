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


@pytest.fixture
def planted(compendium):
    """A compendium that keeps to everything; returns a function that writes files into it."""
    record = {
        "notebook": "10_demo",
        "profile": "default",
        "sources": [],
        "values": {
            "share": {"value": 18.6, "about": "per cent of the dots"},
            "change": {"value": 0.2, "about": "change of perplexity"},
        },
        "claims": [],
        "tables": {"counts": "Counts"},
        "figures": {"dots": {"caption": "Seven dots", "alt": "Dots", "headline": "7 dots"}},
    }
    files = {
        "README.md": _told("share", "18.6", "%") + f"; it costs {_told('change', '20%')}.",
        "report/story/story.html": "<p>{{10_demo/share}}% of 7 fell by {{10_demo/change|.1f}}</p>",
        "results/bench/scan.csv": "head,classes,argmaxable,tied,unargmaxable,undecided\n"
        '"a","1,000",990,2,8,0\nb,,1,1,1,1\n',
        "results/default/10_demo/sets.csv": "experts,possible,impossible,undecided\n3,1,2,0\n",
        "results/default/10_demo/parts.csv": "possible,impossible,undecided\n1,2,0\n",
        "results/default/10_demo/record.json": json.dumps(record),
        "notebooks/10_demo.ipynb": _notebook(CODE),
    }

    def write(**changed):
        for name, text in (files | changed.pop("files", {})).items():
            path = compendium / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    write()
    return write


def _told(key, text, sign=""):
    return f"<!-- value: 10_demo/{key} -->{text}<!-- /value -->{sign}"


def _notebook(code):
    return json.dumps({"cells": [{"cell_type": "code", "metadata": {}, "source": [code]}]})


def _faults():
    return accounts.faults(agreement.committed_runs())


@pytest.mark.parametrize(
    ("place", "text", "told"),
    [
        ("README.md", _told("share", "18.6"), "10_demo/share: a per cent sign is missing"),
        ("README.md", _told("change", "0.2", "%"), "10_demo/change: a per cent sign too many"),
        (
            "README.md",
            f"It lowers perplexity by {_told('change', '20%')}.",
            "README.md, 10_demo/change: 'lowers perplexity by' of 20%",
        ),
        ("docs/answers.md", _told("share", "18.6"), "docs/answers.md, 10_demo/share: a per cent"),
        ("report/story/story.html", "{{10_demo/share}} of 7", "story.html, 10_demo/share: a per"),
        (
            "results/bench/scan.csv",
            "head,classes,argmaxable,tied,unargmaxable,undecided\na,1000,990,2,9,0\n",
            "results/bench/scan.csv, row 1: argmaxable 990 + tied 2 + unargmaxable 9 + undecided 0 "
            "is not classes 1000",
        ),
        (
            "results/default/10_demo/sets.csv",
            "experts,possible,impossible,undecided\n3,1,2,0\n4,1,2,0\n",
            "sets.csv, row 2: possible 1 + impossible 2 + undecided 0 is not experts 4",
        ),
        (
            "notebooks/10_demo.ipynb",
            _notebook(CODE.replace("Seven dots", "Eight dots")),
            "the caption of figure dots in 10_demo is not what profile default recorded",
        ),
        ("notebooks/10_demo.ipynb", _notebook(CODE.replace("Counts", "Shares")), "table counts"),
        ("notebooks/10_demo.ipynb", _notebook(CODE.replace("the dots", "all")), "value share"),
    ],
)
def test_what_does_not_is_found(planted, place, text, told):
    planted(files={place: text})
    (fault,) = _faults()
    assert told in fault


def test_a_fall_is_no_rise_in_the_run_that_pages_show(planted):
    record = {"values": {"change": {"value": -0.2, "about": ""}}, "figures": {}, "tables": {}}
    told = _told("change", "-20%")
    text = f"It raises perplexity by {told}, or lowers it by {told}."
    planted(
        files={
            "README.md": text,
            "report/story/story.html": "",
            "results/hour/10_demo/record.json": json.dumps(record),
        }
    )
    assert _faults() == ["README.md, 10_demo/change: 'raises perplexity by' of -20%"]
