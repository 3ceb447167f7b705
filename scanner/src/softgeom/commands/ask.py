"""``softgeom ask MODEL QUESTION`` (docs/beyond.md)."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Any

import numpy as np

from softgeom import answering
from softgeom.asking import Answer, Answers, BlockingSet, Comparisons, Router
from softgeom.asking.experts import Chosen
from softgeom.certifying.verdict import Unknown, Witness
from softgeom.commands.boundary import DONE, UNDECIDED
from softgeom.layer import SoftmaxLayer
from softgeom.options import LayerOptions, loaded, read_lines, split
from softgeom.results import verify_command
from softgeom.verdict_table import at_least, escape_token

_SHOWN = 20  # answers on the terminal; answers.csv has them all
_PARTS = 4  # comparisons of a proof that are named
# of CTC's most probable text; a class that is not excluded may still be in none
_IN_TEXT = ("not excluded", "never in the text", "tied at best", "undecided")
_QUESTIONS = ("order", "together", "on", "experts", "in_text", "blocked_by")


def ask(
    model: str,
    *,
    among: list[str] | None = None,
    order: list[list[str]] | None = None,
    together: list[list[str]] | None = None,
    on: list[list[str]] | None = None,
    in_text: list[str] | None = None,
    out: str | None = None,
    json: bool = False,
    **more: Any,
) -> int:
    """Ask, check, write, print."""
    asks: Any = {"order": order, "together": together, "on": on}
    for name, sets in asks.items():
        if sets is not None:
            asks[name] = [some for words in sets for some in _sets(words, f"--{name}")]
    for name, words in (("among", among), ("in_text", in_text)):
        if words is not None:
            option = f"--{name.replace('_', '-')}"
            asks[name] = [n for word in words for line in _lines(word, option) for n in line]
    layer_options, rest = split(more, LayerOptions)
    given = [name for name in _QUESTIONS if {**asks, **more}.get(name) is not None]
    head = loaded(model, **layer_options)
    found = answering.ask(head, **asks, **rest, out=out, progress=not json)
    kind = given[0] if given else "among"
    counts = found.counts
    if json:
        print(dumps(_as_json(model, kind, found, out)))
        return UNDECIDED if counts["undecided"] else DONE
    layer = head.layer
    print(
        f"{escape_token(model)}: {layer.classes:,} classes, {layer.dimension} "
        f"features; {found.features.describe()}"
    )
    notes = [f"  {note}" for note in (*head.notes, head.behind) if note]
    print("\n".join([*notes, *_about(found, kind)]))
    if kind == "in_text" and isinstance(found, Router):
        said = [_in_text(expert) for expert in found.experts]
        counts = {verdict: said.count(verdict) for verdict in _IN_TEXT}
    each = "all but the undecided" if counts["undecided"] else "each verdict"
    print(f"{listed(counts)}; {each} proven and re-checked")
    if out:
        print(f"written to {out}: {verify_command(out, model)}")
    return UNDECIDED if counts["undecided"] else DONE


def listed(counts: dict[str, int]) -> str:
    """How many there are of each verdict."""
    return ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items())


def _sets(words: list[str], option: str) -> list[list[str]]:
    """The sets of classes that the words of one option name: one, or each line of an ``@FILE``."""
    if len(words) == 1:
        return _lines(words[0], option)
    return [[name for word in words for line in _lines(word, option) for name in line]]


def _lines(word: str, option: str) -> list[list[str]]:
    """The names on each line of ``@FILE``, between tabs; a word without such a file is a name."""
    if word[:1] != "@" or not Path(word[1:]).is_file():
        return [[word]]
    lines = read_lines(Path(word[1:]), f"{option} {word}", "name")
    return [line.split("\t") for line in lines]


def _in_text(found: Chosen) -> str:
    """What a verdict about the best three says of texts: without a margin a text with the class may
    be as probable as the best one without it.
    """
    if found.verdict == "impossible":
        return "never in the text" if found.margin < 0 else "tied at best"
    return "not excluded" if found.verdict == "possible" else "undecided"


def _about(found: Answers | Router, kind: str) -> list[str]:
    """One line an answer, or an expert, the impossible ones first, as many as fit."""
    if isinstance(found, Router):
        experts = sorted(found.experts, key=lambda expert: expert.verdict)
        said = [_in_text(e) if kind == "in_text" else e.verdict for e in experts]
        lines = [
            f"  {verdict:<10}  {_name(found.layer, e.expert)}  ({e.method})"
            for verdict, e in zip(said, experts, strict=True)
        ]
    elif kind == "blocked_by" and found[0].verdict == "impossible":
        needed = Answers(found.layer, found.features, found.answers[1:])
        return about_blocking_set(BlockingSet(found[0], needed))
    else:
        answers = sorted(found.answers, key=lambda answer: answer.verdict)
        lines = [_sentence(found.layer, answer) for answer in answers[:_SHOWN]]
        lines += [""] * (len(answers) - len(lines))
    more = [f"  ... {len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else []
    said = ["nothing blocks it"] if kind == "blocked_by" else []
    return [*said, *lines[:_SHOWN], *more]


def _sentence(layer: SoftmaxLayer, answer: Answer) -> str:
    """One line: the verdict, the order by token, and what proves it."""
    evidence = answer.evidence
    if isinstance(evidence, Witness):
        norm = np.linalg.norm(np.asarray(evidence.point, float))
        why = f"by {at_least(answer.margin)} at features of norm {norm:.3g}"
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
        f"  some of them always leads it by at least {at_least(max(0.0, -found.proof.margin))}",
    ]


def _name(layer: SoftmaxLayer, i: int) -> str:
    return escape_token(layer.token(int(i)))


def _as_json(model: str, kind: str, found: Answers | Router, out: str | None) -> dict[str, Any]:
    rows = found.table.to_dict("records")
    return {
        "model": model,
        "question": kind.replace("_", "-"),
        "feature_set": found.features.describe(),
        "counts": found.counts,
        "answers": [{str(key): _finite(value) for key, value in row.items()} for row in rows],
        "folder": out,
    }


def _finite(value: Any) -> Any:
    """JSON knows no infinity: an order without comparisons holds by any margin."""
    return None if isinstance(value, float) and not np.isfinite(value) else value
