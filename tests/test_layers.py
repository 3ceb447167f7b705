"""Imports go one way: softgeom <- papers <- compendium <- classroom, notebooks. The papers never
import each other, and inside softgeom what certifies imports nothing that searches.
"""

import ast
import subprocess
import sys
from functools import cache

import pytest

PAPERS = {"bottleneck", "margins", "circuits", "hardmax"}
# package -> what stands above it or beside it, which it never imports
FORBIDDEN = {
    "softgeom": {"papers", "compendium", "classroom"},
    "papers": {"compendium", "classroom"},
    "compendium": {"classroom"},
    "classroom": {"compendium"},
}
# what certifies, and all of softgeom that it may import
TRUSTED = tuple(
    f"softgeom.{name}"
    for name in (
        *("arrays", "ceiling.bound", "certifying", "scaling"),
        *("verdict_table", "features", "layer", "plugins", "readout", "rounding", "threads"),
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


def _modules(repository, package):
    folder = repository / ("scanner/src" if package == "softgeom" else "lib")
    for path in sorted((folder / package).rglob("*.py")):
        yield ".".join(path.relative_to(folder).with_suffix("").parts), path


@pytest.mark.parametrize("package", FORBIDDEN)
def test_packages_import_only_what_is_below_them(repository, package):
    for name, path in _modules(repository, package):
        wrong = {other.partition(".")[0] for other in _imports(path)} & FORBIDDEN[package]
        assert not wrong, f"{name} imports {wrong}"


def test_papers_do_not_import_each_other(repository):
    for name, path in _modules(repository, "papers"):
        part = name.split(".")[1]
        names = {n.split(".")[1] for n in _imports(path) if n.startswith("papers.")} - {part}
        assert part == "explorers" or not names & (PAPERS | {"explorers"}), f"{name}: {names}"


def test_what_certifies_imports_nothing_that_searches(repository):
    for name, path in _modules(repository, "softgeom"):
        if name.startswith(TRUSTED):
            ours = {n for n in _imports(path, typing=False) if n.startswith("softgeom.")}
            others = {other for other in ours if not other.startswith(TRUSTED)}
            assert not others, f"{name} imports {others}, which nobody has to trust"


@pytest.mark.parametrize(
    ("part", "package", "extra"),
    [
        ("from papers import circuits", "torch", "train"),
        ("from papers.language_model import generate", "tokenizers", "train"),
        ("from papers.explorers import FoldExplorer", "anywidget", "lessons"),
    ],
)
def test_an_import_without_its_extra_says_which_extra(part, package, extra):
    script = f"import sys; sys.modules[{package!r}] = None\n{part}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f": pip install -e '.[{extra}]' in the clone." in done.stderr.splitlines()[-1]


TORCH = {"torch", "matplotlib", "transformers"}
NUMERICS = TORCH | {"numpy", "pandas", "scipy", "highspy", "joblib", "huggingface_hub"}
HELP = "import contextlib, softgeom.cli\nwith contextlib.suppress(SystemExit):\n    "
HELP += "softgeom.cli.main(['--help'])"
PARTS = "import papers.explorers as e, papers.bottleneck, papers.hardmax, papers.margins.jacobian\n"
PARTS += "import softgeom.commands.scan; e.page('softmax')"
LIGHT = {"import softgeom; dir(softgeom)": NUMERICS, HELP: NUMERICS, PARTS: TORCH | {"anywidget"}}


@pytest.mark.parametrize(("script", "heavy"), LIGHT.items())
def test_what_is_light_imports_nothing_heavy(script, heavy):
    script += f"\nimport sys\nassert not {heavy} & set(sys.modules), set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
