"""What answers say, in lines for a terminal: the impossible first, each with its proof in short."""

from __future__ import annotations

import numpy as np

from softgeom.bottleneck.asking import Answer, Answers, BlockingSet, Comparisons, Router
from softgeom.bottleneck.certifying.verdict import Unknown, Witness
from softgeom.bottleneck.verdict_table import escape_token
from softgeom.layer import SoftmaxLayer

_SHOWN = 20  # answers on the terminal; answers.csv has them all
_PARTS = 4  # comparisons of a proof that are named


def about_answers(found: Answers) -> list[str]:
    """One line an answer, as many as fit."""
    order = sorted(range(len(found)), key=lambda n: found[n].verdict)  # the impossible ones first
    return _as_many_as_fit([_sentence(found.layer, found[n]) for n in order[:_SHOWN]], len(order))


def _sentence(layer: SoftmaxLayer, answer: Answer) -> str:
    """One line: the verdict, the order by token, and what proves it."""
    evidence = answer.evidence
    if isinstance(evidence, Witness):
        norm = np.linalg.norm(np.asarray(evidence.point, float))
        why = f"by {answer.margin:.3g} at features of norm {norm:.3g}"
    elif isinstance(evidence, Comparisons):
        share = np.asarray(evidence.weights, float)
        heaviest = np.argsort(-share, kind="stable")[:_PARTS]
        parts = [
            f"{_name(layer, evidence.above[n])} over {_name(layer, evidence.below[n])} "
            f"{share[n] / share.sum():.0%}"
            for n in heaviest
        ]
        more = f", {len(share) - _PARTS} more" if len(share) > _PARTS else ""
        why = f"a mean of demanded leads is never positive: {', '.join(parts)}{more}"
    else:
        assert isinstance(evidence, Unknown)
        why = evidence.reason
    return f"  {answer.verdict:<10}  {escape_token(answer.order.describe(layer))}  ({why})"


def about_blocking_set(found: BlockingSet) -> list[str]:
    """Who blocks the class, and by how much somebody always leads."""
    layer = found.leave_one_out.layer
    rivals = ", ".join(_name(layer, i) for i in found.rivals)
    name, few = _name(layer, found.class_), len(found.rivals)
    least = "whether each is needed stayed undecided"
    if found.minimal:
        least = "none of them can be spared"
    return [
        f"  {name} cannot win against these {few}, and {least}: {rivals}",
        f"  some of them always leads it by at least {max(0.0, -found.proof.margin):.3g}",
    ]


def about_experts(router: Router) -> list[str]:
    """One line an expert, as many as fit."""
    order = sorted(router.experts, key=lambda expert: expert.verdict)
    lines = [
        f"  {e.verdict:<10}  {_name(router.layer, e.expert)}  ({e.method})" for e in order[:_SHOWN]
    ]
    return _as_many_as_fit(lines, len(order))


def _as_many_as_fit(lines: list[str], of: int) -> list[str]:
    return lines + ([f"  ... {of - _SHOWN:,} more"] if of > _SHOWN else [])


def _name(layer: SoftmaxLayer, i: int) -> str:
    return escape_token(layer.token(int(i)))


def listed(counts: dict[str, int]) -> str:
    """How many there are of each verdict."""
    return ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items())
