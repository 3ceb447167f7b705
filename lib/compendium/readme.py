"""Numbers and tables of the README come from `results/`: no number there is typed by hand.

Markers in the text, each kept and its content replaced::

    <!-- value: 12_first_scan/unargmaxable --> 200 <!-- /value -->            a recorded value (optional format: `... | ,.0f`)
    <!-- table: 10_braid_counts/real_sizes --> ... <!-- /table -->            a recorded table (optional columns: `... | a, b`)
    <!-- table: bench/targets --> ... <!-- /table -->                         a benchmark's table, from results/bench
    <!-- claims: 001 --> ... <!-- /claims -->                                 the claims of one paper: notebook, figures, verdict
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pandas as pd

from compendium import paths
from compendium.book import STAND_IN

_MARKER = re.compile(r"<!-- (value|table|claims): *([^|]*?) *(?:\| *(.*?))? *-->(.*?)<!-- /\1 -->", re.DOTALL)


def render(text: str, profile: str = "default") -> str:
    """The text with every marker's content renewed from the committed results of a profile.

    Raises
    ------
    KeyError
        When a marker names a notebook, value or table that was never recorded.
    """

    def renew(match: re.Match[str]) -> str:
        kind, what, option, _ = match.groups()
        content = {"value": _value, "table": _table, "claims": _claims}[kind](what, option or "", profile)
        opening = f"<!-- {kind}: {what}{f' | {option}' if option else ''} -->"
        return f"{opening}{content}<!-- /{kind} -->"

    return _MARKER.sub(renew, text)


def committed_record(name: str, profile: str) -> dict[str, Any]:
    """The committed record of a notebook: from real data where there is one, else from the stand-in."""
    folder = paths.results_dir(profile, name)
    for path in (folder / "record.json", folder / STAND_IN / "record.json"):
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8")) | {"folder": path.parent}
    raise KeyError(f"README.md names {name}, which has no committed results in profile {profile!r}: run `make {name}`")


def _value(what: str, option: str, profile: str) -> str:
    name, _, key = what.rpartition("/")
    values = committed_record(name, profile)["values"]
    if key not in values:
        raise KeyError(f"README.md names the value {what}; {name} recorded {', '.join(values) or 'none'}")
    return format(values[key]["value"], option)


def _table(what: str, option: str, profile: str) -> str:
    name, _, key = what.rpartition("/")
    folder = paths.root() / "results" / "bench" if name == "bench" else committed_record(name, profile)["folder"]
    path = folder / f"{key}.csv"
    if not path.is_file():
        raise KeyError(f"README.md names the table {what}, which {name} did not record")
    frame = pd.read_csv(path)
    if option:
        frame = frame[[column.strip() for column in option.split(",")]]
    return "\n" + markdown(frame) + "\n"


def _claims(what: str, option: str, profile: str) -> str:
    rows, last = [], ""
    for claim, name in all_claims(profile):
        if claim["id"].startswith(f"{what}-"):
            reason = "" if claim["verdict"] == "reproduced" else claim["reason"]
            rows.append(
                {
                    "notebook and figures": _evidence(name, profile) if name != last else "",
                    "claim": f"{claim['source']}: {claim['statement']}",
                    "verdict": f"**{claim['verdict']}**" + (f": {reason}" if reason else ""),
                }
            )
            last = name
    return "\n" + markdown(pd.DataFrame(rows)) + "\n" if rows else "\n"


def _evidence(name: str, profile: str) -> str:
    """Links to a notebook and to each of its committed figures, numbered."""
    recorded = committed_record(name, profile)
    aside = f"{STAND_IN}/" if recorded["folder"].name == STAND_IN else ""
    figures = [
        f"[{number}](figures/{profile}/{aside}{name}-{key}.png)" for number, key in enumerate(recorded["figures"], 1)
    ]
    return f"[{name}](notebooks/{name}.ipynb)" + (f", figures {' '.join(figures)}" if figures else "")


def all_claims(profile: str) -> list[tuple[dict[str, Any], str]]:
    """Every committed claim with the notebook that tested it, ordered by notebook."""
    names = sorted(path.stem for path in paths.notebook("x").parent.glob("[0-9]*.ipynb"))
    found = []
    for name in names:
        try:
            record = committed_record(name, profile)
        except KeyError:
            continue
        found += [(claim, name) for claim in record["claims"]]
    return found


def markdown(frame: pd.DataFrame) -> str:
    """A data frame as a Markdown table."""

    def cell(value: Any) -> str:
        if isinstance(value, float) and math.isnan(value):
            return ""
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        return text.replace("|", "\\|").replace("\n", " ")

    head = "| " + " | ".join(map(str, frame.columns)) + " |"
    rule = "|" + " --- |" * len(frame.columns)
    body = ["| " + " | ".join(map(cell, row)) + " |" for row in frame.itertuples(index=False)]
    return "\n".join([head, rule, *body])
