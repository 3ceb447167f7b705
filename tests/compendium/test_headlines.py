"""Headlines of the committed figures agree with the verdicts.

How it is decided: `coverage.yaml` says which figure shows which place of a paper, and a claim names
its place. Where an experiment's claim on that place, judged in the same notebook, is open or not
confirmed, the headline ends in that verdict, as `book.figure(claims=...)` writes it, or it has no
verb of outcome: it may say what was measured, and not that something helps.
"""

import re

import yaml

from compendium import findings, runs
from compendium.claims import CONFIRMED
from compendium.pages.gallery import same_place

OUTCOME = re.compile(
    r"\b(helps?|hurts?|adds?|saves?|costs?|gains?|loses?|lowers?|raises?|improves?|increases?|"
    r"decreases?|falls?|rises?|concentrates?|shows?|confirms?|proves?|harder|easier|better|worse|"
    r"more|less|fewer|higher|lower|fails?)\b"
)


def test_each_headline_says_no_more_than_the_verdict_on_what_it_shows(repository):
    rows = yaml.safe_load((repository / "data/reference/coverage.yaml").read_text("utf-8"))
    committed = {run.name: run.record["figures"] for run in runs.all_committed()}
    judged, _ = findings.of_committed()
    odd = []
    for found in judged:
        claim, verdict = found.claim, found.verdict
        if claim.kind != "experiment" or verdict == CONFIRMED:
            continue
        figures = committed[claim.notebook]
        headlines = {
            key: figures[key].get("headline", "")
            for row in rows[claim.paper]
            if row.get("notebook") == claim.notebook and same_place(row["place"], claim.place)
            for key in row.get("shows", [])
            if key in figures
        }
        odd += [
            f"{claim.id} is {verdict}, {claim.notebook} {key}: {headline!r}"
            for key, headline in headlines.items()
            if OUTCOME.search(headline) and verdict not in headline
        ]
    assert odd == []
