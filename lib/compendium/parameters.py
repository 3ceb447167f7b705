"""Parameters of a notebook: one flat YAML file per notebook and profile, checked against the notebook before anything runs.

papermill only logs a misspelt parameter and YAML reads `1e-3` as text; here both are errors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from compendium import paths
from compendium.book import parameter_defaults

INJECTED = "profile"  # given by the runner, never by a file
PROFILES = ("smoke", "default", "paper")


class ParameterError(ValueError):
    """A parameter file that does not fit its notebook."""


def read(name: str, profile: str) -> dict[str, Any]:
    """Parameters of one notebook in one profile, checked.

    Raises
    ------
    ParameterError
        When the file is missing or no flat mapping, or a parameter is unknown, missing or of another type than its default.
    """
    path = paths.params_file(profile, name)
    where = f"params/{profile}/{path.name}"
    if not path.is_file():
        known = ", ".join(sorted(folder.name for folder in path.parent.parent.glob("*/"))) or "none"
        raise ParameterError(
            f"{where} does not exist: every notebook has one file per profile (profiles here: {known})"
        )
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise ParameterError(f"{where} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(given, dict):
        raise ParameterError(f"{where} must be a mapping of parameter names to values")
    defaults = defaults_of(paths.notebook(name))
    if INJECTED not in defaults:
        raise ParameterError(f"notebooks/{name}.ipynb has no parameter {INJECTED!r} in a cell tagged 'parameters'")
    expected = {key: value for key, value in defaults.items() if key != INJECTED}
    if unknown := sorted(set(given) - set(expected)):
        raise ParameterError(f"{where}: unknown parameter {', '.join(unknown)}; the notebook has {', '.join(expected)}")
    if missing := sorted(set(expected) - set(given)):
        raise ParameterError(f"{where}: missing parameter {', '.join(missing)}")
    for key, value in given.items():
        given[key] = _fit(value, expected[key], f"{where}: {key}")
    return given


def defaults_of(notebook: Path) -> dict[str, Any]:
    """Names and default values of a notebook's parameters.

    Raises
    ------
    ParameterError
        When there is no such notebook; the message lists those there are.
    """
    if not notebook.is_file():
        known = ", ".join(sorted(path.stem for path in notebook.parent.glob("*.ipynb")))
        raise ParameterError(f"there is no notebook {notebook.stem}; there are {known}")
    return parameter_defaults(notebook)


def _fit(value: Any, default: Any, where: str) -> Any:
    """The value, if it has the default's type; an integer may stand for a float."""
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is type(default):
        return value
    hint = "; write floats with a point, such as 1.0e-3" if isinstance(value, str) and _is_number(value) else ""
    raise ParameterError(
        f"{where} must be of type {type(default).__name__}, not {type(value).__name__} ({value!r}){hint}"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
