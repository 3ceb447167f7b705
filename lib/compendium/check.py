"""The papers' numbers against ours: `data/reference/comparisons.yaml` says which table is compared
with which.

An entry::

    - id: braid-with-bias
      title: Rankings with a bias (001, Table 2)
      paper: braid_regions_with_bias.csv        # in data/reference
      ours: 10_braid_counts/with_bias.csv       # in results/<profile>
      keys: [classes, dimension]                # columns that identify a number
      paper_column: regions
      our_column: regions
      tolerance: 0                              # relative
      exceptions:                               # known differences, with reason and range
        - where: {classes: 3, dimension: 1}
          reason: why
          low: 1
          high: 2

A difference that is not listed fails; so does a listed one that left its range, matches no number,
or is no difference any more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import yaml

from compendium import paths, profiles

_FIELDS = set("id title paper ours keys paper_column our_column tolerance exceptions".split())


@dataclass(frozen=True)
class Comparison:
    """One number of a paper beside ours. `verdict` is `equal`, `explained` (a listed difference
    within its range) or `DIFFERENT` (everything that fails).
    """

    entry: dict[str, Any]
    where: dict[str, Any]
    paper: float | None
    ours: float | None
    verdict: str
    reason: str = ""


def specification() -> list[dict[str, Any]]:
    """Entries of `comparisons.yaml`, checked for unknown and missing fields."""
    path = paths.root() / "data" / "reference" / "comparisons.yaml"
    entries = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    for entry in entries:
        if odd := sorted((set(entry) ^ _FIELDS) - {"exceptions"}):
            told = f"unknown or missing field {', '.join(odd)}"
            raise ValueError(f"{path.name}, {entry.get('id')}: {told}")
    return entries


def compare(profile: str) -> list[Comparison]:
    """Every number of every entry, in order."""
    return [row for entry in specification() for row in _compare(entry, profile)]


def _compare(entry: dict[str, Any], profile: str) -> Iterator[Comparison]:
    def fault(reason: str, where: dict[str, Any] | None = None) -> Comparison:
        return Comparison(entry, where or {}, None, None, "DIFFERENT", reason)

    on = list(entry["keys"])
    theirs = pd.read_csv(paths.root() / "data" / "reference" / entry["paper"])
    places = [paths.results_dir(other, entry["ours"]) for other in profiles.lineage(profile)]
    path = next((place for place in places if place.is_file()), places[0])
    if not path.is_file():
        notebook = entry["ours"].split("/")[0]
        yield fault(f"no results/{profile}/{entry['ours']}: run `make {notebook}` first")
        return
    table = pd.read_csv(path)
    if lost := [column for column in (*on, entry["our_column"]) if column not in table]:
        name, known = path.relative_to(paths.root()).as_posix(), ", ".join(map(str, table))
        yield fault(f"{name} has no column {', '.join(lost)}; it has {known}")
        return
    ours = table.set_index(on)[entry["our_column"]].to_dict()
    unused = list(entry.get("exceptions") or [])
    for record in theirs.dropna(subset=[entry["paper_column"]]).to_dict("records"):
        where = {str(key): record[key] for key in on}
        value = ours.get(tuple(where.values()) if len(on) > 1 else where[on[0]])
        listed = next((item for item in unused if item["where"].items() <= where.items()), None)
        paper = record[entry["paper_column"]]
        if listed is not None and listed["where"] == where:
            unused.remove(listed)
        verdict, reason = _judge(paper, value, float(entry["tolerance"]), listed)
        yield Comparison(entry, where, paper, value, verdict, reason)
    there = [{k: r[k] for k in on} for r in theirs.to_dict("records")]
    for item in unused:
        if not any(item["where"].items() <= where.items() for where in there):
            yield fault("the listed exception matches no number of the paper", item["where"])


def _judge(
    paper: float, ours: float | None, tolerance: float, listed: dict[str, Any] | None
) -> tuple[str, str]:
    if ours is None:
        return "DIFFERENT", "we have no such number"
    equal = ours == paper or abs(ours - paper) <= tolerance * abs(paper)
    if listed is None:
        return ("equal", "") if equal else ("DIFFERENT", "")
    if equal:
        return "DIFFERENT", "the listed exception is stale: the numbers agree"
    if not listed["low"] <= ours <= listed["high"]:
        return "DIFFERENT", f"outside the listed range {listed['low']} to {listed['high']}"
    return "explained", listed["reason"]


def render(rows: list[Comparison]) -> str:
    """The comparison as a table for the terminal, closing with one line of counts."""
    lines, title = list[str](), ""
    for row in rows:
        if row.entry["title"] != title:
            title = row.entry["title"]
            lines.append(f"\n{title}")
            lines.append(f"  {'where':44}{'paper':>14}{'ours':>14}{'tolerance':>11}  verdict")
        where = ", ".join(f"{key} {value}" for key, value in row.where.items())
        numbers = f"{_number(row.paper):>14}{_number(row.ours):>14}"
        told = f"{row.verdict}: {row.reason}" if row.reason else row.verdict
        lines.append(f"  {where:44}{numbers}{float(row.entry['tolerance']):>11g}  {told}")
    found = [row.verdict for row in rows]
    counts = (f"{found.count(name)} {name}" for name in ("equal", "explained", "DIFFERENT"))
    return "\n".join([*lines, f"\n{len(rows)} numbers: {', '.join(counts)}"])


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return str(int(value)) if float(value).is_integer() else f"{value:.6g}"
