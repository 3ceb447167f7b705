"""Nothing outlives its parent: workers end when the process that started them is gone, and its
shared memory is swept up.

A killed parent cannot tell its workers to stop. So each worker looks, once a second, whether its
parent is still there. What joblib or we put into a folder for them is removed by joblib's own
tracker or by us, unless those were killed too: then the next run removes it, by the process number
in the folder's name.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

_SECONDS = 1.0
_FOLDER = re.compile(r"(?:joblib_memmapping_folder|softgeom_shared)_(\d+)_")


def end_with_parent(parent: int) -> None:
    """Let this process leave interrupts to the process `parent`, and end within a second or two of
    its end.

    An interrupt is the parent's to handle; a worker that also reacts to it buries its message under
    a traceback.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _start_watch(parent)


def end_with_make() -> None:
    """Let this process end within a second or two of the make that a user started; without one,
    nothing.

    A make that is killed cannot tell its commands to stop: the next make would run beside what the
    first one left behind. That make says in ``SOFTGEOM_MAKE`` which process that is: it may be gone
    before this one looks for the first time, or have started another make between the two.
    """
    if not os.environ.get("MAKELEVEL"):
        return
    said = os.environ.get("SOFTGEOM_MAKE", "")
    _start_watch(os.getppid(), int(said) if said.isdecimal() else None)


def _start_watch(parent: int, first: int | None = None) -> None:
    threading.Thread(
        target=_watch, args=(parent, first), daemon=True, name="softgeom-parent-watch"
    ).start()


def make_has_ended(parent: int) -> bool:
    """Whether the make that started this process, when `parent` was its parent, is gone; for
    processes that may not have a thread. False without a make.
    """
    if not os.environ.get("MAKELEVEL"):
        return False
    said = os.environ.get("SOFTGEOM_MAKE", "")
    return not _is_there(parent, int(said) if said.isdecimal() else None)


def _watch(parent: int, first: int | None) -> None:
    while _is_there(parent, first):
        time.sleep(_SECONDS)
    os._exit(1)


def _is_there(parent: int, first: int | None) -> bool:
    return os.getppid() == parent and (first is None or _is_alive(first))


def shared_folder() -> str:
    """How the name of a folder begins that this process shares with its workers."""
    return f"softgeom_shared_{os.getpid()}_"


def sweep_shared_memory() -> list[Path]:
    """Remove the folders that dead processes shared with their workers; return their names."""
    removed: list[Path] = []
    if os.name == "nt":  # asking after a process by a signal would interrupt it
        return removed
    for place in dict.fromkeys((Path("/dev/shm"), Path(tempfile.gettempdir()))):
        for folder in place.glob("*_*_*"):
            match = _FOLDER.match(folder.name)
            with suppress(OSError):
                if match and not _is_alive(int(match[1])) and folder.stat().st_uid == os.getuid():
                    shutil.rmtree(folder)
                    removed.append(folder)
    return removed


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True
