"""environment.yml, pyproject.toml and the lock name the same packages; the tree keeps machine paths out."""

from __future__ import annotations

import re
import tomllib

import yaml

CONDA_NAMES = {"torch": "pytorch"}  # where conda-forge's name differs
NOT_ON_CONDA = {"rapidocr-onnxruntime"}  # named in environment.yml's pip section instead
OUTSIDE_THE_LOCK = {"torch"}  # has its own line in the Makefile


def _split(requirement: str) -> tuple[str, str]:
    name, bounds = re.fullmatch(r"([A-Za-z0-9_.-]+)(.*)", requirement).groups()
    return name.lower(), bounds.replace(" ", "")


def _declared(repository) -> dict[str, str]:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    return dict(_split(requirement) for group in groups for requirement in group)


def test_environment_and_pyproject_agree(repository):
    listed = yaml.safe_load((repository / "environment.yml").read_text())["dependencies"]
    pip = next(entry["pip"] for entry in listed if isinstance(entry, dict))
    assert pip[-1] == "-e ."
    conda = dict(_split(entry) for entry in listed if isinstance(entry, str))
    from_pip = dict(_split(entry) for entry in pip[:-1])
    for extra in ("python", "pip"):
        conda.pop(extra)
    declared = _declared(repository)
    assert from_pip == {name: declared[name] for name in NOT_ON_CONDA}
    expected = {CONDA_NAMES.get(name, name): bounds for name, bounds in declared.items() if name not in NOT_ON_CONDA}
    assert conda == expected


def test_every_dependency_is_locked(repository):
    lock = (repository / "requirements.lock").read_text()
    locked = {name.lower() for name in re.findall(r"^([A-Za-z0-9_.-]+)==", lock, re.MULTILINE)}
    assert set(_declared(repository)) - OUTSIDE_THE_LOCK <= locked
    assert "://" not in lock  # the index is the user's choice


def test_every_dependency_is_explained(repository):
    page = (repository / "docs" / "dependencies.md").read_text(encoding="utf-8").lower()
    unexplained = {name for name in _declared(repository) if f"`{name}`" not in page}
    assert not unexplained


def test_python_versions_agree(repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert "python=3.11" in (repository / "environment.yml").read_text()
