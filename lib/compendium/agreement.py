"""One quantity has one value: what several places say of it must agree, and a figure must be drawn
by the code that is there.

`data/reference/quantities.yaml` names each quantity that more than one place tells::

    - id: lost outputs of PP-OCRv4
      of: 12_first_scan/ppocr_unargmaxable   # a recorded value; evidence, CLAIM:NAME; a cell of a
                                           # table, NOTEBOOK/TABLE:KEY:COLUMN or
                                           # bench/TABLE:KEY:COLUMN, in the row that holds the key;
                                           # or, for a fact that nothing here computes,
                                           # `is: NUMBER`, or a text: `is: '2.13.0'`
      alike: [15_unreadable_characters/unargmaxable_box]    # recorded elsewhere, and the same
      said: ['(N) of (?:its |the )?6,625']  # how sentences tell it; (C) a count, also in words
      with: '0 of 270'                           # words that a page telling it must hold, too

A place is a page, the file of a build, a notebook's prose, a statement of the register, or a text
in the record of a run. What a run says is compared with the value of its profile; what a page says,
with the run that pages show, or of the profile that the sentence names.

And a number has a source: what reads like a result is recorded by some run, printed by a paper, or
a listed fact. What a page, table or record must keep to by itself: `compendium.accounts`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from compendium import accounts, claims, codebase, findings, paths, profiles, runs
from compendium.runs import NotebookRun, all_committed

_FIELDS = {"id", "of", "is", "alike", "said", "with"}
# pages outside of docs/, and files that say what a page says, too
_MORE = "README.md CONTRIBUTING.md CITATION.cff Makefile pyproject.toml data/README.md".split()
_MORE += ["report/story/story.html"]
# where rows stand that went, or that nobody has
_NAME_OTHERS = {"docs/retired.md", "docs/architecture.md", "Makefile"}
_UNITS = "no one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
_UNITS += " fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORDS = {word: n for n, word in enumerate(_UNITS.split())}
_WORDS |= {word: 10 * n for n, word in enumerate(_TENS.split(), 2)}
_WORD = rf"(?:{'|'.join(_WORDS)})"
_SPELLED = rf"\b(?i:{_WORD}(?:[- ](?:{_WORD}|hundred|thousand))*)\b"
_COUNT = rf"(?<![\d.,])\d[\d,]*(?![\d%])(?!\.\d)|{_SPELLED}"
_NUMBER = r"[-+−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?%?"
_PLAIN = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_GENERATED = re.compile(r"<!-- (\w+)[^>]*-->.*?<!-- /\1 -->|```.*?```|`[^`]*`|\$[^$]*\$", re.DOTALL)
# no year, no number of a preprint
_LONG = re.compile(r"(?<![\w.,/#^-])(?!(?:19|20)\d\d\b)\d{1,3}(?:,?\d{3})+(?![\w/.-])%?")
_PRECISE = re.compile(
    rf"{_LONG.pattern}|(?<![\w.,/#^-])(?:0\.\d{{3,}}|[1-9]\.\d{{2,}}|\d{{2,}}\.\d+)(?![\w/-])%?"
)


@dataclass(frozen=True)
class Place:
    """A text that may tell quantities: where it stands, of which profile's run (empty: a page)."""

    name: str
    profile: str
    text: str


@dataclass(frozen=True)
class Telling:
    """A number that a place tells for a quantity."""

    quantity: str
    place: str
    told: str
    value: float | str | None

    @property
    def agrees(self) -> bool:
        return self.value is not None and _same(self.told, self.value)

    def __str__(self) -> str:
        return f"{self.place} says {self.told} for {self.quantity}, which is {self.value}"


def quantities() -> list[dict[str, Any]]:
    """The entries of `quantities.yaml`; ValueError when one does not fit, or has another's name."""
    path = paths.root() / "data" / "reference" / "quantities.yaml"
    entries = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else []
    for entry in entries:
        if odd := (set(entry) - _FIELDS) | ({"id"} - set(entry)):
            names = ", ".join(sorted(odd))
            raise ValueError(f"{path.name}, {entry.get('id')}: unknown or missing field {names}")
        if ("of" in entry) == ("is" in entry):
            raise ValueError(f"{path.name}, {entry['id']}: it takes one of the fields of, is")
    if len({entry["id"] for entry in entries}) < len(entries):
        raise ValueError(f"{path.name}: two entries have one id")
    return entries


def tellings(pages: Mapping[Path, str] | None = None) -> list[Telling]:
    """Every number that some place tells for a listed quantity."""
    known, found = list(places(pages)), []
    for entry in quantities():
        for profile in profiles.COMMITTED:
            for other in entry.get("alike", ()):
                told, value = value_of(other, profile), _value(entry, profile)
                if told is None or not isinstance(value, int | float):
                    continue
                # two runs of one training differ in the sixth digit
                same = math.isclose(told, value, rel_tol=1e-5)
                where = other if other.startswith("bench/") else f"results/{profile}, {other}"
                found.append(Telling(entry["id"], where, f"{value if same else told!r}", value))
        patterns = [re.compile(_pattern(wording)) for wording in entry.get("said", ())]
        for place in known:
            for pattern in patterns:
                for match in pattern.finditer(place.text):
                    said = next(group for group in match.groups() if group is not None)
                    meant = _meant(entry, place, match)
                    found.append(Telling(entry["id"], place.name, said, meant))
    return found


def faults() -> list[str]:
    """What disagrees, one sentence each."""
    told, entries = tellings(), quantities()
    found = [f"{one}" for one in dict.fromkeys(told) if not one.agrees]
    known = list(places())
    for entry in entries:
        found += [
            f"quantities.yaml: {entry['id']} names {what}, which no committed run recorded"
            for what in (entry.get("of"), *entry.get("alike", ()))
            if what and all(value_of(what, profile) is None for profile in profiles.COMMITTED)
        ]
        # a sentence that was worded anew would not be compared any more
        found += [
            f"quantities.yaml: no place says {wording!r}, as {entry['id']} is told there"
            for wording in entry.get("said", ())
            if not any(re.search(_pattern(wording), place.text) for place in known)
        ]
    texts = {p.name: p.text for p in known if not p.profile and not p.name.startswith("claims")}
    for entry in entries:
        for name in dict.fromkeys(one.place for one in told if one.quantity == entry["id"]):
            if "with" in entry and name in texts and entry["with"] not in texts[name]:
                found.append(f"{name} tells {entry['id']} without the words {entry['with']!r}")
    verdicts = dict.fromkeys(claims.load(), "")
    verdicts |= {finding.claim.id: finding.verdict for finding in findings.of_committed()[0]}
    for place in known:
        found += accounts.arithmetic(place.name, place.text)
        if place.name not in _NAME_OTHERS:
            found += accounts.rows(place.name, place.text, verdicts)
    return found + unsourced() + stale_figures() + accounts.faults(committed_runs())


def unsourced() -> list[str]:
    """Numbers that read like results, and that no run, paper or entry states."""
    shown, root = committed_runs(), paths.root()
    known: list[float] = [
        float(e["is"]) for e in quantities() if isinstance(e.get("is"), int | float)
    ]
    for claim in claims.load().values():
        known += _numbers(f"{claim.statement} {claim.rule.why}")
    for path in (root / "data" / "reference").glob("*.csv"):
        known += _numbers(path.read_text(encoding="utf-8"))
    for run in shown:
        known += _numbers([value["value"] for value in run.record["values"].values()])
        known += _numbers([row["evidence"] for row in run.record["claims"]])
    pages = [*root.glob("docs/*.md"), *root.glob("README.md")]
    written = {page: page.read_text(encoding="utf-8") for page in pages}
    written |= {notebook: _prose(notebook) for notebook in root.glob("notebooks/**/*.ipynb")}
    texts: list[tuple[str, re.Pattern[str], str, list[float]]] = [
        (path.relative_to(root).as_posix(), _LONG, _GENERATED.sub(" ", text), [])
        for path, text in written.items()
    ]
    for run in shown:
        where = f"results/{run.profile}/{run.name}"
        tables = "\n".join(path.read_text(encoding="utf-8") for path in run.results.glob("*.csv"))
        texts += [
            (f"{where}, {part} of {key}", _PRECISE, text, _numbers(tables))
            for key, figure in run.record["figures"].items()
            for part, text in figure.items()
        ]
    return [
        f"{where} tells {told}, which nothing recorded"
        for where, pattern, text, own in texts
        for told in dict.fromkeys(pattern.findall(text))
        if not any(_same(told, abs(number)) for number in [*known, *own])
    ]


def stale_figures() -> list[str]:
    """Committed figures whose record names no drawing code, or another than what is there."""
    found = []
    for run in committed_runs():
        drawn = run.record.get("drawn_by")
        if run.record["figures"] and drawn != codebase.drawing_digest(paths.notebook(run.name)):
            found.append(
                f"the figures of {run.name} in profile {run.profile} are older than the code that "
                f"draws them: run `make {run.name} PROFILE={run.profile}`"
            )
    return found


def places(pages: Mapping[Path, str] | None = None) -> Iterator[Place]:
    """Every text that is compared; `pages` go before what lies at their paths."""
    top, fresh = paths.root(), pages or {}
    there = {top / name for name in _MORE} | set((top / "docs").rglob("*.md"))
    there |= set(top.glob("notebooks/**/*.md")) | {path for path in fresh if path.suffix == ".md"}
    for page in sorted(there):
        if page not in fresh and not page.is_file():
            continue
        text = _COMMENT.sub("", fresh.get(page) or page.read_text(encoding="utf-8"))
        yield Place(page.relative_to(top).as_posix(), "", " ".join(text.split()))
    for path in sorted(top.glob("notebooks/**/*.ipynb")):
        yield Place(path.relative_to(top).as_posix(), "", _prose(path))
    for claim in claims.load().values():
        yield Place(f"claims, {claim.id}", "", f"{claim.statement} {claim.rule.why}")
    for run in committed_runs():
        where = f"results/{run.profile}/{run.name}"
        for key, value in run.record["values"].items():
            yield Place(f"{where}, value {key}", run.profile, value.get("about", ""))
        for row in run.record["claims"]:
            yield Place(f"{where}, {row['id']}", run.profile, row.get("says", ""))
        for key, caption in run.record["tables"].items():
            yield Place(f"{where}, table {key}", run.profile, caption)
        for key, figure in run.record["figures"].items():
            for part, text in figure.items():
                yield Place(f"{where}, {part} of {key}", run.profile, " ".join(text.split()))


def render(pages: Mapping[Path, str] | None = None) -> str:
    """`data/reference/quantity_places.csv`, each quantity and who tells it; `pages` as `places`."""
    told = dict.fromkeys((one.quantity, one.place) for one in tellings(pages))
    table = pd.DataFrame(list(told), columns=["quantity", "place"])
    return table.to_csv(index=False, lineterminator="\n")


def value_of(what: str, profile: str) -> float | None:
    """A number that a committed run recorded, by its address (`runs.recorded`), or None."""
    try:
        found = runs.recorded(what, (profile,))
    except (KeyError, FileNotFoundError):
        return None
    return float(found) if isinstance(found, int | float) else None


def _value(entry: Mapping[str, Any], profile: str) -> float | str | None:
    return entry["is"] if "is" in entry else value_of(entry["of"], profile)


def _numbers(what: Any) -> list[float]:
    """All numbers in a text, or in a structure of texts and numbers."""
    if isinstance(what, Mapping):
        what = list(what.values())
    if isinstance(what, list | tuple):
        return [number for part in what for number in _numbers(part)]
    if isinstance(what, str):
        return [float(text.replace(",", "")) for text in _PLAIN.findall(what)]
    return [float(what)] if isinstance(what, int | float) else []


def _meant(entry: Mapping[str, Any], place: Place, match: re.Match[str]) -> float | str | None:
    """The value that a sentence has to agree with."""
    begin = place.text.rfind(". ", 0, match.start()) + 1
    end = place.text.find(". ", match.end())
    sentence = place.text[begin : end if end >= 0 else None]
    named = [p for p in profiles.COMMITTED if re.search(rf"profile `?{p}|PROFILE={p}", sentence)]
    order = [place.profile, *named, *profiles.COMMITTED]
    return next((v for p in order if p and (v := _value(entry, p)) is not None), None)


def _pattern(said: str) -> str:
    return said.replace("(C)", f"({_COUNT})").replace("(N)", f"({_NUMBER})")


def _same(told: str, value: float | str) -> bool:
    """Whether a printed number is the value to the digits that it shows; or the text."""
    if isinstance(value, str):
        return told == value
    if re.fullmatch(_SPELLED, told):
        return _spelled(told) == value
    text = told.replace(",", "").replace("−", "-")
    percent = text.endswith("%")
    number = float(text.rstrip("%")) / (100 if percent else 1)
    digits = len(text.rstrip("%").partition(".")[2].partition("e")[0]) + (2 if percent else 0)
    if "e" in text:
        return math.isclose(number, value, rel_tol=0.06)
    return abs(number - value) <= 0.5000001 * 10.0**-digits


def _spelled(told: str) -> int:
    """A number in words: "twenty-five", "Two hundred"."""
    number = 0
    for word in re.split("[- ]", told.lower()):
        times = {"hundred": 100, "thousand": 1000}.get(word)
        number = number * times if times else number + _WORDS[word]
    return number


def _prose(path: Path) -> str:
    return " ".join(" ".join(codebase.cells(path, "markdown").values()).split())


def committed_runs() -> list[NotebookRun]:
    """The committed runs of every profile, without those on stand-in data."""
    return [
        run for profile in profiles.COMMITTED for run in all_committed((profile,)) if not run.aside
    ]
