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
    watch(parent)


def watch(parent: int) -> None:
    """Let this process end within a second or two of its parent's end."""
    threading.Thread(
        target=_watch, args=(parent,), daemon=True, name="softgeom-parent-watch"
    ).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS)
    os._exit(1)


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
