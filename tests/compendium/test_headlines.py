"""Headlines of the committed figures agree with the verdicts.

How it is decided: `coverage.yaml` says which figure shows which place of a paper, and a claim names
its place. Where an experiment's claim on that place, judged in the same notebook, is open or not
confirmed, the headline ends in that verdict, as `book.figure(claims=...)` writes it, or it has no
verb of outcome: it may say what was measured, and not that something helps.
"""

import re

import pytest
import yaml

from compendium import findings, runs
from compendium.pages.gallery import same_place

OUTCOME = re.compile(
    r"\b(helps?|hurts?|adds?|saves?|costs?|gains?|loses?|lowers?|raises?|improves?|increases?|"
    r"decreases?|falls?|rises?|concentrates?|shows?|confirms?|proves?|harder|easier|better|worse|"
    r"more|less|fewer|higher|lower|fails?)\b"
)


def allowed(headline: str, verdict: str) -> bool:
    """Whether a headline says no more than the verdict on an experiment."""
    return verdict == "confirmed" or verdict in headline or not OUTCOME.search(headline)


@pytest.mark.parametrize(
    ("headline", "verdict", "fits"),
    [
        ("Under noise the penalty hurts", "not confirmed", False),
        ("Under noise the penalty helps", "open", False),
        ("Under noise the penalty helps (open)", "open", True),
        ("Under noise the penalty helps", "confirmed", True),
        ("The penalty changes perplexity by +0.4%", "open", True),
    ],
)
def test_an_outcome_needs_its_verdict(headline, verdict, fits):
    assert allowed(headline, verdict) == fits


def test_each_headline_says_no_more_than_the_verdict_on_what_it_shows(repository):
    rows = yaml.safe_load((repository / "data/reference/coverage.yaml").read_text("utf-8"))
    committed = {run.name: run.record["figures"] for run in runs.all_committed()}
    judged, _ = findings.of_committed()
    odd = []
    for found in judged:
        claim = found.claim
        shown = [
            key
            for row in rows[claim.paper]
            if row.get("notebook") == claim.notebook and same_place(row["place"], claim.place)
            for key in row.get("shows", [])
            if claim.kind == "experiment" and key in committed[claim.notebook]
        ]
        said = {key: committed[claim.notebook][key].get("headline", "") for key in shown}
        odd += [
            f"{claim.id} is {found.verdict}, {claim.notebook} {key}: {headline!r}"
            for key, headline in said.items()
            if not allowed(headline, found.verdict)
        ]
    assert odd == []
