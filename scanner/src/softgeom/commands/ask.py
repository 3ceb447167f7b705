"""``softgeom ask MODEL QUESTION``: more than "can it ever win", each answer with a proof or a point
(docs/beyond.md).

--among A B C            can each of these win when only these compete?
--blocked-by T           which few rivals keep T from winning?
--order A B              can this be the top of everybody, in this order?
--together A B           can these be the top, in any order? (documents that one query returns)
--on A B                 can exactly these labels of a sigmoid layer be on? (nothing after it: none)
--experts K              which experts can a router choose among its top K?

OUT/answers.safetensors   orders and evidence, for ``softgeom verify`` and tools/check_proofs.py
OUT/answers.csv     one row per answer
OUT/layer.safetensors   the layer as the checker reads it, with --with-layer
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from softgeom.asking import Answers, Router, ask, ask_experts, ask_label_sets, find_blocking_set
from softgeom.asking.candidates import above
from softgeom.checkpoints import Head
from softgeom.commands import options as asked
from softgeom.commands.answers_folder import (
    about_answers,
    about_blocking_set,
    about_experts,
    check_place,
    listed,
    write_answers,
)
from softgeom.commands.boundary import DONE, UNDECIDED
from softgeom.layer import Ball, FeatureSet, SoftmaxLayer
from softgeom.names import Names
from softgeom.verdict_table import escape_token
from softgeom.writing import alone

# at most one of them; --among alone is one, too
_QUESTIONS = ("order", "together", "on", "experts", "blocked_by")


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    asked.add_model(parser)
    names: dict[str, Any] = {"nargs": "*", "metavar": "CLASS"}
    question = parser.add_argument_group(
        "the question (classes by token or number, or @FILE: one a line; one set a line, "
        "with tabs between, where a set is asked for)"
    )
    add = question.add_argument
    add("--among", **names, help="only these compete; alone: can each of them win?")
    blocked = "which few rivals keep this class from winning?"
    add("--blocked-by", metavar="CLASS", help=blocked)
    for option, what in (
        ("--order", "can this be the top, in this order?"),
        ("--together", "can these be the top, in any order?"),
        ("--on", "can exactly these labels of a sigmoid layer be on?"),
    ):
        add(option, action="append", **names, help=f"{what} (repeatable)")
    experts = "which experts can be among a router's top K?"
    add("--experts", type=asked.count, metavar="K", help=experts)
    sample = "N random sets of --size classes for --order, --together, --on"
    add("--sample", type=asked.count, metavar="N", help=sample)
    add("--size", type=asked.count, metavar="K", help="classes of a random set (default: 2)")
    asked.add_features(parser)
    parser.add_argument("--seed", type=asked.seed, default=0, help="seed of the random sets")
    parser.add_argument("--jobs", type=asked.count, default=1, help="parallel workers (default: 1)")
    parser.add_argument("--out", help="folder for the answers and their evidence")
    layer = "write the layer, too, as the independent checker reads it"
    parser.add_argument("--with-layer", action="store_true", help=layer)
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=run, features=None)


def run(options: argparse.Namespace) -> int:
    """Ask, check, write, tell."""
    kind = _kind(options)
    head = asked.read_head(options)
    reply = _answered(options, kind, head)
    features = reply.found.features
    if options.json:
        print(json.dumps(_as_json(options, kind, reply)))
    else:
        layer, counts = head.layer, reply.found.counts
        print(
            f"{escape_token(str(options.model))}: {layer.classes:,} classes, {layer.dimension} "
            f"features; {features.describe()}"
        )
        notes = [*head.notes, *([head.behind] if head.behind else [])]
        print("\n".join([*(f"  {note}" for note in notes), *reply.sentences]))
        each = "all but the undecided" if counts["undecided"] else "each verdict"
        print(f"{listed(counts)}; {each} proven and re-checked")
        if options.out:
            print(f"written to {options.out}: softgeom verify {options.out} {options.model}")
    return UNDECIDED if reply.found.counts["undecided"] else DONE


def ask_model(
    model: Any,
    *,
    among: Iterable[int | str] | None = None,
    blocked_by: int | str | None = None,
    order: Iterable[Any] | None = None,
    together: Iterable[Any] | None = None,
    on: Iterable[Any] | None = None,
    experts: int | None = None,
    sample: int | None = None,
    size: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    out: str | Path | None = None,
    with_layer: bool = False,
    **options: Unpack[asked.Options],
) -> Answers | Router:
    """More than "can it ever win", each answer with a proof or a point; one question at a time.

    Parameters
    ----------
    model
        As for ``softgeom.load``.
    among : classes, optional
        Only these compete; alone: can each of them win?
    blocked_by : class, optional
        Which few rivals keep this class from winning?
    order, together, on : classes, or several lists of classes, optional
        Can these be the top in this order; the top in any order; exactly the labels that are on?
    experts : int, optional
        Which experts can be among a router's top K?
    sample, size : int, optional
        So many random sets of ``size`` (2) classes for ``order``, ``together`` or ``on``.
    features, bound, low, after
        As for ``softgeom.scan``; default the box, for ``together`` without bias the unit ball.
    seed, n_jobs : int
        Of the random sets; workers.
    out : path, optional
        Folder for the answers and their evidence.
    with_layer : bool
        Write the layer, too, as the independent checker reads it.
    weight, bias, tokens, revision, without_bias, blank
        As for ``softgeom.load``.

    Raises
    ------
    ValueError
        When nothing is asked, two things are, or an option has no meaning with the question.

    Examples
    --------
    >>> import softgeom as sg
    >>> answers = sg.ask([[1, 0], [-1, 1], [-1, -1], [0, 0]], order=[3, 0])
    >>> answers.counts["impossible"]
    1
    """
    sets, layer = asked.split(options, asked.SetOptions)
    asks = argparse.Namespace(
        among=_listed_words(among),
        blocked_by=blocked_by,
        order=_several(order),
        together=_several(together),
        on=_several(on),
        experts=experts,
        sample=sample,
        size=size,
        seed=seed,
        jobs=n_jobs,
        out=None if out is None else str(out),
        with_layer=with_layer,
        json=True,
        **{name: sets.get(name) for name in asked.SetOptions.__annotations__},
    )
    kind = _kind(asks)
    return _answered(asks, kind, asked.loaded(model, **layer)).found


def _listed_words(classes: Any) -> list[Any] | None:
    return None if classes is None else [classes] if isinstance(classes, str) else list(classes)


def _several(sets: Any) -> list[list[Any]] | None:
    """One list of classes, or a list of such lists, as the command's repeated option gives them."""
    listed = _listed_words(sets)
    if listed is None:
        return None
    nested = [not isinstance(some, str | int | np.integer) for some in listed]
    if any(nested) and not all(nested):
        raise ValueError("a list of classes, or a list of lists of classes: not both at once.")
    return [list(some) for some in listed] if any(nested) else [listed]


def _answered(options: argparse.Namespace, kind: str, head: Head) -> _Reply:
    """The checked answer, written where that is asked."""
    if options.with_layer and options.out is None:
        raise ValueError("--with-layer writes beside the answers: pass --out, too.")
    features = _features(options, head, kind)
    place = None if options.out is None else check_place(options.out)
    with nullcontext() if place is None else alone(place):
        reply = _reply(options, kind, head.layer, features)
        if isinstance(reply.found, Answers):
            known = asked.facts(head, features)
            reply = replace(reply, found=replace(reply.found, head=known))
        reply.found.verify()
        if place is not None:
            check_place(options.out)  # somebody may have just finished
            write_answers(place, reply.found, with_layer=options.with_layer)
    return reply


@dataclass(frozen=True)
class _Reply:
    """What was found, and what to say about it."""

    found: Answers | Router
    sentences: list[str]


def _kind(options: argparse.Namespace) -> str:
    """Which question is asked; ValueError when none, two, or an option without meaning is."""
    given = [name for name in _QUESTIONS if getattr(options, name) is not None]
    if len(given) > 1:
        one, two = (name.replace("_", "-") for name in given[:2])
        raise ValueError(f"--{one} and --{two} are two questions: ask one at a time.")
    if not given and options.among is None:
        raise ValueError(
            "nothing is asked: pass --among, --blocked-by, --order, --together, --on or --experts."
        )
    kind = given[0] if given else "among"
    if kind in ("on", "experts") and options.among is not None:
        raise ValueError(f"--among has no meaning with --{kind}: leave one of them out.")
    if options.sample is not None and kind not in ("order", "together", "on"):
        asks = kind.replace("_", "-")
        raise ValueError(f"--sample draws sets for --order, --together or --on, not for --{asks}.")
    if options.sample is None:
        for name, said in (("size", options.size is not None), ("seed", options.seed != 0)):
            if said:
                raise ValueError(f"--{name} is that of random sets: pass --sample, too.")
    if options.jobs != 1 and kind in ("experts", "blocked_by"):
        asks = kind.replace("_", "-")
        raise ValueError(f"--{asks} is one piece of work: leave --jobs out.")
    return kind


def _features(options: argparse.Namespace, head: Any, kind: str) -> FeatureSet:
    """As for a scan; queries of an index without bias fill a ball: length changes no ranking."""
    if options.features is None:
        boxed = options.bound is not None or options.low is not None
        if kind == "together" and head.layer.b is None and not boxed:
            return Ball(1.0)
        options.features = "box"
    return asked.feature_set(head, **asked.chosen(options, asked.SetOptions))[0]


def _reply(
    options: argparse.Namespace, kind: str, layer: SoftmaxLayer, features: FeatureSet
) -> _Reply:
    names = Names(layer)
    competing = None if options.among is None else _read(names, options.among, "--among")
    if kind == "experts":
        router = ask_experts(layer, options.experts, features=features)
        return _Reply(router, about_experts(router))
    if kind == "blocked_by":
        t = names.find(options.blocked_by, "--blocked-by")
        blocking = find_blocking_set(layer, t, competing, features=features)
        if blocking is not None:
            proofs = [blocking.proof, *blocking.leave_one_out.answers]
            return _Reply(Answers(layer, features, proofs), about_blocking_set(blocking))
        found = ask(layer, [above([[t]], competing)], features=features)
        return _Reply(found, ["nothing blocks it", *about_answers(found)])
    single = [[t] for t in competing or ()]
    sets = single if kind == "among" else _sets(options, kind, names, competing)
    if kind == "on":
        found = ask_label_sets(layer, sets, features=features, n_jobs=options.jobs)
        return _Reply(found, about_answers(found))
    blocks = [[[i] for i in some] if kind == "order" else [some] for some in sets]
    orders = [above(each, competing) for each in blocks]
    found = ask(layer, orders, features=features, n_jobs=options.jobs, progress=not options.json)
    return _Reply(found, about_answers(found))


def _sets(
    options: argparse.Namespace, kind: str, names: Names, competing: list[int] | None
) -> list[list[int]]:
    """The sets that are named, then the random ones."""
    given = [words for words in getattr(options, kind) if words or options.sample is None]
    read = [_read_sets(names, words, f"--{kind}", empty=kind == "on") for words in given]
    named = [some for sets in read for some in sets]
    if options.sample is None:
        return named
    pool = np.arange(names.layer.classes) if competing is None else np.array(competing)
    size = options.size or 2
    if size > len(pool):
        raise ValueError(f"--size {size} is more than the {len(pool)} classes that compete.")
    rng = np.random.default_rng(options.seed)
    return named + [rng.choice(pool, size, replace=False).tolist() for _ in range(options.sample)]


def _read(names: Names, words: Sequence[Any], option: str) -> list[int]:
    """One set of classes from words, each once; ``@FILE`` stands for that file's lines."""
    lines = (line for word in words for line in _lines(word, option))
    return names.find_all([name for line in lines for name in line], option)


def _read_sets(names: Names, words: Sequence[Any], option: str, *, empty: bool) -> list[list[int]]:
    """Sets of classes: the words, and each line of an ``@FILE``; may one be ``empty``?"""
    word = words[0] if len(words) == 1 and isinstance(words[0], str) else ""
    if word[:1] == "@" and Path(word[1:]).is_file():
        return [_read(names, line, option) for line in _lines(word, option)]
    return [[]] if empty and not words else [_read(names, words, option)]


def _lines(word: str | int, option: str) -> list[list[Any]]:
    """The names on each line of ``@FILE``, between tabs; a word without such a file is a name."""
    if not isinstance(word, str) or word[:1] != "@" or not Path(word[1:]).is_file():
        return [[word]]
    lines = asked.read_lines(Path(word[1:]), f"{option} {word}", "name")
    return [line.split("\t") for line in lines]


def _as_json(options: argparse.Namespace, kind: str, reply: _Reply) -> dict[str, Any]:
    rows = reply.found.table.to_dict("records")
    return {
        "model": str(options.model),
        "question": kind.replace("_", "-"),
        "feature_set": reply.found.features.describe(),
        "counts": reply.found.counts,
        "answers": [{str(key): _finite(value) for key, value in row.items()} for row in rows],
        "folder": options.out,
    }


def _finite(value: Any) -> Any:
    """JSON knows no infinity: an order without comparisons holds by any margin."""
    return None if isinstance(value, float) and not np.isfinite(value) else value
