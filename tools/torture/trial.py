"""One command in a process of its own, forked from one that has imported everything: what it
answered, how long it took, what it held.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ERROR, OK, ANY = "error", "ok", "any"
LIMIT = 20.0  # seconds; whatever takes longer hangs
# bytes above an empty run that an input of no size may cost: Python's own objects, and what
# allocators keep
MEMORY = 32 * 2**20
TIMES = 4  # and above that as many times the bytes of the tensors in use
FAULT = 70  # exit code of a fault of the programme itself
_CONTROL = re.compile(r"[^\n\t\x20-\x7e\x85\xa0-\U0010ffff]|\x1b")

Main = Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int | None  # None: it hung and was killed
    seconds: float
    memory: int  # the most bytes that it held
    out: str
    error: str
    faults: tuple[str, ...] = ()  # what the family itself found wrong besides

    def said(self) -> list[str]:
        """Lines on standard error, without progress and the names of data."""
        lines = [line for line in self.error.splitlines() if line.strip() and "it/s" not in line]
        return [line for line in lines if not line.startswith("data:")]

    def answer(self) -> str:
        """In a word or two: refused, done, hangs, ..."""
        if self.code is None or self.code < 0:
            return "hangs" if self.code is None else "killed"
        answers = {0: "done", 1: "refused", 2: "refused", 3: "done, some undecided", FAULT: "fault"}
        return answers.get(self.code, f"exit {self.code}")

    def miss(self, expect: str, empty: int, declared: int) -> str:
        """What is wrong with the outcome, against an empty run and the bytes of the tensors in use;
        nothing when it is as it should be.
        """
        above, lines = self.memory - empty, len(self.said())
        refused = self.code not in (0, None)
        wrong = {
            self.answer(): self.answer() in ("hangs", "killed", "fault"),
            "traceback": "Traceback" in self.error,
            "control characters": _CONTROL.search(self.out + self.error),
            f"{above / 1e6:.0f} MB": above > MEMORY + TIMES * declared,
            "accepted": expect == ERROR and self.code == 0,
            "refused": expect == OK and refused,
            f"{lines} lines": expect != OK and refused and lines != 1,
        }
        return ", ".join([*self.faults, *(fault for fault, there in wrong.items() if there)])


def warm_up() -> None:
    """Import what the command imports on its way, so that each fork starts from there; a scan in
    this process would start threads.
    """
    import huggingface_hub
    import huggingface_hub.utils  # noqa: F401
    import onnx  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow.pandas_compat
    import pyarrow.parquet  # noqa: F401

    import softgeom.bottleneck.scanner
    import softgeom.checkpoints.loading
    import softgeom.checkpoints.onnx_graph  # noqa: F401

    try:
        import torch

        torch.set_num_threads(1)
    except ImportError:
        pass


def empty_run(main: Main, arguments: Callable[[Path], Sequence[str]]) -> int:
    """The most bytes that a command holds which meets nothing unusual."""
    with tempfile.TemporaryDirectory() as place:
        outcome = run(main, arguments(Path(place)), Path(place))
    if outcome.code != 0:
        raise SystemExit(f"an undisturbed run fails: {outcome.error}")
    return outcome.memory


def run(main: Main, arguments: Sequence[str], folder: Path) -> Outcome:
    """Call `main(arguments)` in a forked process that stands in `folder`."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as error,
    ):
        sys.stdout.flush()
        sys.stderr.flush()
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            _become(main, arguments, folder, out.fileno(), error.fileno())
        code, memory = _wait(child, started)
        seconds = time.monotonic() - started
        out.seek(0)
        error.seek(0)
        return Outcome(code, seconds, memory, out.read(), error.read())


def _become(main: Main, arguments: Sequence[str], folder: Path, out: int, error: int) -> None:
    code = 99
    try:
        os.setsid()
        os.chdir(folder)
        os.dup2(out, 1)
        os.dup2(error, 2)
        sys.stdout, sys.stderr = (
            os.fdopen(number, "w", encoding="utf-8", errors="replace", closefd=False)
            for number in (1, 2)
        )
        resource.setrlimit(resource.RLIMIT_AS, (16 * 2**30, 16 * 2**30))
        try:
            code = main(list(arguments))
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code or 0)


def _waited(child: int) -> float:
    """Seconds that it stood in line for a processor: a busy machine is no hang."""
    try:
        return int(Path(f"/proc/{child}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _wait(child: int, started: float) -> tuple[int | None, int]:
    while time.monotonic() - started - _waited(child) < LIMIT:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    return None, os.wait4(child, 0)[2].ru_maxrss * 1024
