"""The code behind a computation: the modules of this repository that it reaches through imports,
hashed without their prose.

Imports are read at any depth and followed inside `lib/`. A name imported from a package is followed
to the module that defines it, so that one name of a chapter does not stand for the whole chapter.
Comments, docstrings and layout do not count.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

LIB = Path(__file__).resolve().parent.parent

_F = TypeVar("_F", bound=Callable[..., Any])


def while_unchanged(read: _F) -> _F:
    """A function of a file whose answers are kept until the file changes on disk."""

    @functools.cache
    def kept(path: Path, _changed: int, *more: Any) -> Any:
        return read(path, *more)

    def ask(path: Path, *more: Any) -> Any:
        return kept(path, path.stat().st_mtime_ns, *more)

    return cast(_F, functools.wraps(read)(ask))


def find(module: str, lib: Path | None = None) -> Path | None:
    """The file of a module of this repository; None for any other."""
    base = (lib or LIB).joinpath(*module.split("."))
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file():
            return path
    return None


def reached(modules: Iterable[str], lib: Path | None = None) -> dict[str, Path]:
    """These modules and all that they reach through imports, by name, sorted."""
    found: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        path = find(module, lib)
        if path is None or module in found:
            continue
        found[module] = path
        waiting += _imported(path, lib, module)
    return dict(sorted(found.items()))


@while_unchanged
def _imported(path: Path, lib: Path | None, module: str) -> set[str]:
    return imported(
        parse(path), lib, module if path.name == "__init__.py" else module.rpartition(".")[0]
    )


def imported(tree: ast.Module, lib: Path | None = None, package: str = "") -> set[str]:
    """Modules of this repository that a syntax tree imports; `package` is what its relative imports
    start from.
    """
    found: set[str] = set()
    for node in _executed(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            found |= {_home(base, alias.name, lib) for alias in node.names}
    return {module for module in found if find(module, lib)}


def foreign(paths: Iterable[Path]) -> set[str]:
    """Top-level names of what files import from outside: `numpy`, and the standard library."""
    found: set[str] = set()
    for path in paths:
        for node in _executed(parse(path)):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return {name for name in found if find(name) is None}


@while_unchanged
def digest(path: Path) -> str:
    """Sixteen hexadecimal digits of what a Python file says to the machine."""
    # a tree of its own, since prose is cut out of it; to copy one takes five times as long
    tree = _read(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body
            if (
                body
                and isinstance(body[0], ast.Expr)
                and isinstance(getattr(body[0].value, "value", None), str)
            ):
                node.body = body[1:] or [ast.Pass()]
    return digest_of([ast.unparse(tree)])


def drawing_digest(notebook: Path) -> str:
    """Sixteen hexadecimal digits of the code that draws a notebook's figures: what it imports of
    drawing, and its own functions `draw_...` and `sketch_...`, prose left out.
    """
    tree = parse(notebook)
    drawing = {name: path for name, path in reached(imported(tree)).items() if ".drawing" in name}
    own = [
        ast.unparse(ast.Module(node.body[ast.get_docstring(node) is not None :], []))
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith(("draw", "sketch"))
    ]
    return digest_of([*own, *(f"{name} {digest(path)}" for name, path in drawing.items())])


def digest_of(lines: Iterable[str]) -> str:
    """Sixteen hexadecimal digits of some lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


@while_unchanged
def parse(path: Path) -> ast.Module:
    """The syntax tree of a module or of a notebook's code; shared, so to be left as it is."""
    return _read(path)


def _read(path: Path) -> ast.Module:
    notebook = path.suffix == ".ipynb"
    text = "\n".join(cells(path).values()) if notebook else path.read_text(encoding="utf-8")
    return ast.parse(text, filename=str(path))


def cells(notebook: Path, kind: str = "code") -> dict[int, str]:
    """The text of a notebook's cells of a kind (`code`, `markdown`) by their numbers, from 1."""
    found = enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"], start=1)
    return {n: "".join(cell["source"]) for n, cell in found if cell["cell_type"] == kind}


def calls(
    tree: ast.AST, *names: str
) -> Iterator[tuple[str, str | None, dict[str | None, ast.expr]]]:
    """Calls of functions or methods of such names: the name, the first argument where that is a
    text, and keywords, None for what a mapping gives.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
            if name in names:
                first = text_of(node.args[0]) if node.args else None
                yield name, first, {keyword.arg: keyword.value for keyword in node.keywords}


def text_of(node: ast.AST) -> str | None:
    """The text that an expression writes out; None for any other expression."""
    text = node.value if isinstance(node, ast.Constant) else None
    return text if isinstance(text, str) else None


def _executed(tree: ast.Module) -> Iterable[ast.AST]:
    """Every node but those below `if TYPE_CHECKING`, which never run."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    parts = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
    return ".".join([*parts, *([node.module] if node.module else [])])


def _home(package: str, name: str, lib: Path | None) -> str:
    """The module in which `from package import name` ends: a submodule, the module behind a
    re-export, or the package itself.
    """
    if find(f"{package}.{name}", lib):
        return f"{package}.{name}"
    path = find(package, lib)
    if path is None or path.name != "__init__.py":
        return package
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _home(_absolute(node, package), alias.name, lib)
        # a table of names that are imported when they are first asked for
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                where = (
                    value.value
                    if isinstance(value, ast.Constant) and isinstance(value.value, str)
                    else None
                )
                lazy = f"{package}.{where}" if where is not None else ""
                if isinstance(key, ast.Constant) and key.value == name and find(lazy, lib):
                    return lazy
    return package
