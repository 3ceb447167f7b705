"""The story "A letter that a machine can never say": one HTML file that needs no other.

Its words are those of `report/story/story.html`, where each number is a place to fill from committed
results: `{{18_reachable_vocabulary/outputs_ppocr-v6|,}}`, an address of `runs.recorded` and a
format; `{{figure:wall}}` is drawn here, `{{source:NOTEBOOK|CLAIM}}` links where numbers come from.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from compendium import paths
from compendium.pages import readme, story_figures
from compendium.runs import committed, csv_rows, recorded
from softgeom.bottleneck.verdict_table import unescape_token, up
from softgeom.explorers.document import document

TITLE = "A letter that a machine can never say"
READER = "PP-OCRv6 small recogniser"
LETTER = "Ğ"  # whose story it is
VOCABULARY, CEILINGS = "18_reachable_vocabulary", "50_how_sure"
_LEADERS = ("deleting_leaders_keeps", "head_count_predicts")
_PLACE = re.compile(r"\{\{([^}|]+)(?:\|([^}]*))?\}\}")
_CARD = "A text recogniser lists a letter that it can never answer with: why, and with proof."
_RARE = 20  # scripts with fewer signs stand together on the wall
_SEEN = {" ": "␣", "<blank>": "∅"}  # a space, and the output that says nothing
_SCRIPTS = {
    "Han, traditional": "Chinese, traditional",
    "Han, simplified": "Chinese, simplified",
    "Han, both": "Chinese, in both standards",
    "Han, other": "Chinese, rarer",
    "signs, no letters": "Signs and numbers",
    "kana": "Kana",
    "Halfwidth": "Half-width",
    "Fullwidth": "Full-width",
}


def page() -> str:
    """The story as one HTML text; KeyError or FileNotFoundError when a result was never recorded."""
    body = _PLACE.sub(lambda place: _filled(place[1].strip(), place[2] or ""), _part("html"))
    data = json.dumps(_known(), ensure_ascii=False).replace("<", "\\u003c")
    scripts = f'<script type="application/json" id="known">{data}</script>'
    scripts += f"<script>\n{_part('js')}</script>"
    card = {"title": TITLE, "description": _CARD}
    if site := readme.addresses().get("site"):
        card["image"] = f"{site}_images/{VOCABULARY}-signs.png"
    head = "".join(f'<meta property="og:{key}" content="{text}">\n' for key, text in card.items())
    return document(TITLE, _part("css"), body + scripts, head=head)


def unavailable(missing: str) -> str:
    """What stands in the story's place where a result that it needs is missing."""
    said = f"This page takes its numbers from recorded results; one is missing: {missing}."
    return document(TITLE, _part("css"), f"<main><p>{html.escape(said)}</p></main>")


class Sign(NamedTuple):
    """A sign of the recogniser's list, its script, and whether it can never be the answer."""

    text: str
    script: str
    lost: bool


def signs() -> list[Sign]:
    """Every sign that the recogniser lists, in the order of its code."""
    groups = [
        (row["script"], row["tokens"].split(" "), name == "unreachable")
        for name in ("unreachable", "reachable")
        for row in _rows(f"{VOCABULARY}/{name}")
        if row["model"] == READER
    ]
    sizes = Counter[str]()
    for script, tokens, _ in groups:
        sizes[script] += len(tokens)
    found = [
        Sign(unescape_token(token), script if sizes[script] >= _RARE else "Other letters", lost)
        for script, tokens, lost in groups
        for token in tokens
    ]
    return sorted(found)


def _part(kind: str) -> str:
    return (paths.root() / "report" / "story" / f"story.{kind}").read_text(encoding="utf-8")


def _filled(what: str, form: str) -> str:
    kind, _, name = what.partition(":")
    if kind == "figure":
        return _FIGURES[name]()
    if kind == "source":
        return _source(name, *filter(None, form.split("|")))
    value = recorded(what)
    return html.escape(up(value) if form == "up" else format(value, form)).replace("-", "−")


def _rows(what: str) -> list[dict[str, str]]:
    notebook, _, key = what.rpartition("/")
    return csv_rows(committed(notebook).results / f"{key}.csv")


def _source(notebook: str, *claimed: str) -> str:
    """The line under a step: its notebook, and the claim with its rule."""
    links = [f'<a href="../notebooks/{notebook}.html">notebook {notebook.partition("_")[0]}</a>']
    links += [f'<a href="../claims.html#{claim}">claim {claim}</a>' for claim in claimed]
    return f'<p class="source">{" · ".join(links)}</p>'


def _known() -> dict[str, Any]:
    """What the wall can tell of a sign beside its place: [drawn, read], and the ceiling in %."""
    letters = _rows(f"{VOCABULARY}/letters")
    bounds = {r["letter"]: float(r["unbounded"]) for r in _rows(f"{CEILINGS}/letters")}
    return {
        "read": {r["letter"]: [r["drawn"], r["reading"]] for r in letters if r["model"] == READER},
        "ceiling": {letter: up(100 * bound) for letter, bound in bounds.items() if bound < 1},
    }


def _wall() -> str:
    groups: dict[str, list[Sign]] = {}
    for sign in signs():
        groups.setdefault(sign.script, []).append(sign)
    parts = []
    for script in sorted(groups, key=lambda name: (name != "Latin", -len(groups[name]))):
        some, name = groups[script], _SCRIPTS.get(script, script)
        parts.append(
            f"<h3>{name} <span>{sum(s.lost for s in some):,} of {len(some):,} lost</span></h3>\n"
            f'<p data-script="{name}">{_runs(some)}</p>'
        )
    return "\n".join(parts)


def _runs(some: Sequence[Sign]) -> str:
    """The signs one after another, each run of lost ones in one element."""
    found = ""
    for lost, run in groupby(some, key=lambda sign: sign.lost):
        text = html.escape("".join(_SEEN.get(s.text, s.text) for s in run), quote=False)
        found += f"<b>{text}</b>" if lost else text
    return found


def _hero() -> str:
    sign = next(row for row in _rows(f"{VOCABULARY}/signs") if LETTER in row["lost"])
    language, word, meaning, reading = (sign[k] for k in ("language", "word", "meaning", "reading"))
    return story_figures.sign(word, LETTER, language, meaning, reading)


def _proof() -> str:
    row = next(row for row in _rows(f"{VOCABULARY}/captors") if row["token"] == LETTER)
    shares = [(sign, int(n)) for sign, n in re.findall(r"(\S+) (\d+)%", row["heaviest"])]
    return story_figures.proof(LETTER, shares, int(row["captors"]))


def _copies() -> str:
    near = [
        float(row["median_distance"])
        for name in ("can never win", "can win")
        for row in _rows("12_first_scan/copied_rows")
        if row["outputs"] == name
    ]
    return story_figures.copies(*near)


def _ceilings() -> str:
    bounds = {row["letter"]: float(row["to_100"]) for row in _rows(f"{CEILINGS}/letters")}
    return story_figures.ceilings(bounds, LETTER)


def _pair(kind: str) -> str:
    if kind == "heads":
        both = [recorded(f"002-shares-and-effects:{name}") for name in ("direct", "total")]
        names, form = ["what it adds itself", "what is gone without it"], "{:.2f} nats"
    else:
        both = [recorded(f"43_leader_explanations/{name}") for name in _LEADERS]
        names, form = ["kept without leaders", "given by the count"], "{:.0%}"
    return story_figures.bars(names, both, form)


_FIGURES: dict[str, Callable[[], str]] = {
    "sign": _hero,
    "layer": lambda: story_figures.layer(
        LETTER, recorded(f"{VOCABULARY}/league:{READER}:features")
    ),
    "alive": lambda: story_figures.plane(LETTER, "alive"),
    "dead": lambda: story_figures.plane(LETTER, "dead"),
    "free": lambda: story_figures.plane(LETTER, "free"),
    "proof": _proof,
    "ceilings": _ceilings,
    "wall": _wall,
    "copies": _copies,
    "cut": lambda: story_figures.cut(
        *(recorded(f"bench/pruned_lines:{READER}:{column}") for column in ("outputs", "kept"))
    ),
    "fold": lambda: story_figures.fold(2.0, np.array([-1.0, 1.0])),
    "heads": lambda: _pair("heads"),
    "leaders": lambda: _pair("leaders"),
}
