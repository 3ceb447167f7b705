"""The schema and the reader: what one refuses by its shape, so does the other."""

import json

import jsonschema
import pytest
import yaml

from compendium import claims
from compendium.claims import schema


def faults(content):
    return list(jsonschema.Draft202012Validator(schema.schema()).iter_errors(content))


def test_it_is_a_schema_that_every_file_satisfies(repository):
    jsonschema.Draft202012Validator.check_schema(schema.schema())
    assert json.loads((repository / "claims" / "schema.json").read_text()) == schema.schema()
    for path in sorted((repository / "claims").glob("*.yaml")):
        assert not faults(yaml.safe_load(path.read_text(encoding="utf-8"))), path.name


@pytest.mark.parametrize(
    ("change", "sound"),
    [
        ("root: fold", True),
        ("sentence: [{paper: '003', start: 4, length: 8, digest: '0'}]", True),
        ("verdict: holds", False),
        ("statement: ''", False),
        ("kind: rumour", False),
        ("kind: theorem", False),
        ("kind: ours", False),
        ("id: 003-figure 1", False),
        ("sentence: {paper: '003', start: '4', length: 8, digest: '0'}", False),
        ("rule: ", False),
        ("examples: [1]", False),
        ("examples: {reproduced: 3}", False),
    ],
)
def test_it_says_what_the_reader_says(entry, write, change, sound):
    folder = write(entry | yaml.safe_load(change))
    content = yaml.safe_load((folder / "003.yaml").read_text())
    assert (not claims.read(folder)[1]) == sound
    assert (not faults(content)) == sound


@pytest.mark.parametrize("gone", ["sentence", "notebook", "examples"])
def test_it_misses_what_the_reader_misses(entry, write, gone):
    del entry[gone]
    folder = write(entry)
    assert claims.read(folder)[1]
    assert faults(yaml.safe_load((folder / "003.yaml").read_text()))


@pytest.mark.parametrize("field", ["evidence", "verdicts", "why", "says"])
def test_a_rule_has_its_fields(entry, write, field):
    del entry["rule"][field]
    folder = write(entry)
    assert claims.read(folder)[1]
    assert faults(yaml.safe_load((folder / "003.yaml").read_text()))
