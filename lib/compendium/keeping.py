"""What takes long is computed once and kept, under a key of its inputs, its parameters and the code
that computes it.

`shelf.keep(compute, *arguments, label=...)` returns `compute(*arguments)`: read where the same code
computed it from the same arguments, else computed and written. The key covers function and
arguments (by their content), the code of the function's module, of its arguments' classes and of
everything in `lib/` that they import, and the versions of the packages which that code imports.

An entry is a folder `LABEL-KEY` with what the shelf's `write` made and `made.json`: from what, by
which code, and the files' hashes. It appears complete or not at all; one that is damaged is set
aside and computed again. `LABEL.json` points at the entry made or read last, which `recall`
returns. Everything here may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from compendium.making import Making, changed_code
from softgeom.writing import set_aside, sync, write_text

logger = logging.getLogger("softgeom")

_T = TypeVar("_T")
# a file to which every reading and computing adds a line, workers' too
_LOG = "SOFTGEOM_KEEPING_LOG"


@dataclass(frozen=True)
class Shelf(Generic[_T]):
    """A place for computed things of one kind."""

    folder: Path
    write: Callable[[Path, Any], None]  # (folder, thing) -> None
    read: Callable[[Path], _T]  # folder -> thing

    def keep(
        self, compute: Callable[..., _T], *arguments: Any, label: str, resumes: bool = False
    ) -> _T:
        """`compute(*arguments)`, read where it is kept. `compute` is a function of a module in
        `lib/` to which equal arguments give equal results; `label` names the entry for readers.
        With `resumes` it takes a keyword `checkpoint`: a path for its state, which carries the key,
        so that a run that was killed goes on.

        TypeError when an argument cannot be described by its content; OSError when the folder
        cannot be written, where nothing half-written stays.
        """
        making = Making.of(compute, arguments)
        entry = self._entry(label, making.key)
        if late := making.changed_since_start():
            told = "%s: %s changed after this process started: computed, and not kept"
            logger.warning(told, label, late)
            return compute(*arguments, checkpoint=None) if resumes else compute(*arguments)
        if self._intact(entry):
            self._point(label, entry, "read")
            return self.read(entry)
        if reason := self._why(label, making):
            logger.warning("%s: computed again, since %s", label, reason)
        if not resumes:
            thing = compute(*arguments)
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            checkpoint = self.folder / f"{entry.name}.checkpoint"
            thing = compute(*arguments, checkpoint=checkpoint)
            checkpoint.unlink(missing_ok=True)
        self._put(entry, thing, making)
        self._point(label, entry, "computed")
        return self.read(entry)

    def recall(self, label: str, maker: str) -> _T:
        """What was kept last under a label by the notebook `maker`. FileNotFoundError when there is
        none, it is damaged, or the code that made it has changed.
        """
        pointer = self.folder / f"{label}.json"
        where = f"{self.folder.name}/{label}"
        if not pointer.is_file():
            raise FileNotFoundError(f"{where} is not kept: run notebook {maker} first.")
        entry = self._entry(label, json.loads(pointer.read_text(encoding="utf-8"))["key"])
        if not self._intact(entry):
            raise FileNotFoundError(f"{where} is missing or damaged: run notebook {maker} again.")
        if changed := changed_code(_made(entry)["code"]):
            now = f"other code than {', '.join(changed)} is now"
            raise FileNotFoundError(f"{where} was made by {now}: run notebook {maker} again.")
        self._point(label, entry, "read")
        return self.read(entry)

    def _entry(self, label: str, key: str) -> Path:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", label):
            raise ValueError(f"the label {label!r} must consist of letters, digits and . - _")
        return self.folder / f"{label}-{key}"

    def _intact(self, entry: Path) -> bool:
        """Whether an entry is there and as it was written; a damaged one is set aside."""
        if not entry.is_dir():
            return False
        if (damage := _damage(entry)) is None:
            return True
        where, aside = f"{self.folder.name}/{entry.name}", set_aside(entry)
        logger.warning("%s is damaged (%s): set aside as %s", where, damage, aside.name)
        return False

    def _put(self, entry: Path, thing: _T, making: Making) -> None:
        aside = entry.with_name(f".{entry.name}.{os.getpid()}.part")
        try:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            self.write(aside, thing)
            made = sorted(aside.iterdir())
            files = {path.name: [path.stat().st_size, _sha256(path)] for path in made}
            write_json(aside / "made.json", making.described() | {"files": files})
            for path in (*aside.iterdir(), aside):
                sync(path)
            try:
                aside.rename(entry)
            except OSError:
                if not entry.is_dir():
                    raise  # otherwise another process has just made the same
            sync(entry.parent)
        except OSError as error:
            said = f"{entry.name} could not be kept in {entry.parent} ({error.strerror})"
            raise OSError(error.errno, f"{said}; what was kept before is untouched") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _point(self, label: str, entry: Path, how: str) -> None:
        key, pointer = entry.name[len(label) + 1 :], self.folder / f"{label}.json"
        if not pointer.is_file() or json.loads(pointer.read_text(encoding="utf-8")) != {"key": key}:
            write_json(pointer, {"key": key})
        if log := os.environ.get(_LOG):
            name = f"{self.folder.name}/{entry.name}"
            with open(log, "a", encoding="utf-8") as file:
                print(
                    json.dumps({"entry": name, "how": how, "code": _made(entry)["code"]}), file=file
                )

    def _why(self, label: str, making: Making) -> str:
        """What changed since the same was computed; empty when it was not, or nothing did."""
        pattern = re.compile(re.escape(label) + r"-[0-9a-f]{16}")
        made = [path for path in self.folder.glob(f"{label}-*") if pattern.fullmatch(path.name)]
        made = [path for path in made if (path / "made.json").is_file()]
        now = making.described()
        for before in map(_made, sorted(made, key=lambda path: -path.stat().st_mtime)):
            if before["arguments"] == now["arguments"]:
                for part in ("code", "packages"):
                    old, new = before[part], now[part]
                    both = sorted(old.keys() | new.keys())
                    if changed := [key for key in both if old.get(key) != new.get(key)]:
                        return f"{part} changed: {', '.join(changed)}"
        return ""


def write_json(path: Path, content: Any) -> None:
    """Write JSON in one step: whoever reads sees the old file or the new one."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _made(entry: Path) -> dict[str, Any]:
    return json.loads((entry / "made.json").read_text(encoding="utf-8"))


def _damage(entry: Path) -> str | None:
    try:
        files = _made(entry)["files"]
        for name, (size, digest) in files.items():
            if (entry / name).stat().st_size != size:
                return f"{name} has another size"
            if _sha256(entry / name) != digest:
                return f"{name} has another content"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}".replace(f"{entry}/", "")
    return None


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
