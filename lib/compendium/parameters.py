"""Parameters of a notebook: one file, the profiles as columns, checked against the notebook before
anything runs.

A row of `notebooks/params/NN_name.yaml` is a parameter: a single value holds in every profile, a
mapping gives columns::

    seed:       0
    classes:    {smoke: 150, default: 1000, paper: 10000}
    dimensions: {smoke: [2, 4], default: [2, 4, 8, 16]}

A profile states only what differs: what it leaves out, it takes from `default`. Two ways to change
something without touching a tracked file, both with folders of results of their own (see
`compendium.profiles`): `make 13_random_layers PARAMS="classes=500 dimensions=[2,4]"`, and a profile
of one's own, `notebooks/params/own/mine.yaml`, from notebooks to the parameters that differ.

papermill only logs a misspelt parameter and YAML reads `1e-3` as text; here both are errors.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from compendium import paths, profiles
from compendium.notebooks import parameter_defaults

INJECTED = "profile"  # given by the runner, never by a file


class ParameterError(ValueError):
    """A parameter that does not fit its notebook."""


def read(name: str, profile: str) -> dict[str, Any]:
    """Parameters of one notebook in one profile. ParameterError when file or profile is missing, or
    a parameter is unknown, missing or of another type than its default.
    """
    expected = defaults_of(paths.notebook(name))
    if INJECTED not in expected:
        raise ParameterError(f"notebooks/{name}.ipynb has no parameter {INJECTED!r} in its cell")
    del expected[INJECTED]
    columns = "default" if profiles.is_own(profile) else profile
    if columns not in profiles.BUILT_IN:
        known, own = ", ".join(profiles.BUILT_IN), f"own/{profile}"
        write = f"write notebooks/params/{own}.yaml and take PROFILE={own}"
        raise ParameterError(f"there is no profile {profile!r}: choose one of {known}, or {write}")
    where, rows = f"notebooks/params/{name}.yaml", _mapping(paths.params_file(name)).items()
    values = {row: _column(value, columns, f"{where}: {row}") for row, value in rows}
    given = _fitting(values, expected, where)
    if missing := [key for key in expected if key not in given]:
        raise ParameterError(f"{where}: missing parameter {', '.join(missing)}")
    if profiles.is_own(profile):
        mine, where = _mapping(paths.params_file(profile)), f"notebooks/params/{profile}.yaml"
        if odd := sorted({str(key) for key in mine} - {path.stem for path in paths.notebooks()}):
            raise ParameterError(f"{where}: there is no notebook {', '.join(odd)}")
        given |= _fitting(mine.get(name) or {}, expected, f"{where}: {name}")
    return given


def override(text: str, name: str) -> dict[str, Any]:
    """Values of `PARAMS="classes=500 dimensions=[2,4] sentence='two words'"` for a notebook.
    ParameterError when the text is no list of NAME=VALUE, or a name or type does not fit.
    """
    expected = defaults_of(paths.notebook(name))
    expected.pop(INJECTED, None)
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ParameterError(f"PARAMS={text!r} cannot be read ({error})") from None
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ParameterError(f"PARAMS: {word!r} is not NAME=VALUE, such as seed=1")
        try:
            found[key] = yaml.safe_load(value) if value else ""
        except yaml.YAMLError:
            found[key] = value
        if isinstance(expected.get(key), str) and not isinstance(found[key], str):
            found[key] = value  # `start=10` is the text 10 where a text is asked for
    return _fitting(found, expected, "PARAMS")


def defaults_of(notebook: Path) -> dict[str, Any]:
    """Names and defaults of a notebook's parameters; ParameterError when there is none such."""
    if not notebook.is_file():
        known = ", ".join(sorted(path.stem for path in notebook.parent.glob("*.ipynb")))
        raise ParameterError(f"there is no notebook {notebook.stem}; there are {known}")
    return parameter_defaults(notebook)


def _mapping(path: Path) -> dict[str, Any]:
    where = path.relative_to(paths.root()).as_posix()
    if not path.is_file():
        raise ParameterError(f"{where} does not exist: a mapping of names to values is needed")
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise ParameterError(f"{where} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(given, dict):
        raise ParameterError(f"{where} must be a mapping of names to values")
    return given


def _fitting(given: Any, expected: dict[str, Any], where: str) -> dict[str, Any]:
    """Given values, each known to the notebook and of its default's type."""
    if not isinstance(given, dict):
        raise ParameterError(f"{where} must be a mapping of parameter names to values")
    if unknown := sorted(str(key) for key in given if key not in expected):
        known = f"the notebook has {', '.join(expected)}"
        raise ParameterError(f"{where}: unknown parameter {', '.join(unknown)}; {known}")
    return {key: _fit(value, expected[key], f"{where}: {key}") for key, value in given.items()}


def _column(value: Any, profile: str, where: str) -> Any:
    """What a row says for a profile, all of its columns checked."""
    if not isinstance(value, dict):
        return value
    if odd := sorted(str(key) for key in value if key not in profiles.BUILT_IN):
        known = ", ".join(profiles.BUILT_IN)
        raise ParameterError(f"{where}: there is no profile {', '.join(odd)}; there are {known}")
    if "default" not in value:
        raise ParameterError(f"{where}: the column default is missing, which others inherit")
    return value.get(profile, value["default"])


def _fit(value: Any, default: Any, where: str) -> Any:
    """The value, if it has the default's type; an integer may stand for a float."""
    if default == [] and value:
        raise ParameterError(f"{where}: the notebook's value is an empty list, which has no type")
    if isinstance(default, list) and isinstance(value, list):
        return [_fit(v, default[0], f"{where}: entry {n}") for n, v in enumerate(value, start=1)]
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is type(default):
        return value
    hint = "; write lists as [2, 4, 8]" if isinstance(default, list) else ""
    if isinstance(value, str) and re.fullmatch(r"[-+]?[\d.]+e[-+]?\d+", value, re.IGNORECASE):
        hint = "; write floats with a point, such as 1.0e-3"
    kind, other = type(default).__name__, type(value).__name__
    raise ParameterError(f"{where} must be of type {kind}, not {other} ({value!r}){hint}")
