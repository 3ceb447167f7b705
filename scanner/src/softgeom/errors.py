"""What a failure is, in one sentence and an exit code.

====  ==========================================================================================
code  meaning
====  ==========================================================================================
0     done
1     the model, a file or an option cannot be used as asked: the sentence says what and where
2     the command line itself is wrong
3     done, and some class is undecided
4     done, and ``--fail-on`` found more than was allowed, or ``coverage`` a character that is not
      fine
5     a file could not be read or written (full disk, missing permission)
6     memory ran out, here or in a worker
70    an internal error: the sentence names the file with the traceback
130   stopped from the keyboard
====  ==========================================================================================

What a ``raise`` of our own says is a refusal: the sentence is all that a user needs. What NumPy or
``json`` raises is an internal error, and leaves its traceback in a file. With
``SOFTGEOM_TRACEBACKS=FOLDER`` every failure leaves its traceback there.
"""

from __future__ import annotations

import dis
import os
import shlex
import tempfile
import traceback

DONE, REFUSED, WRONG, UNDECIDED, TOO_MANY, NO_FILE, NO_MEMORY, FAULT, STOPPED = (
    0, 1, 2, 3, 4, 5, 6, 70, 130,
)  # fmt: skip
# characters of a sentence: a list of candidates fits, a hostile file's names do not flood a
# terminal
_LONGEST = 4_000
_SPECIAL = "\\'"  # what bash takes for more than itself between $' and '
_FOLDER = "SOFTGEOM_TRACEBACKS"
_OURS = {"softgeom", "compendium"}
_RAISE = dis.opmap["RAISE_VARARGS"]


class LostWorkerError(MemoryError):
    """A worker process was killed from outside, perhaps because memory ran out."""

    def __init__(self) -> None:
        super().__init__(
            "a worker process was killed (SIGKILL), most likely because memory ran out: "
            "use fewer workers (--jobs), or smaller blocks (--block); finished blocks are kept."
        )


def is_refusal(error: BaseException) -> bool:
    """Whether a ``raise`` statement of ours made the error; of one that a worker sent, without its
    traceback, whether it is a ValueError.
    """
    trace = error.__traceback__
    if trace is None or type(error.__cause__).__name__ == "_RemoteTraceback":
        return isinstance(error, ValueError)
    while trace.tb_next is not None:
        trace = trace.tb_next
    package = (trace.tb_frame.f_globals.get("__package__") or "").partition(".")[0]
    # int("x") fails in a line of ours, too, but at another instruction
    return package in _OURS and trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE


def explain(error: Exception) -> tuple[str, int]:
    """The sentence about a failure, and its exit code; an internal error leaves a traceback."""
    sentence, code = _explained(error)
    if code == FAULT:
        where = f"traceback in {_traceback_file(error)}"
        return f"{sentence} (an internal error of softgeom, please report it; {where}).", code
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


def quoted(word: str) -> str:
    """A word of a command to paste into a shell, on one line, control characters as bash writes
    them.
    """
    if word.isprintable():
        return shlex.quote(word)
    codes = ("".join(f"\\x{byte:02x}" for byte in os.fsencode(c)) for c in word)
    plain = zip(word, codes, strict=True)
    return (
        f"$'{''.join(c if c.isprintable() and c not in _SPECIAL else code for c, code in plain)}'"
    )


def _explained(error: Exception) -> tuple[str, int]:
    if isinstance(error, LostWorkerError):
        return str(error), NO_MEMORY
    if isinstance(error, MemoryError):
        said = f" ({error})" if str(error) else ""
        advice = "use fewer --jobs, a smaller --block, or part of the --classes at a time."
        return f"memory ran out{said}: {advice}", NO_MEMORY
    if isinstance(error, FileNotFoundError):
        where = f"{error.filename}: no such file or folder." if error.filename else str(error)
        return where, NO_FILE
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        kept = "what was finished is kept, the same command goes on there."
        return f"{where}{error.strerror or error}; {kept}", NO_FILE
    if is_refusal(error):
        return str(error.args[0]) if isinstance(error, KeyError) else str(error), REFUSED
    return f"{type(error).__name__}: {error}", FAULT


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
