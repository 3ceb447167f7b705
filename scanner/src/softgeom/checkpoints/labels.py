"""The names of the classes: from a file that is named, from the model itself, or from one beside it
that fits.

A list of C names is taken as it is. A shorter list is refused with its possible layouts, unless the
caller or the model's family says which one holds (``blank``). Networks that read text lines (CTC)
have one class more than their alphabet, the blank, which comes first or last; those of PP-OCR, with
the blank first, may add one or two spaces at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softgeom.checkpoints.description import described, label_names
from softgeom.checkpoints.head_table import CLASSES
from softgeom.checkpoints.label_files import TOKEN_FILES, added_tokens, lists_of_names, read_names
from softgeom.checkpoints.tensors import plain

if TYPE_CHECKING:
    from softgeom.checkpoints.opened import Opened

BLANK = "<blank>"
BLANKS = ("first", "last", "none")  # none: the first name is that of class 0
_A_BLANK = re.compile(r"[\W_]*(ctc[\W_]*)?(blank|blk)[\W_]*", re.IGNORECASE)
_SHOWN = 3  # first names of a layout, by which a reader sees whether it is right
_SPACES = 2  # that PP-OCR adds at most behind its alphabet
_BESIDE = re.compile(r"label|class|char|vocab|dict|keys|token|config|names", re.IGNORECASE)
_LOOKED_AT = 40  # files beside a model


class LabelsError(ValueError):
    """Names that do not fit the classes."""


def choose_names(
    tokens: Any, classes: int, model: Opened, blank: str | None = None
) -> tuple[Sequence[str] | None, list[str]]:
    """The names of C classes, None where there are none, and how they were found: the caller's
    ``tokens`` (a file, C names, a vocabulary either way round), else the labels in the model's
    configuration, else its own names, else those of the one file beside it that fits. ValueError
    if the caller's or the model's do not fit, or ``blank`` contradicts them.
    """
    if blank not in (None, *BLANKS):
        raise ValueError(f"blank must be one of {', '.join(BLANKS)}, not {blank!r}.")
    named: Sequence[str] | None
    notes: list[Any]
    if tokens is not None:
        named, *notes = _given(tokens, classes, blank)
    else:
        named, *notes = _labels_of(model.config, classes)
        if not any(notes) and model.names is not None:
            named, *notes = model.names(classes, blank)
        if named is None and model.beside is not None:
            named, how = labels_beside(model.beside, classes, blank)
            notes.append(how)
    if blank is not None:
        if named is None:
            raise ValueError(
                f"blank {blank} says how a list of names is meant, and there is none: name its "
                "file (--tokens)."
            )
        fit_labels(named, classes, "the list of names", blank)
    return named, [how for how in notes if how]


def _labels_of(
    config: Mapping[str, Any], classes: int
) -> tuple[tuple[str, ...] | None, str | None]:
    """The labels that a classifier's config.json gives. Its vocabulary names what it reads, not its
    classes.
    """
    names = label_names(config)
    if names is not None and len(names) == classes:
        return names, "names from id2label of config.json"
    if described(config)[1] == CLASSES:
        return None, f"no names: config.json has no id2label of {classes} classes"
    return None, None


def _given(tokens: Any, classes: int, blank: str | None) -> tuple[Sequence[str], str]:
    if isinstance(tokens, str | Path):
        return read_labels(tokens, classes, blank)
    if isinstance(tokens, Mapping):
        # as JSON has it: keys are strings, whole numbers are int
        keyed = {str(k): v if isinstance(v, str) else int(v) for k, v in tokens.items()}
        numbered = next(lists_of_names(keyed), None)
        if not isinstance(numbered, dict):
            raise ValueError("tokens is a mapping, but neither from token to number nor back.")
        named, how = _by_number(numbered, classes, "tokens", blank)
        return named, f"names as given{how}"
    if isinstance(tokens, Set) or not isinstance(tokens, Iterable):
        raise ValueError(
            f"tokens is a {type(tokens).__name__}, which gives no order of classes: pass a "
            "file, a list of strings, or a mapping from token to number."
        )
    named, how = fit_labels([str(token) for token in tokens], classes, "tokens", blank)
    return named, f"names as given{how}"


def read_labels(
    path: str | Path, classes: int, blank: str | None = None
) -> tuple[tuple[str, ...], str]:
    """One string a class, and a sentence that says how the file was understood. ValueError if there
    is no such file, it holds no names, or their number does not fit.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is not a vocabulary file {str(path)!r}.")
    names = read_names(path, classes)
    if isinstance(names, dict):
        fitted, how = _by_number(names, classes, path, blank)
    else:
        fitted, how = fit_labels(names, classes, str(path), blank)
    return fitted, f"names from {path.name}{how}"


def read_tokens(path: Path, classes: int, blank: str | None = None) -> tuple[str, ...]:
    """The vocabulary of a model folder, where the number of a line is that of its class; ids beyond
    it (padding rows) are named ``<unused i>``. ValueError if it is none, or names more classes.
    """
    names = read_names(path, classes)
    if not isinstance(names, dict):
        names = dict(enumerate(names))
    return _by_number(added_tokens(path.parent) | names, classes, path, blank)[0]


def fit_labels(
    names: Sequence[str], classes: int, label: str, blank: str | None = None
) -> tuple[tuple[str, ...], str]:
    """C names from a list, and its layout where a name was added or left out. LabelsError for a
    list of another length, unless ``blank`` names one of its layouts, and for a ``blank`` that
    contradicts it.
    """
    layouts = _layouts(list(names), classes)
    if blank is None and len(names) == classes:
        return tuple(names), ""
    if blank in layouts:
        fitted = tuple(layouts[blank])
        same = fitted == tuple(names)
        return fitted, "" if same else f" (blank {blank}: {_shown(fitted)})"
    said = f", not a blank {blank}" if blank else ""
    options = "; ".join(f"--blank {way}: {_shown(named)}" for way, named in layouts.items())
    raise LabelsError(
        f"{label} has {len(names)} names for {classes} classes{said}: give the model's own list, "
        f"or say which layout it has ({options})."
    )


def _layouts(names: list[str], classes: int) -> dict[str, list[str]]:
    """How a list can be meant, by where the blank is."""
    missing = classes - len(names)
    first, last = (bool(names) and bool(_A_BLANK.fullmatch(names[end])) for end in (0, -1))
    spaces = missing if first else missing - 1
    found = {}
    if 0 <= spaces <= _SPACES and not last:
        found["first"] = [*[BLANK][first:], *names, *[" "] * spaces]
    if missing == (0 if last else 1) and not first:
        found["last"] = [*names, *[BLANK][last:]]
    unnamed = [f"<unused {index}>" for index in range(len(names), classes)]
    return found | {"none": names[:classes] + unnamed}


def _shown(names: Sequence[str]) -> str:
    """The first names and the last, each with its class."""
    kept = [*range(min(_SHOWN, len(names) - 1)), len(names) - 1]
    return ", ".join(f"{index} {plain(names[index], 20)!r}" for index in kept)


def labels_beside(
    model: Path, classes: int, blank: str | None = None
) -> tuple[tuple[str, ...] | None, str]:
    """Names from a file in the model's folder that speaks of labels, characters, a dictionary and
    the like, or begins as the model's does, and how; None unless exactly one set of names fits. A
    tokenizer decides alone: other lists write the bytes of its tokens in other signs.
    """
    found: dict[tuple[str, ...], str] = {}
    missed = []
    places = [path for path in sorted(model.parent.iterdir()) if _may_hold_names(path, model)]
    tokenizer = [path for path in places if path.name == TOKEN_FILES[0]]
    for path in (tokenizer + places)[:_LOOKED_AT]:
        try:
            names, how = read_labels(path, classes, None if path in tokenizer else blank)
        except LabelsError as error:
            missed += [str(error)] if "--blank first" in str(error) else []
            continue
        except ValueError:
            continue
        if not any(name.startswith("<unused ") for name in names):
            found.setdefault(names, f"{how} beside the model")
            if path in tokenizer:
                break
    if len(found) == 1:
        return next(iter(found.items()))
    return None, f"no names: {missed[0]}" if len(missed) == 1 and not found else ""


def _may_hold_names(path: Path, model: Path) -> bool:
    speaks = bool(_BESIDE.search(path.name)) or path.name.startswith(model.stem)
    named = path.suffix in {".txt", ".json", ".pkl"}
    return speaks and named and path != model and path.is_file()


def _by_number(
    names: dict[int, str], classes: int, path: Path | str, blank: str | None
) -> tuple[tuple[str, ...], str]:
    """Ids are written down: what has none is a padding row; and the layout where it is another."""
    if any(index < 0 for index in names):
        raise ValueError(f"{path} is not a vocabulary: it numbers a class {min(names)}.")
    if blank in ("first", "last"):  # the caller says that the network counts otherwise
        return fit_labels([names[index] for index in sorted(names)], classes, str(path), blank)
    if names.keys() == set(range(1, classes + 1)):
        fitted = tuple(names[index] for index in range(1, classes + 1))
        return fitted, f" (numbered from 1: {_shown(fitted)})"
    if blank is None and max(names) >= classes:
        raise LabelsError(
            f"{path} names class {max(names)}, but the layer has {classes} classes, from 0 on: "
            "pass the model's own list (--blank none leaves out what is beyond)."
        )
    # a CTC network numbers its signs from 1
    first = {0: BLANK} if set(range(1, classes)) <= names.keys() and 0 not in names else {}
    fitted = tuple((names | first).get(index, f"<unused {index}>") for index in range(classes))
    return fitted, f" (numbered from 1, blank first: {_shown(fitted)})" if first else ""
