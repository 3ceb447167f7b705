"""Where things are: the only module that knows the compendium's folders.

data/raw -> data/processed -> results/<profile>/NN_name -> figures/<profile> -> README.md
"""

import os
from pathlib import Path

LIB = Path(__file__).resolve().parent.parent

# together they identify the compendium, and nothing else does
_MARKERS = ("Makefile", "notebooks/params")


def root() -> Path:
    """Top folder of the compendium: `$SOFTGEOM_ROOT`, else the nearest parent of the working
    directory or of this file; FileNotFoundError when none of them is a clone of the repository.
    """
    if chosen := os.environ.get("SOFTGEOM_ROOT"):
        return Path(chosen).expanduser().resolve()
    for start in (Path.cwd(), Path(__file__).resolve().parent):
        for folder in (start, *start.parents):
            if all((folder / marker).exists() for marker in _MARKERS):
                return folder
    told = "run inside a clone of the repository, or set SOFTGEOM_ROOT"
    raise FileNotFoundError(f"no compendium found above the working directory: {told}")


def data_dir() -> Path:
    """Folder of raw corpora and models: `$SOFTGEOM_DATA`, else `data/raw`. FileNotFoundError when
    the former does not exist: a typing error must not turn into stand-in data.
    """
    chosen = os.environ.get("SOFTGEOM_DATA")
    if not chosen:
        return root() / "data" / "raw"
    folder = Path(chosen).expanduser()
    folder = folder if folder.is_absolute() else root() / folder
    if not folder.is_dir():
        told = "(from DATA= or SOFTGEOM_DATA) does not exist"
        raise FileNotFoundError(f"the data folder {chosen!r} {told}")
    return folder


def downloads_dir() -> Path:
    """Where data fetched from the hub are kept, in the layout of the data folder: `data/raw`."""
    return root() / "data" / "raw"


def find_data(relative: str) -> Path | None:
    """A file or folder of raw data, or of what was fetched earlier; None when neither has it."""
    candidates = (folder / relative for folder in (data_dir(), downloads_dir()))
    return next((path for path in candidates if path.exists()), None)


def processed_dir() -> Path:
    """Folder for what is computed once and read often, such as trained models."""
    return root() / "data" / "processed"


def notebook(name: str) -> Path:
    """The notebook of that name (`10_braid_counts`, `lessons/1_rankings`)."""
    return root() / "notebooks" / f"{name}.ipynb"


def notebooks() -> list[Path]:
    """The numbered notebooks, in order: those that `make all` runs."""
    return sorted((root() / "notebooks").glob("[0-9]*.ipynb"))


def params_file(name: str) -> Path:
    """The parameters of one notebook, the profiles as columns."""
    return root() / "notebooks" / "params" / f"{name}.yaml"


def results_dir(profile: str, name: str) -> Path:
    """Folder of one notebook's recorded results."""
    return root() / "results" / profile / name


def figures_dir(profile: str) -> Path:
    """Folder of one profile's figures."""
    return root() / "figures" / profile


def executed_dir(profile: str) -> Path:
    """Folder of executed notebooks and of what is known about each execution; never committed."""
    return root() / "executed" / profile
