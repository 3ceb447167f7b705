"""The start page is opened as JupyterLab would save it: with the language of this Python, and
nothing else changed.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys

from compendium import lab


def test_a_page_gets_the_language_of_the_kernel_once(repository, tmp_path):
    page = tmp_path / "start.ipynb"
    shutil.copy(repository / "notebooks" / "start.ipynb", page)
    before = json.loads(page.read_text(encoding="utf-8"))
    assert lab.name_language(page)
    after = json.loads(page.read_text(encoding="utf-8"))
    assert after["metadata"].pop("language_info")["version"] == platform.python_version()
    before["metadata"].pop("language_info", None)
    assert after == before
    told = page.stat().st_mtime_ns
    assert not lab.name_language(page)
    assert page.stat().st_mtime_ns == told


def test_git_does_not_show_the_language_that_was_written(monkeypatch, tmp_path, repository):
    """The notebook is stripped on its way into git, so that what `lab` wrote is no change."""
    monkeypatch.setattr(lab, "TOP", tmp_path)
    page, worked_on = tmp_path / "start.ipynb", tmp_path / "lesson.ipynb"
    shutil.copy(repository / "notebooks" / "start.ipynb", page)
    shutil.copy(page, worked_on)

    def git(*arguments: str) -> str:
        options = ["-c", "user.name=x", "-c", "user.email=x@y"]
        return subprocess.run(
            ["git", *options, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    git("init", "--quiet")
    git(
        "config",
        "filter.nbstripout.clean",
        f"{sys.executable} -m compendium.strip --extra-keys metadata.language_info",
    )
    (tmp_path / ".gitattributes").write_text("*.ipynb filter=nbstripout\n")
    git("add", ".")
    git("commit", "--quiet", "-m", "pages")
    lab.name_language(page)
    lab.name_language(worked_on)
    worked_on.write_text(worked_on.read_text().replace("softmax", "hardmax"))
    lab.main(["--settle", str(page), str(worked_on)])
    assert git("status", "--porcelain") == " M lesson.ipynb\n"


def test_jupyterlab_is_told_where_to_begin_and_asks_nothing(
    monkeypatch, tmp_path, repository, capsys
):
    (tmp_path / "notebooks" / "lessons").mkdir(parents=True)
    shutil.copy(repository / "notebooks" / "start.ipynb", tmp_path / "notebooks")
    monkeypatch.setattr(lab, "TOP", tmp_path)
    given, beside = [], []
    monkeypatch.setattr(lab.subprocess, "Popen", lambda command, **options: beside.append(command))
    monkeypatch.setattr(lab.os, "execv", lambda program, arguments: given.extend(arguments))
    lab.main([lab.START, "--no-browser"])
    assert "--LabApp.default_url=/lab/tree/notebooks/start.ipynb" in given
    assert given[-1] == "--no-browser"
    assert beside[0][-2:] == ["--settle", str(tmp_path / "notebooks" / "start.ipynb")]
    settings = json.loads((tmp_path / "build" / "lab" / "overrides.json").read_text())
    assert settings["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"
    assert lab.main(["notebooks/absent.ipynb"]) == 1
    assert "there is no notebooks/absent.ipynb" in capsys.readouterr().err
