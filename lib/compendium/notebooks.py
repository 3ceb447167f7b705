"""Notebooks as text: their cells, their parameters, and the calls in their code."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def cells(notebook: Path, kind: str = "code") -> dict[int, str]:
    """The text of a notebook's cells of a kind (`code`, `markdown`) by their numbers, from 1."""
    found = enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"], start=1)
    return {n: "".join(cell["source"]) for n, cell in found if cell["cell_type"] == kind}


def in_order(notebook: Path) -> list[tuple[str, str]]:
    """Kind (`code`, `markdown`) and text of each cell."""
    found = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in found]


def parameter_defaults(notebook: Path) -> dict[str, Any]:
    """Names and default values in the cell tagged `parameters`, read as literals."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if "parameters" not in cell["metadata"].get("tags", []):
            continue
        found: dict[str, Any] = {}
        for statement in ast.parse("".join(cell["source"])).body:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=key), value=ast.expr() as value):
                    found[key] = ast.literal_eval(value)
                case ast.Assign(targets=[ast.Name(id=key)], value=value):
                    found[key] = ast.literal_eval(value)
        return found
    return {}


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
                first = _text(node.args[0]) if node.args else None
                yield name, first, {keyword.arg: keyword.value for keyword in node.keywords}


def _text(node: ast.AST) -> str | None:
    """The text that a literal holds; None for anything else."""
    held = node.value if isinstance(node, ast.Constant) else None
    return held if isinstance(held, str) else None
