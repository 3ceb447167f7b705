"""The four sources together: one finding of each for the map, and what each prints beside what was
found here, for the plates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from compendium import paths
from compendium.book import load_table
from compendium.findings import Finding

PLATES = {
    "001": "001-table-3",
    "002": "002-block-equations",
    "003": "003-figure-7.5-noise",
    "004": "004-accuracy-pooled",
}
_NEEDED = {
    "001-table-3": (),
    "001-section-4-ppocr": ("imprisoned", "asked"),
    "002-block-equations": ("literal", "with_norm"),
    "002-sampling": ("literal", "with_norm"),
    "002-attention-weights": ("plain", "rotated"),
    "003-corollary-3.1": ("mass",),
    "003-figure-7.5-noise": (),
    "004-leaders-explain": ("kept",),
    "004-accuracy-pooled": (),
}  # evidence that the map and the plates show
_EXACT = ("002-ov-circuit", "002-sum-over-heads", "002-residual-stream", "002-ffn-memory")


def complete(found: Iterable[Finding]) -> bool:
    """Whether all evidence is there that the map and the plates show: not where only some notebooks
    ran.
    """
    evidence = _evidence(found)
    return all(
        id in evidence and all(evidence[id].get(key) is not None for key in keys)
        for id, keys in (_NEEDED | dict.fromkeys(_EXACT, ("error",))).items()
    )


def sentences(found: Iterable[Finding], profile: str) -> dict[str, str]:
    """What the map says of each paper, with its numbers from the evidence."""
    verdicts = {f.claim.id: f.verdict for f in found}
    evidence = _evidence(found)
    gpt2 = load_table("10_braid_counts", "model_sizes", profile).set_index("model").loc["GPT-2"]
    dead, fold, decide = (
        evidence[id] for id in ("001-section-4-ppocr", "003-corollary-3.1", "004-leaders-explain")
    )
    off = max(evidence[id]["error"] for id in _EXACT)
    slips = sum(verdict == "fails" for id, verdict in verdicts.items() if id.startswith("002"))
    return {
        "001": f"The orders of GPT-2's tokens are a number of {gpt2.log10_factorial + 1:,.0f} "
        "digits; its layer reaches one of "
        f"{gpt2.log10_regions_with_bias + 1:,.0f} digits. In a text recogniser "
        f"{dead['imprisoned']:,} of {dead['asked']:,} outputs can never win.",
        "002": "Heads, norms and feed-forward layers are sums of parts: two real models are "
        f"rebuilt from them, off by {off:.0e}. "
        f"{slips} formulas fail as printed.",
        "003": "Where coupling is strong and positive, one noise has several tokens: the printed "
        f"density weighs {fold['mass']:.2f} instead of 1. "
        "Negative coupling never tears.",
        "004": f"Tokens gather at a few leaders. Delete the leaders, and {decide['kept']:.0%} of a "
        "classifier's decisions stay: "
        "what counts is how many follow.",
    }


def beside_the_sources(found: Iterable[Finding], profile: str) -> dict[str, Any]:
    """What `draw_plates` takes: for each paper its printed numbers and ours, and the verdict of the
    claim that they belong to.
    """
    reference = paths.root() / "data" / "reference"
    evidence = _evidence(found)
    regions = load_table("10_braid_counts", "regions_with_bias", profile).rename(
        columns={"regions": "ours"}
    )
    printed = pd.read_csv(reference / "braid_regions_with_bias.csv").rename(
        columns={"regions": "printed"}
    )
    ours = load_table("24_robustness", "degradation", profile)
    theirs = pd.read_csv(reference / "margin_degradation_ratio.csv").rename(
        columns={"perturbation": "family"}
    )
    theirs = theirs[theirs["dataset"] == "wikitext-103"].assign(
        penalty_weight=lambda t: (t["objective"] != "cross-entropy").map({False: 0.0, True: 0.05})
    )
    ours = ours[(ours["group"] == "sweep") & (ours["scale"] == "absolute")]
    accuracy = load_table("42_sentiment", "pooled_split", profile)
    named = {f.claim.id: f for f in found}
    return {
        "regions": printed.merge(regions, on=["classes", "dimension"]),
        "formulas": {
            "block equations, without the norm": _literal(
                evidence["002-block-equations"], "literal", "with_norm"
            ),
            "sampling, without the last norm": _literal(
                evidence["002-sampling"], "literal", "with_norm"
            ),
            "attention weights, without positions": _literal(
                evidence["002-attention-weights"], "plain", "rotated"
            ),
        },
        "degradation": pd.DataFrame({"printed": _relief(theirs), "ours": _relief(ours)})
        .dropna()
        .reset_index(),
        "accuracy": accuracy.rename(
            columns={"embedding_dimension": "dimension", "paper": "printed", "accuracy": "ours"}
        ),
        "verdicts": {paper: _stamp(named[id]) for paper, id in PLATES.items()},
    }


def _stamp(finding: Finding) -> str:
    return f"our question: {finding.verdict}" if finding.claim.kind == "ours" else finding.verdict


def _evidence(found: Iterable[Finding]) -> dict[str, Mapping[str, Any]]:
    return {f.claim.id: f.judgement.evidence for f in found}


def _literal(evidence: Mapping[str, Any], literal: str, read: str) -> tuple[float, float]:
    return float(evidence[literal]), float(evidence[read])


def _relief(ratios: pd.DataFrame) -> pd.Series:
    """By noise level, the ratio of perplexities with the penalty (lambda = 0.05) over that without."""
    table = ratios[ratios["family"] == "noise"].pivot_table(
        index="level", columns="penalty_weight", values="median_ratio"
    )
    return table[0.05] / table[0.0]
