"""`make claims`: each claim in the terminal, the source's own sentence beside our words, the rule,
and what the committed results say.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from compendium import claims, findings
from compendium.claims import Claim, Register, pointer
from compendium.findings import Outcome

_WIDTH = 110
_LABELS = 12  # characters


def render(chosen: Sequence[str] = ()) -> str:
    """The chosen claims in words, or all: papers (`003`), notebooks (`24_robustness`) or ids of
    claims; ValueError when a word is none of them.
    """
    register = claims.load()
    found, faults = findings.of_committed()
    known = {finding.claim.id: finding for finding in found}
    blocks = [_block(claim, register, known.get(claim.id)) for claim in _chosen(register, chosen)]
    return "\n\n".join([*blocks, *faults])


def _chosen(register: Register, words: Sequence[str]) -> Iterable[Claim]:
    papers = ", ".join(register.titles)
    known = {claim.paper for claim in register.values()}
    notebooks = {claim.notebook for claim in register.values()}
    for word in words:
        if word not in register and word not in known | notebooks:
            others = f"paper ({papers}) or notebook with claims ({', '.join(sorted(notebooks))})"
            raise ValueError(f"{word!r} is not a claim, {others}")
    return [c for c in register.values() if not words or {c.id, c.paper, c.notebook} & set(words)]


def _block(claim: Claim, register: Register, finding: Outcome | None) -> str:
    rule = claim.rule
    lines = [f"{claim.id}  [{claim.kind}]  {claim.place}"]
    for place in claim.sentences:
        here, lost = pointer.has(place.paper), "(its text is not here: SOFTGEOM_PAPERS)"
        lines.append(_line("source", claims.sentence(place) if here else lost))
    lines.append(_line("we say", claim.statement))
    lines.append(_line("under", claim.hypotheses))
    lines.append(_line("cause", register.roots.get(claim.root, "")))
    if rule.adequate:
        needed = "; ".join(condition.text for condition in rule.adequate)
        lines.append(_line("needs", f"{needed}, else {claims.NOT_TESTABLE}"))
    lines += [_line(verdict, c.text if c else "otherwise", 4) for verdict, c in rule.verdicts]
    lines.append(_line("why", rule.why))
    if finding is None:
        lines.append(_line("result", f"none committed: make {claim.notebook}"))
    else:
        note = f" ({finding.judgement.note})" if finding.judgement.note else ""
        lines.append(_line("result", f"{finding.verdict.upper()}{note}: {finding.judgement.says}"))
        lines.append(_line("from", f"{claim.notebook}, profile {finding.profile}"))
    return "\n".join(line for line in lines if line)


def _line(label: str, text: str, indent: int = 2) -> str:
    head, rest = f"{'':{indent}}{label:<{_LABELS - indent}}  ", " " * (_LABELS + 2)
    return textwrap.fill(text, _WIDTH, initial_indent=head if text else "", subsequent_indent=rest)
