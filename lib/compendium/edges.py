"""What each notebook needs, derived from its code: the edges of the graph that `make all` runs.

* every module of `lib/` that it reaches through imports (`compendium.codebase`);
* every file of `data/reference` whose name it or one of those modules writes down, patterns and
  f-strings included, and of `results/bench` that is written down with this folder;
* every notebook whose results it reads: the name in a `load_...` or `find_results`, the maker in a
  `recall` of a module that it reaches; a computed name stands for all other notebooks;
* the folder of raw data, when the notebook or a module that it reaches looks for anything there.

`python -m compendium edges` draws the graph, and with `--check` compares it with what executed
notebooks were seen to read.
"""

from __future__ import annotations

import ast
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
    """Prerequisites of one notebook; ValueError when there is none of that name."""
    names = _names(root)
    if name not in names:
        raise ValueError(f"there is no notebook {name!r}; there are {', '.join(names)}")
    tree = codebase.parse(root / "notebooks" / f"{name}.ipynb")
    modules = codebase.reached(codebase.imported(tree))
    files = {module.relative_to(codebase.LIB.parent).as_posix() for module in modules.values()}
    for module in modules:
        for pattern in _FILES_OF.get(module, ()):
            files |= {found.relative_to(root).as_posix() for found in root.glob(pattern)}
    for pattern in _texts(tree).union(*(_named_files(module) for module in modules.values())):
        folder = root if pattern.startswith(_BENCH) else root / "data" / "reference"
        files |= {found.relative_to(root).as_posix() for found in folder.glob(pattern)}
    named = {read for _, read, _ in codebase.calls(tree, *_READERS)}
    read = set(names) if None in named else set(names) & named
    read = read.union(*(_makers(module, names) for module in modules.values()))
    looking = (codebase.parse(path) for module, path in modules.items() if module != _PATHS)
    looks = any(any(codebase.calls(one, *_FINDERS)) for one in (tree, *looking))
    return Needs(tuple(sorted(files)), tuple(sorted(read - {name})), looks)


def _names(root: Path) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (root / "notebooks").glob("[0-9]*.ipynb")))


@codebase.while_unchanged
def _makers(path: Path, names: tuple[str, ...]) -> set[str]:
    """Notebooks named as makers where a module recalls what they keep."""
    tree = codebase.parse(path)
    said = ast.walk(tree) if any(codebase.calls(tree, "recall")) else ()
    return {codebase.text_of(node) or "" for node in said} & set(names)


@codebase.while_unchanged
def _named_files(path: Path) -> set[str]:
    return _texts(codebase.parse(path))


def _texts(tree: ast.Module) -> set[str]:
    """Names of data files among the texts of the code; what an f-string computes becomes `*`, and
    `*.csv` alone says too little.
    """
    found = set()
    for node in ast.walk(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(codebase.text_of(part) or "*" for part in parts)
        stem = text.rpartition("/")[2]
        data = stem.endswith((".csv", ".yaml", ".json"))
        if data and (stem[0] not in "*." or "reference/" in text):
            found.add(text if text.startswith(_BENCH) else stem)
    return found
