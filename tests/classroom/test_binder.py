"""The small environment names what pyproject.toml names, installs the compendium, and leaves
PyTorch out.
"""

from __future__ import annotations

import re

import yaml

from compendium import packages

HEAVY = {"torch", "pytorch", "transformers", "datasets"}


def test_the_small_environment_holds_the_core_and_the_lessons(repository):
    listed = yaml.safe_load((repository / "binder" / "environment.yml").read_text())["dependencies"]
    named = {re.split("[<>=]", entry)[0] for entry in listed if isinstance(entry, str)}
    wanted = packages.declared(["lessons"], repository)
    assert {packages.CONDA_NAMES.get(name, name) for name in wanted} <= named
    assert not HEAVY & named


def test_the_last_line_installs_the_compendium(repository):
    listed = yaml.safe_load((repository / "binder" / "environment.yml").read_text())["dependencies"]
    option, folder = listed[-1]["pip"][-1].split()
    assert option == "-e"
    # conda resolves it against the file's folder
    assert (repository / "binder" / folder).resolve() == repository
