"""The gallery: pages for any git host, with every committed figure, its caption, and the claims
that it belongs to.

`docs/gallery/README.md` is the first view; one page a paper follows. All links are relative.
"""

from __future__ import annotations

import html
import re

from compendium import claims, findings, notebooks, paths
from compendium.claims import Register
from compendium.findings import Outcome
from compendium.pages.entries import entry, failing, plain, shortened, table_of_counts
from compendium.runs import NotebookRun, all_committed

FOLDER = "docs/gallery"
FOUNDATIONS = "data-and-models"
# first digit of a notebook -> paper
_CHAPTERS = {"1": "001", "2": "003", "3": "002", "4": "004", "5": "001", "6": "003"}
_UP = "../../"  # from a page to the top of the repository


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
    parts = ["# Gallery: what four sources say, and what was found", _STATED, *pictures]
    profiles = " and ".join(sorted({finding.profile for finding in found})) or "(none)"
    legend = (
        f"Shown: {len(found)} claims from the committed results of profile {profiles}. {_RULES}"
    )
    parts += [table_of_counts(found), legend, "## Causes that several rows share"]
    parts += ["\n".join(causes) or "None.", "## What does not hold as it stands"]
    parts += ["Claims of the sources, apart from those above."]
    for heading, rows in failing(found, shared).items():
        told = (
            f"- {_linked(f)}: {plain(shortened(f.claim.statement))} *{plain(f.judgement.says)}*"
            for f in rows
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
    parts = [f"# {title}", "[All papers](README.md)"]
    if chosen:
        parts.append(table_of_counts([known[claim.id] for claim in chosen if claim.id in known]))
    recorded = {run.name: run for run in runs}
    for name in sorted({*recorded, *(claim.notebook for claim in chosen)}):
        heading = f"## [{plain(title_of(name))}]({_UP}notebooks/{name}.ipynb)"
        parts += [f'<a id="{name}"></a>', heading]
        if name in recorded:
            parts += _figures(recorded[name])
        own = [claim for claim in chosen if claim.notebook == name and claim.kind == "ours"]
        stated = [claim for claim in chosen if claim.notebook == name and claim not in own]
        parts += [entry(claim, known.get(claim.id), register) for claim in stated]
        parts += ["**Our own questions**, which no source states:"] if own else []
        parts += [entry(claim, known.get(claim.id), register) for claim in own]
    return "\n\n".join(parts) + "\n"


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


_STATED = """Every verdict here is computed: a notebook passes evidence, a rule that stands beside
the claim decides ([`claims/`](../../data/claims)). A theorem holds or fails, printed numbers agree or
not, an experiment is reproduced or not, and only at a scale that can tell. Rows that share a cause
count once. What no source states is ours, and counts for or against nobody. The
authors [have their say](../authors.md)."""
_RULES = (
    "A line unfolds to the statement, the rule with its reason, and the notebook. Rendered by "
    "`make readme`; nothing on these pages is typed."
)
