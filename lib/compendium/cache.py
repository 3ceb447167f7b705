"""Computed once and kept in files: trainings, scans and encoded corpora, below `data/processed`.

`cache.keep(compute, *arguments, label=...)` returns `compute(*arguments)`. It is read where the
same function was called before with equal arguments and by the same code. Code means the folders
and files below `lib/` that the cache names; comments and docstrings do not count.

An entry is a file `LABEL-KEY.joblib`, which runs code when it is read, as every pickle does: it is
this machine's own. `LABEL.json` points at the entry made or read last, which `recall` returns.
Everything here may be deleted at any time.
"""

import ast
import functools
import hashlib
import json
import logging
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from compendium.paths import LIB
from softgeom.writing import whole, write_text

logger = logging.getLogger("softgeom")

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])


def while_unchanged(read: _F) -> _F:
    """A function of a file whose answers are kept in memory until the file changes on disk."""

    @functools.cache
    def kept(path: Path, _changed: int, *more: Any) -> Any:
        return read(path, *more)

    def ask(path: Path, *more: Any) -> Any:
        return kept(path, path.stat().st_mtime_ns, *more)

    return cast(_F, functools.wraps(read)(ask))


@dataclass(frozen=True)
class Cache:
    """A folder for computed things, made by the named code below `lib/`."""

    folder: Path
    code: tuple[str, ...]  # such as ("papers/margins", "compendium/models/arms.py")

    def keep(
        self, compute: Callable[..., _T], *arguments: Any, label: str, resumes: bool = False
    ) -> _T:
        """`compute(*arguments)`, read where it is kept. Equal arguments must give equal results.
        With `resumes`, `compute` takes a keyword `checkpoint`: a path for its state, so that a run
        that was killed goes on. OSError when the folder cannot be written; nothing half-written
        stays.
        """
        import joblib

        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", label):
            raise ValueError(f"the label {label!r} must consist of letters, digits and . - _")
        code, function = self._code(), f"{compute.__module__}.{compute.__qualname__}"
        said = f"{function} {joblib.hash(arguments, hash_name='sha1')} {code}"
        key = hashlib.sha256(said.encode()).hexdigest()[:16]
        entry = self.folder / f"{label}-{key}.joblib"
        thing = _read(entry)
        if thing is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            checkpoint = entry.with_suffix(".checkpoint")
            thing = compute(*arguments, **({"checkpoint": checkpoint} if resumes else {}))
            with whole(entry) as fresh:
                joblib.dump(thing, fresh)
            if checkpoint.is_dir():
                shutil.rmtree(checkpoint)
            checkpoint.unlink(missing_ok=True)
        pointer = {"entry": entry.name, "code": code}
        write_text(self.folder / f"{label}.json", json.dumps(pointer) + "\n")
        return thing

    def recall(self, label: str, maker: str) -> Any:
        """What the notebook `maker` kept last under a label. FileNotFoundError when there is none,
        or the code that made it has changed.
        """
        pointer, where = self.folder / f"{label}.json", f"{self.folder.name}/{label}"
        if not pointer.is_file():
            raise FileNotFoundError(f"{where} is not kept: run notebook {maker} first.")
        kept = json.loads(pointer.read_text("utf-8"))
        if kept.get("code") != self._code():
            raise FileNotFoundError(f"{where} was made by other code: run notebook {maker} again.")
        thing = _read(self.folder / kept["entry"])
        if thing is None:
            raise FileNotFoundError(f"{where} is missing: run notebook {maker} again.")
        return thing

    def _code(self) -> str:
        places = [LIB / name for name in self.code]
        files = [f for p in places for f in (sorted(p.rglob("*.py")) if p.is_dir() else [p])]
        return hashlib.sha256("".join(map(_meaning, files)).encode()).hexdigest()[:16]


def _read(entry: Path) -> Any:
    """What an entry holds; None where there is none, or a damaged one, which goes."""
    import joblib

    try:
        return joblib.load(entry) if entry.is_file() else None
    except Exception as error:  # a damaged file can raise anything
        told = "%s cannot be read (%s: %s) and is computed again"
        logger.warning(told, entry.name, type(error).__name__, error)
        entry.unlink()
        return None


@while_unchanged
def _meaning(path: Path) -> str:
    """A hash of what a Python file says to the machine: no comments, no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return f"{path.name} {hashlib.sha256(ast.dump(tree).encode()).hexdigest()}\n"
