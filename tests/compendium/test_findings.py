"""Findings: verdicts follow the rules of today from recorded evidence, causes count once, stand-ins
are kept apart.
"""

from __future__ import annotations

import json

import pytest
import yaml

from compendium import __main__ as command_line
from compendium import claims, findings, runs, telling

POINTER = {"paper": "001", "start": 0, "length": 3, "digest": "0123456789abcdef"}


def _entry(id, kind="experiment", root=None, bound=0, **more):
    best, worst = {
        "experiment": ("reproduced", "not reproduced"),
        "ours": ("found", "not found"),
    }.get(kind, ("holds", "fails"))
    entry = {
        "id": id,
        "place": "Figure 1",
        "kind": kind,
        "statement": f"What {id} says.",
        "notebook": "10_demo",
        "rule": {
            "evidence": {"gain": "in nats"},
            "verdicts": {best: f"gain < {bound}", worst: "otherwise"},
            "why": "zero is no gain",
            "says": "{gain:+.2f} nats",
        },
        "examples": {best: {"gain": bound - 1}, worst: {"gain": bound + 1}},
    }
    return (
        entry
        | ({} if kind == "ours" else {"sentence": POINTER})
        | ({"root": root} if root else {})
        | more
    )


@pytest.fixture
def register(compendium, write_notebook):
    """Writes the register; five claims by default, of which three share a root."""
    write_notebook("10_demo", 'profile: str = "lab"')
    (compendium / "claims").mkdir()

    def write(*entries):
        entries = entries or (
            _entry("001-a"),
            _entry("001-b", kind="theorem", root="fold"),
            _entry("001-c", kind="theorem", root="fold"),
            _entry("001-d", kind="theorem", root="fold"),
            _entry("001-e", kind="ours"),
        )
        content = {
            "paper": "001",
            "title": "A paper",
            "roots": {"fold": "It folds."},
            "claims": list(entries),
        }
        (compendium / "claims" / "001.yaml").write_text(
            yaml.safe_dump(content, sort_keys=False), encoding="utf-8"
        )

    write()
    return write


_EMBEDDED = {"name": "IMDb", "kind": "embedded", "detail": "made up"}


@pytest.fixture
def record(compendium):
    """Writes a record of `10_demo` with the evidence of some claims."""

    def write(profile="default", aside="", sources=None, **gains):
        folder = compendium / "results" / profile / "10_demo" / aside
        folder.mkdir(parents=True, exist_ok=True)
        rows = [
            {"id": f"001-{key}", "verdict": "?", "evidence": {"gain": gain}}
            for key, gain in gains.items()
        ]
        content = {
            "notebook": "10_demo",
            "profile": profile,
            "claims": rows,
            "values": {},
            "figures": {},
            "tables": {},
            "sources": ([_EMBEDDED] if aside else []) if sources is None else sources,
        }
        (folder / "record.json").write_text(json.dumps(content), encoding="utf-8")

    return write


def _verdicts(found):
    return {f.claim.id[-1]: f.verdict for f in found}


def test_verdicts_follow_the_rules_of_today(register, record):
    record(a=-1, b=-1, e="-inf")
    found, faults = findings.of_run("default")
    assert not faults
    assert _verdicts(found) == {"a": "reproduced", "b": "holds", "e": "found"}
    register(
        _entry("001-a", bound=-2),
        _entry("001-b", kind="theorem", root="fold"),
        _entry("001-e", kind="ours"),
    )
    assert _verdicts(findings.of_run("default")[0]) == {
        "a": "not reproduced",
        "b": "holds",
        "e": "found",
    }


def test_rows_that_share_a_root_count_once_for_each_verdict(register, record):
    record(a=-1, b=1, c=1, d=-1, e=1)
    found, _ = findings.of_run("default")
    counts = findings.count(found).set_index(["kind", "verdict"])["claims"]
    assert counts["theorem", "fails"] == 1  # two rows
    assert counts["theorem", "holds"] == 1
    assert counts["experiment", "reproduced"] == 1
    assert counts["ours", "not found"] == 1
    assert counts.sum() == 4
    assert {
        root: [f.claim.id for f in rows]
        for root, rows in findings.by_root(found, claims.load()).items()
    } == {"fold": ["001-b", "001-c", "001-d"]}


def test_a_record_that_no_rule_fits_names_the_notebook_to_run(register, record, compendium):
    record(a=-1, z=3)
    found, faults = findings.of_run("default")
    assert _verdicts(found) == {"a": "reproduced"}
    assert faults == [
        (
            "10_demo recorded 001-z in profile default, which is not its claim any more: run "
            "`make 10_demo PROFILE=default`"
        )
    ]
    (compendium / "notebooks" / "11_other.ipynb").write_text(
        (compendium / "notebooks" / "10_demo.ipynb").read_text()
    )
    register(_entry("001-a", notebook="11_other"), _entry("001-b", kind="theorem", root="fold"))
    assert (
        "10_demo recorded 001-a in profile default, which is not its claim"
        in findings.of_run("default")[1][0]
    )
    entry = _entry("001-a")
    entry["rule"]["evidence"]["seeds"] = "how many"
    entry["examples"] = {
        verdict: evidence | {"seeds": 3} for verdict, evidence in entry["examples"].items()
    }
    register(entry, _entry("001-b", kind="theorem", root="fold"))
    record(a=-1)
    assert "claim 001-a: the evidence seeds is missing" in findings.of_run("default")[1][0]


def test_a_record_from_before_the_rules_names_the_notebook_to_run(register, record, compendium):
    record(a=-1)
    path = compendium / "results" / "default" / "10_demo" / "record.json"
    path.write_text(path.read_text().replace('"evidence"', '"value"'))
    told = (
        "10_demo was recorded in profile default before claims had rules: run `make 10_demo "
        "PROFILE=default`"
    )
    assert findings.of_run("default") == ([], [told])


def test_stand_ins_judge_theorems_only(register, record):
    record(aside="stand-in", a=-1, b=-1)
    assert _verdicts(findings.of_run("default")[0]) == {"a": claims.NOT_TESTABLE, "b": "holds"}


def test_incomplete_data_judge_experiments_and_are_not_compared(register, record, compendium):
    record(aside="stand-in", sources=[], a=-1)
    (found,) = findings.of_run("default")[0]
    assert (found.verdict, found.aside) == ("reproduced", "on incomplete data")
    assert findings.baseline([found]) == "id,verdict,finding\n"


def test_the_larger_committed_profile_is_shown(register, record):
    record(a=-1)
    assert runs.committed("10_demo").profile == "default"
    record("hour", a=1)
    assert runs.committed("10_demo").profile == "hour"
    assert _verdicts(findings.of_committed()[0]) == {"a": "not reproduced"}
    record("paper", a=-1)  # never shown: its results are not committed
    assert runs.committed("10_demo").profile == "hour"


def test_verdicts_of_a_larger_committed_profile_stand_beside_those_of_a_run(register, record):
    record(a=-1, b=-1)
    found, _ = findings.of_run("default")
    assert findings.beside_larger(found, "default").empty
    record("hour", a=1, e=1)  # e has no verdict in this run
    row = findings.beside_larger(found, "default").to_dict("records")
    assert row == [
        {
            "id": "001-a",
            "here": "reproduced",
            "profile": "hour",
            "verdict": "not reproduced",
            "finding": "+1.00 nats",
        }
    ]
    # nothing committed is larger, or comparable
    for profile in ("hour", "smoke", "paper", "own/mine"):
        assert findings.beside_larger(found, profile).empty


def test_real_data_go_before_a_stand_in(register, record):
    record(a=-1, aside="stand-in")
    assert runs.committed("10_demo").aside
    record(a=-1)
    assert not runs.committed("10_demo").aside


def test_what_was_never_run_is_named(register):
    with pytest.raises(KeyError, match="no committed results in profile hour, models"):
        runs.committed("10_demo")


def test_the_check_names_every_verdict_that_moved(register, record, compendium, capsys):
    record(a=-1, b=-1, c=-1)
    assert findings.changes("default") == (
        [],
        "3 claims; no verdicts are committed for profile default",
    )
    text = findings.baseline(findings.of_run("default")[0])
    assert text.splitlines()[:2] == ["id,verdict,finding", "001-a,reproduced,-1.00 nats"]
    (compendium / "results" / "default" / "verdicts.csv").write_text(text, encoding="utf-8")
    (compendium / "data" / "reference" / "comparisons.yaml").write_text("[]", encoding="utf-8")
    assert command_line.main(["check"]) == 0
    assert "nothing has run here in profile default" in capsys.readouterr().out
    execution = compendium / "executed" / "default" / "10_demo.json"
    execution.parent.mkdir(parents=True)
    execution.write_text('{"results": "results/default/10_demo"}', encoding="utf-8")
    assert command_line.main(["check"]) == 0
    assert "nothing has run here" not in capsys.readouterr().out
    record(a=1, b=-1, d=-1)
    changed, counts = findings.changes("default")
    assert changed == [
        "001-a (10_demo): reproduced -> not reproduced; +1.00 nats",
        "001-d (10_demo): new, holds",
        "001-c: had the verdict holds, and has no evidence",
    ]
    assert counts.endswith("1 changed, 1 new, 1 gone")
    assert command_line.main(["check"]) == 1
    assert "001-a (10_demo): reproduced -> not reproduced" in capsys.readouterr().out


def test_a_run_on_stand_ins_is_not_held_against_real_verdicts(register, record, compendium):
    record(a=-1, b=-1)
    text = findings.baseline(findings.of_run("default")[0])
    (compendium / "results" / "default" / "verdicts.csv").write_text(text, encoding="utf-8")
    (compendium / "results" / "default" / "10_demo" / "record.json").unlink()
    record(aside="stand-in", a=-1, b=1)
    changed, counts = findings.changes("default")
    assert changed == []
    assert counts.endswith("2 on stand-in or incomplete data not compared")
    assert findings.baseline(findings.of_run("default")[0]) == "id,verdict,finding\n"


def test_what_a_profile_builds_on_is_not_compared_with_it(register, record, compendium):
    record("models", a=-1)
    (compendium / "results" / "models" / "verdicts.csv").write_text(
        findings.baseline(findings.of_run("models")[0]), encoding="utf-8"
    )
    (compendium / "notebooks" / "11_demo.ipynb").write_text("{}")
    below = compendium / "results" / "default" / "11_demo"
    below.mkdir(parents=True)
    row = {"id": "001-b", "verdict": "?", "evidence": {"gain": -1}}
    content = {
        "notebook": "11_demo",
        "profile": "default",
        "claims": [row],
        "figures": {},
        "tables": {},
        "sources": [],
    }
    (below / "record.json").write_text(json.dumps(content), encoding="utf-8")
    register(
        _entry("001-a"), _entry("001-b", kind="theorem", root="fold") | {"notebook": "11_demo"}
    )
    assert findings.changes("models")[0] == []


def test_claims_are_told_with_source_rule_and_result(
    register, record, compendium, monkeypatch, capsys
):
    papers = compendium / "papers"
    papers.mkdir()
    (papers / "001_x.txt").write_text("Yes. It gains, always. No.", encoding="utf-8")
    monkeypatch.setenv("SOFTGEOM_PAPERS", str(papers))
    place, _ = claims.find("001", "It gains, always")
    register(
        _entry("001-a", sentence=vars(place), hypotheses="in winter"),
        _entry("001-b", kind="theorem", root="fold"),
    )
    record(a=-1)
    told = telling.render(["001-a"])
    for line in (
        "001-a  [experiment]  Figure 1",
        "  source      It gains, always.",
        "  we say      What 001-a says.",
        "  under       in winter",
        "    reproduced  gain < 0",
        "  result      REPRODUCED: -1.00 nats",
        "  from        10_demo, profile default",
    ):
        assert line in told.splitlines()
    assert "  result      none committed: make 10_demo" in telling.render(["001-b"])
    assert telling.render(["001"]) == telling.render(["10_demo"]) == telling.render()
    assert command_line.main(["claims", "007"]) == 1
    assert (
        "'007' is not a claim, paper (001) or notebook with claims (10_demo)"
        in capsys.readouterr().err
    )
