"""Run one notebook with papermill and the parameters of a profile: `make` calls this.

    python -m compendium.run 10_braid_counts

Profile and changed parameters come from the environment (`SOFTGEOM_PROFILE`, `PARAMS`), so that no
shell reads what a user typed. papermill writes its output even when a cell fails. The run therefore
goes to `NAME.failed.ipynb`, and only a complete one is renamed to `NAME.ipynb`, the file that make
looks for. What the notebook prints goes to `NAME.log`.
"""

import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

# jsonschema would build a parser for international addresses, for a second; nothing here needs it
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

from compendium import parameters, paths, profiles  # noqa: E402
from softgeom.parallel import PLAIN_PROGRESS, watch  # noqa: E402

_T = TypeVar("_T")
_START_TIMEOUT = 120  # seconds until a kernel must answer: two cores may be busy


class NotebookError(RuntimeError):
    """A cell raised or the kernel died: one sentence with the path of the report."""


def run(name: str, profile: str, overrides: str = "") -> Path:
    """Execute `notebooks/NAME.ipynb` into `executed/PROFILE/NAME.ipynb`; with overrides (`PARAMS=`)
    into `executed/own/PROFILE/`. ParameterError when the parameters do not fit (nothing has run
    then), NotebookError when a cell raised or the kernel died.
    """
    values = parameters.read(name, profile)
    if changed := parameters.override(overrides, name):
        values, profile = values | changed, profiles.overridden(profile)
    values[parameters.INJECTED] = profile
    if profile == profiles.SMOKE:  # where starting workers takes longer than what they would do
        os.environ.setdefault("JOBS", "1")
    return execute(paths.notebook(name), paths.executed_dir(profile) / f"{name}.ipynb", values)


def execute(notebook: Path, output: Path, values: dict[str, Any]) -> Path:
    """Execute a notebook with given values; `output` appears only when every cell succeeded."""
    prepare_environment()
    import papermill
    from nbclient.exceptions import DeadKernelError
    from traitlets.config import Config

    output.parent.mkdir(parents=True, exist_ok=True)
    report = output.with_suffix(".failed.ipynb")
    config = Config()
    # without a warning about an unencrypted kernel at its start, and one about how it is ended
    config.KernelManager.transport_encryption = "auto"
    config.NotebookClient.extra_arguments = ["--IPKernelApp.log_level=50"]
    logging.getLogger("papermill").setLevel(logging.ERROR)
    how: dict[str, Any] = {"kernel_name": "python3", "cwd": paths.root(), "progress_bar": False}
    try:
        with output.with_suffix(".log").open("w", encoding="utf-8") as log:
            how |= {"stdout_file": log, "stderr_file": log, "start_timeout": _START_TIMEOUT}
            papermill.execute_notebook(notebook, report, parameters=values, config=config, **how)
    except papermill.PapermillExecutionError as error:
        said = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", f"{error.ename}: {error.evalue}").split())
        raise NotebookError(
            _sentence(notebook, report, f" in cell {error.cell_index}: {said}")
        ) from None
    except DeadKernelError:
        died = ": the kernel was killed, most likely because memory ran out: run fewer notebooks "
        died += "at a time (-j1), or a smaller profile"
        raise NotebookError(_sentence(notebook, report, died)) from None
    except OSError as error:
        report.unlink(missing_ok=True)  # half of it at best
        raise OSError(error.errno, error.strerror or str(error), str(report)) from error
    report.replace(output)
    return output


def _sentence(notebook: Path, report: Path, what: str) -> str:
    place = os.path.relpath(report, paths.root())
    return f"{notebook.stem} failed{what} (the whole run, with its traceback: {place})"


def with_maker(read: Callable[[], _T], maker: str, profile: str) -> _T:
    """What `read` returns; where it finds no file, the notebook `maker` runs in this profile first,
    in a process of its own. NotebookError when that fails.
    """
    try:
        return read()
    except FileNotFoundError:
        print(f"Notebook {maker} runs first: this one needs its results.", flush=True)
    profile = profile.removeprefix("own/") if profiles.is_override(profile) else profile
    settings = os.environ | {"SOFTGEOM_PROFILE": profile, "PARAMS": ""}
    command = [sys.executable, "-m", "compendium.run", maker]
    how: dict[str, Any] = {"cwd": paths.root(), "capture_output": True, "text": True}
    done = subprocess.run(command, env=settings, **how)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise NotebookError(said[-1] if said else f"{maker} failed")
    return read()


def prepare_environment() -> None:
    """Keep other people's kernels, start-up files and thread settings out of the run."""
    os.environ.pop("JUPYTER_PATH", None)
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"  # a kernel `python3` of the user's goes behind ours
    ipython = paths.root() / "build" / "ipython"
    ipython.mkdir(parents=True, exist_ok=True)
    os.environ["IPYTHONDIR"] = str(ipython)
    os.environ.setdefault("PYTHONHASHSEED", "0")
    os.environ[PLAIN_PROGRESS] = "1"  # lines in NAME.log, no widgets
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    # one thread: the last digits of a sum depend on how many there are
    threads = os.environ.get("OMP_NUM_THREADS") or "1"
    for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
        os.environ.setdefault(f"{library}_NUM_THREADS", threads)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def main(name: str) -> int:
    """Run the notebook that make asks for; a failure is one line and exit code 1."""
    profile = os.environ.get("SOFTGEOM_PROFILE") or profiles.DEFAULT
    watch(os.getppid())  # a make that is killed takes its notebooks with it
    print(f"{name} runs ...", flush=True)
    started = time.monotonic()
    try:
        output = run(name, profile, os.environ.get("PARAMS", ""))
    except (NotebookError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"{name}: {time.monotonic() - started:.0f} s{_aside(output)}")
    return 0


def _aside(output: Path) -> str:
    """Where the results are, if they did not go to their usual folder."""
    note = output.with_suffix(".json")
    place = json.loads(note.read_text(encoding="utf-8"))["results"] if note.is_file() else ""
    if place.endswith(("stand-in", "incomplete")):
        return f", on {place.rsplit('/', 1)[1]} data (data/README.md): {place}"
    return f": {place}" if place.startswith("results/own") else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
