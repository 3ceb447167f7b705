"""One command in a process of its own, forked from one that has imported everything: what it answered, how long it took, what it held."""

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

LIMIT = 20.0  # seconds; whatever takes longer hangs
MEMORY = 128 * 2**20  # bytes above an empty run that small inputs may cost
_CONTROL = re.compile(r"[^\n\t\x20-\x7e\x85\xa0-\U0010ffff]|\x1b")


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int | None  # None: it hung and was killed
    seconds: float
    memory: int  # bytes, at the most, above those of the process that it was forked from
    out: str
    error: str

    def miss(self, expect: str, declared: int = 0) -> str:
        """What is wrong with the outcome, in a word or two; empty when it is as it should be."""
        sentences = [
            line
            for line in self.error.splitlines()
            if line.strip() and "it/s" not in line and not line.startswith("data:")
        ]
        faults = [
            "hangs" if self.code is None else "",
            "killed" if self.code is not None and self.code < 0 else "",
            "traceback" if "Traceback" in self.error else "",
            "control characters" if _CONTROL.search(self.out + self.error) else "",
            f"{self.memory / 2**20:.0f} MB" if self.memory > MEMORY + 4 * declared else "",
            "accepted" if expect == "error" and self.code == 0 else "",
            "refused" if expect == "ok" and self.code not in (0, None) else "",
            f"{len(sentences)} lines" if expect == "error" and self.code and len(sentences) != 1 else "",
        ]
        return ", ".join(fault for fault in faults if fault)


def warm_up() -> None:
    """Import what the command imports on its way, so that each fork starts from there; a scan in this process would start threads."""
    import huggingface_hub
    import huggingface_hub.utils  # noqa: F401
    import onnx  # noqa: F401
    import pandas  # noqa: F401

    import softgeom.bottleneck.scanner
    import softgeom.checkpoints.loading
    import softgeom.checkpoints.onnx_graph  # noqa: F401

    try:
        import torch

        torch.set_num_threads(1)
    except ImportError:
        pass


def run(main: Callable[[Sequence[str]], int], arguments: Sequence[str], folder: Path) -> Outcome:
    """Call `main(arguments)` in a forked process that stands in `folder`."""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as error,
    ):
        sys.stdout.flush()
        sys.stderr.flush()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            _become(main, arguments, folder, out.fileno(), error.fileno())
        code, memory = _wait(child, started, before)
        seconds = time.monotonic() - started
        out.seek(0)
        error.seek(0)
        return Outcome(code, seconds, memory, out.read(), error.read())


def _become(main: Callable, arguments: Sequence[str], folder: Path, out: int, error: int) -> None:
    code = 99
    try:
        os.setsid()
        os.chdir(folder)
        os.dup2(out, 1)
        os.dup2(error, 2)
        sys.stdout, sys.stderr = (
            os.fdopen(number, "w", encoding="utf-8", errors="replace", closefd=False) for number in (1, 2)
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


def _wait(child: int, started: float, before: int) -> tuple[int | None, int]:
    while time.monotonic() - started < LIMIT:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status), max(0, usage.ru_maxrss - before) * 1024
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    usage = os.wait4(child, 0)[2]
    return None, max(0, usage.ru_maxrss - before) * 1024
