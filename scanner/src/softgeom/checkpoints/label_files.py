"""Files that name classes, read as data: one name a line, JSON, pickles of plain data, and Python
files with a literal list of strings, which are parsed and never run.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from softgeom.checkpoints.plain_pickle import read_plain_pickle
from softgeom.checkpoints.tensors import plain
from softgeom.checkpoints.token_strings import decoded, vocabulary_of

_LARGEST = 2**26  # bytes of a file of names
_LARGEST_SOURCE = 2**22  # bytes of Python that are parsed for a list
_DEEPEST = 6  # levels of a JSON file that are searched for names
# what reading a file of another kind raises
_UNFIT = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)


def read_names(path: Path, classes: int) -> Sequence[str] | dict[int, str]:
    """The names in a file, in their order or by number: of several lists the one of so many
    classes. ValueError if it holds none.
    """
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, too many for a list of names.")
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


def lines(text: str) -> list[str]:
    """Its lines; a line feed at the end ends the last one and begins none."""
    return text.removesuffix("\n").split("\n") if text else []


def split_variable(text: str) -> tuple[Path, str, str]:
    """A file, and the variable that is named behind a Python file."""
    if Path(text).is_file() or ".py:" not in text:
        return Path(text), "", ""
    file, colon, variable = text.rpartition(":")
    return Path(file), colon, variable


def literal_list(path: Path, variable: str, fits: Callable[[int], bool]) -> tuple[str, list[str]]:
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
    fitting = [name for name, names in found.items() if fits(len(names))]
    if len(fitting) != 1:
        raise ValueError(
            f"{path} has these lists of strings: {listed}; name the model's, as {path.name}:NAME."
        )
    return fitting[0], found[fitting[0]]


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
    found = list(lists_of_names(content))
    if not found:
        raise ValueError("it holds no list of names")
    return next((names for names in found if len(names) == classes), found[0])


def lists_of_names(content: Any, depth: int = 0) -> Iterator[Sequence[str] | dict[int, str]]:
    """Lists of strings in plain data, and strings by number, outermost first."""
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
                yield from lists_of_names(value, depth + 1)
