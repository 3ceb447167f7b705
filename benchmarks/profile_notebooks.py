"""Where the seconds of a run went: of every notebook of a profile the wall seconds by kind of work,
as papermill noted them cell by cell, into results/bench/notebook_profile.csv.

    python benchmarks/profile_notebooks.py [PROFILE]

Start is what is in no cell (the kernel's start and end). A cell's kind is the first below whose
calls it makes: a cell that trains and draws counts as training. Seconds are of the machine and its
load at that time; shares tell more than sums.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import nbformat
import pandas as pd

from compendium import paths

# the calls that mark a kind, in the order in which they are asked for
CALLS = {
    "training": {
        "run_experiments",
        "trained_gpt",
        "train_many",
        "train",
        "fit",
        "train_classifiers",
    },
    "data": {"load_text", "load_encoded", "load_labelled", "load_text_of_sweep", "open_book"},
    "drawing": {"figure", "savefig"},
    "writing": {"save"},
}
KINDS = ["start", "imports", "data", "training", "computing", "drawing", "writing"]


def kind(source: str) -> str:
    """The kind of work of a cell, by the calls that it makes."""
    tree = ast.parse(source)
    if tree.body and all(isinstance(line, (ast.Import, ast.ImportFrom)) for line in tree.body):
        return "imports"
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in functions}
    return next((name for name, calls in CALLS.items() if calls & called), "computing")


def profile_of(executed: Path) -> dict[str, float | str]:
    """Seconds of one executed notebook by kind, and in all."""
    notebook = nbformat.read(executed, as_version=4)
    seconds = dict.fromkeys(KINDS, 0.0)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            spent = cell.metadata.get("papermill", {}).get("duration") or 0.0
            seconds[kind(cell.source)] += spent
    whole = notebook.metadata.papermill.duration
    seconds["start"] = max(0.0, whole - sum(seconds.values()))
    return {"notebook": executed.stem, **seconds, "all": whole}


def main(profile: str = "default") -> None:
    ran = sorted(paths.executed_dir(profile).glob("[0-9][0-9]_*.ipynb"))
    ran = [path for path in ran if not path.name.endswith(".failed.ipynb")]
    if not ran:
        sys.exit(f"No notebook has run in profile {profile}: make all PROFILE={profile} first.")
    table = pd.DataFrame([profile_of(path) for path in ran]).set_index("notebook").round(2)
    table.insert(0, "profile", profile)
    folder = paths.root() / "results" / "bench"
    table.to_csv(folder / "notebook_profile.csv")
    print(table.to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
