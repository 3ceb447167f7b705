"""Findings: the register's claims with what recorded evidence makes of them, by the rules of today.

Rows that share a root count once: a cause that shows in five places is one finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from compendium import claims, paths, profiles
from compendium.claims import VERDICTS, Claim, Judgement, Register
from compendium.runs import SHOWN, NotebookRun, all_committed, all_last, csv_rows

KINDS = {
    "theorem": "Theorems and formulas",
    "numbers": "Printed numbers",
    "experiment": "Experiments",
    "ours": "Our own questions",
}  # kind of a claim -> its heading
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


def of_committed(shown: tuple[str, ...] = SHOWN) -> tuple[list[Outcome], list[str]]:
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
    """How many findings of each kind have each verdict; rows of one root and verdict count once."""
    distinct = {(f.claim.kind, f.verdict, f.claim.root or f.claim.id) for f in findings}
    known = [(kind, verdict) for kind, verdicts in VERDICTS.items() for verdict in verdicts]
    rows = [(*one, sum(d[:2] == one for d in distinct)) for one in known]
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
            claim = register.claims.get(row["id"])
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
