"""Findings: the register's claims with what recorded evidence makes of them, by the rules of today.

`make claims` prints `in_words`, `make check` prints `changes`.
"""

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from compendium import claims, paths, profiles
from compendium.claims import VERDICTS, Claim, Judgement, Register, pointer
from compendium.profiles import COMMITTED
from compendium.runs import NotebookRun, all_committed, all_last, csv_rows

KINDS = {
    "theorem": "Theorems and formulas",
    "numbers": "Printed numbers",
    "experiment": "Experiments",
    "ours": "Our own questions",
}  # kind of a claim -> its heading
_WIDTH, _LABELS = 110, 12  # characters of a line, and of the labels at its beginning
_COLUMNS = "id paper place kind root statement verdict finding note notebook".split()


@dataclass(frozen=True)
class Outcome:
    """A claim and its judgement, from which profile, and why it stands aside, where it does."""

    claim: Claim
    judgement: Judgement
    profile: str
    aside: str = ""

    @property
    def verdict(self) -> str:
        return self.judgement.verdict


def of_run(profile: str) -> tuple[list[Outcome], list[str]]:
    """Findings of what ran last in a profile (else of its committed run), and what is wrong."""
    return of(all_last(profile))


def of_committed(shown: tuple[str, ...] = COMMITTED) -> tuple[list[Outcome], list[str]]:
    """Findings of the committed runs that pages show, and what is wrong."""
    return of(all_committed(shown))


def table(findings: Iterable[Outcome]) -> pd.DataFrame:
    """One row a claim: what the source says, what was found."""
    rows = [vars(f.claim) | vars(f.judgement) | {"finding": f.judgement.says} for f in findings]
    return pd.DataFrame(rows, columns=_COLUMNS)


def beside_larger(found: Iterable[Outcome], profile: str) -> pd.DataFrame:
    """One row a claim that a committed run of a larger profile knows: verdicts here and there."""
    here = {finding.claim.id: finding.verdict for finding in found}
    larger, _ = of_committed(profiles.larger(profile))
    rows = [
        (f.claim.id, here[f.claim.id], f.profile, f.verdict, f.judgement.says)
        for f in larger
        if f.claim.id in here
    ]
    return pd.DataFrame(rows, columns=["id", "here", "profile", "verdict", "finding"])


def count(findings: Iterable[Outcome]) -> pd.DataFrame:
    """How many claims of each kind have each verdict."""
    seen = Counter((f.claim.kind, f.verdict) for f in findings)
    rows = [(kind, verdict, seen[kind, verdict]) for kind in KINDS for verdict in VERDICTS]
    return pd.DataFrame(rows, columns=["kind", "verdict", "claims"])


def by_root(findings: Iterable[Outcome], register: Register) -> dict[str, list[Outcome]]:
    """The findings of each root that more than one row names, in the register's order."""
    groups: dict[str, list[Outcome]] = {root: [] for root in register.roots}
    for finding in findings:
        if finding.claim.root:
            groups[finding.claim.root].append(finding)
    return {root: rows for root, rows in groups.items() if len(rows) > 1}


def of(runs: Iterable[NotebookRun]) -> tuple[list[Outcome], list[str]]:
    """Findings of some runs, in the register's order, and what is wrong, one sentence each."""
    register = claims.load()
    found: dict[str, Outcome] = {}
    faults: list[str] = []
    for run in runs:
        again = f"run `make {run.name} PROFILE={run.profile}`"
        for row in run.record["claims"]:
            claim = register.get(row["id"])
            if claim is None or claim.notebook != run.name:
                fault = f"{run.name} recorded {row['id']} in profile {run.profile}"
                faults.append(f"{fault}, which is not its claim any more: {again}")
                continue
            told = row.get("evidence", {}).items()  # JSON has no infinity: records hold it as text
            evidence = {k: float(v) if v in ("inf", "-inf") else v for k, v in told}
            try:
                judgement = claim.rule.judge(claim.id, evidence, stand_in=run.stand_in)
            except ValueError as error:
                faults.append(f"{error}; recorded in profile {run.profile}: {again}")
                continue
            found[claim.id] = Outcome(claim, judgement, run.profile, run.aside)
    return [found[id] for id in register if id in found], faults


def baseline(findings: Iterable[Outcome]) -> str:
    """The content of `verdicts.csv`: every claim that was judged on real and whole data."""
    frame = table(f for f in findings if not f.aside)
    return frame[["id", "verdict", "finding"]].to_csv(index=False, lineterminator="\n")


def changes(profile: str) -> tuple[list[str], str]:
    """Claims whose verdict differs from the committed one, a sentence each, and a line of counts.
    Findings on stand-in or incomplete data are not compared.
    """
    findings, faults = of_run(profile)
    committed = paths.results_dir(profile, "verdicts.csv")
    if not committed.is_file():
        return faults, f"{len(findings)} claims; no verdicts are committed for profile {profile}"
    before = {row["id"]: row["verdict"] for row in csv_rows(committed)}
    # not what a profile builds on
    compared = [f for f in findings if not f.aside and f.profile == profile]
    moved, new = [], []
    for f in compared:
        was = before.get(f.claim.id)
        if was is None:
            new.append(f"{f.claim.id} ({f.claim.notebook}): new, {f.verdict}")
        elif was != f.verdict:
            change = f"{was} -> {f.verdict}; {f.judgement.says}"
            moved.append(f"{f.claim.id} ({f.claim.notebook}): {change}")
    judged = {f.claim.id for f in findings}
    lost = [id for id in before if id not in judged]
    gone = [f"{id}: had the verdict {before[id]}, and has no evidence" for id in lost]
    aside = sum(bool(f.aside) for f in findings)
    counts = (
        f"{len(compared)} verdicts compared with results/{profile}/verdicts.csv: {len(moved)} "
        f"changed, {len(new)} new, {len(gone)} gone"
    ) + (f"; {aside} on stand-in or incomplete data not compared" if aside else "")
    return faults + moved + new + gone, counts


def in_words(chosen: Sequence[str] = ()) -> str:
    """The chosen claims, or all, for the terminal: the source's own sentence beside ours, the rule,
    and what the committed results say. ValueError when a word is no paper (`003`), no notebook
    (`24_robustness`) and no id of a claim.
    """
    register = claims.load()
    found, faults = of_committed()
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
    lines.append(_line("misprint", claim.misprint))
    if finding is not None and finding.verdict != claims.OPEN:
        lines.append(_line("cause", register.roots.get(claim.root, "")))
    if rule.adequate:
        needed = "; ".join(condition.text for condition in rule.adequate)
        lines.append(_line("needs", f"{needed}, else {claims.OPEN}"))
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
