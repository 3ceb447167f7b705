"""One quantity, one value: a contradiction of each kind is planted, and found."""

import json

import pytest

from compendium import agreement, codebase, paths
from compendium.pages import rendered

CLAIMS = """
paper: "001"
title: Demo
roots: {}
claims:
  - id: 001-a
    place: Section 1
    kind: ours
    notebook: 10_demo
    statement: Many outputs are lost.
    rule:
      evidence: {lost: how many are lost}
      verdicts: {found: lost > 0, not found: otherwise}
      why: Because 7 of 40 outputs is many.
      says: "{lost} of 40 outputs"
    examples:
      found: {lost: 1}
      not found: {lost: 0}
"""
QUANTITIES = """
- id: lost outputs
  of: 10_demo/lost
  alike: [11_other/again, '001-a:lost']
  said: ['(C) of 40 outputs', 'loses (C) outputs']
  with: of one model
- id: share read
  of: 10_demo/read
  said: ['(N) are read']
"""


def _notebook(prose, code="x = 1"):
    kinds = {"markdown": prose, "code": code}
    cells = [{"cell_type": k, "metadata": {}, "source": [text]} for k, text in kinds.items()]
    return json.dumps({"cells": cells})


FILES = {
    "claims/001.yaml": CLAIMS,
    "data/reference/quantities.yaml": QUANTITIES,
    "README.md": "7 of 40 outputs of one model; <!-- value: x -->70%<!-- /value --> are read",
    "docs/trust.md": "It loses 7 outputs of one model.",
    "docs/gallery/001.md": "7 of 40 outputs of one model",
    "notebooks/10_demo.ipynb": _notebook("# Demo: 7 of 40 outputs of one model"),
    "notebooks/11_other.ipynb": _notebook("# Other"),
}
PARTS = ("about", "caption", "alt", "headline", "table", "says")


@pytest.fixture
def run(record):
    """`run(name, profile, lost, caption=...)` records that so many of 40 are lost."""

    def write(name="10_demo", profile="default", lost=7, changes=(), **said):
        told = dict.fromkeys(PARTS, f"the {lost} of 40 outputs") | said
        values = {"lost": {"value": lost, "about": told["about"]}, "again": {"value": lost}}
        content = {
            "values": values | {"read": {"value": 0.704, "about": ""}},
            "claims": [{"id": "001-a", "evidence": {"lost": lost}, "says": told["says"]}],
            "tables": {"counts": told["table"]},
            "figures": {"dots": {key: told[key] for key in ("caption", "alt", "headline")}},
            "drawn_by": codebase.drawing_digest(paths.notebook(name)),
        }
        record(profile, name=name, content=content | dict(changes))

    return write


@pytest.fixture
def whole(plant, run):
    """A compendium in which every place agrees, and `plant`."""
    plant(FILES)
    run("10_demo")
    run("11_other")
    return plant


def test_where_all_places_agree_nothing_is_found(whole):
    assert agreement.faults() == []
    assert len(agreement.tellings()) > 15


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("README.md", "8 of 40 outputs of one model", "README.md says 8"),
        ("README.md", "70 of 40 outputs of one model", "README.md says 70"),
        ("README.md", "7 of 40 outputs of one model; 71% are read", "README.md says 71%"),
        ("README.md", "7 of 40 outputs of one model; 0.7 are read, 0.69 are read", "says 0.69"),
        ("README.md", "<!-- value: y -->1,007<!-- /value --> of 40 outputs of one model", "1,007"),
        ("README.md", "7 of 40 outputs", "README.md tells lost outputs without the words"),
        ("docs/new.md", "by +186% [-163%, +536%]", "docs/new.md tells -163%, which is more than"),
        ("docs/new.md", "costs +0.56 nats [0.61, 0.74]", "[0.61, 0.74], a value outside its"),
        ("docs/new.md", "of all heads 271 of 270", "271 of 270, a part larger than its whole"),
        ("docs/new.md", "these are 19 of 202 (12%)", "tells 19 of 202 (12%), another share"),
        ("docs/new.md", "as `001-b` asks", "docs/new.md names 001-b, which is no row"),
        ("notebooks/11_other.ipynb", _notebook("001-a is **not found**"), "says 'not found' of"),
        ("docs/trust.md", "It loses 6 outputs of one model.", "docs/trust.md says 6"),
        ("docs/new.md", "It loses 5 outputs of one model.", "docs/new.md says 5"),
        ("docs/gallery/001.md", "77 of 40 outputs of one model", "docs/gallery/001.md says 77"),
        ("notebooks/11_other.ipynb", _notebook("3 of 40 outputs"), "11_other.ipynb says 3"),
        ("notebooks/lessons/1.ipynb", _notebook("2 of 40 outputs"), "lessons/1.ipynb says 2"),
        ("claims/001.yaml", CLAIMS.replace("Because 7 of", "Because 6 of"), "001-a says 6"),
        ("claims/001.yaml", CLAIMS.replace("Many outputs", "1 of 40 outputs"), "001-a says 1"),
        ("README.md", "9 of 40 outputs of one model (profile `default`)", "README.md says 9"),
        ("README.md", "Nine of 40 outputs of one model", "README.md says Nine"),
        ("README.md", "twenty-seven of 40 outputs of one model", "says twenty-seven"),
        ("data/README.md", "8 of 40 outputs of one model", "data/README.md says 8"),
        ("notebooks/lessons/TEACHING.md", "6 of 40 outputs of one model", "TEACHING.md says 6"),
        ("report/story/story.html", "<p>8 of 40 outputs of one model</p>", "story.html says 8"),
    ],
)
def test_a_page_that_contradicts_the_records_is_found(whole, path, text, told):
    whole({path: text})
    assert any(told in fault for fault in agreement.faults())


def test_what_numbers_can_be_and_rows_that_there_are_are_left_alone(whole):
    text = "-12% [-20%, -3.5%], +0.5 points [-1, 2], 7 of the 24 of 4 classes, 19 of 202 (9%); "
    whole({"docs/new.md": text + "001-a is **found**, by 001-a: found and in `001-a`."})
    assert agreement.faults() == []


@pytest.mark.parametrize("told", ["seven of 40", "Seven of 40"])
def test_a_number_in_words_is_that_number(whole, told):
    whole({"README.md": f"{told} outputs of one model, 70% are read"})
    assert agreement.faults() == []


@pytest.mark.parametrize(
    ("words", "number"), [("two hundred", 200), ("thirty-five", 35), ("no", 0), ("Twelve", 12)]
)
def test_words_are_read_as_a_number(words, number):
    assert agreement._same(words, number)
    assert not agreement._same(words, number + 1)


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("bench/scan:a, with bias:lost", "bench/scan:a, with bias:lost says 8.0"),
        ("10_demo/counts:a, with bias:lost", "results/default, 10_demo/counts:a, with bias:lost"),
        ("bench/scan:b:lost", "lost outputs names bench/scan:b:lost, which no committed run"),
        ("bench/scan:b:gone", "which no committed run"),
    ],
)
def test_a_cell_of_a_table_is_compared(whole, cell, told):
    whole({"data/reference/quantities.yaml": QUANTITIES.replace("11_other/again", f"'{cell}'")})
    tables = ("results/bench/scan.csv", "results/default/10_demo/counts.csv")
    whole(dict.fromkeys(tables, 'head,lost\n"a, with bias",8\n'))
    assert any(told in fault for fault in agreement.faults())


def test_a_fact_may_be_a_text(whole):
    entry = "\n- {id: version, is: '3.10', said: ['Python (\\d[.]\\d+)']}\n"
    whole({"data/reference/quantities.yaml": QUANTITIES + entry, "Makefile": "# Python 3.10"})
    assert agreement.faults() == []
    whole({"Makefile": "# Python 3.1"})
    assert agreement.faults() == ["Makefile says 3.1 for version, which is 3.10"]


def test_a_sentence_worded_anew_loses_no_guard_in_silence(whole):
    whole({"docs/trust.md": "Of its outputs 6 are lost, those of one model."})
    assert agreement.faults() == [
        "quantities.yaml: no place says 'loses (C) outputs', as lost outputs is told there"
    ]


@pytest.mark.parametrize("part", PARTS)
def test_a_record_that_contradicts_itself_is_found(whole, run, part):
    run(**{part: "8 of 40 outputs"})
    assert [fault for fault in agreement.faults() if "says 8 for lost outputs" in fault]


def test_two_notebooks_that_record_two_values_are_found(whole, run):
    run("11_other", lost=8)
    assert any("11_other/again says 8.0" in fault for fault in agreement.faults())
    run(changes={"claims": [{"id": "001-a", "evidence": {"lost": 8}, "says": ""}]})
    assert any("001-a:lost says 8.0" in fault for fault in agreement.faults())


def test_what_a_profile_says_is_compared_with_its_own_value(whole, run):
    run("10_demo", "hour", lost=9)
    # pages show the larger run from now on
    assert any("README.md says 7" in fault for fault in agreement.faults())
    assert not any(fault.startswith("results/") for fault in agreement.faults())
    pages = ("README.md", "docs/trust.md", "docs/gallery/001.md")
    texts = {page: "9 of 40 outputs of one model" for page in pages}
    texts["README.md"] = "7 of 40 outputs of one model (profile `default`); 70% are read"
    texts["docs/trust.md"] = "It loses 9 outputs of one model."
    texts["notebooks/10_demo.ipynb"] = _notebook("# Demo")
    texts["claims/001.yaml"] = CLAIMS.replace("7 of 40", "9 of 40")
    whole(texts)
    assert agreement.faults() == []


@pytest.mark.parametrize("drawn_by", ["0123456789abcdef", None])
def test_a_figure_older_than_its_drawing_code_is_an_error(whole, run, drawn_by):
    run(changes={"drawn_by": drawn_by})
    assert agreement.faults() == [
        "the figures of 10_demo in profile default are older than the code that draws them: run "
        "`make 10_demo PROFILE=default`"
    ]


def test_a_quantity_is_recorded_or_a_fact(whole):
    whole({"data/reference/quantities.yaml": "- {id: lost, of: 10_demo/gone}"})
    assert agreement.faults() == [
        "quantities.yaml: lost names 10_demo/gone, which no committed run recorded"
    ]
    whole({"data/reference/quantities.yaml": "- {id: lost, from: 10_demo/gone}"})
    with pytest.raises(ValueError, match="lost: unknown or missing field from"):
        agreement.faults()
    whole({"data/reference/quantities.yaml": "- {id: a, of: 10_demo/lost, is: 3}\n"})
    with pytest.raises(ValueError, match="one of the fields of, is"):
        agreement.quantities()


def test_the_committed_list_names_every_place():
    """Of this repository; a sentence that is added or taken away changes the list."""
    path = paths.root() / "data" / "reference" / "quantity_places.csv"
    assert path.read_text(encoding="utf-8") == rendered.fresh()[path]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"README.md": "7 of 40 outputs of one model, and 1,234 more"}, "README.md tells 1,234"),
        ({"notebooks/11_other.ipynb": _notebook("12,345 rows")}, "11_other.ipynb tells 12,345"),
        ({"docs/trust.md": "in 2024, `1234`, <!-- value: x -->1,234<!-- /value -->, 2^1021"}, ""),
        ({"docs/trust.md": "4,321 and 12,345", "data/reference/a.csv": "n\n4321\n"}, "12,345"),
    ],
)
def test_a_number_without_a_source_is_found(whole, files, told):
    whole(files)
    found = agreement.unsourced()
    assert len(found) == bool(told)
    assert all(told in fault for fault in found)


def test_a_headline_tells_what_its_run_recorded(whole, run):
    run(headline="7 of 40 outputs are lost, 0.704 read, 3.46 times as many, 2.25 tried")
    whole({"results/default/10_demo/counts.csv": "rows\n3.4567\n"})
    assert agreement.unsourced() == [
        "results/default/10_demo, headline of dots tells 2.25, which nothing recorded"
    ]
