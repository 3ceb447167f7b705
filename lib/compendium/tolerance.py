"""Results that are equal but for rounding: a rerun on another machine of the same kind leaves the
committed files as they are.

Another processor, or another BLAS, moves the last digits of a sum. So a fresh table, record or
picture replaces the one that is there only where it differs by more. What a stopped search or
single precision leaves of a zero is larger: such a notebook says how large (`book.noise = 1e-8`).
"""

import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softgeom.writing import write_text

# what counts as rounding: far above float64's, far below anything that a reader sees
RELATIVE, ABSOLUTE = 1e-6, 1e-9
# of 255: antialiasing moves with the last digits of a coordinate, a changed digit by ten times that
_SHADE = 24
_OF_THE_MACHINE = {"versions", "device"}  # of a record: where it was made, not what was found
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")


def same_table(old: str, new: str, noise: float = ABSOLUTE) -> bool:
    """Whether two CSV texts hold the same columns, texts and, up to rounding, numbers."""
    a, b = (pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False) for text in (old, new))
    if list(a.columns) != list(b.columns) or a.shape != b.shape:
        return False
    return same(a.to_numpy().ravel().tolist(), b.to_numpy().ravel().tolist(), noise)


def same_record(old: str, new: str, noise: float = ABSOLUTE) -> bool:
    """Whether two `record.json` say the same up to rounding, wherever they were made."""
    found = [json.loads(text) for text in (old, new)]
    for said in found:
        for claim in said.get("claims", []):  # its numbers are the evidence's, cut to fewer digits
            claim["says"] = _NUMBER.sub("", claim["says"])
    a, b = ({k: v for k, v in said.items() if k not in _OF_THE_MACHINE} for said in found)
    return same(a, b, noise)


def same(old: Any, new: Any, noise: float = ABSOLUTE) -> bool:
    """Whether two values are equal, numbers, also inside mappings, lists and texts, up to `noise`,
    which is relative to numbers above one, and up to a relative rounding.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        return list(old) == list(new) and all(same(old[key], new[key], noise) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        pairs = zip(old, new, strict=False)
        return len(old) == len(new) and all(same(*pair, noise) for pair in pairs)
    if isinstance(old, str) and isinstance(new, str):
        a, b = _NUMBER.split(old), _NUMBER.split(new)
        numbers = zip(a[1::2], b[1::2], strict=False)
        return old == new or (a[::2] == b[::2] and all(_same_digits(*n, noise) for n in numbers))
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, int | float) and isinstance(new, int | float):
        return _near(old, new, noise)
    return old == new


def same_picture(old: Path, new: Path) -> bool:
    """Whether two PNG files show the same, with the same title, alternative text, parameters."""
    from PIL import Image

    with Image.open(old) as a, Image.open(new) as b:
        facts = [dict(sorted(picture.info.items(), key=str)) for picture in (a, b)]
        if a.size != b.size or a.mode != b.mode or not same(facts[0], facts[1]):
            return False
        apart = np.abs(np.asarray(a, dtype=int) - np.asarray(b, dtype=int))
        return bool(apart.max(initial=0) <= _SHADE)


def write(path: Path, text: str, noise: float = ABSOLUTE) -> None:
    """Write a table (CSV) or a record (JSON) unless the file says the same up to rounding."""
    equal = same_table if path.suffix == ".csv" else same_record
    try:
        unchanged = path.is_file() and equal(path.read_text(encoding="utf-8"), text, noise)
    except ValueError:  # what is there cannot be read: it is replaced
        unchanged = False
    if not unchanged:
        write_text(path, text)


def move_pictures(fresh: list[Path], folder: Path) -> None:
    """Move a figure's files, the PNG first, into their folder, unless they show what is there."""
    folder.mkdir(parents=True, exist_ok=True)
    there = [folder / path.name for path in fresh]
    if not (all(path.is_file() for path in there) and same_picture(there[0], fresh[0])):
        for path in fresh:
            shutil.move(path, folder / path.name)


def _same_digits(old: str, new: str, noise: float) -> bool:
    if not any(mark in old + new for mark in ".eE"):
        return old == new  # counts agree exactly
    return _near(float(old), float(new), noise)


def _near(old: float, new: float, noise: float) -> bool:
    if isinstance(old, int) and isinstance(new, int):
        return old == new
    size = max(abs(old), abs(new))
    return old == new or abs(old - new) <= noise * max(1, size) + RELATIVE * size
