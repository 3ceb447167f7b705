"""The names of the classes: from the model, from a file that is named, or from one beside the model
that fits.

A list of C names is taken as it is. The networks that read text lines (CTC) have one class more
than their dictionary has lines, the blank, which comes first, or two, where the space comes last as
well, or three, where two spaces do; a list that begins with its own blank lacks spaces alone. Names
that are numbered from 1 leave class 0 to the blank, or are one too high where there are C. The
layout that is taken is said, with the first names. Any other length would give classes names that
are not theirs: it is refused, unless the caller confirms that the names begin at class 0.

Files: one name a line; JSON with a vocabulary, `id2label`, or any list of C strings in it; a pickle
of plain data; a Python file with a literal list of strings (`charsets.py:NAME` where it has
several), which is parsed and never run.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from softgeom.checkpoints.plain_pickle import read_plain_pickle
from softgeom.checkpoints.tensors import plain
from softgeom.checkpoints.token_strings import TOKEN_FILES, decoded, vocabulary_of

BLANK = "<blank>"
# by how many names a dictionary has fewer than there are classes: what is said, and spaces behind
_LAYOUTS = {
    1: ("one name fewer than classes: the blank comes first", 0),
    2: ("two names fewer than classes: the blank comes first, the space last", 1),
    3: ("three names fewer than classes: the blank comes first, two spaces last", 2),
}
_OWN_BLANKS = {
    1: ("one name fewer than classes, with a blank: the space comes last", 1),
    2: ("two names fewer than classes, with a blank: two spaces come last", 2),
}
_A_BLANK = re.compile(r"[\W_]*(ctc[\W_]*)?(blank|blk)[\W_]*", re.IGNORECASE)
_SHOWN = 5  # names by which a reader sees whether the layout is right
_BESIDE = re.compile(r"label|class|char|vocab|dict|keys|token|config|names", re.IGNORECASE)
_LOOKED_AT = 40  # files beside a model
_LARGEST = 64 * 2**20  # bytes of a file of names
_LARGEST_SOURCE = 2**22  # bytes of Python that are parsed for a list
_DEEPEST = 6  # levels of a JSON file that are searched for names
# what reading a file of another kind raises
_UNFIT = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


class LabelsError(ValueError):
    """Names that do not fit the classes."""


def choose_names(
    tokens: Any,
    classes: int,
    own: Callable[[int, bool], tuple[Sequence[str] | None, str | None]] | None,
    beside: Path | None,
    *,
    confirmed: bool = False,
) -> tuple[Sequence[str] | None, list[str]]:
    """The names of C classes, None where there are none, and how they were found: the caller's
    ``tokens`` (a file, C names, a vocabulary either way round), else the model's ``own``, else
    those of the one file ``beside`` it that fits. ValueError if the first two do not fit, unless
    ``confirmed``.
    """
    if tokens is not None:
        named, how = _given(tokens, classes, confirmed)
        return named, [how]
    notes = []
    if own is not None:
        found, note = own(classes, confirmed)
        notes = [note] if note else []
        if found is not None:
            return found, notes
    near = labels_beside(beside, classes) if beside is not None else None
    return (None, notes) if near is None else (near[0], [*notes, near[1]])


def _given(tokens: Any, classes: int, confirmed: bool) -> tuple[Sequence[str], str]:
    if isinstance(tokens, str | Path):
        return read_labels(tokens, classes, confirmed=confirmed)
    if isinstance(tokens, Mapping):
        numbered = next(_lists_of_names(_plain_keys(tokens), 0), None)
        if not isinstance(numbered, dict):
            raise ValueError("tokens is a mapping, but neither from token to number nor back.")
        named, how = _by_number(numbered, classes, "tokens", confirmed=confirmed)
        return named, f"names as given{how}"
    if isinstance(tokens, Set) or not isinstance(tokens, Iterable):
        raise ValueError(
            f"tokens is a {type(tokens).__name__}, which gives no order of classes: pass a "
            "file, a list of strings, or a mapping from token to number."
        )
    listed = [str(token) for token in tokens]
    fitted, how = fit_labels(listed, classes, "tokens", confirmed=confirmed)
    return fitted, f"names as given{how}"


def _plain_keys(tokens: Mapping[Any, Any]) -> dict[str, Any]:
    """As JSON has it: keys are strings, whole numbers are int."""
    return {str(k): v if isinstance(v, str) else int(v) for k, v in tokens.items()}


def read_labels(
    path: str | Path, classes: int, *, confirmed: bool = False
) -> tuple[tuple[str, ...], str]:
    """One string a class, and a sentence that says how the file was understood; ``confirmed`` takes
    a list of another length too, from class 0 on. ValueError if there is no such file, it holds no
    names, or their number does not fit.
    """
    path, _, variable = _split(str(path))
    if not path.is_file():
        raise ValueError(f"there is not a vocabulary file {str(path)!r}.")
    if path.suffix == ".py":
        name, listed = _literal_list(path, variable, classes)
        fitted, how = fit_labels(listed, classes, f"{path}:{name}", confirmed=confirmed)
        return fitted, f"names from the list {name} of {path.name}{how}"
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, too many for a list of names.")
    names = _parsed(path, classes)
    if isinstance(names, dict):
        fitted, how = _by_number(names, classes, path, confirmed=confirmed)
    else:
        fitted, how = fit_labels(names, classes, str(path), confirmed=confirmed)
    return fitted, f"names from {path.name}{how}"


def lines(text: str) -> list[str]:
    """Its lines; a line feed at the end ends the last one and begins none."""
    return text.removesuffix("\n").split("\n") if text else []


def read_tokens(path: Path, classes: int, *, confirmed: bool = False) -> tuple[str, ...]:
    """The vocabulary of a model folder, where the number of a line is that of its class; ids beyond
    it (padding rows) are named ``<unused i>``. ValueError if it is none, or names more classes.
    """
    names = _parsed(path, classes)
    if not isinstance(names, dict):
        names = dict(enumerate(names))
    return _by_number(names, classes, path, confirmed=confirmed)[0]


def fit_labels(
    names: Sequence[str], classes: int, label: str, *, confirmed: bool = False
) -> tuple[tuple[str, ...], str]:
    """C names from a list, with the additions of CTC networks; see `read_labels`."""
    names = list(names)
    missing = classes - len(names)
    if missing == 0:
        return tuple(names), ""
    own = bool(names) and bool(_A_BLANK.fullmatch(names[0]))
    layouts = _OWN_BLANKS if own else _LAYOUTS
    if names and missing in layouts and (own or not _A_BLANK.fullmatch(names[-1])):
        said, spaces = layouts[missing]
        fitted = (*[BLANK][own:], *names, *[" "] * spaces)
        return fitted, f" ({said}; {_beginning(fitted)})"
    if not confirmed:
        why, cure = f", {-missing} too many", f"leaves out the last {-missing}"
        if missing > 0:
            why = (
                ", and a blank before and one or two spaces behind them do not make up for "
                f"{missing}"
            )
            first = f", {plain(names[0], 20)!r}" if names else ""
            cure = f"names class 0 after its first line{first}"
        raise LabelsError(
            f"{label} has {len(names)} names for {classes} classes{why}: give the model's own list "
            f"(--labels-anyway {cure})."
        )
    padded = names[:classes] + [f"<unused {index}>" for index in range(len(names), classes)]
    return tuple(padded), f" ({len(names)} names for {classes} classes, taken as confirmed)"


def _beginning(names: Sequence[str]) -> str:
    return "they begin " + " ".join(plain(name, 20) for name in names[:_SHOWN])


def labels_beside(model: Path, classes: int) -> tuple[tuple[str, ...], str] | None:
    """Names from a file in the model's folder that speaks of labels, characters, a dictionary and
    the like, or begins as the model's does; None unless exactly one set of names fits. A tokenizer
    decides alone: other lists write the bytes of its tokens in other signs.
    """
    found: dict[tuple[str, ...], str] = {}
    places = [path for path in sorted(model.parent.iterdir()) if _may_hold_names(path, model)]
    tokenizer = [path for path in places if path.name == TOKEN_FILES[0]]
    for path in (tokenizer + places)[:_LOOKED_AT]:
        try:
            names, how = read_labels(path, classes)
        except ValueError:
            continue
        if not any(name.startswith("<unused ") for name in names):
            found.setdefault(names, f"{how} beside the model")
            if path in tokenizer:
                break
    return next(iter(found.items())) if len(found) == 1 else None


def _may_hold_names(path: Path, model: Path) -> bool:
    speaks = bool(_BESIDE.search(path.name)) or path.name.startswith(model.stem)
    named = path.suffix in {".txt", ".json", ".pkl"}
    return speaks and named and path != model and path.is_file()


def _parsed(path: Path, classes: int) -> Sequence[str] | dict[int, str]:
    try:
        names = _read(path, classes)
        if isinstance(names, dict):
            return dict(zip(names, decoded(list(names.values())), strict=True))
        return decoded(names)
    except _UNFIT as error:
        raise ValueError(
            f"{path} is not a vocabulary ({plain(error)}): pass tokenizer.json, vocab.json or "
            "one token a line."
        ) from error


def _split(text: str) -> tuple[Path, str, str]:
    """A file, and the variable that is named behind a Python file."""
    if Path(text).is_file() or ".py:" not in text:
        return Path(text), "", ""
    file, colon, variable = text.rpartition(":")
    return Path(file), colon, variable


def _literal_list(path: Path, variable: str, classes: int) -> tuple[str, list[str]]:
    """The one list of strings that a Python file writes at its top level, and its name."""
    if path.stat().st_size > _LARGEST_SOURCE:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, too many for a list of names.")
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{path} is not a valid Python file ({plain(error)}).") from error
    found: dict[str, list[str]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Tuple):
            items = [item.value for item in node.value.elts if isinstance(item, ast.Constant)]
            names = [item for item in items if isinstance(item, str)]
            if names and len(names) == len(node.value.elts):
                owners = (owner for owner in node.targets if isinstance(owner, ast.Name))
                found |= {owner.id: names for owner in owners}
    listed = ", ".join(f"{name} ({len(names):,} names)" for name, names in found.items()) or "none"
    if variable:
        if variable not in found:
            raise ValueError(f"{path} has no list of strings {variable!r}; it has {listed}.")
        return variable, found[variable]
    fitting = [name for name, names in found.items() if classes - len(names) in (0, *_LAYOUTS)]
    if len(fitting) != 1:
        raise ValueError(
            f"{path} has these lists of strings: {listed}; name the one of {classes:,} "
            f"classes, as {path.name}:NAME."
        )
    return fitting[0], found[fitting[0]]


def _by_number(
    names: dict[int, str], classes: int, path: Path | str, *, confirmed: bool
) -> tuple[tuple[str, ...], str]:
    """Ids are written down: what has none is a padding row; and the layout where it is another."""
    if any(index < 0 for index in names):
        raise ValueError(f"{path} is not a vocabulary: it numbers a class {min(names)}.")
    if names.keys() == set(range(1, classes + 1)):
        fitted = tuple(names[index] for index in range(1, classes + 1))
        return fitted, f" (numbered from 1: class 0 is the first; {_beginning(fitted)})"
    beyond = [index for index in names if index >= classes]
    if beyond and not confirmed:
        raise LabelsError(
            f"{path} names class {max(beyond)}, but the layer has {classes} classes, from 0 on: "
            "pass the model's own list (--labels-anyway leaves out what is beyond)."
        )
    if set(range(1, classes)) <= names.keys():  # a CTC network numbers its signs from 1
        fitted = (names.get(0, BLANK), *(names[index] for index in range(1, classes)))
        how = f" (numbered from 1: the blank comes first; {_beginning(fitted)})"
        return fitted, "" if 0 in names else how
    return tuple(names.get(index, f"<unused {index}>") for index in range(classes)), ""


def _read(path: Path, classes: int) -> Sequence[str] | dict[int, str]:
    if path.suffix == ".pkl":
        return _from_plain(read_plain_pickle(path), classes)
    text = path.read_text(encoding="utf-8").removeprefix("\ufeff")
    if path.suffix == ".json":
        content = json.loads(text)
        model = content.get("model", "") if isinstance(content, dict) else ""
        if not isinstance(model, int | str | list):
            return vocabulary_of(content)
        return _from_plain(content, classes)
    # Lines end with line feeds only: some dictionaries hold other line separators as entries.
    return [line.removesuffix("\r") for line in lines(text)]


def _from_plain(content: Any, classes: int) -> Sequence[str] | dict[int, str]:
    """The best list of names inside plain data: one that fits the classes, else the outermost."""
    found = list(_lists_of_names(content, 0))
    if not found:
        raise ValueError("it holds no list of names")
    return next((names for names in found if len(names) == classes), found[0])


def _lists_of_names(content: Any, depth: int) -> Iterator[Sequence[str] | dict[int, str]]:
    if depth > _DEEPEST:
        return
    if isinstance(content, list) and content and all(isinstance(item, str) for item in content):
        yield content
    elif isinstance(content, dict) and content:
        values = content.values()
        if all(type(value) is int and value >= 0 for value in values):
            yield {value: str(name) for name, value in content.items()}
        elif all(str(key).isdecimal() and isinstance(value, str) for key, value in content.items()):
            yield {int(key): value for key, value in content.items()}
        else:
            for value in values:
                yield from _lists_of_names(value, depth + 1)
