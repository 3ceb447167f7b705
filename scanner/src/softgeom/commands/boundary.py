"""The one boundary between the library and a terminal: any failure is one sentence and an exit code
that tells its kind.

====  ==========================================================================================
code  meaning
====  ==========================================================================================
0     done
1     the model, a file or an option cannot be used as asked: the sentence says what and where
2     the command line itself is wrong
3     done, and some class is undecided
4     done, and ``--fail-on`` found more than was allowed
5     a file could not be read or written (full disk, missing permission)
6     memory ran out, here or in a worker
70    a fault of this programme: the sentence names the file with the traceback
130   stopped from the keyboard
====  ==========================================================================================

What a ``raise`` of our own says is a refusal that somebody foresaw: the sentence is all that a user
needs. What NumPy or ``json`` raises came unforeseen, is a fault, and leaves its traceback in a
file. With ``SOFTGEOM_TRACEBACKS=FOLDER`` every failure leaves its traceback there.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable

from softgeom.foreseen import foreseen
from softgeom.parallel import LostWorkerError

DONE, REFUSED, WRONG, UNDECIDED, TOO_MANY, NO_FILE, NO_MEMORY, FAULT, STOPPED = (
    0, 1, 2, 3, 4, 5, 6, 70, 130,
)  # fmt: skip
# characters of a sentence: a list of candidates fits, a hostile file's names do not flood a
# terminal
_LONGEST = 4_000
_FOLDER = "SOFTGEOM_TRACEBACKS"


def open_streams() -> int | None:
    """Make the standard streams bear every character; the exit code if output is closed."""
    absent = [stream for stream in ("stdout", "stderr") if getattr(sys, stream) is None]
    for stream in absent:  # or the next file that is opened would get the number of the stream
        setattr(sys, stream, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for opened in (sys.stdout, sys.stderr):
        if hasattr(opened, "reconfigure"):  # tokens and names of files hold what no terminal has
            opened.reconfigure(errors="backslashreplace")
    if "stdout" in absent:
        print("softgeom: standard output is closed: nothing could be told.", file=sys.stderr)
        return NO_FILE
    return None


def guarded(work: Callable[[], int], name: str = "softgeom") -> int:
    """Run a command called `name`; the exit code."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        sentence, code = "stopped; the same command goes on where it was.", STOPPED
    except Exception as error:
        sentence, code = explain(error)
    print(f"{name}: {one_line(sentence)}", file=sys.stderr)
    return code


def explain(error: Exception) -> tuple[str, int]:
    """What to say of a failure, and its exit code; a fault of ours leaves a traceback file."""
    sentence, code = _told(error)
    if code == FAULT:
        return f"{sentence} (a fault of softgeom; traceback in {_traceback_file(error)}).", code
    if os.environ.get(_FOLDER):
        return f"{sentence} (traceback in {_traceback_file(error)})", code
    return sentence, code


def one_line(text: str) -> str:
    """The text without line breaks and control characters, which a file's names may hold."""
    shown = "".join(
        c if c.isprintable() else " " if c in "\n\r\t" else c.encode("unicode_escape").decode()
        for c in text
    )
    shown = " ".join(shown.split())
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} ..."


def _told(error: Exception) -> tuple[str, int]:
    if isinstance(error, LostWorkerError):
        return str(error), NO_MEMORY
    if isinstance(error, MemoryError):
        said = f" ({error})" if str(error) else ""
        advice = "use fewer --jobs, a smaller --block, or part of the --classes at a time."
        return f"memory ran out{said}: {advice}", NO_MEMORY
    if isinstance(error, OSError):
        return _told_of_file(error), NO_FILE
    if foreseen(error):
        return str(error.args[0]) if isinstance(error, KeyError) else str(error), REFUSED
    return f"{type(error).__name__}: {error}", FAULT


def _told_of_file(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{error.filename}: no such file or folder." if error.filename else str(error)
    where = f"{error.filename}: " if error.filename else ""
    kept = "what was finished is kept, the same command goes on there."
    return f"{where}{error.strerror or error}; {kept}"


def _traceback_file(error: Exception) -> str:
    folder = os.environ.get(_FOLDER) or None
    try:
        if folder:
            os.makedirs(folder, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix="softgeom-", suffix="-traceback.txt", dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("".join(traceback.format_exception(error)))
    except OSError as full:
        return f"no file, for none could be written ({full.strerror})"
    return name
