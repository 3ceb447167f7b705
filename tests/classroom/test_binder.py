"""The small environment names what pyproject.toml names, installs the compendium, and leaves PyTorch out."""

from __future__ import annotations

import re
import tomllib

import yaml

HEAVY = {"torch", "pytorch", "transformers", "datasets"}


def _split(requirement: str) -> tuple[str, str]:
    name, bounds = re.fullmatch(r"([A-Za-z0-9_.-]+)(.*)", requirement).groups()
    return name.lower(), bounds.replace(" ", "")


def test_the_small_environment_agrees_with_pyproject(repository):
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    core = dict(map(_split, project["dependencies"]))
    declared = dict(_split(entry) for group in project["optional-dependencies"].values() for entry in group) | core
    listed = yaml.safe_load((repository / "binder" / "environment.yml").read_text())["dependencies"]
    named = dict(_split(entry) for entry in listed if isinstance(entry, str))
    assert named.pop("python") == "=3.11"
    named.pop("pip")
    assert named == {name: declared[name] for name in named}
    assert core.keys() <= named.keys()
    assert {"jupyterlab", "anywidget", "matplotlib", "ipykernel"} <= named.keys()
    assert not HEAVY & named.keys()


def test_the_last_line_installs_the_compendium(repository):
    listed = yaml.safe_load((repository / "binder" / "environment.yml").read_text())["dependencies"]
    option, folder = listed[-1]["pip"][-1].split()
    assert option == "-e"
    assert (repository / "binder" / folder).resolve() == repository  # conda resolves it against the file's folder
