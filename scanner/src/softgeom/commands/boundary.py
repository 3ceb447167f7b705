"""The boundary between the library and a terminal: its streams, and one sentence and an exit code
for each failure (`softgeom.errors` lists the codes).
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from softgeom.errors import (
    DONE,
    FAULT,
    NO_FILE,
    NO_MEMORY,
    REFUSED,
    STOPPED,
    TOO_MANY,
    UNDECIDED,
    WRONG,
    explain,
    one_line,
)

__all__ = [
    "DONE", "FAULT", "NO_FILE", "NO_MEMORY", "REFUSED", "STOPPED", "TOO_MANY", "UNDECIDED", "WRONG",
    "explain", "guarded", "one_line", "open_streams",
]  # fmt: skip

# controls, invisible formats, surrogates, line and paragraph separators
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def open_streams() -> int | None:
    """Make the standard streams bear every character; the exit code if output is closed."""
    absent = [stream for stream in ("stdout", "stderr") if getattr(sys, stream) is None]
    for stream in absent:  # or the next file that is opened would get the number of the stream
        setattr(sys, stream, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for opened in (sys.stdout, sys.stderr):
        if hasattr(opened, "reconfigure"):  # tokens and names of files hold what no terminal has
            opened.reconfigure(errors="backslashreplace")
    if "stdout" in absent:
        print("softgeom: cannot write: standard output is closed.", file=sys.stderr)
        return NO_FILE
    return None


class _Output:
    """A standard stream whose reader may go away, as ``head`` does: the work goes on without it,
    and the exit code is that of the work.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._kept(self._stream.write, text)

    def flush(self) -> None:
        self._kept(self._stream.flush)

    def _kept(self, work: Callable[..., Any], *given: str) -> Any:
        try:
            return work(*given)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            return 0


class _Printed(_Output):
    """Standard output, without control characters: names of files and notes in them may hold
    some.
    """

    def write(self, text: str) -> int:
        return super().write("".join(map(_shown, text)))


def _shown(c: str) -> str:
    hidden = c not in "\n\t" and unicodedata.category(c) in _HIDDEN
    return c.encode("unicode_escape").decode("ascii") if hidden else c


def guarded(work: Callable[[], int], name: str = "softgeom") -> int:
    """Run a command called `name`; the exit code."""
    try:
        with redirect_stdout(_Printed(sys.stdout)), redirect_stderr(_Output(sys.stderr)):
            code = work()
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        sentence, code = "stopped; the same command goes on where it was.", STOPPED
    except Exception as error:
        sentence, code = explain(error)
    print(f"{name}: {one_line(sentence)}", file=_Output(sys.stderr))
    return code
