"""The import rule: softgeom <- compendium <- classroom, notebooks; inside softgeom leaves <-
chapters <- explorers, command line.
"""

import ast
import json
import subprocess
import sys
from functools import cache

import pytest

CHAPTERS = {"bottleneck", "margins", "circuits", "hardmax"}
# may import every chapter; nobody in softgeom imports them
ABOVE = {"explorers", "commands", "cli"}
HOUSES = {
    "softgeom": {"compendium", "classroom"},
    "compendium": {"classroom"},
    "classroom": {"compendium"},
}  # what each must not import
# what certifies, and all of softgeom that it may import
TRUSTED = tuple(
    f"softgeom.{name}"
    for name in (
        *("arrays", "bottleneck.ceilings.bound", "bottleneck.certifying", "bottleneck.scaling"),
        *("bottleneck.verdict_table", "features", "layer", "readout", "rounding", "threads"),
        "writing",
    )
)


@cache
def _imports(path, *, typing: bool = True) -> set[str]:
    """Every dotted module that a file imports, at any depth of the code, for annotations or not."""
    found, tree = set(), ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not typing and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body.clear()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _chapters(names: set[str]) -> set[str]:
    """Second component of every `softgeom.x` among the names."""
    return {name.split(".")[1] for name in names if name.startswith("softgeom.")}


def _modules(repository, house):
    package = repository / "lib" / house
    for path in sorted(package.rglob("*.py")):
        yield path, path.relative_to(package).parts[0].removesuffix(".py")


@pytest.mark.parametrize("house", HOUSES)
def test_houses_stand_on_each_other_in_one_order(repository, house):
    for path, _ in _modules(repository, house):
        above = {name.partition(".")[0] for name in _imports(path)} & HOUSES[house]
        assert not above, f"{path} imports {above}, which stands above it"


def test_chapters_do_not_import_each_other(repository):
    for path, part in _modules(repository, "softgeom"):
        imported = _chapters(_imports(path)) - {part}
        if part in ABOVE or (path.parent.name == "softgeom" and part == "__init__"):
            continue
        assert not imported & ABOVE, f"{path} imports {imported & ABOVE}, which stands above it"
        assert not imported & CHAPTERS, f"{path} imports the chapter {imported & CHAPTERS}"


def test_what_certifies_imports_nothing_that_searches(repository):
    for path, _ in _modules(repository, "softgeom"):
        name = ".".join(path.relative_to(repository / "lib").with_suffix("").parts)
        if name.startswith(TRUSTED):
            ours = {n for n in _imports(path, typing=False) if n.startswith("softgeom.")}
            others = {name for name in ours if not name.startswith(TRUSTED)}
            assert not others, f"{path} imports {others}, which nobody has to trust"


def test_the_library_knows_no_folder_of_the_clone(repository):
    for path, _ in _modules(repository, "softgeom"):
        text = path.read_text(encoding="utf-8")
        for folder in ("notebooks/", "data/processed", "data/raw", "results/", "Makefile"):
            assert folder not in text, f"{path} names {folder}, a folder of the clone"


def test_the_rule_sees_through_every_form_of_import(tmp_path):
    path = tmp_path / "module.py"
    late = "def f():\n    from papers.hardmax.dynamics import x\n"
    path.write_text(f"import papers.margins\nfrom softgeom import circuits\n{late}")
    assert _chapters(_imports(path)) == {"margins", "circuits", "hardmax"}


TORCH = {"torch", "matplotlib", "transformers"}
NUMERICS = TORCH | {"numpy", "pandas", "scipy", "highspy", "joblib", "huggingface_hub"}
# One process does all of it in this order; what it may not have imported by then.
LIGHT = {
    "import softgeom; dir(softgeom)": NUMERICS,
    "command('--version')": NUMERICS,
    "command('--help')": NUMERICS,
    "command('completion', 'bash')": NUMERICS,
    "command('scann')": NUMERICS,
    "import papers.explorers as e; e.page('softmax')": TORCH | {"anywidget"},
    "import softgeom.bottleneck": TORCH,
    "import papers.hardmax": TORCH,
    "import papers.margins.jacobian": TORCH,
    "import softgeom.commands.scan": TORCH,
}
RUN_LIGHT = """
import contextlib, io, json, sys

def command(*words):
    from softgeom.cli import main
    with contextlib.suppress(SystemExit):
        main(words)

found = []
for step in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        exec(step)
    found.append(sorted({name.partition(".")[0] for name in sys.modules}))
print(json.dumps(found))
"""


def test_what_is_light_imports_nothing_heavy():
    command = [sys.executable, "-c", RUN_LIGHT]
    said = subprocess.check_output(command, input=json.dumps([*LIGHT]), text=True)
    for (step, heavy), imported in zip(LIGHT.items(), json.loads(said), strict=True):
        assert not heavy & set(imported), step
