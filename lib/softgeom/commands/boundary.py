"""The one boundary between the library and a terminal: any failure is one sentence and an exit code that tells its kind.

====  ==========================================================================================
code  meaning
====  ==========================================================================================
0     done
1     the model, a file or an option cannot be used as asked: the sentence says what and where
2     the command line itself is wrong
3     done, and some class is undecided
4     done, and ``--fail-on`` found more than was allowed
5     a file could not be read or written (full disk, missing permission)
6     memory ran out
70    a fault of this programme: the sentence names the file with the traceback
130   stopped from the keyboard
====  ==========================================================================================
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Callable

DONE, REFUSED, WRONG, UNDECIDED, TOO_MANY, NO_FILE, NO_MEMORY, FAULT, STOPPED = 0, 1, 2, 3, 4, 5, 6, 70, 130
_LONGEST = 4_000  # characters of a sentence: a list of candidates fits, a hostile file's names do not flood a terminal


def guarded(work: Callable[[], int]) -> int:
    """Run a command; the exit code."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except ValueError as error:
        return _say(str(error), REFUSED)
    except FileNotFoundError as error:
        return _say(f"{error.filename or error}: no such file or folder.", NO_FILE)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _say(
            f"{where}{error.strerror or error}; what was finished is kept, the same command goes on there.", NO_FILE
        )
    except MemoryError:
        return _say("memory ran out: use fewer --jobs, or scan part of the --classes at a time.", NO_MEMORY)
    except KeyboardInterrupt:
        return _say("stopped; the same command goes on where it was.", STOPPED)
    except Exception as error:
        return _say(f"{type(error).__name__}: {error} (a fault of softgeom; traceback in {_traceback_file()}).", FAULT)


def one_line(text: str) -> str:
    """The text without line breaks and control characters, which a file's names could send to the terminal."""
    shown = "".join(
        c if c.isprintable() else " " if c in "\n\r\t" else c.encode("unicode_escape").decode() for c in text
    )
    shown = " ".join(shown.split())
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} ..."


def _say(sentence: str, code: int) -> int:
    print(f"softgeom: {one_line(sentence)}", file=sys.stderr)
    return code


def _traceback_file() -> str:
    handle, name = tempfile.mkstemp(prefix="softgeom-", suffix="-traceback.txt")
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(traceback.format_exc())
    return name
