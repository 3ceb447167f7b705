"""The options that the public functions share: which layer of a model, where its inputs lie, which
classes, who does the work. The commands have the same ones.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack, get_args, get_type_hints

import numpy as np

from softgeom.checkpoints import Head, load_head
from softgeom.checkpoints.activation import INTERVALS, named_activation
from softgeom.head_facts import HeadFacts
from softgeom.layer import Ball, Box, FeatureSet, SoftmaxLayer, Unbounded
from softgeom.names import Names
from softgeom.parallel import Backend
from softgeom.readout import Rule

AFTER = {name.lower(): name for name in INTERVALS}
BOUND = 100.0  # the paper's
KINDS = ("box", "auto", "norm", "ball", "unbounded")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class LoadOptions(TypedDict, total=False):
    """How the layer is found; see `softgeom.load`."""

    weight: str | None
    bias: Any
    tokens: Any
    revision: str | None
    without_bias: bool
    blank: str | None


class LayerOptions(LoadOptions, total=False):
    """How the layer is found, and how it decides; see `softgeom.scan`."""

    rule: Rule | None


class SetOptions(TypedDict, total=False):
    """Where the layer's inputs lie; see `softgeom.scan`."""

    features: str | FeatureSet
    bound: float | None
    low: float | None
    after: str | None


class Options(LayerOptions, SetOptions, total=False):
    """How the layer is found, and where its inputs lie; see `softgeom.scan`."""


class WorkerOptions(TypedDict, total=False):
    """Who does the work; see `softgeom.scan`."""

    seed: int
    n_jobs: int
    backend: Backend | None
    address: Any


class WorkOptions(WorkerOptions, total=False):
    """How the work is done; see `softgeom.scan`."""

    block: int


class SurveyOptions(SetOptions, WorkOptions, total=False):
    """Where the inputs of every layer lie, and how the work is done."""


class ScanOptions(Options, WorkOptions, total=False):
    """All options that a scan shares with others."""


# of all others: None
_DEFAULTS = {"without_bias": False, "features": "box", "seed": 0, "n_jobs": 1, "block": 1024}


def spelled_out(kind: Any) -> Callable[[_Function], _Function]:
    """Decorates a function that takes ``**options: Unpack[kind]``: its signature names each of
    them, so that editors complete them and ``help`` shows them.
    """

    def spell(function: _Function) -> _Function:
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[:-1]
        for name, hint in get_type_hints(kind).items():
            how: Any = {"default": _DEFAULTS.get(name), "annotation": hint}
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, **how))
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return spell


def split(given: Any, kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is given of these options, and the rest."""
    taken = {name: value for name, value in given.items() if name in kind.__annotations__}
    return taken, {name: value for name, value in given.items() if name not in taken}


def question(model: Any, **options: Unpack[Options]) -> tuple[Head, FeatureSet, str | None]:
    """The layer of a model, where its inputs lie, and why, where the model decided that."""
    sets, layer = split(options, SetOptions)
    head = loaded(model, **layer)
    return (head, *feature_set(head, **sets))


def loaded(model: Any, *, rule: Rule | None = None, **layer: Any) -> Head:
    """The layer of a model as `load_head` reads it, or one that is read already; decided by another
    ``rule`` where one is given. ValueError for an unknown one.
    """
    if isinstance(model, Head) and any(value is not None for value in layer.values()):
        raise ValueError(f"the layer is read already: leave --{next(iter(layer))} out.")
    head = model if isinstance(model, Head) else load_head(model, **layer)
    if rule is None or rule == head.readout.rule:
        return head
    if rule not in get_args(Rule):
        raise ValueError(f"rule must be 'argmax' or 'threshold', not {rule!r}.")
    plain = head.readout.probability == "softmax"
    kind: Any = {"probability": "sigmoid"} if rule == "threshold" and plain else {}
    return replace(head, readout=replace(head.readout, rule=rule, **kind))


def facts(head: Head, features: FeatureSet, why: str | None = None) -> HeadFacts:
    """What a result over these features says about the layer that it judged."""
    known, because = head.feature_set()
    assumed = head.features is None and head.activation is None
    return HeadFacts(
        source=head.source.name,
        tensors=head.names,
        shape=(head.layer.classes, head.layer.dimension),
        chosen=head.chosen or next(iter(head.notes), ""),
        features=features.describe(),
        because=why,
        known_set=None if assumed or known == features else because,
        readout=head.readout,
    )


def refuse_threshold(head: Head, what: str) -> None:
    """ValueError for a model that decides label by label: ``what`` would be about the largest."""
    if head.readout.rule == "threshold":
        raise ValueError(
            f"{head.source.name} decides each label by itself (a score above 0), so {what}: "
            "--rule argmax asks about the largest score all the same."
        )


def feature_set(
    head: Head,
    features: str | FeatureSet = "box",
    bound: float | None = None,
    low: float | None = None,
    after: str | None = None,
) -> tuple[FeatureSet, str | None]:
    """The feature set that is asked for, by name or itself, and why, where the model decided it.
    ValueError for an option that the chosen set has no use for: it would be dropped silently.
    """
    # with a lower bound of its own a box may end at or below zero
    if bound is not None and low is None and not np.all(np.asarray(bound) >= sys.float_info.min):
        least = f"{sys.float_info.min:.3g}, the smallest normal number"
        raise ValueError(f"--bound {bound} must be above zero (low < high): at least {least}.")
    if after is not None:
        if features != "box" or low is not None:
            raise ValueError("--after says where the features lie: leave --features and --low out.")
        if after not in AFTER:
            raise ValueError(f"after must be one of {', '.join(AFTER)}, not {after!r}.")
        step = named_activation(AFTER[after])
        head = replace(head, activation=step, features=None)
        return head.feature_set(bound)
    named = features if isinstance(features, str) else "a set of its own"
    for name, given, fits in (("low", low, ["box"]), ("bound", bound, ["box", "auto", "ball"])):
        if given is not None and named not in fits:
            raise ValueError(
                f"--{name} has no meaning with --features {named}: leave one of them out."
            )
    if isinstance(features, FeatureSet):
        return features, None
    size = BOUND if bound is None else bound
    match features:
        case "box":
            return Box(size, low=low), None
        case "auto":
            found, why = head.feature_set(bound)
            if bound is not None and not isinstance(found, Box):
                raise ValueError(f"--bound has no meaning here: {why}.")
            return found, why
        case "ball":
            return Ball(size), None
        case "unbounded":
            return Unbounded(), None
        case "norm":
            found, _ = head.feature_set()
            if isinstance(found, Box):
                raise ValueError(
                    "the model has no final normalisation of a known name: use auto, box, ball "
                    "or unbounded."
                )
            return found, None
    other = repr(features) if isinstance(features, str) else f"a {type(features).__name__}"
    kinds = ", ".join(map(repr, KINDS))
    raise ValueError(f"features must be one of {kinds}, or a feature set, not {other}.")


def class_numbers(layer: SoftmaxLayer, classes: Any = None) -> np.ndarray | None:
    """Which classes are asked about, by number or token; None for all. ValueError when a token is
    none of the layer's.
    """
    if classes is None or isinstance(classes, np.ndarray):
        return classes
    listed = [classes] if isinstance(classes, str) or not isinstance(classes, Iterable) else classes
    names = Names(layer)
    return np.asarray([names.find(c, "classes") if isinstance(c, str) else c for c in listed])


def wider_sets(head: Head) -> list[FeatureSet]:
    """Over which further sets each unargmaxable class is asked about: with no bound, and over the
    set that the model shows, where that is no part of a box.
    """
    shown = head.feature_set()[0]
    return [Unbounded()] if isinstance(shown, Box) else [Unbounded(), shown]


def read_lines(path: Path, of: str, what: str) -> list[str]:
    """The lines of a file that are not empty; ValueError if it is not a text."""
    try:
        return [line for line in path.read_text(encoding="utf-8").split("\n") if line]
    except UnicodeDecodeError:
        raise ValueError(f"{of} is not a text: write one {what} a line.") from None
