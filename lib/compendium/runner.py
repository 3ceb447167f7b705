"""Execute one notebook with the parameters of a profile, in this environment's kernel.

papermill writes its output even when a cell fails. The run therefore goes to `NAME.failed.ipynb`,
and only a complete one is renamed to `NAME.ipynb`, which is the file that make looks for.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path
from typing import Any

from compendium import parameters, paths, profiles, strip, why
from softgeom.commands.boundary import guarded

_KERNEL = "python3"
_KEPT = "; earlier results, and what data/processed holds, are kept"  # told where a disk failed
_START_TIMEOUT = 120  # seconds until a kernel must answer: two cores may be busy


class NotebookError(RuntimeError):
    """A cell raised: one sentence with its error and the path of the report; its traceback."""

    def __init__(self, sentence: str, trace: str = "") -> None:
        super().__init__(sentence)
        self.trace = trace


def run(name: str, profile: str, overrides: str = "") -> Path:
    """Execute `notebooks/NAME.ipynb` into `executed/PROFILE/NAME.ipynb`; with overrides (`PARAMS=`)
    into `executed/own/PROFILE/`. ParameterError when the parameters do not fit (nothing has run
    then), NotebookError when a cell raised or the kernel died.
    """
    values, needed = parameters.read(name, profile), profile
    if changed := parameters.override(overrides, name):
        values, profile = values | changed, profiles.overridden(profile)
    values[parameters.INJECTED] = profile
    before, log = why.inputs(name, needed), why.kept_log(name, profile)
    log.unlink(missing_ok=True)
    os.environ["SOFTGEOM_KEEPING_LOG"] = str(log)
    if needed == profiles.SMOKE:  # where starting workers takes longer than what they would do
        os.environ.setdefault("JOBS", "1")
    output = execute(paths.notebook(name), paths.executed_dir(profile) / f"{name}.ipynb", values)
    why.note(name, profile, before)
    if missed := why.undeclared_reads(name, profile):
        print(f"{name}: read {', '.join(missed)}, which lib/compendium/edges.py does not find")
    return output


def run_alone(name: str, profile: str, overrides: str = "") -> int:
    """`run` as all that a process does: prints a failure in a sentence, returns the exit code."""

    def work() -> int:
        try:
            run(name, profile, overrides)
        except NotebookError as error:
            print(error.trace, file=sys.stderr)
            raise
        return 0

    return guarded(work, "error")


def execute(notebook: Path, output: Path, values: dict[str, Any]) -> Path:
    """Execute a notebook with given values; `output` appears only when every cell succeeded."""
    prepare_environment()
    import papermill
    from nbclient.exceptions import DeadKernelError
    from traitlets.config import Config

    _check_kernel()
    output.parent.mkdir(parents=True, exist_ok=True)
    report = output.with_suffix(".failed.ipynb")
    config = Config()
    # and no warning about an unencrypted kernel at every start
    config.KernelManager.transport_encryption = "auto"
    # nor about how it is ended
    config.NotebookClient.extra_arguments = ["--IPKernelApp.log_level=50"]
    logging.getLogger("papermill").setLevel(logging.ERROR)
    how: dict[str, Any] = {"kernel_name": _KERNEL, "cwd": paths.root(), "progress_bar": False}
    how |= {"stdout_file": sys.stdout, "stderr_file": sys.stderr, "start_timeout": _START_TIMEOUT}
    try:
        papermill.execute_notebook(notebook, report, parameters=values, config=config, **how)
    except papermill.PapermillExecutionError as error:
        trace = "\n".join(re.sub(r"\x1b\[[0-9;]*m", "", line) for line in error.traceback)
        said = f"{error.ename}: {error.evalue}{_KEPT if error.ename == 'OSError' else ''}"
        raise NotebookError(_message(notebook, report, said, error.cell_index), trace) from None
    except DeadKernelError:
        died = "the kernel was killed, most likely because memory ran out: fewer jobs, or a "
        died += "smaller profile, need less"
        raise NotebookError(_message(notebook, report, died)) from None
    except OSError as error:
        report.unlink(missing_ok=True)  # half of it at best
        raise OSError(error.errno, error.strerror or str(error), str(report)) from error
    report.replace(output)
    return output


def _message(notebook: Path, report: Path, message: str, cell: int | None = None) -> str:
    where = "" if cell is None else f" in cell {cell}"
    place = os.path.relpath(report, paths.root())
    return f"{notebook.name} failed{where}: {message} (traceback in {place})"


def prepare_environment() -> None:
    """Keep other people's kernels, start-up files and thread settings out of the run."""
    strip.skip_rfc3987_import()
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    os.environ.pop("JUPYTER_PATH", None)
    ipython = paths.root() / "build" / "ipython"
    ipython.mkdir(parents=True, exist_ok=True)
    os.environ["IPYTHONDIR"] = str(ipython)
    os.environ.setdefault("PYTHONHASHSEED", "0")
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    # the same on every machine, and as `all` sets it
    threads = os.environ.get("OMP_NUM_THREADS") or "1"
    for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
        os.environ.setdefault(f"{library}_NUM_THREADS", threads)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


def _check_kernel() -> None:
    from jupyter_client.kernelspec import KernelSpecManager

    command = Path(KernelSpecManager().get_kernel_spec(_KERNEL).argv[0])
    here = Path(sys.executable)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if command != here and str(command) not in {here.name, "python", "python3", version}:
        said = f"the kernel {_KERNEL!r} would run {command}, not this environment's Python"
        raise NotebookError(f"{said}: remove that kernel specification")
