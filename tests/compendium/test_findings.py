"""Verdicts follow today's rules, causes count once, stand-ins are kept apart."""

import pytest

from compendium import __main__ as command_line
from compendium import claims, findings, runs

_EMBEDDED = {"name": "IMDb", "kind": "embedded", "detail": "made up"}
_STAND_IN = {"aside": "stand-in", "content": {"sources": [_EMBEDDED]}}


@pytest.fixture(autouse=True)
def five(register, claim):
    """Five claims, of which three share a root."""
    theorems = [claim(f"001-{key}", root="fold") for key in "bcd"]
    register(claim("001-a", "experiment"), *theorems, claim("001-e", "ours"))


def _verdicts(found):
    return {f.claim.id[-1]: f.verdict for f in found}


def test_verdicts_follow_the_rules_of_today(register, claim, record):
    record(a=-1, b=-1, e="-inf")
    found, faults = findings.of_run("default")
    assert not faults
    assert _verdicts(found) == {"a": "confirmed", "b": "confirmed", "e": "confirmed"}
    register(claim("001-a", "experiment", -2), claim("001-b"), claim("001-e", "ours"))
    found, _ = findings.of_run("default")
    assert _verdicts(found) == {"a": "not confirmed", "b": "confirmed", "e": "confirmed"}


def test_a_record_that_no_rule_fits_names_the_notebook_to_run(register, claim, record, compendium):
    record(a=-1, z=3)
    found, faults = findings.of_run("default")
    assert _verdicts(found) == {"a": "confirmed"}
    (fault,) = faults
    assert "10_demo recorded 001-z in profile default, which is not its claim any more" in fault
    assert "run `make 10_demo PROFILE=default`" in fault
    (compendium / "notebooks" / "11_other.ipynb").write_text("{}")
    register(claim("001-a", notebook="11_other"), claim("001-b"))
    assert "10_demo recorded 001-a in" in findings.of_run("default")[1][0]
    entry = claim("001-a")
    entry["rule"]["evidence"]["seeds"] = "how many"
    for evidence in entry["examples"].values():
        evidence["seeds"] = 3
    register(entry, claim("001-b"))
    record(a=-1)
    assert "claim 001-a: the evidence seeds is missing" in findings.of_run("default")[1][0]


def test_stand_ins_judge_theorems_only_and_incomplete_data_are_not_compared(record, compendium):
    record(**_STAND_IN, a=-1, b=-1)
    assert _verdicts(findings.of_run("default")[0]) == {"a": claims.OPEN, "b": "confirmed"}
    record(aside="stand-in", a=-1)
    (found,) = findings.of_run("default")[0]
    assert (found.verdict, found.aside) == ("confirmed", "on incomplete data")
    assert findings.baseline([found]) == "id,verdict,finding\n"


def test_the_larger_committed_profile_is_shown_real_data_first(record):
    with pytest.raises(KeyError, match="no committed results in profile full, default"):
        runs.committed("10_demo")
    record(**_STAND_IN, profile="full", a=-1)
    assert runs.committed("10_demo").aside
    record(a=-1, b=-1)
    assert (runs.committed("10_demo").profile, runs.committed("10_demo").aside) == ("default", "")
    found, _ = findings.of_run("default")
    record("full", a=1, e=1)  # e has no verdict in the run of the default profile
    record("paper", a=-1)  # never shown: its results are not committed
    assert runs.committed("10_demo").profile == "full"
    assert _verdicts(findings.of_committed()[0]) == {"a": "not confirmed", "e": "not confirmed"}
    rows = findings.beside_larger(found, "default").to_numpy().tolist()
    assert rows == [["001-a", "confirmed", "full", "not confirmed", "+1.00 nats"]]
    for profile in ("full", "smoke", "paper", "own/mine"):
        assert findings.beside_larger(found, profile).empty


def test_what_was_recorded_is_found_by_its_address_on_real_data_alone(record):
    record(**_STAND_IN, a=-1)
    with pytest.raises(KeyError, match="001-a:gain: recorded on stand-in data alone"):
        runs.recorded("001-a:gain")
    folder = record(content={"values": {"lost": {"value": 7}}}, a=-2)
    (folder / "counts.csv").write_text('model,lost,share\nx: small,"1,008",-.5\n')
    assert runs.recorded("001-a:gain") == -2
    assert runs.recorded("10_demo/lost") == 7
    for column, cell in (("model", "x: small"), ("lost", 1008), ("share", -0.5)):
        assert runs.recorded(f"10_demo/counts:x: small:{column}") == cell
    for gone in ("001-b:gain", "001-a:size", "10_demo/kept", "10_demo/counts:y:lost", "11_x/lost"):
        with pytest.raises(KeyError):
            runs.recorded(gone)


@pytest.fixture
def commit(plant):
    """`commit(profile)`: its verdicts of today are those committed."""

    def write(profile="default"):
        text = findings.baseline(findings.of_run(profile)[0])
        plant({f"results/{profile}/verdicts.csv": text})
        return text

    return write


def test_the_check_names_every_verdict_that_moved(record, plant, commit, capsys):
    record(a=-1, b=-1, c=-1)
    none = "3 claims; no verdicts are committed for profile default"
    assert findings.changes("default") == ([], none)
    assert commit().splitlines()[:2] == ["id,verdict,finding", "001-a,confirmed,-1.00 nats"]
    plant({"data/reference/comparisons.yaml": "[]"})
    assert command_line.main(["check"]) == 0
    assert "nothing has run here in profile default" in capsys.readouterr().out
    plant({"executed/default/10_demo.json": '{"results": "results/default/10_demo"}'})
    assert command_line.main(["check"]) == 0
    assert "nothing has run here" not in capsys.readouterr().out
    record(a=1, b=-1, d=-1)
    changed, counts = findings.changes("default")
    assert changed == [
        "001-a (10_demo): confirmed -> not confirmed; +1.00 nats",
        "001-d (10_demo): new, confirmed",
        "001-c: had the verdict confirmed, and has no evidence",
    ]
    assert counts.endswith("1 changed, 1 new, 1 gone")
    assert command_line.main(["check"]) == 1
    assert "001-a (10_demo): confirmed -> not confirmed" in capsys.readouterr().out


def test_stand_ins_and_what_a_profile_builds_on_are_not_compared(
    register, claim, record, plant, commit
):
    folder = record(a=-1, b=-1)
    commit()
    (folder / "record.json").unlink()
    record(**_STAND_IN, a=-1, b=1)
    changed, counts = findings.changes("default")
    assert changed == []
    assert counts.endswith("2 on stand-in or incomplete data not compared")
    record("full", a=-1)
    commit("full")
    plant({"notebooks/11_demo.ipynb": "{}"})
    record(name="11_demo", b=-1)
    register(claim("001-a", "experiment"), claim("001-b", notebook="11_demo"))
    assert findings.changes("full")[0] == []


def test_claims_with_source_rule_and_result(
    register, claim, record, plant, compendium, monkeypatch, capsys
):
    plant({"papers/001_x.txt": "Yes. It gains, always. No."})
    monkeypatch.setenv("SOFTGEOM_PAPERS", str(compendium / "papers"))
    place, _ = claims.find("001", "It gains, always")
    told = claim("001-a", "experiment", sentence=vars(place), hypotheses="in winter")
    register(told, claim("001-b"))
    record(a=-1)
    told = findings.in_words(["001-a"])
    assert told.splitlines() == [
        "001-a  [experiment]  Section a",
        "  source      It gains, always.",
        "  we say      What 001-a says.",
        "  under       in winter",
        "    confirmed  gain < 0",
        "    not confirmed  otherwise",
        "  why         zero is no gain",
        "  result      CONFIRMED: -1.00 nats",
        "  from        10_demo, profile default",
    ]
    assert "  result      none committed: make 10_demo" in findings.in_words(["001-b"])
    assert findings.in_words(["001"]) == findings.in_words(["10_demo"]) == findings.in_words()
    assert command_line.main(["claims", "007"]) == 1
    assert "'007' is not a claim, paper (001) or notebook with" in capsys.readouterr().err
