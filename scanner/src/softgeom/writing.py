"""Files that are whole or not there: written beside their place, synced, renamed.

A kill, a power cut or a full disk at any moment leaves the old file or the new one, and nothing
half-written beside it. What is found damaged all the same (a disk that lies, a copy that broke off)
is set aside under another name, never deleted: the work that it held is done again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex

LOCK = ".lock"  # in a folder that a command writes into


@contextmanager
def alone(folder: str | Path) -> Iterator[None]:
    """Nobody else works into the folder while the block runs: a lock of the system's, which ends
    with its process. ValueError if another process is at work in the folder.
    """
    from filelock import FileLock, Timeout

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK)
    with ExitStack() as held:
        # some file systems have no locks
        with suppress(NotImplementedError):
            try:
                held.enter_context(lock.acquire(blocking=False))
            except Timeout:
                wait = "wait for it, or name another folder."
                raise ValueError(f"another command is writing into {folder}: {wait}") from None
        yield


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """The name of a fresh file to write, which takes the place of `path` when the block has ended
    without an error. OSError if the disk is full or the folder cannot be written to: it names
    `path`, where the old content, if any, still stands.
    """
    path = Path(path)
    # threads share a process number, and so do the first processes of two containers
    temporary = path.with_name(f".{path.name}.{token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        sync(temporary)
        temporary.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str, errors: str = "strict") -> None:
    """Write a text as UTF-8, all or nothing."""
    write_bytes(path, text.encode("utf-8", errors))


def write_bytes(path: str | Path, content: bytes | memoryview) -> None:
    """Write bytes, all or nothing."""
    with whole(path) as fresh:
        fresh.write_bytes(content)


def sync(path: Path) -> None:
    """Make the machine write a file or folder to its disk now."""
    windows = os.name == "nt"  # which syncs what may be written to, and no folders
    if windows and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def set_aside(path: Path) -> Path:
    """Rename what is damaged to `NAME.damaged`, over an earlier one."""
    aside = path.with_name(f"{path.name}.damaged")
    if aside.is_dir():
        shutil.rmtree(aside)
    else:
        aside.unlink(missing_ok=True)
    path.replace(aside)
    return aside
