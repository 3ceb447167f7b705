"""Numbers, tables and pictures of the README and of `docs/` come from `results/`: no number there
is typed by hand.

Markers in the text, each kept and its content replaced::

    <!-- value: 12_first_scan/unargmaxable --> 200 <!-- /value -->
    <!-- table: 10_braid_counts/real_sizes --> ... <!-- /table -->
    <!-- figure: 11_region_geometry/slices --> ... <!-- /figure -->
    <!-- verdicts: all --> ... <!-- /verdicts -->
    <!-- cost: all --> 20 minutes <!-- /cost -->
    <!-- links: live --> ... <!-- /links -->

A recorded value (`... | ,.0f`: its format) or a claim's evidence (`003-real-folds:heads`), a recorded table (`... | a, b`: its columns) or, as
`bench/targets`, a benchmark's, a recorded figure, verdicts by kind, of all papers or of one
(`... 003`), what a make target costs (`... | disk`: in GB), and site, Binder and checks at the address that pyproject.toml names.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Sequence
from typing import Any

import pandas as pd

from compendium import findings, paths
from compendium.pages.entries import table_of_counts
from compendium.pages.gallery import picture
from compendium.runs import NotebookRun, committed, csv_rows, recorded

_KINDS = "value|table|cost|figure|verdicts|links"
_MARKER = re.compile(rf"(?s)<!-- ({_KINDS}): *([^|]*?) *(?:\| *(.*?))? *-->(.*?)<!-- /\1 -->")


def render(text: str, up: str = "", shown: Sequence[NotebookRun] | None = None) -> str:
    """The text with every marker's content renewed; `up` leads from its page to the top of the
    repository (`../`). What the runs in `shown` did not record comes from the committed run, and
    says so; None shows the committed runs. KeyError when a marker names what was never recorded.
    """
    renderer = _Renderer(up, None if shown is None else {run.name: run for run in shown})
    return _MARKER.sub(renderer.renew, text)


class _Renderer:
    """Contents of markers from some runs (None: the committed ones), a method for each kind."""

    def __init__(self, up: str, runs: dict[str, NotebookRun] | None):
        self.up, self.runs = up, runs

    def renew(self, match: re.Match[str]) -> str:
        kind, what, option, _ = match.groups()
        opening = f"<!-- {kind}: {what}{f' | {option}' if option else ''} -->"
        return f"{opening}{getattr(self, kind)(what, option or '')}<!-- /{kind} -->"

    def run(self, name: str) -> NotebookRun:
        return self.runs[name] if self.runs and name in self.runs else committed(name)

    def who_has(self, kind: str, name: str, key: str) -> tuple[NotebookRun, bool]:
        """The run at hand where it recorded the thing, else the committed one, and whether so."""
        run = self.run(name)
        here = run.record[kind].get(key)
        # a value that a small run could not measure has its text alone
        unknown = here is None or (kind == "values" and "value" not in here)
        if self.runs is not None and (name not in self.runs or unknown):
            return committed(name), True
        return run, False

    def value(self, what: str, option: str) -> str:
        name, _, key = what.rpartition("/")
        if ":" in what:  # evidence of a claim, or a cell of a table
            return format(recorded(what), option) + " (committed)" * (self.runs is not None)
        run, other = self.who_has("values", name, key)
        values = run.record["values"]
        if key not in values:
            known = ", ".join(values) or "none"
            raise KeyError(f"a page names the value {what}; {name} recorded {known}")
        return format(values[key]["value"], option) + (" (committed)" if other else "")

    def table(self, what: str, option: str) -> str:
        name, _, key = what.rpartition("/")
        folder = paths.root() / "results" / "bench" if name == "bench" else self.run(name).results
        path = folder / f"{key}.csv"
        if not path.is_file():
            raise KeyError(f"a page names the table {what}, which {name} did not record")
        frame = pd.read_csv(path)
        if option:
            frame = frame[[column.strip() for column in option.split(",")]]
        return "\n" + markdown(frame) + "\n"

    def figure(self, what: str, option: str) -> str:
        name, _, key = what.rpartition("/")
        run, other = self.who_has("figures", name, key)
        if key not in run.record["figures"]:
            known = ", ".join(run.record["figures"]) or "none"
            raise KeyError(f"a page names the figure {what}; {name} recorded {known}")
        label = "\n*From the committed results, not from this run.*\n" if other else ""
        return f"\n{picture(run, key, self.up)}\n{label}"

    def verdicts(self, what: str, option: str) -> str:
        found, _ = findings.of_committed() if self.runs is None else findings.of(self.runs.values())
        return "\n" + table_of_counts([f for f in found if what in ("all", f.claim.paper)]) + "\n"

    def cost(self, what: str, option: str) -> str:
        rows = csv_rows(paths.root() / "results" / "bench" / "targets.csv")
        costs = {row["target"]: row for row in rows}
        if what not in costs:
            known = f"results/bench/targets.csv has {', '.join(costs)}"
            raise KeyError(f"a page names the cost of {what}; {known}")
        if option == "disk":
            return f"{float(costs[what]['disk (GB)']):.1f} GB"
        minutes = f"{float(costs[what]['minutes']):.0f}"
        return f"{minutes} minute{'s' * (minutes != '1')}"

    def links(self, what: str, option: str) -> str:
        at = addresses()
        if not at:
            return ""
        checks = f"{at['source']}/actions/workflows/ci.yml"
        return (
            f"\n[**The live site**]({at['site']}) · [![try it in a "
            f"browser](https://mybinder.org/badge_logo.svg)]({at['binder']}) "
            f"[![checks of the main branch]({checks}/badge.svg?branch=main)]({checks})\n"
        )


def addresses() -> dict[str, str]:
    """Where the compendium is seen (`site`), read (`source`) and tried (`binder`): made from
    pyproject.toml's `urls.Source`, and empty until that is set.
    """
    path = paths.root() / "pyproject.toml"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    source = tomllib.loads(text).get("project", {}).get("urls", {}).get("Source", "").rstrip("/")
    if not source:
        return {}
    owner, name = source.rsplit("/", 2)[1:]
    return {
        "source": source,
        "site": f"https://{owner}.github.io/{name}/",
        "binder": f"https://mybinder.org/v2/gh/{owner}/{name}/main"
        "?urlpath=lab/tree/notebooks/start.ipynb",
    }


def markdown(frame: pd.DataFrame) -> str:
    """A data frame as a Markdown table."""

    def cell(value: Any) -> str:
        if value is pd.NA or (isinstance(value, float) and math.isnan(value)):
            return ""
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        return text.replace("|", "\\|").replace("\n", " ")

    head = "| " + " | ".join(map(str, frame.columns)) + " |"
    rule = "|" + " --- |" * len(frame.columns)
    body = ["| " + " | ".join(map(cell, row)) + " |" for row in frame.itertuples(index=False)]
    return "\n".join([head, rule, *body])
