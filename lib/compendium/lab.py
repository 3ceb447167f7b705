"""JupyterLab as a reader should meet it: on one page, which is not marked unsaved, and without
questions.

    python -m compendium.lab [notebooks/start.ipynb]

Whatever a kernel writes into a notebook is stripped on the way into git (the filter that `make env`
sets); the language that it would add to the pages that readers open first is added here before, so
that opening them changes nothing. Standard library only until JupyterLab takes over.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent.parent
START = "notebooks/start.ipynb"
_SETTLE = "--settle"
_QUIET = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False}
}


def main(arguments: list[str]) -> int:
    """Open a page; what follows it goes to JupyterLab as it is."""
    if arguments[:1] == [_SETTLE]:
        for notebook in arguments[1:]:
            _seen_by_git(notebook)
        return 0
    page, *more = arguments or [START]
    if not (TOP / page).is_file():
        print(f"error: there is no {page} in {TOP}", file=sys.stderr)
        return 1
    lessons = sorted((TOP / "notebooks" / "lessons").glob("*.ipynb"))
    changed = [
        str(notebook)
        for notebook in dict.fromkeys((TOP / page, TOP / START, *lessons))
        if name_language(notebook)
    ]
    if changed:  # beside JupyterLab's own start, which takes longer
        subprocess.Popen(
            [sys.executable, "-m", "compendium.lab", _SETTLE, *changed],
            cwd=TOP,
            stdin=subprocess.DEVNULL,
        )
    settings = TOP / "build" / "lab"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "overrides.json").write_text(json.dumps(_QUIET), encoding="utf-8")
    options = [
        f"--LabApp.default_url=/lab/tree/{page}",
        f"--LabApp.app_settings_dir={settings}",
        f"--ServerApp.root_dir={TOP}",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")  # in a container there is nobody else
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *options, *more])


def name_language(notebook: Path) -> bool:
    """Write into a notebook what the kernel of this Python says of itself, as JupyterLab would on
    opening it; whether that was new.
    """
    content: dict[str, Any] = json.loads(notebook.read_text(encoding="utf-8"))
    language = {
        "codemirror_mode": {"name": "ipython", "version": sys.version_info[0]},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": f"ipython{sys.version_info[0]}",
        "version": platform.python_version(),
    }
    if content["metadata"].get("language_info") == language:
        return False
    content["metadata"]["language_info"] = language
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return True


def _seen_by_git(place: str) -> None:
    """Git calls a file of another size modified before it asks the filter; adding what `git diff`
    finds unchanged stages nothing and settles that.
    """
    git = shutil.which("git")
    if not git:
        return
    done = subprocess.run(
        [git, "diff", "--", place], cwd=TOP, capture_output=True
    )  # --quiet would answer from the size alone
    if done.returncode == 0 and not done.stdout:
        subprocess.run([git, "add", "-u", "--", place], cwd=TOP, capture_output=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
