"""pyproject.toml, the lock and conda's environment say the same; every import is declared."""

import ast
import re
import sys
import tomllib
from collections import Counter

import pytest
import yaml

from compendium import packages

READER = ("lessons", "notebooks", "models", "ocr", "fast", "build")
MAINTAINERS = set("mypy ruff playwright transformers sphinx hypothesis pytest distributed".split())
# conda-forge's names (its playwright is the Node tool), and what pip installs into its environment
CONDA = {
    "torch": "pytorch",
    "huggingface-hub": "huggingface_hub",
    "flatbuffers": "python-flatbuffers",
}
CONDA |= {"playwright": "playwright-python", "fastjsonschema": "python-fastjsonschema"}
CONDA |= {"jupyter-client": "jupyter_client", "jupyter-core": "jupyter_core"}
NOT_ON_CONDA = {"gguf", "rapidocr-onnxruntime", "vadersentiment"}
# modules whose package has another name; dask comes with distributed
PACKAGE_OF = {"PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml", "dask": "distributed"}
PACKAGE_OF |= {"markdown_it": "markdown-it-py", "IPython": "ipython"}
# the scanner takes modules, trainers and figures of the caller's, and brings none of them
OF_THE_CALLER = {"torch", "matplotlib", "transformers", "lightning", "pytorch-lightning"}


@pytest.fixture(scope="module")
def workflows(repository):
    """The text of each workflow."""
    folder = repository / ".github" / "workflows"
    return {path.stem: path.read_text() for path in folder.glob("*.yml")}


@pytest.fixture(scope="module")
def lock(repository):
    return (repository / "requirements.lock").read_text()


def _names(lock: str) -> set[str]:
    return {name.lower() for name in re.findall(r"^([A-Za-z0-9_.-]+)==", lock, re.MULTILINE)}


def _imported(paths) -> set[str]:
    """The packages of others that files import, by the names of pyproject.toml."""
    paths = list(paths)
    known = {part for path in paths for part in (path.stem, path.parent.name)}
    found = Counter[str]()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                found[str(node.module).partition(".")[0]] += 1
    ours = {"softgeom", "papers", "compendium", "classroom", *known, *sys.stdlib_module_names}
    return {PACKAGE_OF.get(name, name).replace("_", "-") for name in found.keys() - ours}


def test_every_module_that_is_imported_is_declared(repository):
    every = set(packages.declared(None, repository))
    scanner = tomllib.loads((repository / "scanner" / "pyproject.toml").read_text())["project"]
    groups = [scanner["dependencies"], *scanner["optional-dependencies"].values()]
    own = {re.match(r"[\w.-]+", entry)[0] for group in groups for entry in group}
    assert _imported((repository / "scanner" / "src").rglob("*.py")) <= own | OF_THE_CALLER
    folders = ("lib", "tests", "scanner/tests", "scanner/tools", "scanner/benchmarks")
    assert _imported(p for name in folders for p in (repository / name).rglob("*.py")) <= every


def test_conda_installs_what_pyproject_declares(repository):
    wanted = packages.declared(None, repository)
    *conda, pip = yaml.safe_load((repository / "environment.yml").read_text())["dependencies"]
    *others, scanner, clone = pip["pip"]
    on_conda = {f"{CONDA.get(name, name)}{wanted[name]}" for name in wanted.keys() - NOT_ON_CONDA}
    assert set(conda) == {"python=3.11", "pip"} | on_conda
    assert set(others) == {f"{name}{wanted[name]}" for name in wanted.keys() & NOT_ON_CONDA}
    assert [scanner, clone] == ["-e ./scanner", "-e ."]


def test_every_dependency_is_locked_and_explained(repository, lock):
    wanted = set(packages.declared(None, repository))
    assert wanted - set(packages.OUTSIDE_THE_LOCK) <= _names(lock)
    assert "://" not in lock  # the index is the user's choice
    page = (repository / "docs" / "dependencies.md").read_text(encoding="utf-8").lower()
    assert not {name for name in wanted if f"`{name}`" not in page}


def test_a_reader_gets_no_maintainers_tools(repository, lock):
    parts = ((), ("lessons",), READER, (*READER, "dask", "report", "test", "lint"))
    whole, light, reader, every = (_names(packages.part(some, repository)) for some in parts)
    assert {"numpy", "highspy", "onnx"} <= whole < light < reader < every
    assert not MAINTAINERS & reader
    assert not {"datasets", "pyarrow", "numba", "papermill", "onnxruntime"} & light
    assert every == _names(lock)


def test_a_part_keeps_hashes_and_follows_what_packages_want(tmp_path):
    project = '[project]\ndependencies = ["softgeom"]\n[project.optional-dependencies]\n'
    (tmp_path / "scanner").mkdir()
    core = '[project]\ndependencies = ["a>=1"]\n'
    (tmp_path / "scanner" / "pyproject.toml").write_text(core)
    (tmp_path / "pyproject.toml").write_text(project + 'more = ["c"]\nlost = ["z"]\n')
    marked = "b==2 ; python_version < '3.12' \\\n    --hash=sha256:bb\n"
    (tmp_path / "requirements.lock").write_text(
        "a==1 \\\n    --hash=sha256:aa\n    # via demo (pyproject.toml)\n"
        f"{marked}    # via\n    #   a\n    #   c\n"
        "c==3 \\\n    --hash=sha256:cc\n    # via demo (pyproject.toml)\n"
        "d==4 \\\n    --hash=sha256:dd\n    # via c\n"
    )
    assert _names(packages.part([], tmp_path)) == {"a", "b"}
    assert _names(packages.part(["more"], tmp_path)) == {"a", "b", "c", "d"}
    assert marked in packages.part([], tmp_path)
    for extra, message in (
        ("lost", r"requirements\.lock lacks z: run `make lock`"),
        ("none", r"no extra none in pyproject\.toml; there are more, lost"),
    ):
        with pytest.raises(ValueError, match=message):
            packages.part([extra], tmp_path)


def test_the_index_page_has_no_relative_link(repository):
    """PyPI renders the description without the repository around it."""
    scanner = repository / "scanner"
    project = tomllib.loads((scanner / "pyproject.toml").read_text())["project"]
    text = (scanner / project["readme"]).read_text(encoding="utf-8")
    assert not re.findall(r"\]\((?!https://)", text)


def test_workflows_are_pinned_and_bounded_and_publish_nothing_unasked(workflows):
    for text in workflows.values():
        workflow = yaml.safe_load(text)
        assert workflow["permissions"] == {"contents": "read"}
        for used in re.findall(r"uses: (.+)", text):  # a hash, and the version beside it
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", used), used
        assert all("timeout-minutes" in job for job in workflow["jobs"].values())
    jobs = yaml.safe_load(workflows["release"])["jobs"]
    assert jobs["publish"]["if"].startswith("vars.PUBLISH_TO == ")
    # who builds cannot sign or publish, who signs or publishes runs nothing of ours
    for job in jobs.values():
        runs = any("run" in step for step in job["steps"])
        assert not (runs and "id-token" in job.get("permissions", {}))


def test_version_changelog_citation_and_sources_agree(repository):
    both = (repository / "pyproject.toml", repository / "scanner" / "pyproject.toml")
    (version,) = {tomllib.loads(path.read_text())["project"]["version"] for path in both}
    citation = yaml.safe_load((repository / "CITATION.cff").read_text())
    newest = re.search(r"(?m)^## (.+)$", (repository / "CHANGELOG.md").read_text())
    assert citation["version"] == version
    assert newest[1].partition(",")[0] == version.removesuffix(".dev0")
    assert newest[1].endswith(", in preparation") == version.endswith(".dev0")
    assert len(citation["references"]) == 4


def test_the_scanner_is_whole_in_its_own_folder_and_container(repository):
    scanner = repository / "scanner"
    for path in scanner.rglob("*.py"):
        code = path.read_text(encoding="utf-8")
        found = re.search(r"(?m)^\s*(from|import) (papers|compendium|classroom)\b", code)
        assert not found, f"{path.name}: {found}"
    extras = tomllib.loads((scanner / "pyproject.toml").read_text())["project"]
    sources = [path.read_text(encoding="utf-8") for path in (scanner / "src").rglob("*.py")]
    named = set(re.findall(r"softgeom\[(\w+)\]", "".join(sources)))
    assert named == set(extras["optional-dependencies"])  # a message names no other extra
    assert (scanner / "LICENSE").read_bytes() == (repository / "LICENSE").read_bytes()
    kept = [line[1:] for line in (scanner / ".dockerignore").read_text().split() if "!" in line]
    assert kept == ["src", "pyproject.toml", "docs/pypi.md", "LICENSE"]
    assert all((scanner / name).exists() for name in kept)
