"""``softgeom.ask``: more than "can it ever win", each answer with a proof or a point
(docs/beyond.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np

from softgeom.asking import Answers, Router, ask_experts, ask_label_sets, find_blocking_set
from softgeom.asking.ask import ask as ask_orders
from softgeom.asking.candidates import above
from softgeom.asking.texts import ask_texts, blank_of
from softgeom.certifying.folder import BLOCKS
from softgeom.layer import Ball, FeatureSet, SoftmaxLayer
from softgeom.names import Names
from softgeom.options import Options, SetOptions, facts, feature_set, loaded, spelled_out, split
from softgeom.results import folder_of_answers, write_answers
from softgeom.writing import alone


class _Asked(Options, total=False):
    """What every question can be asked with."""

    out: str | Path | None
    with_layer: bool
    progress: bool


@overload
def ask(
    model: Any,
    *,
    among: Iterable[int | str] | None = None,
    blocked_by: int | str | None = None,
    order: Iterable[Any] | None = None,
    together: Iterable[Any] | None = None,
    on: Iterable[Any] | None = None,
    sample: int | None = None,
    size: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    **options: Unpack[_Asked],
) -> Answers: ...
@overload
def ask(model: Any, *, experts: int, **options: Unpack[_Asked]) -> Router: ...
@overload
def ask(
    model: Any,
    *,
    in_text: Iterable[int | str],
    ctc_blank: int | str | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    **options: Unpack[_Asked],
) -> Router: ...
@spelled_out(Options)
def ask(
    model: Any,
    *,
    among: Iterable[int | str] | None = None,
    blocked_by: int | str | None = None,
    order: Iterable[Any] | None = None,
    together: Iterable[Any] | None = None,
    on: Iterable[Any] | None = None,
    experts: int | None = None,
    in_text: Iterable[int | str] | None = None,
    ctc_blank: int | str | None = None,
    sample: int | None = None,
    size: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    out: str | Path | None = None,
    with_layer: bool = False,
    progress: bool = False,
    **options: Unpack[Options],
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
    in_text : classes, optional
        Which of these are never in the most probable text of a CTC decoder (docs/texts.md)? An
        empty list asks about all that can never win a frame.
    ctc_blank : class, optional
        The blank of that decoder; default the class that is called so.
    sample, size : int, optional
        So many random sets of ``size`` (2) classes for ``order``, ``together`` or ``on``.
    features, bound, low, after
        As for ``softgeom.scan``; default the box, for ``together`` without bias the unit ball.
    seed, n_jobs : int
        Of the random sets, and of the parts for ``in_text``; workers.
    out : path, optional
        Folder for the answers and their evidence; a search for ``in_text`` that was stopped goes
        on there.
    with_layer : bool
        Write the layer, too, as the independent checker reads it.
    progress : bool
        Print how far it is.
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
    asks = {"blocked_by": blocked_by, "order": order, "together": together, "on": on}
    kind = kind_of(asks | {"experts": experts, "in_text": in_text}, among)
    if ctc_blank is not None and kind != "in_text":
        raise ValueError(f"--ctc-blank has no meaning with --{kind}: leave one of them out.")
    _refuse_meaningless(kind, sample, size, seed, n_jobs)
    if with_layer and out is None:
        raise ValueError("--with-layer writes beside the answers: pass --out, too.")
    said, layer_options = split(options, SetOptions)
    sets = {name: value for name, value in said.items() if value is not None}
    head = loaded(model, **layer_options)
    layer, names = head.layer, Names(head.layer)
    if kind == "together" and layer.b is None and not sets:
        features: FeatureSet = Ball(1.0)  # a query's length changes no ranking of an index
    else:
        features = feature_set(head, **sets)[0]
    listed = [among] if isinstance(among, str) else among
    competing = None if listed is None else names.find_all(listed, "--among")
    place = None if out is None else folder_of_answers(out)
    with nullcontext() if place is None else alone(place):
        found: Answers | Router
        how: Any
        if kind == "experts":
            found = ask_experts(layer, experts or 0, features=features)
        elif kind == "in_text":
            blank = blank_of(names) if ctc_blank is None else ctc_blank
            how = {"seed": seed, "n_jobs": n_jobs, "progress": progress}
            how["checkpoint"] = place and place / BLOCKS
            listed = list(in_text or ()) or None
            found = ask_texts(layer, listed, blank=blank, features=features, **how)
        elif blocked_by is not None:
            t = names.find(blocked_by, "--blocked-by")
            found = _blocking(layer, t, competing, features)
        else:
            chosen = asks.get(kind) if kind != "among" else [[t] for t in competing or ()]
            classes = _sets(names, kind, chosen, competing, sample, size or 2, seed)
            how = {"features": features, "n_jobs": n_jobs}
            found = _orders(layer, kind, classes, competing, progress=progress, **how)
        if isinstance(found, Answers):
            found = replace(found, head=facts(head, features))
        found.verify()
        if place is not None:
            write_answers(place, found, with_layer=with_layer)
    return found


def kind_of(asks: dict[str, Any], among: Any) -> str:
    """Which question is asked; ValueError when none is, or two."""
    given = [name for name, what in asks.items() if what is not None]
    if len(given) > 1:
        one, two = (name.replace("_", "-") for name in given[:2])
        raise ValueError(f"--{one} and --{two} are two questions: ask one at a time.")
    if not given and among is None:
        raise ValueError(
            "nothing is asked: pass --among, --blocked-by, --order, --together, --on, --experts or "
            "--in-text."
        )
    kind = given[0] if given else "among"
    if kind in ("on", "experts", "in_text") and among is not None:
        raise ValueError(f"--among has no meaning with --{kind}: leave one of them out.")
    return kind


def _refuse_meaningless(
    kind: str, sample: int | None, size: int | None, seed: int, n_jobs: int
) -> None:
    said = kind.replace("_", "-")
    if sample is not None and kind not in ("order", "together", "on"):
        raise ValueError(f"--sample draws sets for --order, --together or --on, not for --{said}.")
    if sample is None and (size is not None or (seed != 0 and kind != "in_text")):
        name = "size" if size is not None else "seed"
        raise ValueError(f"--{name} is that of random sets: pass --sample, too.")
    if n_jobs != 1 and kind in ("experts", "blocked_by"):
        raise ValueError(f"--{said} is one piece of work: leave --jobs out.")


def _blocking(
    layer: SoftmaxLayer, t: int, competing: list[int] | None, features: FeatureSet
) -> Answers:
    """That the rivals of a minimal blocking set block the class, then that it wins without each;
    or how the class wins.
    """
    blocking = find_blocking_set(layer, t, competing, features=features)
    if blocking is None:
        return ask_orders(layer, [above([[t]], competing)], features=features)
    return Answers(layer, features, [blocking.proof, *blocking.leave_one_out.answers])


def _sets(
    names: Names,
    kind: str,
    given: Any,
    competing: list[int] | None,
    sample: int | None,
    size: int,
    seed: int,
) -> list[list[int]]:
    """The sets of classes that are named, then the random ones."""
    empty = kind == "on"  # none of the labels
    listed = _several(given)
    if sample is not None:
        listed = [some for some in listed if some]
    named = [names.find_all(s, f"--{kind}") if s or not empty else [] for s in listed]
    if sample is None:
        return named
    pool = np.arange(names.layer.classes) if competing is None else np.array(competing)
    if size > len(pool):
        raise ValueError(f"--size {size} is more than the {len(pool)} classes that compete.")
    rng = np.random.default_rng(seed)
    return named + [rng.choice(pool, size, replace=False).tolist() for _ in range(sample)]


def _several(sets: Any) -> list[list[Any]]:
    """One list of classes, or a list of such lists, as a list of lists."""
    listed = [sets] if isinstance(sets, str) else list(sets)
    nested = [not isinstance(some, str | int | np.integer) for some in listed]
    if any(nested) and not all(nested):
        raise ValueError("a list of classes, or a list of lists of classes: not both at once.")
    return [list(some) for some in listed] if any(nested) else [listed]


def _orders(
    layer: SoftmaxLayer,
    kind: str,
    sets: Sequence[list[int]],
    competing: list[int] | None,
    *,
    features: FeatureSet,
    n_jobs: int,
    progress: bool,
) -> Answers:
    if kind == "on":
        return ask_label_sets(layer, sets, features=features, n_jobs=n_jobs)
    blocks = [[some] if kind == "together" else [[i] for i in some] for some in sets]
    orders = [above(each, competing) for each in blocks]
    return ask_orders(layer, orders, features=features, n_jobs=n_jobs, progress=progress)
