"""The start page is opened as JupyterLab would save it: with the language of this Python, and nothing else changed."""

from __future__ import annotations

import json
import platform
import shutil

from compendium import lab


def test_a_page_gets_the_language_of_the_kernel_once(repository, tmp_path):
    page = tmp_path / "start.ipynb"
    shutil.copy(repository / "notebooks" / "start.ipynb", page)
    before = json.loads(page.read_text(encoding="utf-8"))
    lab.name_language(page)
    after = json.loads(page.read_text(encoding="utf-8"))
    assert after["metadata"].pop("language_info")["version"] == platform.python_version()
    before["metadata"].pop("language_info", None)
    assert after == before
    told = page.stat().st_mtime_ns
    lab.name_language(page)
    assert page.stat().st_mtime_ns == told


def test_jupyterlab_is_told_where_to_begin_and_asks_nothing(monkeypatch, tmp_path, repository, capsys):
    (tmp_path / "notebooks" / "lessons").mkdir(parents=True)
    shutil.copy(repository / "notebooks" / "start.ipynb", tmp_path / "notebooks")
    monkeypatch.setattr(lab, "TOP", tmp_path)
    given = []
    monkeypatch.setattr(lab.os, "execv", lambda program, arguments: given.extend(arguments))
    lab.main([lab.START, "--no-browser"])
    assert "--LabApp.default_url=/lab/tree/notebooks/start.ipynb" in given
    assert given[-1] == "--no-browser"
    settings = json.loads((tmp_path / "build" / "lab" / "overrides.json").read_text())
    assert settings["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"
    assert lab.main(["notebooks/absent.ipynb"]) == 1
    assert "there is no notebooks/absent.ipynb" in capsys.readouterr().err
