"""``softgeom.explain``: why a class can never win, or an input at which it does, and how easily."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from softgeom.asking import Answer, Answers, ask_labels
from softgeom.ceiling import ceilings
from softgeom.ceiling.bound import Certifier
from softgeom.certifying.verdict import BlockingClasses, Finding, Twin, Witness
from softgeom.layer import Box, Unbounded
from softgeom.names import Names
from softgeom.options import Options, facts, question, spelled_out, wider_sets
from softgeom.readout import PLAIN
from softgeom.rounding import norm_up
from softgeom.scan_result import Scan
from softgeom.scanner import scan
from softgeom.unargmaxable import bound_rank, heaviest_blocking_classes, smallest_shift
from softgeom.verdict_table import at_least, down, escape_token, up
from softgeom.widening import turning_bounds, widen

_SHOWN = 12  # blocking classes and rivals by name


@dataclass(frozen=True)
class Explanation:
    """Why a class can never win, or an input at which it does, with the scan of this class alone
    (of a model that decides label by label, with the answer); as text its sentences.
    """

    scan: Scan | Answers
    finding: Finding | Answer
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def __repr__(self) -> str:
        return f"Explanation({self.sentences[0]})"

    def _repr_html_(self) -> str:
        from softgeom.card import piece

        return piece(self.sentences[0], self.sentences[1:])


@spelled_out(Options)
def explain(model: Any, class_: int | str, **options: Unpack[Options]) -> Explanation:
    """Why a class can never win, or an input at which it does, and how hard it is to say.

    Parameters
    ----------
    model, **options
        As for ``softgeom.scan``.
    class_ : int or str
        Its number, or its token.

    Raises
    ------
    ValueError
        When there is no such class, or the model or feature set cannot be used as asked.

    Examples
    --------
    >>> import softgeom as sg
    >>> print(sg.explain([[1, 0], [-1, 1], [-1, -1], [0, 0]], 3).finding.verdict)
    unargmaxable
    """
    head, features, why = question(model, **options)
    t = Names(head.layer).find(class_, "CLASS")
    known = facts(head, features, why)
    if head.readout.rule == "threshold":
        answers = replace(ask_labels(head.layer, [t], features=features), head=known)
        answers.verify()
        return Explanation(answers, answers[0], tuple(about_label(answers, t)))
    found = widen(scan(head.layer, [t], features=features), wider_sets(head))
    found = replace(found, head=known)
    found.verify()
    return Explanation(found, found[t], tuple(explanation(found, t)))


@np.errstate(all="ignore")  # whatever the caller lets floats raise
def explanation(found: Scan, t: int) -> list[str]:
    """What the evidence for a class says, in sentences."""
    layer, evidence = found.layer, found.evidence(t)
    finding = found[t]
    name = f"class {t} ({escape_token(layer.token(t))!r})"
    lines = [f"{name}: {evidence.verdict} on {found.features.describe()}"]
    if isinstance(evidence, BlockingClasses):
        heaviest = zip(*heaviest_blocking_classes(found, t, _SHOWN), strict=True)
        listed = ", ".join(f"{escape_token(layer.token(int(i)))} {s:.1%}" for i, s in heaviest)
        count = f"{len(evidence.rivals)} other logits is at least its own"
        lines.append(f"  {found.features.condition()}, a weighted mean of {count}: {listed}")
        lines += [f"  it never wins {one.features.condition()}, proven too" for one in found.wider]
        lines += _needed_bound(found, t)
        lead = max(0.0, -finding.margin)
        lines.append(f"  so some blocking class always leads it by at least {at_least(lead)}")
        if found.bounds_probabilities:
            how: Any = {"features": found.features, "readout": found.readout}
            by_blocking_classes = found.ceiling(t)
            least = min(by_blocking_classes, float(ceilings(layer, [t], **how).ceiling[0]))
            lines.append(
                f"  and its probability never exceeds {up(least, 2)}% "
                f"({up(by_blocking_classes, 2)}% by these blocking classes alone)"
            )
        lines.extend(_way_out(found, t))
    elif isinstance(evidence, Twin):
        rows = np.array_equal(layer.W[t], layer.W[evidence.twin])
        same = "row and bias" if rows else "score everywhere in the set"
        lines.append(
            f"  class {evidence.twin} ({escape_token(layer.token(evidence.twin))!r}) has the "
            f"same {same}: they always tie"
        )
        if found.readout.probability == "softmax":
            lines[-1] += ", at one half of the probability at most"
    elif isinstance(evidence, Witness):
        point = np.asarray(evidence.point, float)
        x = found.features.feature(point)
        logits = layer.logits(x)
        rivals = [i for i in np.argsort(-logits) if i != t][:3]
        listed = ", ".join(escape_token(layer.token(int(i))) for i in rivals)
        lines.append(
            f"  it wins by {at_least(finding.margin)} at an input of norm {np.linalg.norm(x):.4g}; "
            f"next come {listed}"
        )
        if found.bounds_probabilities:
            certifier = Certifier(layer, found.features, found.readout)
            _, reached = certifier.ceilings(point[None], np.array([t]), np.array([0]))
            lines.append(f"  its probability there is at least {down(reached[0], 2)}%")
        lines.append(f"  it still wins anywhere within {at_least(finding.radius)} of that input")
    W = layer.W.astype(float)
    norms = norm_up(W)  # squares of tiny rows vanish
    lines.append(
        f"  its row has norm {norms[t]:.4g}: {np.mean(norms < norms[t]):.0%} of all rows are "
        f"shorter; its bias is {float(layer.bias[t]):.4g}"
    )
    scores = layer.logits(W[t] * (10 / max(norms[t], 1e-30)))
    ahead = int(np.argmax(scores))
    if norms[t] and scores[ahead] > scores[t]:
        lines.append(
            "  at the features of norm 10 along its own row, "
            f"{escape_token(layer.token(ahead))!r} has a larger score"
        )
    behind = found.readout.sentence()
    return [*lines, f"  {behind}"] if behind else lines


def about_label(found: Answers, t: int) -> list[str]:
    """What the answer for one label says, of a model that decides each label by itself."""
    layer, answer = found.layer, found[0]
    can = {"possible": "can be on", "impossible": "is never on"}.get(answer.verdict, "is undecided")
    name = f"label {t} ({escape_token(layer.token(t))!r})"
    lines = [f"{name} {can} on {found.features.describe()}"]
    if answer.verdict == "possible":
        lines.append(f"  its score is at least {at_least(answer.margin)} at some input")
    readout = PLAIN if found.head is None else found.head.readout
    if readout.probability == "sigmoid":
        best = ceilings(layer, [t], features=found.features, readout=readout)
        high, low = up(float(best.ceiling[0]), 2), down(float(best.reached[0]), 2)
        lines.append(f"  its probability is at most {high}%, and {low}% at some input")
    behind = readout.sentence()
    return [*lines, f"  {behind}"] if behind else lines


def _needed_bound(found: Scan, t: int) -> list[str]:
    """The smallest box in which a class that needs a bound can win, from both sides."""
    box, everywhere = found.features, Unbounded()
    if not isinstance(box, Box) or any(one.features == everywhere for one in found.wider):
        return []
    if np.ndim(box.high) or box.low != -np.asarray(box.high):
        return []
    lost, free = turning_bounds(found.layer, t, float(np.asarray(box.high)))
    wins = f"; it wins somewhere within {up(free)}" if np.isfinite(free) else ""
    return [f"  it never wins for features up to {down(lost)}{wins}, both certified"]


def _way_out(found: Scan, t: int) -> list[str]:
    """How near an unargmaxable class comes to winning: best rank, and least raise of its bias."""
    rank = bound_rank(found.layer, t, found.features)
    lines = [
        f"  the best rank that it reaches is {rank.at_least}"
        if rank.at_least == rank.at_most
        else f"  the best rank that it reaches lies between {rank.at_least} and {rank.at_most}"
    ]
    if isinstance(found.features, Box):
        lines.append(
            f"  a raise of its bias by about {smallest_shift(found, t):.4g} frees it (solved for, "
            "not proven)"
        )
    return lines
