"""What decides a computed thing and, hashed, is its key: function, arguments, code, packages."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from compendium import codebase

_STARTED = time.time()  # code that changes on disk after this is not the code that runs


@dataclass(frozen=True)
class Making:
    """Everything that decides what a computation gives."""

    function: str
    arguments: dict[str, Any]
    code: dict[str, str]  # module -> hash
    packages: dict[str, str]  # package -> version

    @classmethod
    def of(cls, compute: Callable[..., Any], arguments: tuple[Any, ...]) -> Making:
        module = compute.__module__
        if codebase.find(module) is None:
            raise TypeError(
                f"{compute.__qualname__}: what is kept must be computed by a module in lib/, whose "
                f"code is known, not by {module}"
            )
        names = list(inspect.signature(compute).parameters)
        described = {name: describe(value) for name, value in zip(names, arguments, strict=False)}
        paths = codebase.reached({module, *_modules_of(arguments)})
        code = {name: codebase.digest(path) for name, path in paths.items()}
        packages = _versions(frozenset(paths.values()))
        return cls(f"{module}.{compute.__qualname__}", described, code, packages)

    @property
    def key(self) -> str:
        text = json.dumps(self.described(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def described(self) -> dict[str, Any]:
        return dict(vars(self))

    def changed_since_start(self) -> str:
        """A loaded module whose file is younger than this process; empty when there is none."""
        loaded = ((name, codebase.find(name)) for name in self.code if name in sys.modules)
        return next((name for name, file in loaded if file and file.stat().st_mtime > _STARTED), "")


def describe(value: Any) -> Any:
    """What JSON can hold of a value: itself, or type, size and SHA-256 where it is long. TypeError
    for what has no content to describe (a path, a function) and no method `fingerprint`.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        long = f"text of {len(value)} characters, {_hash(value.encode())}"
        return value if len(value) <= 200 else long
    if isinstance(value, np.generic):
        return describe(value.item())
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"{value.dtype} {value.shape}, {_hash(np.ascontiguousarray(value).tobytes())}"
    if is_dataclass(value) and not isinstance(value, type):
        described = {f.name: describe(getattr(value, f.name)) for f in fields(value)}
        return {"class": type(value).__qualname__} | described
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    if isinstance(value, dict):
        return {str(key): describe(item) for key, item in value.items()}
    if hasattr(value, "fingerprint"):
        return f"{type(value).__name__} {value.fingerprint()}"
    raise TypeError(f"a {type(value).__name__} cannot be part of a key, which tells its content")


def changed_code(code: dict[str, str]) -> list[str]:
    """Modules whose code is no longer what it was: given module -> hash."""
    now = ((module, codebase.find(module)) for module in code)
    return [name for name, path in now if path is None or codebase.digest(path) != code[name]]


def _modules_of(value: Any) -> set[str]:
    """Modules that define the classes of dataclasses in an argument, at any depth."""
    if is_dataclass(value) and not isinstance(value, type):
        return {type(value).__module__}.union(
            *(_modules_of(getattr(value, f.name)) for f in fields(value))
        )
    if isinstance(value, list | tuple):
        return set().union(*map(_modules_of, value))
    return set().union(*map(_modules_of, value.values())) if isinstance(value, dict) else set()


@functools.cache
def _versions(paths: frozenset[Path]) -> dict[str, str]:
    names, packages = codebase.foreign(paths), metadata.packages_distributions()
    found = {"python": f"{sys.version_info[0]}.{sys.version_info[1]}"}
    for distribution in sorted({packages[name][0] for name in names if name in packages}):
        found[distribution] = metadata.version(distribution).partition("+")[0]
    return found


def _hash(content: bytes) -> str:
    return f"sha256 {hashlib.sha256(content).hexdigest()}"
