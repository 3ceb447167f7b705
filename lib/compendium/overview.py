"""The four sources together: one finding of each for the map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from compendium.book import load_table
from compendium.findings import Finding

# evidence that the map shows
_NEEDED = {
    "001-section-4-ppocr": ("imprisoned", "asked"),
    "003-corollary-3.1": ("mass",),
    "004-leaders-explain": ("kept",),
}
_EXACT = ("002-ov-circuit", "002-sum-over-heads", "002-residual-stream", "002-ffn-memory")


def complete(found: Iterable[Finding]) -> bool:
    """Whether all evidence is there that the map shows: not where only some notebooks
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


def _evidence(found: Iterable[Finding]) -> dict[str, Mapping[str, Any]]:
    return {f.claim.id: f.judgement.evidence for f in found}
