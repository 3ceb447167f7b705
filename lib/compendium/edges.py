"""What each notebook needs, derived from its code: the edges of the graph that `make all` runs.

* every module of `lib/` that it reaches through imports (`compendium.codebase`);
* every file of `data/reference` whose name it or one of those modules writes down, patterns and
  f-strings included, and of `results/bench` that is written down with this folder;
* every notebook whose results it reads: by the name in `load_table`, `load_record`, `load_sources`,
  `find_results`, and by the name of the maker in a `recall` of a module that it reaches; a name
  that is computed (`load_record(name, ...)`) stands for all other notebooks;
* the folder of raw data, when the notebook or a module that it reaches looks for anything there.

`python -m compendium edges` draws the graph, and with `--check` compares it with what executed
notebooks were seen to read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from compendium import codebase

_READERS = {"load_table", "load_record", "load_sources", "find_results"}
_PATHS = "compendium.paths"
_BENCH = "results/bench/"  # measured by benchmarks/, named with its folder
_FINDERS = {"find_data", "data_dir"}  # of raw data
_FILES_OF = {"compendium.findings": ("claims/*.yaml",)}  # what a module reads beyond data/reference


@dataclass(frozen=True)
class Needs:
    """Prerequisites of one notebook."""

    files: tuple[str, ...]  # relative to the top folder: modules and reference data
    notebooks: tuple[str, ...]  # whose results are read
    raw_data: bool = False  # whether it looks for raw data


def derive(root: Path) -> dict[str, Needs]:
    """Prerequisites of every numbered notebook below a top folder."""
    return {name: needs_of(root, name) for name in _names(root)}


def needs_of(root: Path, name: str) -> Needs:
    """Prerequisites of one of them; ValueError when there is no such notebook."""
    names = _names(root)
    if name not in names:
        raise ValueError(f"there is no notebook {name!r}; there are {', '.join(names)}")
    tree = codebase.parse(root / "notebooks" / f"{name}.ipynb")
    modules = codebase.reached(codebase.imported(tree))
    files = {module.relative_to(codebase.LIB.parent).as_posix() for module in modules.values()}
    for module in modules:
        for pattern in _FILES_OF.get(module, ()):
            files |= {found.relative_to(root).as_posix() for found in root.glob(pattern)}
    for pattern in set(_texts(tree)).union(*(_named_files(module) for module in modules.values())):
        folder = root if pattern.startswith(_BENCH) else root / "data" / "reference"
        files |= {found.relative_to(root).as_posix() for found in folder.glob(pattern)}
    read = _read_by(tree, names) | set().union(
        *(_makers(module, names) for module in modules.values())
    )
    looking = (codebase.parse(path) for module, path in modules.items() if module != _PATHS)
    looks = any(any(codebase.calls(one, *_FINDERS)) for one in (tree, *looking))
    return Needs(tuple(sorted(files)), tuple(sorted(read - {name})), looks)


def _names(root: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (root / "notebooks").glob("[0-9]*.ipynb")))


def _read_by(tree: ast.Module, known: tuple[str, ...]) -> set[str]:
    named = {name for _, name, _ in codebase.calls(tree, *_READERS)}
    return set(known) if None in named else set(known) & named


@codebase.while_unchanged
def _makers(path: Path, names: tuple[str, ...]) -> set[str]:
    """Notebooks named as makers where a module recalls what they keep."""
    tree = codebase.parse(path)
    if not any(codebase.calls(tree, "recall")):
        return set()
    return set(filter(None, map(codebase.text_of, ast.walk(tree)))) & set(names)


@codebase.while_unchanged
def _named_files(path: Path) -> frozenset[str]:
    return frozenset(_texts(codebase.parse(path)))


def _texts(tree: ast.Module) -> Iterable[str]:
    """Names of data files among the texts of the code; what an f-string computes becomes `*`, and
    `*.csv` alone says too little.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        stem = text.rpartition("/")[2]
        if stem.endswith((".csv", ".yaml", ".json")) and (
            stem[0] not in "*." or "reference/" in text
        ):
            yield text if text.startswith(_BENCH) else stem
