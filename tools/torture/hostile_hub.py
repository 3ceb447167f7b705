"""A hub on this machine that misbehaves: each case spoils one kind of answer in one way, and says
what `softgeom scan` must answer.

The model has one safetensors file, a configuration and a vocabulary. Five kinds of answer can be
spoilt (`STAGES`): the listing, the configuration, the header and the numbers of the weights, and
the vocabulary.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from torture.hostile_files import W
from torture.trial import ERROR, OK

COMMIT = "0123456789abcdef0123456789abcdef01234567"
STAGES = ("listing", "config.json", "header", "numbers", "tokenizer.json")

_HEADER = json.dumps(
    {"lm_head.weight": {"dtype": "F32", "shape": [12, 4], "data_offsets": [0, 192]}}
).encode()
_FILES = {
    "config.json": json.dumps({"model_type": "llama", "hidden_size": 4, "vocab_size": 12}).encode(),
    "model.safetensors": struct.pack("<Q", len(_HEADER)) + _HEADER + W.tobytes(),
    "tokenizer.json": json.dumps({"model": {"vocab": {f"t{i}": i for i in range(12)}}}).encode(),
}
_SIBLINGS = [{"rfilename": name} for name in _FILES]
_LISTING = {"id": "someone/model", "sha": COMMIT, "siblings": _SIBLINGS}


@dataclass(frozen=True)
class Request:
    """One request as the server sees it: which answer it is for, and the honest one."""

    stage: str
    start: int
    stop: int
    content: bytes
    ranged: bool
    count: int  # how many requests of this stage came before

    def answer(
        self, body: bytes | None = None, *, size: int | None = None, **headers: str
    ) -> bytes:
        """The honest answer as bytes of HTTP, or one with another body, size or header."""
        part = self.content[self.start : self.stop] if body is None else body
        lines = {"Content-Length": str(len(part)), "Connection": "close"}
        if self.ranged:
            whole = len(self.content) if size is None else size
            lines["Content-Range"] = f"bytes {self.start}-{self.stop - 1}/{whole}"
        lines |= {key.replace("_", "-"): value for key, value in headers.items()}
        status = "206 Partial Content" if self.ranged else "200 OK"
        return _http(status, lines, part)


Spoil = Callable[[socket.socket, Request], None]


@dataclass(frozen=True)
class Case:
    """One way to misbehave at one kind of answer."""

    title: str
    expect: str
    stage: str
    spoil: Spoil
    declared: int = 0

    @property
    def kind(self) -> str:
        return self.stage

    @property
    def name(self) -> str:
        return self.title.partition(": ")[2]


def cases() -> Iterator[Case]:
    """Every behaviour at every kind of answer that it makes sense for."""
    for stage in STAGES:
        for name, (expect, spoil) in _EVERYWHERE.items():
            yield Case(f"{stage}: {name}", expect, stage, spoil)
    for stage in ("listing", "config.json", "tokenizer.json"):
        for name, spoil in _TEXTS.items():
            lenient = stage == "config.json" and name in ("is a list", "is null")
            yield Case(f"{stage}: {name}", OK if lenient else ERROR, stage, spoil)
    for stage in ("config.json", "header", "numbers", "tokenizer.json"):
        for name, spoil in _RANGES.items():
            yield Case(f"{stage}: {name}", ERROR, stage, spoil)
    for name, changed in (
        ("the commit is escapes", {"sha": "\x1b[2Jred"}),
        ("the commit is a branch", {"sha": "main"}),
        ("the commit is nothing", {"sha": None}),
        ("the commit is a number", {"sha": 5}),
        ("the commit is a path", {"sha": "../../x"}),
        ("no files", {"siblings": []}),
        ("files as text", {"siblings": "model.safetensors"}),
        ("files without names", {"siblings": [{}]}),
        ("names that are numbers", {"siblings": [{"rfilename": 5}]}),
    ):
        yield Case(f"listing: {name}", ERROR, "listing", _json(_LISTING | changed))


# ---- Ways to misbehave


def _http(status: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{key}: {value}" for key, value in headers.items())]
    return "\r\n".join(lines).encode("latin1") + b"\r\n\r\n" + body


def _empty(status: str, **headers: str) -> bytes:
    return _http(status, headers | {"Content-Length": "0", "Connection": "close"})


def _send(answer: Callable[[Request], bytes]) -> Spoil:
    return lambda connection, request: connection.sendall(answer(request))


def _status(status: str, **headers: str) -> Spoil:
    return _send(lambda _: _empty(status, **headers))


def _body(change: Callable[[bytes], bytes]) -> Spoil:
    return _send(lambda r: r.answer(change(r.content[r.start : r.stop])))


def _json(content: object) -> Spoil:
    return _text(json.dumps(content).encode())


def _text(content: bytes) -> Spoil:
    def spoil(connection: socket.socket, request: Request) -> None:
        start, one = request.start, request.ranged and request.stop - request.start == 1
        part = content[start : request.stop] if one else content
        told = replace(request, stop=start + len(part), content=content)
        connection.sendall(told.answer(part))

    return spoil


def _sleep(connection: socket.socket, request: Request) -> None:
    time.sleep(60)


def _drip(connection: socket.socket, request: Request) -> None:
    for byte in request.answer():
        connection.sendall(bytes([byte]))
        time.sleep(0.9)


def _endless(connection: socket.socket, request: Request) -> None:
    status = "206 Partial" if request.ranged else "200 OK"
    connection.sendall(_http(status, {"Transfer-Encoding": "chunked"}))
    while True:
        connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


def _half(connection: socket.socket, request: Request) -> None:
    whole = request.answer()
    connection.sendall(whole[: -max(1, (request.stop - request.start) // 2)])


def _once(first: Spoil) -> Spoil:
    return lambda c, r: first(c, r) if r.count == 0 else c.sendall(r.answer())


_EVERYWHERE: dict[str, tuple[str, Spoil]] = {
    "accepts and is silent": (ERROR, _sleep),
    "drips a byte a second": (ERROR, _drip),
    "never ends": (ERROR, _endless),
    "breaks off each time": (ERROR, _half),
    "breaks off once": (OK, _once(_half)),
    "closes at once": (ERROR, lambda c, r: None),
    "answers nonsense": (ERROR, _send(lambda r: b"\x00\xff\x1b[31m" * 20 + b"\r\n\r\n")),
    "answers 404": (ERROR, _status("404 Not Found")),
    "answers 401": (ERROR, _status("401 Unauthorized")),
    "answers 500": (ERROR, _status("500 Server Error")),
    "is busy once": (OK, _once(_status("503 Busy"))),
    "redirects for ever": (ERROR, _status("302 Found", Location="/loop")),
    "redirects to another kind of address": (
        ERROR,
        _status("302 Found", Location="file:///etc/passwd"),
    ),
    "compresses": (ERROR, _send(lambda r: r.answer(Content_Encoding="gzip"))),
    "claims a length below zero": (ERROR, _send(lambda r: r.answer(Content_Length="-5"))),
}
_TEXTS: dict[str, Spoil] = {
    "is nested too deeply": _text(b"[" * 100_000 + b"]" * 100_000),
    "is cut JSON": _text(b'{"a": '),
    "is no UTF-8": _text(b'{"\xff\xfe": 1}'),
    "is a list": _text(b"[1, 2]"),
    "is null": _text(b"null"),
    "is empty": _text(b""),
}
_RANGES: dict[str, Spoil] = {
    "sends the whole file": _send(lambda r: replace(r, ranged=False).answer(r.content)),
    "names no range": _send(
        lambda r: _http(
            "206 Partial", {"Content-Length": str(r.stop - r.start)}, r.content[r.start : r.stop]
        )
    ),
    "names a garbled range": _send(lambda r: r.answer(Content_Range="bytes a-b/c")),
    "names another range": _send(lambda r: r.answer(Content_Range=f"bytes 5-9/{len(r.content)}")),
    "claims 2^60 bytes": _send(lambda r: r.answer(size=2**60)),
    "sends one byte too many": _body(lambda part: part + b"x"),
    "sends nothing": _body(lambda part: b""),
}


# ---- The server


@contextmanager
def serve(case: Case) -> Iterator[str]:
    """Run the hub of a case on this machine's loopback; the value is its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.05)
    stopped, counts = threading.Event(), dict.fromkeys(STAGES, 0)

    def answer(connection: socket.socket) -> None:
        with suppress(OSError, ValueError, IndexError), connection:
            request = _parse(connection.recv(65536).decode("latin1"), counts)
            if request is None:
                connection.sendall(_empty("302 Found", Location="/loop"))
            elif request.stage == case.stage:
                case.spoil(connection, request)
            else:
                connection.sendall(request.answer())

    def accept() -> None:
        while not stopped.is_set():
            with suppress(OSError):
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stopped.set()
        listener.close()


def _parse(text: str, counts: dict[str, int]) -> Request | None:
    path = text.split(" ", 2)[1].split("?")[0]
    if path.startswith("/api/models/someone/model"):
        content, stage, ranged = json.dumps(_LISTING).encode(), "listing", False
        start, stop = 0, len(content)
    elif path.startswith("/someone/model/resolve/"):
        name = path.rsplit("/", 1)[1]
        content, ranged = _FILES[name], True
        asked = next(line for line in text.splitlines() if line.lower().startswith("range:"))
        start, last = map(int, asked.partition("=")[2].split("-"))
        stop, stage = last + 1, name
        if name == "model.safetensors":
            stage = "numbers" if start >= 8 + len(_HEADER) else "header"
    else:
        return None
    counts[stage] += 1
    return Request(stage, start, min(stop, len(content)), content, ranged, counts[stage] - 1)
