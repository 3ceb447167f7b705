"""`claims/schema.json`, with which an editor checks and completes a register while it is written.

It is made from the tables that the reader goes by (register.py, rule.py) and says what a JSON
schema can: fields, kinds, verdicts, shapes. What it cannot, such as whether a condition names
evidence that is there, the reader alone finds.
"""

from __future__ import annotations

import json
from typing import Any

from compendium.claims import register, rule

_TYPES = {str: "string", int: "integer"}
_TEXT = {"type": "string", "minLength": 1}


def render() -> str:
    """The text of the file."""
    return json.dumps(schema(), indent=2) + "\n"


def schema() -> dict[str, Any]:
    """The JSON schema of a register's file."""
    pointer = _object({name: {"type": _TYPES[kind]} for name, kind in register._POINTER.items()})
    evidence = {"type": "object"}
    claim: dict[str, Any] = {name: _TEXT for name in register._REQUIRED | register._OPTIONAL}
    claim |= {
        "id": {"type": "string", "pattern": f"^{register._ID.pattern}$"},
        "kind": {"enum": list(rule.VERDICTS)},
        "sentence": {"anyOf": [pointer, {"type": "array", "items": pointer, "minItems": 1}]},
        "rule": _rule(),
        "examples": {
            "type": "object",
            "additionalProperties": {
                "anyOf": [evidence, {"type": "array", "items": evidence, "minItems": 1}]
            },
        },
    }
    fields: dict[str, Any] = {name: _TEXT for name in register._FILE}
    fields |= {
        "roots": {"type": ["object", "null"], "additionalProperties": _TEXT},
        "claims": {"type": "array", "items": {"$ref": "#/$defs/claim"}},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Claims of a source",
        **_object(fields, optional={"roots"}),
        "$defs": {
            "claim": _object(claim, optional=register._OPTIONAL)
            | {"allOf": [_of_kind(kind) for kind in rule.VERDICTS]}
        },
    }


def _rule() -> dict[str, Any]:
    """A rule of any kind; conditions may be numbers and truth values to YAML."""
    names = {"type": "object", "additionalProperties": _TEXT, "minProperties": 1}
    fields: dict[str, Any] = {name: _TEXT for name in rule._FIELDS}
    fields |= {
        "evidence": names | {"propertyNames": {"pattern": r"^[^\W\d]\w*$"}},
        "verdicts": {"type": "object", "minProperties": 1},
        "adequate": {"type": ["string", "array"]},
    }
    return _object(fields, optional={"adequate"})


def _of_kind(kind: str) -> dict[str, Any]:
    """What a claim of a kind adds: its verdicts, and whether a source says it."""
    known = {"propertyNames": {"enum": list(rule.VERDICTS[kind])}}
    sentence = {"not": {"required": ["sentence"]}} if kind == "ours" else {"required": ["sentence"]}
    rules: dict[str, Any] = {"properties": {"verdicts": known}}
    if kind not in rule._GATED:
        rules["not"] = {"required": ["adequate"]}
    return {
        "if": {"properties": {"kind": {"const": kind}}},
        "then": {**sentence, "properties": {"rule": rules, "examples": known}},
    }


def _object(
    fields: dict[str, Any], optional: frozenset[str] | set[str] = frozenset()
) -> dict[str, Any]:
    """An object of these fields and no others."""
    return {
        "type": "object",
        "properties": {name: fields[name] for name in sorted(fields)},
        "required": sorted(set(fields) - optional),
        "additionalProperties": False,
    }
