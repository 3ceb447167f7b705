"""The story "A letter that a machine can never say": one HTML file that needs no other.

Its words and drawings are the template `docs/site/story/story.html` (Jinja2). Its numbers come from
committed results: `value("18_reachable_vocabulary/outputs_ppocr-v6", ",")` is an address of
`runs.recorded` and a format, `source(NOTEBOOK, CLAIM)` links where numbers come from.
"""

import html
import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from math import log10
from typing import Any, NamedTuple
from unicodedata import normalize

import jinja2

from compendium import paths
from compendium.pages import readme
from compendium.runs import committed, csv_rows, recorded
from softgeom.verdict_table import unescape_token, up
from softgeom.web.document import document

TITLE = "A letter that a machine can never say"
READER = "PP-OCRv6 small recogniser"
LETTER = "Ğ"  # whose story it is
VOCABULARY, CEILINGS = "18_reachable_vocabulary", "50_how_sure"
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
    settings: dict[str, Any] = {"undefined": jinja2.StrictUndefined, "trim_blocks": True}
    body = jinja2.Environment(**settings).from_string(_part("html")).render(_filled())
    data = json.dumps(_known(), ensure_ascii=False).replace("<", "\\u003c")
    scripts = f'<script type="application/json" id="known">{data}</script>'
    scripts += f"<script>\n{_part('js')}</script>"
    card = {"title": TITLE, "description": _CARD}
    if site := readme.addresses().get("site"):
        card["image"] = f"{site}_images/{VOCABULARY}-signs.png"
    head = "".join(f'<meta property="og:{key}" content="{text}">\n' for key, text in card.items())
    return document(TITLE, _part("css"), body + scripts, head=head)


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


def value(what: str, form: str = "") -> str:
    """A recorded number or text as the page shows it."""
    found = recorded(what)
    return html.escape(up(found) if form == "up" else format(found, form)).replace("-", "−")


def _filled() -> dict[str, Any]:
    """What the template needs by name."""
    sign = next(row for row in _rows(f"{VOCABULARY}/signs") if LETTER in row["lost"])
    proof = next(row for row in _rows(f"{VOCABULARY}/blocking_classes") if row["token"] == LETTER)
    cut = f"bench/pruned_lines:{READER}"
    return {
        "value": value,
        "source": _source,
        "log10": log10,
        "letter": LETTER,
        "sign": sign | {"reading": normalize("NFKC", sign["reading"])},
        "features": recorded(f"{VOCABULARY}/league:{READER}:features"),
        "blocking": int(proof["blocking_classes"]),
        "shares": [(s, int(n)) for s, n in re.findall(r"(\S+) (\d+)%", proof["heaviest"])],
        "ceilings": _stacked(),
        "never": [sum(p < share for p in _ceilings().values()) for share in (0.5, 0.01)],
        "wall": _wall(),
        "near": [
            float(row["median_distance"])
            for name in ("can never win", "can win")
            for row in _rows("12_first_scan/copied_rows")
            if row["outputs"] == name
        ],
        "outputs": recorded(f"{cut}:outputs"),
        "kept": recorded(f"{cut}:kept"),
    }


def _part(kind: str) -> str:
    return (paths.root() / "docs" / "site" / "story" / f"story.{kind}").read_text(encoding="utf-8")


def _rows(what: str) -> list[dict[str, str]]:
    notebook, _, key = what.rpartition("/")
    return csv_rows(committed(notebook).results / f"{key}.csv")


def _source(notebook: str, *claimed: str) -> str:
    """The line under a step: its notebook, and the claim with its rule."""
    links = [f'<a href="docs/notebooks/{notebook}.html">notebook {notebook.partition("_")[0]}</a>']
    links += [f'<a href="docs/papers/{id[:3]}.html#{id}">claim {id}</a>' for id in claimed]
    return f'<p class="source">{" · ".join(links)}</p>'


def _known() -> dict[str, Any]:
    """What the wall shows of a sign beside its place: [drawn, read], and the ceiling in %."""
    letters = _rows(f"{VOCABULARY}/letters")
    return {
        "read": {r["letter"]: [r["drawn"], r["reading"]] for r in letters if r["model"] == READER},
        "ceiling": {letter: up(100 * bound) for letter, bound in _ceilings().items() if bound < 1},
    }


def _ceilings() -> dict[str, float]:
    """Letters and the probability that each never exceeds, for any features."""
    return {row["letter"]: float(row["unbounded"]) for row in _rows(f"{CEILINGS}/letters")}


def _stacked() -> list[tuple[str, int, int]]:
    """Letters over the probability that each never exceeds: letter, column, height in its stack.

    A column is 26 units of the drawing wide; four powers of ten take 450 units.
    """
    bounds, height, placed = _ceilings(), Counter[int](), []
    for letter in sorted(bounds, key=lambda name: name != LETTER):
        column = round((log10(bounds[letter]) + 4) / 4 * 450 / 26)
        height[column] += 1
        placed.append((letter, column, height[column]))
    return placed


def _wall() -> str:
    groups: dict[str, list[Sign]] = {}
    for sign in signs():
        groups.setdefault(sign.script, []).append(sign)
    parts = []
    order = sorted(groups, key=lambda name: (name != "Latin", -len(groups[name])))
    for place, script in enumerate(order):
        some, name = groups[script], _SCRIPTS.get(script, script)
        if place == 1:
            parts.append("<details><summary>Unfold the other scripts</summary>")
        parts.append(
            f"<h3>{name} <span>{sum(s.lost for s in some):,} of {len(some):,} lost</span></h3>\n"
            f'<p data-script="{name}">{_runs(some)}</p>'
        )
    return "\n".join([*parts, "</details>" * (len(order) > 1)])


def _runs(some: Sequence[Sign]) -> str:
    """The signs one after another, each run of lost ones in one element."""
    found = ""
    for lost, run in groupby(some, key=lambda sign: sign.lost):
        text = html.escape("".join(_SEEN.get(s.text, s.text) for s in run), quote=False)
        found += f"<b>{text}</b>" if lost else text
    return found
