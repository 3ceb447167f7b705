"""One claim on a page: a line that unfolds, the same in the gallery and in the site's register."""

from __future__ import annotations

import html
import re
from collections.abc import Container

from compendium import findings
from compendium.claims import NOT_TESTABLE, VERDICTS, Claim, Register
from compendium.findings import Outcome

PENDING = "no result committed"
_LINE = 150  # characters of a statement on the line that unfolds
# kinds of claims, as a reader says them
_KINDS = {"theorem": "theorem or formula", "numbers": "printed numbers", "ours": "our own question"}
_MARKUP = re.compile(r"([\\`*_\[\]|$~])")


def entry(claim: Claim, finding: Outcome | None, register: Register, *, evidence: str = "") -> str:
    """The claim and what became of it (None: no evidence is committed) as an HTML `details` element
    with its id as anchor; what unfolds is Markdown. `evidence` are links to notebook and figures.
    """
    verdict = finding.verdict if finding else PENDING
    line = html.escape(f"{claim.place}: {shortened(claim.statement)}", quote=False)
    attributes = (
        f'id="{claim.id}" class="claim" data-paper="{claim.paper}" data-kind="{claim.kind}" '
        f'data-verdict="{verdict}"'
    )
    rule = claim.rule
    asked = [
        f"{verdict} when `{condition.text}`" if condition else f"else {verdict}"
        for verdict, condition in rule.verdicts
    ]
    needed = " and ".join(f"`{condition.text}`" for condition in rule.adequate)
    gate = f"{NOT_TESTABLE} unless {needed}; " if needed else ""
    body = [
        ("Stated" if claim.kind != "ours" else "Asked", plain(claim.statement)),
        ("Under", plain(claim.hypotheses)),
        ("Found", _found(finding)),
        ("Rule", gate + "; ".join(asked) + ". " + plain(rule.why)),
        ("Evidence", "; ".join(f"`{n}`: {plain(meaning)}" for n, meaning in rule.evidence.items())),
        ("Cause shared with others", plain(register.roots.get(claim.root, ""))),
        ("See", evidence),
    ]
    lines = "\n".join(f"- *{label}.* {text}" for label, text in body if text)
    summary = f"<summary><b>{verdict}</b> · {line}</summary>"
    kind = _KINDS.get(claim.kind, claim.kind)
    return f"<details {attributes}>{summary}\n\n`{claim.id}`, {kind}\n\n{lines}\n\n</details>"


def shortened(statement: str) -> str:
    """The statement's beginning, whole words only, where it is longer than a line."""
    if len(statement) <= _LINE:
        return statement
    return statement[: statement.rindex(" ", 0, _LINE)].rstrip(",;:") + " ..."


def plain(text: str) -> str:
    """Text in which Markdown and HTML see no markup."""
    return _MARKUP.sub(r"\\\1", html.escape(text, quote=False))


def table_of_counts(found: list[Outcome]) -> str:
    """Verdicts by kind as a Markdown table; rows of the register that share a cause count once."""
    counts = findings.count(found)
    lines = ["| kind | verdicts | rows of the register |", "| --- | --- | --- |"]
    for kind, heading in findings.KINDS.items():
        some = counts[(counts["kind"] == kind) & (counts["claims"] > 0)]
        told = ", ".join(f"**{n}** {verdict}" for _, verdict, n in some.itertuples(index=False))
        rows = sum(f.claim.kind == kind for f in found)
        lines.append(f"| {heading} | {told or 'none'} | {rows} |")
    return "\n".join(lines)


def failing(found: list[Outcome], shared: Container[str]) -> dict[str, list[Outcome]]:
    """Claims of the sources that do not hold as they stand, by the heading of their kind, without
    those whose cause is among the `shared` ones.
    """
    rows = {
        heading: [
            f
            for f in found
            if f.claim.kind == kind != "ours"
            and f.verdict not in (VERDICTS[kind][0], NOT_TESTABLE)
            and f.claim.root not in shared
        ]
        for kind, heading in findings.KINDS.items()
    }
    return {heading: some for heading, some in rows.items() if some}


def _found(finding: Outcome | None) -> str:
    if finding is None:
        return PENDING
    note = f" ({plain(finding.judgement.note)})" if finding.judgement.note else ""
    aside = f", {finding.aside}" if finding.aside else ""
    where = f"profile {finding.profile}{aside}"
    return f"**{finding.verdict}**{note}: {plain(finding.judgement.says)} ({where})"
