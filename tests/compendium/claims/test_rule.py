import re

import numpy as np
import pytest
import yaml

from compendium.claims import OPEN, read_rule


@pytest.fixture
def rule(entry):
    found, faults = read_rule("experiment", entry["rule"])
    assert not faults
    return found


SOUND = {"gain": -0.2, "low": -0.3, "high": -0.1, "scale": 3}


@pytest.mark.parametrize(
    ("change", "verdict", "note"),
    [
        ({}, "confirmed", ""),
        ({"high": 0.0}, "not confirmed", ""),
        ({"high": None}, OPEN, ""),
        ({"scale": 2}, OPEN, "needs scale > 2, here 2"),
        ({"gain": 0.2}, OPEN, "needs gain < 0, here 0.2"),
        ({"gain": -9.0}, OPEN, "needs gain > -5, here -9"),
        ({"gain": 0.2, "scale": 2}, OPEN, "needs scale > 2, here 2; gain < 0, here 0.2"),
    ],
)
def test_evidence_decides_where_each_of_several_conditions_holds(entry, change, verdict, note):
    entry["rule"]["adequate"] = [["scale > 2", "gain < 0"], "gain > -5"]
    rule, faults = read_rule("experiment", entry["rule"])
    assert not faults
    found = rule.judge("x", SOUND | change)
    assert (found.verdict, found.note) == (verdict, note)
    one = read_rule("experiment", entry["rule"] | {"adequate": "scale > 2"})[0]
    assert (one.judge("x", SOUND | change).verdict == verdict) == (
        "gain" not in note or "scale" in note
    )


def test_a_theorem_is_judged_on_stand_in_data_too(entry):
    entry["rule"] |= {"verdicts": {"confirmed": "high < 0", "not confirmed": "otherwise"}}
    del entry["rule"]["adequate"]
    rule, _ = read_rule("theorem", entry["rule"])
    assert rule.judge("x", SOUND, stand_in=True).verdict == "confirmed"
    with pytest.raises(ValueError, match="high is None, and a claim of kind theorem"):
        rule.judge("x", SOUND | {"high": None})


def test_the_finding_is_written_from_evidence(rule):
    found = rule.judge("x", SOUND | {"gain": np.float32(-0.25), "scale": np.array([3])})
    assert found.says == "-0.25 nats [-0.30, -0.10]"
    assert type(found.evidence["gain"]) is float
    assert type(found.evidence["scale"]) is int
    assert rule.judge("x", SOUND | {"gain": None}).says.startswith("not measured nats")
    assert rule.judge("x", SOUND | {"high": None}).says == "not measured yet"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hihg": 0}, "claim x: its rule has no evidence hihg; it takes gain, low, high, scale"),
        ({"high": float("nan")}, "claim x: the evidence high is NaN"),
        ({"high": [1]}, "high must be a number, a truth value or a text, not list"),
        ({"high": np.zeros(2)}, "not ndarray"),
        ({"high": "0"}, "calculates with high = '0', which is not a number"),
        ({"gain": "much"}, "claim x: `says` cannot be written from this evidence"),
    ],
)
def test_evidence_that_does_not_fit_is_one_sentence(rule, change, message):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        rule.judge("x", SOUND | change)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="low, high is missing; its rule takes gain"):
        rule.judge("x", {"gain": 1, "scale": 3})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("verdicts: {confirmed: high < 0}", "last verdict, and no other, must be `otherwise`"),
        ("verdicts: {not confirmed: otherwise, confirmed: high < 0}", "its last verdict, and no"),
        ("verdicts: {confirmed: hihg < 0, not confirmed: otherwise}", "names hihg, which is not"),
        ("verdicts: {confirmed: high <, not confirmed: otherwise}", "does not parse"),
        ("adequate: size > 2", "names size, which is not among its evidence"),
        ("adequate: [scale > 2, [size > 2]]", "names size, which is not among its evidence"),
        ("says: '{gian}'", "its `says` names 'gian', which is not among its evidence"),
        ("says: '{gain.__class__}'", "its `says` names 'gain.__class__'"),
        ("says: '{}'", "its `says` names ''"),
        ("says: '{gain'", "its `says` is not a format string"),
    ],
)
def test_every_fault_of_a_rule_is_named(entry, change, message):
    rule, faults = read_rule("experiment", entry["rule"] | yaml.safe_load(change))
    assert rule is None
    assert any(message in fault for fault in faults), faults
