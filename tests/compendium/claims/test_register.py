import json

import pytest
import yaml

from compendium import __main__ as command_line
from compendium import claims
from compendium.claims.register import SCHEMA
from compendium.claims.rule import VERDICTS
from compendium.findings import KINDS


def test_a_sound_claim_is_read_whole(entry, write):
    register, faults = claims.read(write(entry))
    assert not faults
    claim = register["003-figure-1"]
    found = (claim.paper, claim.kind, claim.root, claim.notebook)
    assert found == ("003", "experiment", "fold", "24_robustness")
    assert claim.rule.outcomes == ("confirmed", "not confirmed", "open")
    assert register.titles == {"003": "A paper"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("verdict: holds", "003.yaml, 003-figure-1: claim must not contain {'verdict'}"),
        ("kind: rumour", "claim.kind must be one of ['theorem', 'numbers', 'experiment', 'ours']"),
        ("kind: theorem", "claim.rule.adequate must not be there"),
        ("kind: ours", "claim.sentence must not be there"),
        ("id: 001-figure-1", "its id must begin with 003-"),
        ("root: flod", "unknown root 'flod'; the files name fold"),
        ("notebook: 24_robust", "notebooks/24_robust.ipynb does not exist"),
        ("sentence: {paper: '003', start: '4', length: 8, digest: '0'}", "claim.sentence cannot"),
        ("rule: {why: ''}", "claim.rule.why must be longer"),
        ("rule: {evidence: {3: x}}", "rule.evidence must not contain {'3'}"),
        ("examples: {confirmed: {gain: 0}}", "no example leads to its verdict 'not confirmed'"),
        ("examples: {confirmed: {gain: 0}}", "'confirmed': the evidence low, high, scale is"),
        ("examples: {confirmed: {gain: 0, low: -1, high: 1, scale: 3}}", "of 'confirmed' leads"),
    ],
)
def test_every_fault_of_a_claim_is_one_sentence(entry, write, change, message):
    changed = yaml.safe_load(change)
    if isinstance(changed.get("rule"), dict):
        changed["rule"] = entry["rule"] | changed["rule"]
    folder = write(entry | changed)
    register, faults = claims.read(folder)
    assert not register
    assert any(message in fault for fault in faults), faults
    assert all("\n" not in fault for fault in faults)
    with pytest.raises(ValueError, match=r"003\.yaml"):
        claims.load(folder)


@pytest.mark.parametrize("gone", ["sentence", "notebook", "examples", "rule"])
def test_a_claim_has_all_of_its_fields(entry, write, gone):
    del entry[gone]
    assert f"claim must contain ['{gone}'" in (found := claims.read(write(entry))[1])[0], found


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"paper": "004"}, "003.yaml: its paper must be \"003\" as the file is named, not '004'"),
        ({"claims": ["text"]}, "003.yaml, an entry: claim must be object"),
        ({"roots": {"fold": "A fold.", "scale": "Scale."}}, "the root scale is named by no claim"),
    ],
)
def test_every_fault_of_a_file_is_one_sentence(entry, write, fields, message):
    faults = claims.read(write(entry, **fields))[1]
    assert any(fault.startswith(message) for fault in faults), faults


def test_an_id_and_a_key_stand_once_in_valid_yaml(entry, write):
    assert claims.read(write(entry, entry))[1] == ["003.yaml, 003-figure-1: duplicate id"]
    path = write(entry) / "003.yaml"
    path.write_text(path.read_text().replace("  place:", "  kind: ours\n  place:"))
    assert "duplicate key 'kind'" in claims.read(path.parent)[1][0]
    path.write_text("claims: [", encoding="utf-8")
    assert claims.read(path.parent)[1][0].startswith("003.yaml: is not valid YAML")


def test_an_edited_register_is_read_again(entry, write):
    assert "003-figure-1" in claims.load(write(entry))
    folder = write(entry | {"id": "003-figure-9"})
    assert "003-figure-9" in claims.load(folder)


# ---- what notebooks pass to the register

GOOD = 'book.claim("003-figure-1", gain=g, low=1, high=2, scale=3)'


@pytest.fixture
def check(entry, write, tmp_path):
    register, _ = claims.read(write(entry))

    def _check(*cells, name="24_robustness"):
        path = tmp_path / f"{name}.ipynb"
        code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
        written = [{"cell_type": "markdown", "source": ["book.claim(3"]}, *code]
        path.write_text(json.dumps({"cells": written}), encoding="utf-8")
        return claims.check(register, [path])

    return _check


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (GOOD.replace("gain", "gian"), "003-figure-1 has no evidence gian; its rule takes gain"),
        (GOOD.replace(", scale=3", ""), "cell 2: 003-figure-1 also needs the evidence scale"),
        ('book.claim("003-figure-2", gain=1)', "cell 2: the register has no claim '003-figure-2'"),
        ("pass", "003-figure-1: 24_robustness never passes its evidence"),
        (GOOD.replace(", scale=3", ", gian=3, **rest"), "has no evidence gian"),
    ],
)
def test_a_call_that_does_not_fit_is_one_sentence(check, cell, message):
    assert any(message in fault for fault in check(cell)[0]), check(cell)
    fault = check(GOOD, name="23_margin_sweep")[0][0]
    assert "the register says that 24_robustness passes" in fault


def test_what_is_known_only_at_run_time_is_reported(check):
    said = "24_robustness, cell 2: a claim whose id is known only at run time"
    assert check("book.claim(name, **evidence)") == ([], [said])


# ---- the register of this clone


def test_the_schema_has_the_kinds_and_the_scale_of_the_rules():
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    claim, rule = schema["claim"]["properties"], schema["rule"]["properties"]
    assert claim["kind"]["enum"] == list(KINDS)
    assert tuple(claim["examples"]["properties"]) == VERDICTS
    assert tuple(rule["verdicts"]["properties"]) == VERDICTS


def test_the_register_and_what_notebooks_pass_are_sound(repository, monkeypatch, capsys):
    """Reading judges each claim's examples: each verdict of each rule is reached by one."""
    monkeypatch.setenv("SOFTGEOM_ROOT", str(repository))
    assert command_line.main(["check-claims"]) == 0, capsys.readouterr().err


def test_the_example_of_the_contributors_page_is_sound(repository, tmp_path):
    page = (repository / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
    example = page.partition("```yaml\n")[2].partition("```")[0]
    head = 'paper: "003"\ntitle: A paper\nroots: {fold: A fold.}\nclaims:\n'
    (tmp_path / "003.yaml").write_text(head + example, encoding="utf-8")
    register, faults = claims.read(tmp_path)
    assert faults == []
    assert len(register) == 1
