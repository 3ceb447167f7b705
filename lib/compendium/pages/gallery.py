"""A page for each paper, readable on any git host: where each of its figures, tables and algorithms
is made, then every committed figure with its caption and the claims that it belongs to.

`docs/papers/README.md` is the first view. All links are relative. A claim is a line that unfolds,
the same here and on the site.
"""

import html
import re
from collections import Counter
from collections.abc import Container
from typing import Any

import yaml

from compendium import claims, findings, notebooks, paths
from compendium.claims import NOT_CONFIRMED, OPEN, VERDICTS, Claim, Register
from compendium.findings import Outcome
from compendium.markdown import plain
from compendium.runs import NotebookRun, all_committed

FOLDER = "docs/papers"
FOUNDATIONS = "data-and-models"
PENDING = "no result committed"
# first digit of a notebook -> paper
_CHAPTERS = {"1": "001", "2": "003", "3": "002", "4": "004", "5": "001"}
_UP = "../../"  # from a page to the top of the repository
# kinds of claims, as a reader says them
_KINDS = {"theorem": "theorem or formula", "numbers": "printed numbers", "ours": "our own question"}
# status of a row of data/reference/coverage.yaml, as a reader says it
_STATUS = {
    "made": "shown",
    "other data": "shown with other data",
    "not yet": "not shown yet",
    "cannot": "cannot be shown",
}
_LABEL = re.compile(r"(?:Figure|Table|Theorem|Proposition|Corollary|Appendix|Section)s? [\w.]*\w")


def pages() -> dict[str, str]:
    """Every page: its path in the repository and its text."""
    register, shown = claims.load(), all_committed()
    found, _ = findings.of(shown)
    titles = {paper: f"{paper}: {title}" for paper, title in register.titles.items()}
    titles[FOUNDATIONS] = "Data and models"
    front = [run for run in shown if run.name.startswith("9")]
    papers: dict[str, list[NotebookRun]] = {paper: [] for paper in titles}
    for run in shown:
        if run not in front and (paper := _CHAPTERS.get(run.name[0], FOUNDATIONS)) in papers:
            papers[paper].append(run)
    pictures = [picture(run, key) for run in front for key in run.record["figures"]]
    result = {f"{FOLDER}/README.md": _index(register, found, titles, papers, pictures)}
    known = {finding.claim.id: finding for finding in found}
    for paper, chosen in papers.items():
        result[f"{FOLDER}/{paper}.md"] = _paper(paper, titles[paper], chosen, register, known)
    return result


def title_of(name: str) -> str:
    """The heading of a notebook, without a full stop."""
    prose = "\n".join(notebooks.cells(paths.notebook(name), "markdown").values())
    found = re.search(r"(?m)^# (.*)", prose)
    return found[1].rstrip(".") if found else name


def picture(run: NotebookRun, key: str, up: str = _UP) -> str:
    """A committed figure as Markdown, with its alternative text."""
    alt = " ".join(run.record["figures"][key]["alt"].split()).replace("[", "(").replace("]", ")")
    return f"![{alt}]({up}{run.figure(key)})"


def entry(claim: Claim, finding: Outcome | None, register: Register, *, evidence: str = "") -> str:
    """The claim and what became of it (None: no evidence is committed) as an HTML `details` element
    with its id as anchor; what unfolds is Markdown. `evidence` are links to notebook and figures.
    """
    verdict = finding.verdict if finding else PENDING
    line = html.escape(f"{claim.place}: {claim.title}.", quote=False)
    attributes = f'id="{claim.id}" class="claim" data-paper="{claim.paper}" '
    attributes += f'data-kind="{claim.kind}" data-verdict="{verdict}"'
    rule = claim.rule
    asked = [
        f"{verdict} when `{condition.text}`" if condition else f"else {verdict}"
        for verdict, condition in rule.verdicts
    ]
    needed = " and ".join(f"`{condition.text}`" for condition in rule.adequate)
    read = (f"`{n}`: {plain(told)}" for n, told in rule.evidence.items() if n in rule.asked)
    gate = f"{OPEN} unless {needed}; " if needed else ""
    body = [
        ("Stated" if claim.kind != "ours" else "Asked", plain(claim.statement)),
        ("Assumed", plain(claim.hypotheses)),
        ("Misprint", plain(claim.misprint)),
        ("Found", _found(finding)),
        ("Rule", gate + "; ".join(asked) + ". " + plain(rule.why)),
        ("Names in the rule", "; ".join(read)),
        ("See", evidence),
    ]
    if finding and verdict != OPEN:  # a cause of what nobody has seen yet is a guess
        body.insert(-1, ("Shared cause", _cause(claim, register)))
    lines = "\n".join(f"- *{label}.* {text}" for label, text in body if text)
    summary = f"<summary><b>{verdict}</b> · {line}</summary>"
    kind = _KINDS.get(claim.kind, claim.kind)
    return f"<details {attributes}>{summary}\n\n`{claim.id}`, {kind}\n\n{lines}\n\n</details>"


def _cause(claim: Claim, register: Register) -> str:
    """The cause that a claim shares with others, and the links to them."""
    others = [
        f"[{c.id}]({c.paper}.md#{c.id})"
        for c in register.values()
        if claim.root and c.root == claim.root and c.id != claim.id
    ]
    return f"{plain(register.roots[claim.root])} (also {', '.join(others)})" if others else ""


def table_of_counts(found: list[Outcome]) -> str:
    """Verdicts by kind as a Markdown table."""
    counts = findings.count(found).set_index(["kind", "verdict"])["claims"]
    lines = [f"| | {' | '.join(VERDICTS)} |", "| --- | ---: | ---: | ---: |"]
    for kind, heading in findings.KINDS.items():
        lines.append(f"| {heading} | {' | '.join(str(counts[kind, v]) for v in VERDICTS)} |")
    return "\n".join(lines)


def failing(found: list[Outcome], shared: Container[str]) -> dict[str, list[Outcome]]:
    """Claims of the sources that are not confirmed, by kind, without the `shared` causes."""
    rows = {
        heading: [
            f
            for f in found
            if f.claim.kind == kind != "ours"
            and f.verdict == NOT_CONFIRMED
            and f.claim.root not in shared
        ]
        for kind, heading in findings.KINDS.items()
    }
    return {heading: some for heading, some in rows.items() if some}


def _index(
    register: Register,
    found: list[Outcome],
    titles: dict[str, str],
    papers: dict[str, list[NotebookRun]],
    pictures: list[str],
) -> str:
    shared = findings.by_root(found, register)
    causes = [
        f"- **{plain(register.roots[root])}** {len(rows)} rows: {', '.join(map(_linked, rows))}."
        for root, rows in shared.items()
    ]
    parts = ["# Four papers: what they say, and what was found", _STATED, *pictures]
    profiles = " and ".join(sorted({finding.profile for finding in found})) or "(none)"
    legend = (
        f"Shown: {len(found)} claims from the committed results of profile {profiles}. {_RULES}"
    )
    parts += [table_of_counts(found), legend, "## Causes that several rows share"]
    misprints = [f for f in found if f.claim.misprint]
    slips = [f"- {_linked(f)}: {plain(f.claim.misprint)}" for f in misprints]
    parts += ["\n".join(causes) or "None.", "## Misprints"]
    parts += ["\n".join(slips) or "None.", "## What is not confirmed"]
    parts += ["Claims of the sources, apart from those above."]
    for heading, rows in failing(found, shared).items():
        told = (
            f"- {_linked(f)}: {plain(f.claim.title)}. *{plain(f.judgement.says)}*" for f in rows
        )
        parts += [f"### {heading}", "\n".join(told)]
    parts += ["## Pages"]
    for paper, runs in papers.items():
        parts += [f"### [{titles[paper]}]({paper}.md)", _contact_sheet(paper, runs)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _paper(
    paper: str, title: str, runs: list[NotebookRun], register: Register, known: dict[str, Outcome]
) -> str:
    chosen = [claim for claim in register.values() if claim.paper == paper]
    about = f"{plain(register.about.get(paper, ''))} [Glossary](../glossary.md) ·".lstrip()
    parts = [f"# {title}", f"{about} [all papers](README.md)"]
    if chosen:
        parts.append(table_of_counts([known[claim.id] for claim in chosen if claim.id in known]))
        parts.append(_JUDGED)
        if wrong := [f"[{c.place}](#{c.id})" for c in chosen if c.misprint]:
            parts.append(f"Misprints: {'; '.join(wrong)}.")
    recorded = {run.name: run for run in runs}
    parts += _coverage(paper, recorded, chosen, known)
    for name in sorted({*recorded, *(claim.notebook for claim in chosen)}):
        page = f"../notebooks/{name}.md" if name in recorded else f"{_UP}notebooks/{name}.ipynb"
        heading = f"## [{plain(title_of(name))}]({page})"
        parts += [f'<a id="{name}"></a>', heading]
        if name in recorded:
            parts += _figures(recorded[name])
        own = [claim for claim in chosen if claim.notebook == name and claim.kind == "ours"]
        stated = [claim for claim in chosen if claim.notebook == name and claim not in own]
        parts += [entry(claim, known.get(claim.id), register) for claim in stated]
        parts += [_OWN] if own else []
        parts += [entry(claim, known.get(claim.id), register) for claim in own]
    return "\n\n".join(parts) + "\n"


def _coverage(
    paper: str, recorded: dict[str, NotebookRun], chosen: list[Claim], known: dict[str, Outcome]
) -> list[str]:
    """Where each figure, table and algorithm of a paper is made: a sentence of counts and a table,
    from `data/reference/coverage.yaml`."""
    path = paths.root() / "data" / "reference" / "coverage.yaml"
    rows = yaml.safe_load(path.read_text("utf-8")).get(paper, []) if path.is_file() else []
    if not rows:
        return []
    counts = Counter(row["status"] for row in rows)
    told = ", ".join(f"{counts[key]} {words}" for key, words in _STATUS.items() if counts[key])
    lines = ["| in the paper | what | result | status | verdicts |", "| --- " * 5 + "|"]
    for row in rows:
        name, shows = row.get("notebook", ""), row.get("shows", [])
        status = _STATUS[row["status"]] + (f": {plain(row['why'])}" if "why" in row else "")
        about = f"[{plain(row['about'])}](#{name})" if name else plain(row["about"])
        drawn = [
            key for key in shows if name in recorded and key in recorded[name].record["figures"]
        ]
        image = (
            f'<a href="#{name}"><img src="{_UP}{recorded[name].figure(drawn[0])}" width="140" '
            f'alt="{html.escape(row["about"])}"></a>'
            if drawn
            else ", ".join(
                f"[table]({_UP}{recorded[name].results.relative_to(paths.root()).as_posix()}/{key}.csv)"
                for key in shows
                if name in recorded
            )
        )
        verdicts = "; ".join(
            f"[{known[claim.id].verdict}](#{claim.id})"
            for claim in chosen
            if claim.id in known and claim.kind != "ours" and belongs(claim, row)
        )
        lines.append(f"| {plain(row['place'])} | {about} | {image} | {status} | {verdicts} |")
    listed = f"The table lists {len(rows)} parts of the source: {told}. {_NO_VERDICT}"
    return [f"## Where everything is\n\n{listed}", "\n".join(lines)]


def belongs(claim: Claim, row: dict[str, Any]) -> bool:
    """Whether a row of `data/reference/coverage.yaml` is where a claim of a paper belongs: the row
    names it, or it shares the row's notebook and place.
    """
    here = claim.notebook == row.get("notebook") and same_place(row["place"], claim.place)
    return here or claim.id in row.get("claims", ())


def same_place(row: str, claim: str) -> bool:
    """Whether a claim's place names a figure, table, theorem or section that the row's names."""
    first, second = (
        {label.replace("s ", " ") for label in _LABEL.findall(t)} for t in (row, claim)
    )
    return not first.isdisjoint(second)


def _figures(run: NotebookRun) -> list[str]:
    parts = [f"Notebook `{run.name}`, profile {run.profile}, data: {plain(run.sources)}."]
    for key in run.record["figures"]:
        parts += [picture(run, key), f"*{plain(run.record['figures'][key]['caption'])}*"]
    return parts


def _contact_sheet(paper: str, runs: list[NotebookRun]) -> str:
    """The first figure of each notebook, small, leading to its place on the paper's page."""
    lines = []
    for run in runs:
        for key in list(run.record["figures"])[:1]:
            shown = (
                f'src="{_UP}{run.figure(key)}" width="32%" alt="{html.escape(title_of(run.name))}"'
            )
            lines.append(f'<a href="{paper}.md#{run.name}"><img {shown}></a>')
    return "\n".join(lines)


def _linked(finding: Outcome) -> str:
    claim = finding.claim
    place = f"[{claim.paper}, {plain(claim.place)}]({claim.paper}.md#{claim.id})"
    return f"{place} **{finding.verdict}**"


def _found(finding: Outcome | None) -> str:
    if finding is None:
        return PENDING
    note = f" ({plain(finding.judgement.note)})" if finding.judgement.note else ""
    aside = f", {finding.aside}" if finding.aside else ""
    where = f"run: {finding.claim.notebook}, profile {finding.profile}{aside}"
    return f"**{finding.verdict}**{note}: {plain(finding.judgement.says)} ({where})"


_STATED = """Every verdict here is computed: a notebook passes evidence, a rule that stands beside
the claim decides ([`claims/`](../../data/claims)). A claim is *confirmed*, *not confirmed*, or *open*
where the data at hand or their scale cannot tell. A misprint is noted beside the verdict on what was
meant. What no source states is ours, and counts for or against nobody. The authors
[have their say](../authors.md)."""
_JUDGED = """A verdict is about what the source means. Misprints are noted beside it, and so is what a
formula leaves out (*Assumed*)."""
_OWN = (
    "**Our own questions**, which none of the four sources states (some come from other "
    "literature):"
)
_NO_VERDICT = (
    "A row without a verdict has no sentence of the source that we judge. Our own questions stand "
    "below, with the notebooks."
)
_RULES = (
    "A line unfolds to the statement, the rule with its reason, and the notebook. Rendered by "
    "`make readme`; nothing on these pages is typed."
)
