"""Bytes from a server that may be slow, broken or hostile: every answer has a size, a deadline and
a second chance.

A request runs in a thread of its own, because a server that sends a byte a second, or a name server
that never answers, passes every time-out of a client. The caller waits for chunks, and gives up by
its own clock:

- no more bytes are taken than were asked for, whatever the server sends or claims (endless bodies,
  compressed bombs);
- within each `WINDOW` seconds at least `LEAST_RATE` bytes a second must arrive, or the rest of the
  answer;
- a connection that breaks is tried again after a pause, `TRIES` times in all; an answer that is
  refused is not.

Ranges of a file at a fixed commit never change, so what has arrived is kept in a cache folder and
not asked for again.
"""

from __future__ import annotations

import hashlib
import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softgeom.writing import write_bytes

WINDOW = 10.0  # seconds without the least rate before an answer is given up
LEAST_RATE = 2_000.0  # bytes a second: a slow telephone line
TRIES = 3
PAUSE = 0.5  # seconds before the second try; doubled before each further one

_AGAIN = {408, 425, 429, 500, 502, 503, 504}  # answers of a server that may do better in a moment


class TransferError(ValueError):
    """A transfer that failed; the message says how, the caller says of what."""


@dataclass(frozen=True)
class Response:
    """Status, headers (names in lower case) and the whole body of an answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def fetch(
    url: str,
    headers: Mapping[str, str],
    cap: int,
    *,
    session: Any,
    status: int = 200,
    progress: Callable[[int], None] | None = None,
) -> Response:
    """GET a URL, at most `cap` bytes of uncompressed body, by an `httpx.Client`; the body is left
    unread unless the answer has the hoped-for `status`; `progress` hears the bytes of each chunk.
    TransferError when the server is silent or slower than the least rate, sends more or compressed
    bytes, or breaks the connection `TRIES` times.
    """
    pause, started = PAUSE, time.monotonic()
    for left in range(TRIES - 1, -1, -1):
        request = _Request(url, {**headers, "Accept-Encoding": "identity"}, session)
        try:
            answer = request.collect(cap, status, progress)
        except _BrokenError as error:
            if not left or time.monotonic() - started > WINDOW:
                broke = f"the connection broke {TRIES - left} times ({error})"
                raise TransferError(broke) from error
        else:
            if answer.status not in _AGAIN or not left or time.monotonic() - started > WINDOW:
                return answer
        time.sleep(pause)
        pause *= 2
    raise AssertionError("unreachable")


class _BrokenError(Exception):
    """The connection ended before the answer did: worth another try."""


class _Request:
    """One GET in a thread that is left behind when its server is; chunks come through a queue."""

    def __init__(self, url: str, headers: Mapping[str, str], session: Any):
        self._chunks: queue.Queue[Any] = queue.Queue(maxsize=64)
        self._given_up = threading.Event()
        threading.Thread(target=self._run, args=(url, dict(headers), session), daemon=True).start()

    def _run(self, url: str, headers: dict[str, str], session: Any) -> None:
        try:
            with session.stream(
                "GET", url, headers=headers, timeout=WINDOW, follow_redirects=True
            ) as answer:
                told = {key.lower(): value for key, value in answer.headers.items()}
                self._put((answer.status_code, told))
                # as they arrive: a buffer would hide how slowly they do
                for chunk in answer.iter_raw():
                    if not self._put(chunk):
                        return
            self._put(None)
        # the client's transport errors derive from no common public class
        except Exception as error:
            self._put(error)

    def _put(self, item: Any) -> bool:
        """Hand over an item; False when nobody waits for it any more."""
        while not self._given_up.is_set():
            with suppress(queue.Full):
                self._chunks.put(item, timeout=0.2)
                return True
        return False

    def collect(self, cap: int, wanted: int, progress: Callable[[int], None] | None) -> Response:
        try:
            return self._collect(cap, wanted, progress)
        finally:
            self._given_up.set()

    def _collect(self, cap: int, wanted: int, progress: Callable[[int], None] | None) -> Response:
        status, headers = self._next(time.monotonic() + WINDOW, "did not answer")
        if status != wanted:
            return Response(status, headers, b"")
        if headers.get("content-encoding", "identity") not in ("identity", ""):
            raise TransferError("the server sends compressed bytes, which were not asked for")
        body, mark, arrived = bytearray(), time.monotonic(), 0
        while (chunk := self._next(mark + WINDOW, "stopped sending")) is not None:
            body += chunk
            arrived += len(chunk)
            if len(body) > cap:
                raise TransferError(
                    f"the server sends more than the {cap:,} bytes that were expected"
                )
            if progress is not None:
                progress(len(chunk))
            if arrived >= LEAST_RATE * WINDOW:
                mark, arrived = time.monotonic(), 0
        return Response(status, headers, bytes(body))

    def _next(self, until: float, what: str) -> Any:
        """The next item, or the failure that came in its place, not later than `until`."""
        try:
            item = self._chunks.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            raise TransferError(
                f"the server {what}: less than {LEAST_RATE / 1000:.0f} kB a second for "
                f"{WINDOW:.0f} seconds"
            ) from None
        if isinstance(item, Exception):
            if "timeout" in type(item).__name__.lower():
                raise TransferError(f"the server {what} for {WINDOW:.0f} seconds") from item
            raise _BrokenError(f"{type(item).__name__}: {item}".partition("\n")[0]) from item
        return item


class RangeCache:
    """Byte ranges that never change, as files of a folder, written whole and checked when read; a
    folder that cannot be written to keeps nothing.
    """

    def __init__(self, folder: Path):
        self._folder = folder

    def read(self, name: str, size: int) -> bytes | None:
        """What was kept under a name; None when nothing of that size was, or it is damaged."""
        path = self._folder / name
        try:
            content = path.read_bytes()
        except OSError:
            return None
        digest, body = content[:32], content[32:]
        if len(body) == size and hashlib.sha256(body).digest() == digest:
            return body
        path.unlink(missing_ok=True)
        return None

    def keep(self, name: str, body: bytes) -> None:
        """Keep a range under a name of letters, digits, dots and dashes."""
        with suppress(OSError):
            write_bytes(self._folder / name, hashlib.sha256(body).digest() + body)
