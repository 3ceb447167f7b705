"""`make scan` passes every option of `softgeom scan` on, and keeps its exit code."""

import json

import numpy as np
import pytest

from compendium import __main__ as command_line
from compendium import run
from softgeom.commands import boundary
from softgeom.examples import uniform_layer


@pytest.fixture
def model(tmp_path):
    """A layer with unargmaxable classes, C = 40, d = 2."""
    layer = uniform_layer(40, 2)
    np.savez(tmp_path / "my model.npz", W=layer.W, b=layer.bias)
    return tmp_path / "my model.npz"


@pytest.fixture
def executed(monkeypatch):
    """What the notebook would be run with."""
    given = []
    monkeypatch.setattr(
        run, "execute", lambda notebook, output, values: given.append((notebook, output, values))
    )
    return given


def test_every_option_reaches_the_command_and_its_exit_code_comes_back(
    model, tmp_path, executed, monkeypatch
):
    monkeypatch.setenv("PARAMS", "patience=7")
    options = "--classes 0-9,17 --features ball --bound '3.5' --fail-on unargmaxable=0"
    command = ["scan", str(model), "--out", str(tmp_path / "o"), "--arguments", options]
    assert command_line.main(command) == boundary.TOO_MANY
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())
    assert summary["scanned"] == 11
    assert "3.5" in summary["feature_set"]
    ((notebook, output, values),) = executed
    assert (notebook.name, output) == ("scan.ipynb", tmp_path / "o" / "scan.ipynb")
    assert values["scanned"]
    assert values["patience"] == 7
    assert "--bound 3.5" in values["arguments"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["absent.npz", "--out", "o"], "there is no file or folder"),
        (["", "--out", "o"], "which model?"),
        (["my model.npz", "--arguments", "'open"], "cannot be read"),
    ],
)
def test_what_cannot_be_scanned_runs_no_notebook(model, executed, capsys, monkeypatch, words, told):
    monkeypatch.chdir(model.parent)
    assert command_line.main(["scan", *words]) == boundary.REFUSED
    assert told in capsys.readouterr().err
    assert not executed
