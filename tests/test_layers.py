"""The import rule: leaves <- chapters <- explorers, compendium; chapters do not import each other."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

CHAPTERS = {"bottleneck", "margins", "circuits", "hardmax"}
ABOVE = {"explorers", "lessons", "compendium", "cli"}  # may import everything; nobody imports them


def _imports(path) -> set[str]:
    """Second component of every `softgeom.x` that a file imports, at any depth of the code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "softgeom":
            names = [f"softgeom.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [node.module]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("softgeom.")}
    return found


def _modules(repository):
    package = repository / "lib" / "softgeom"
    for path in sorted(package.rglob("*.py")):
        part = path.relative_to(package).parts[0].removesuffix(".py")
        yield path, part


def test_imports_go_one_way(repository):
    for path, part in _modules(repository):
        imported = _imports(path) - {part}
        if part in ABOVE:
            continue
        assert not imported & ABOVE, f"{path} imports {imported & ABOVE}, which stands above it"
        assert not imported & CHAPTERS, f"{path} imports the chapter {imported & CHAPTERS}"


def test_the_rule_sees_through_every_form_of_import(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "import softgeom.margins\nfrom softgeom import circuits\ndef f():\n    from softgeom.hardmax.dynamics import x\n"
    )
    assert _imports(path) == {"margins", "circuits", "hardmax"}


@pytest.mark.parametrize(
    "module", ["softgeom.bottleneck", "softgeom.hardmax", "softgeom.margins.jacobian", "softgeom.cli"]
)
def test_light_modules_do_without_torch_and_matplotlib(module):
    code = (
        f"import sys; import {module}; print([m for m in ('torch', 'matplotlib', 'transformers') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
