"""Numbers, tables and pictures of the README and of `docs/` come from `results/`: no number there is typed by hand.

Markers in the text, each kept and its content replaced::

    <!-- value: 12_first_scan/unargmaxable --> 200 <!-- /value -->            a recorded value (optional format: `... | ,.0f`)
    <!-- table: 10_braid_counts/real_sizes --> ... <!-- /table -->            a recorded table (optional columns: `... | a, b`)
    <!-- table: bench/targets --> ... <!-- /table -->                         a benchmark's table, from results/bench
    <!-- cost: all --> 20 minutes <!-- /cost -->                              what a make target costs (`... | disk`: in GB), from results/bench
    <!-- figure: 11_region_geometry/slices --> ... <!-- /figure -->           a recorded figure with its alternative text
    <!-- verdicts: all --> ... <!-- /verdicts -->                             verdicts by kind, of all papers or of one (`... 003`)

What is shown is the committed run of the largest profile (`compendium.runs`).
"""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd

from compendium import findings, paths
from compendium.entries import table_of_counts
from compendium.runs import committed

_MARKER = re.compile(
    r"<!-- (value|table|cost|figure|verdicts): *([^|]*?) *(?:\| *(.*?))? *-->(.*?)<!-- /\1 -->", re.DOTALL
)


def render(text: str, up: str = "") -> str:
    """The text with every marker's content renewed; `up` leads from its page to the top of the repository (`../`).

    Raises
    ------
    KeyError
        When a marker names a notebook, value, table or figure that was never recorded.
    """

    def renew(match: re.Match[str]) -> str:
        kind, what, option, _ = match.groups()
        if kind == "figure":
            content = _figure(what, up)
        else:
            content = {"value": _value, "table": _table, "cost": _cost, "verdicts": _verdicts}[kind](what, option or "")
        opening = f"<!-- {kind}: {what}{f' | {option}' if option else ''} -->"
        return f"{opening}{content}<!-- /{kind} -->"

    return _MARKER.sub(renew, text)


def _value(what: str, option: str) -> str:
    name, _, key = what.rpartition("/")
    values = committed(name).record["values"]
    if key not in values:
        raise KeyError(f"a page names the value {what}; {name} recorded {', '.join(values) or 'none'}")
    return format(values[key]["value"], option)


def _table(what: str, option: str) -> str:
    name, _, key = what.rpartition("/")
    folder = paths.root() / "results" / "bench" if name == "bench" else committed(name).results
    path = folder / f"{key}.csv"
    if not path.is_file():
        raise KeyError(f"a page names the table {what}, which {name} did not record")
    frame = pd.read_csv(path)
    if option:
        frame = frame[[column.strip() for column in option.split(",")]]
    return "\n" + markdown(frame) + "\n"


def _cost(what: str, option: str) -> str:
    targets = pd.read_csv(paths.root() / "results" / "bench" / "targets.csv").set_index("target")
    if what not in targets.index:
        raise KeyError(f"a page names the cost of {what}; results/bench/targets.csv has {', '.join(targets.index)}")
    column, unit, digits = ("disk (GB)", "GB", 1) if option == "disk" else ("minutes", "minutes", 0)
    return f"{targets[column].to_dict()[what]:.{digits}f} {unit}"


def _figure(what: str, up: str) -> str:
    name, _, key = what.rpartition("/")
    run = committed(name)
    if key not in run.record["figures"]:
        raise KeyError(f"a page names the figure {what}; {name} recorded {', '.join(run.record['figures']) or 'none'}")
    alt = " ".join(run.record["figures"][key]["alt"].split()).replace("[", "(").replace("]", ")")
    return f"\n![{alt}]({up}{run.figure(key)})\n"


def _verdicts(what: str, option: str) -> str:
    found, _ = findings.of_committed()
    return "\n" + table_of_counts([f for f in found if what in ("all", f.claim.paper)]) + "\n"


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
