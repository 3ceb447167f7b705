"""A register and records to read it from, in a temporary compendium."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml


def entry(id: str, kind: str = "theorem", bound: float = 0, **more: Any) -> dict[str, Any]:
    """A sound claim about one number."""
    found: dict[str, Any] = yaml.safe_load(f"""
id: {id}
place: Section {id[-1]}
title: Title of {id}
kind: {kind}
statement: What {id} says.
notebook: 10_demo
sentence: {{paper: "001", start: 0, length: 3, digest: 0123456789abcdef}}
rule:
  evidence: {{gain: in nats}}
  verdicts: {{confirmed: gain < {bound}, not confirmed: otherwise}}
  why: zero is no gain
  says: "{{gain:+.2f}} nats"
examples: {{confirmed: {{gain: {bound - 1}}}, not confirmed: {{gain: {bound + 1}}}}}
""")
    if kind == "ours":
        del found["sentence"]
    return found | more


@pytest.fixture
def plant(compendium: Path) -> Callable[[dict[str, str]], None]:
    """`plant({place: text})` writes files into the compendium."""

    def write(files: dict[str, str]) -> None:
        for place, text in files.items():
            path = compendium / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    return write


@pytest.fixture
def register(compendium: Path, write_notebook: Any) -> Callable[..., None]:
    """`register(*claims)` writes them, whose notebook is 10_demo and whose only root is `fold`."""
    write_notebook("10_demo", 'profile: str = "default"')
    (compendium / "data" / "claims").mkdir(parents=True)

    def write(*claims: dict[str, Any]) -> None:
        roots = {"fold": "It folds."} if any("root" in claim for claim in claims) else {}
        content = {"paper": "001", "title": "A paper", "roots": roots, "claims": list(claims)}
        text = yaml.safe_dump(content, sort_keys=False)
        (compendium / "data" / "claims" / "001.yaml").write_text(text, encoding="utf-8")

    return write


@pytest.fixture
def record(compendium: Path) -> Callable[..., Path]:
    """`record(profile, aside, name=..., content=..., a=-1)` writes a run's record; its folder."""

    def write(
        profile: str = "default",
        aside: str = "",
        name: str = "10_demo",
        content: dict[str, Any] | None = None,
        **gains: Any,
    ) -> Path:
        folder = compendium / "results" / profile / name / aside
        folder.mkdir(parents=True, exist_ok=True)
        claims = [{"id": f"001-{key}", "evidence": {"gain": gain}} for key, gain in gains.items()]
        written = {"notebook": name, "profile": profile, "claims": claims, "values": {}}
        written |= {"figures": {}, "tables": {}, "sources": []} | (content or {})
        (folder / "record.json").write_text(json.dumps(written), encoding="utf-8")
        return folder

    return write


@pytest.fixture
def claim() -> Callable[..., dict[str, Any]]:
    """`claim(id, kind="theorem", bound=0, **changes)`: a sound entry of the register."""
    return entry
