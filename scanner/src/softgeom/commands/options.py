"""What several commands, and the functions of the same names, ask alike: the model, its layer, its
names, where its features lie, which classes.

A command's option has the name of the function's, with ``--`` before it, but for ``--no-bias``
(``without_bias``), ``--jobs`` (``n_jobs``) and ``--scheduler`` (``address``).
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tokenize
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack, get_args

import numpy as np

from softgeom.checkpoints import Head, classes_in_script, load_head
from softgeom.checkpoints.activation import INTERVALS, named_activation
from softgeom.checkpoints.labels import BLANKS
from softgeom.checkpoints.released import RELEASED
from softgeom.head_facts import HeadFacts
from softgeom.layer import Ball, Box, FeatureSet, SoftmaxLayer, Unbounded
from softgeom.names import Names
from softgeom.parallel import Backend
from softgeom.readout import Rule

AFTER = {name.lower(): name for name in INTERVALS}
BOUND = 100.0  # the paper's
KINDS = ("box", "auto", "norm", "ball", "unbounded")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


class LayerOptions(TypedDict, total=False):
    """How the layer is found; see `softgeom.load`."""

    weight: str | None
    bias: Any
    tokens: Any
    revision: str | None
    without_bias: bool
    blank: str | None
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
    address: str | None


class WorkOptions(WorkerOptions, total=False):
    """How the work is done; see `softgeom.scan`."""

    block: int
    device: str | None


class SurveyOptions(SetOptions, WorkOptions, total=False):
    """Where the inputs of every layer lie, and how the work is done."""


class ScanOptions(Options, WorkOptions, total=False):
    """All that a scan may be told."""


# where a command's option is called otherwise
_OPTIONS = {"without_bias": "no_bias"}
_OPTIONS |= {"n_jobs": "jobs", "address": "scheduler"}


def chosen(options: argparse.Namespace, kind: Any) -> dict[str, Any]:
    """What a command line says of these options, by the names that they have in a function."""
    return {name: getattr(options, _OPTIONS.get(name, name)) for name in kind.__annotations__}


# what a command line that says nothing says
_UNSAID = {"seed": 0, "block": 1024, "n_jobs": 1}


def refuse_said(options: argparse.Namespace, kinds: Iterable[Any], why: str) -> None:
    """ValueError, with the reason, when a command line gives one of these options: it would be
    dropped silently.
    """
    for kind in kinds:
        for name, value in chosen(options, kind).items():
            if value is not None and value is not False and value != _UNSAID.get(name):
                said = _OPTIONS.get(name, name).replace("_", "-")
                raise ValueError(f"--{said} has no meaning here: {why}.")


def split(given: Any, kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is given of these options, and the rest."""
    taken = {name: value for name, value in given.items() if name in kind.__annotations__}
    return taken, {name: value for name, value in given.items() if name not in taken}


def question(model: Any, **options: Unpack[Options]) -> tuple[Head, FeatureSet, str | None]:
    """The layer of a model (as `load_head`), where its inputs lie (as `feature_set`), and why,
    where the model decided that.
    """
    sets, layer = split(options, SetOptions)
    head = loaded(model, **layer)
    return (head, *feature_set(head, **sets))


def loaded(model: Any, *, rule: Rule | None = None, **layer: Any) -> Head:
    """The layer of a model as `load_head` reads it, decided by another ``rule`` where one is given.
    ValueError for an unknown one.
    """
    head = load_head(model, **layer)
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
        chosen=getattr(head, "chosen", "") or next(iter(head.notes), ""),
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
    ``bound`` is of the box, or the ball's radius; ``low`` the box's lower bound where it differs;
    ``after`` the step before the layer, where the model does not show it. ValueError when an option
    is given that the chosen set has no use for: it would be dropped silently.
    """
    if after is not None:
        if features != "box" or low is not None:
            raise ValueError("--after says where the features lie: leave --features and --low out.")
        if after not in AFTER:
            raise ValueError(f"after must be one of {', '.join(AFTER)}, not {after!r}.")
        step = named_activation(AFTER[after])
        head = replace(head, activation=step, features=None)
        return head.feature_set(BOUND if bound is None else bound)
    named = features if isinstance(features, str) else "a set of its own"
    for name, given, fits in (
        ("--low", low, named == "box"),
        ("--bound", bound, named in ("box", "auto", "ball")),
    ):
        if given is not None and not fits:
            raise ValueError(
                f"{name} has no meaning with --features {named}: leave one of them out."
            )
    if isinstance(features, FeatureSet):
        return features, None
    given, bound = bound, BOUND if bound is None else bound
    match features:
        case "box":
            return Box(bound, low=low), None
        case "auto":
            found, why = head.feature_set(bound)
            if given is not None and not isinstance(found, Box):
                raise ValueError(f"--bound has no meaning here: {why}.")
            return found, why
        case "ball":
            return Ball(bound), None
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


def class_numbers(
    layer: SoftmaxLayer, classes: Any = None, script: str | None = None
) -> np.ndarray | None:
    """Which classes are asked about, by number, token or script; None for all. ValueError when a
    token is none of the layer's, or both are given.
    """
    if script is not None:
        if classes is not None:
            raise ValueError("--classes and --script both choose classes: leave one of them out.")
        if layer.tokens is None:
            raise ValueError(
                "--script needs the token strings: pass --tokens with the model's vocabulary file."
            )
        return classes_in_script(layer.tokens, script)
    if classes is None or isinstance(classes, np.ndarray):
        return classes
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        classes = [classes]
    listed = list(classes)
    if any(isinstance(c, str) for c in listed):
        names = Names(layer)
        listed = [names.find(c, "classes") if isinstance(c, str) else c for c in listed]
    return np.asarray(listed)


def add_model(parser: argparse.ArgumentParser) -> None:
    """The model and how its layer is found."""
    formats = ".npz .onnx .safetensors .gguf .tflite .pkl .pt .bin .traineddata .pdiparams"
    others = f"a model folder, a hub id, or a released model: {', '.join(RELEASED)}"
    parser.add_argument("model", help=f"{formats}, {others}")
    add = parser.add_argument_group("the layer").add_argument
    add("--weight", help="name of the weight tensor; its sibling bias is taken along")
    add("--bias", help="name of the bias tensor, where it is not the sibling of the weight")
    add("--no-bias", action="store_true", help="leave the bias out")
    names = "file of class names: one a line, JSON, tokenizer.json, or FILE.py:LIST"
    add("--tokens", "--labels", dest="tokens", help=names)
    where = "where the blank is that the names lack; none: the first name is that of class 0"
    add("--blank", choices=BLANKS, help=where)
    add("--revision", help="branch, tag or commit on the hub")
    rule = "the largest score wins, or each label above 0 is on (default: what the model does)"
    add("--rule", choices=get_args(Rule), help=rule)


def add_features(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Where the layer's inputs lie."""
    group = parser.add_argument_group("where the layer's inputs lie")
    add = group.add_argument
    auto = "what the step before the layer allows (ReLU, Swish, tanh, a normalisation)"
    add("--features", choices=KINDS, default="box", help=f"auto: {auto}, inside the box")
    bound = f"of the box, or radius of the ball (default: {BOUND:g})"
    add("--bound", type=_positive, help=bound)
    low = "lower bound of the box where it differs, such as -0.2785 after Swish"
    add("--low", type=_number, help=low)
    after = "the step before the layer, which a file of tensors does not show: its range"
    add("--after", choices=sorted(AFTER), help=after)
    return group


def add_classes(parser: argparse.ArgumentParser) -> None:
    """Which classes are asked about; all others stay rivals."""
    asked = parser.add_argument_group("which classes (all others stay rivals)")
    asked.add_argument("--classes", help="numbers and ranges, such as 0-99,7340")
    script = "tokens written in this script alone, such as CYRILLIC or HAN"
    asked.add_argument("--script", help=script)


def add_work(parser: argparse.ArgumentParser) -> None:
    """How a scan's work is done."""
    group = add_workers(parser)
    block = "classes that a worker takes at a time: fewer need less memory (default: 1024)"
    group.add_argument("--block", type=count, default=1024, help=block)
    device = "PyTorch device of the search, such as cuda (default: none, NumPy)"
    group.add_argument("--device", help=device)


def add_workers(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Who does the work."""
    group = parser.add_argument_group("how the work is done")
    group.add_argument("--jobs", type=count, default=1, help="parallel workers (default: 1)")
    backends = ["loky", "dask", "threading"]
    group.add_argument("--backend", choices=backends, help="how workers run (default: loky)")
    group.add_argument("--scheduler", help="address of a Dask scheduler")
    group.add_argument("--seed", type=seed, default=0, help="seed of every random choice")
    return group


def read_head(options: argparse.Namespace) -> Head:
    """The layer that the options name."""
    return loaded(options.model, **chosen(options, LayerOptions))


def wider_sets(head: Head) -> list[FeatureSet]:
    """What each unargmaxable class is asked beside the scan's own set: is it so without a bound,
    and over the set that the model shows, where that is no part of a box?
    """
    shown = head.feature_set()[0]
    return [Unbounded()] if isinstance(shown, Box) else [Unbounded(), shown]


def read_classes(options: argparse.Namespace, head: Head) -> np.ndarray | None:
    """The classes that the options ask about; None for all."""
    chosen = parse_classes(options.classes, head.layer.classes) if options.classes else None
    return class_numbers(head.layer, chosen, options.script or None)


def parse_classes(text: str, classes: int) -> np.ndarray:
    """``0-3,17`` as [0, 1, 2, 3, 17]; ValueError when a part is not a number or no class."""
    chosen: set[int] = set()
    for part in text.replace(" ", "").split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError(
                f"--classes {text!r}: {part!r} is neither a class number nor a range such as 0-99."
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < classes:
            raise ValueError(
                f"--classes {text!r}: {part!r} does not lie between 0 and {classes - 1}."
            )
        chosen |= set(range(first, last + 1))
    return np.array(sorted(chosen))


def read_lines(path: Path, of: str, what: str) -> list[str]:
    """The lines of a file that are not empty; ValueError if it is not a text."""
    try:
        return [line for line in path.read_text(encoding="utf-8").split("\n") if line]
    except UnicodeDecodeError:
        raise ValueError(f"{of} is not a text: write one {what} a line.") from None


def read_inputs(path: Path, dimension: int) -> dict[str, float]:
    """Extremes of features (n, d) in an .npy file, read in pieces; ValueError unless they fit."""
    try:
        # a header may claim more rows than there are numbers for
        with np.errstate(over="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            X = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError, tokenize.TokenError) as error:
        raise ValueError(f"--inputs {path} is not an .npy file ({error}).") from error
    real = isinstance(X, np.ndarray) and X.dtype.kind == "f" and X.size
    if not real or X.ndim < 2 or X.shape[-1] != dimension:
        raise ValueError(f"--inputs {path} must hold real features (n, {dimension}).")
    X = X.reshape(-1, dimension)
    parts = []
    for start in range(0, len(X), 65_536):
        part = np.asarray(X[start : start + 65_536], dtype=float)
        if not np.isfinite(part).all():
            raise ValueError(f"--inputs {path} has a NaN or infinite entry.")
        parts.append((part.min(), part.max(), np.linalg.norm(part, axis=1).max()))
    lows, highs, norms = zip(*parts, strict=True)
    reach = {"lowest": min(lows), "highest": max(highs), "longest": max(norms)}
    return {"rows": len(X), **{name: float(value) for name, value in reach.items()}}


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def _positive(text: str) -> float:
    value = _number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} must be above zero (low < high)")
    if value < sys.float_info.min:
        raise argparse.ArgumentTypeError(
            f"{text!r} is below the smallest normal number, {sys.float_info.min:.3g}"
        )
    return value


def seed(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not a whole number of 0 or more")
    return int(text)


def count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)
