"""Servers that stall, drip, lie and break off end in a sentence, in time, within bounds."""

import socket
import threading
import time
from contextlib import suppress

import pytest
from huggingface_hub.utils import get_session

from softgeom.checkpoints import transfer

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"


def _drip(connection, content, pause=0.02):
    for byte in content:
        connection.sendall(bytes([byte]))
        time.sleep(pause)


def _endless(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


BEHAVIOUR = {
    "accepts and says nothing": lambda c: time.sleep(5),
    "drips its headers": lambda c: _drip(c, HEAD * 50),
    "stops after the headers": lambda c: (c.sendall(HEAD), time.sleep(5)),
    "drips its body": lambda c: (c.sendall(HEAD), _drip(c, b"x" * 100, pause=0.1)),
    "never ends": _endless,
    "sends more than it says to": lambda c: c.sendall(HEAD.replace(b"100", b"5000") + b"x" * 5000),
    "compresses": lambda c: c.sendall(
        HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n") + b"x" * 100
    ),
    "breaks off": lambda c: c.sendall(HEAD + b"x" * 50),
    "answers nonsense": lambda c: c.sendall(b"\x00\xff" * 30 + b"\r\n\r\n"),
    "closes at once": lambda c: None,
    "redirects for ever": lambda c: c.sendall(
        b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    ),
}


@pytest.fixture
def serve():
    """Starts a server with a function a connection; its address and connections."""
    stopped, sockets = threading.Event(), []

    def start(*behaviours):
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(0.1)
        sockets.append(listener)
        seen = []

        def one(connection, behaviour):
            with suppress(OSError), connection:
                connection.recv(65536)
                behaviour(connection)

        def run():
            while not stopped.is_set():
                with suppress(OSError):
                    connection, _ = listener.accept()
                    behaviour = behaviours[min(len(seen), len(behaviours) - 1)]
                    seen.append(behaviour)
                    threading.Thread(target=one, args=(connection, behaviour), daemon=True).start()

        threading.Thread(target=run, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/", seen

    yield start
    stopped.set()
    for listener in sockets:
        listener.close()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(transfer, "WINDOW", 0.6)
    monkeypatch.setattr(transfer, "PAUSE", 0.01)


def _fetch(url, cap=1000, **more):
    return transfer.fetch(url, {}, cap, session=get_session(), **more)


@pytest.mark.parametrize("name", BEHAVIOUR)
def test_a_bad_server_costs_a_sentence_and_little_time(serve, name, monkeypatch):
    monkeypatch.setattr(transfer, "WINDOW", 0.2)  # none of them is to be waited for
    url, _ = serve(BEHAVIOUR[name])
    started = time.monotonic()
    with pytest.raises(transfer.TransferError) as caught:
        _fetch(url)
    assert time.monotonic() - started < 3
    assert "\n" not in str(caught.value)


def test_what_breaks_is_tried_again_and_a_refusal_is_not(serve):
    good = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
    busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    url, seen = serve(BEHAVIOUR["breaks off"], lambda c: c.sendall(busy), lambda c: c.sendall(good))
    assert _fetch(url).body == b"abc"
    assert len(seen) == 3
    url, seen = serve(
        lambda c: c.sendall(b"HTTP/1.1 404 No\r\nContent-Length: 9999999\r\n\r\n" + b"x" * 5000)
    )
    assert _fetch(url) == transfer.Response(404, {"content-length": "9999999"}, b"")
    assert len(seen) == 1


def test_a_slow_server_is_waited_for_and_no_cache_is_no_failure(serve, monkeypatch, tmp_path):
    monkeypatch.setattr(transfer, "LEAST_RATE", 20.0)

    def slowly(connection):
        connection.sendall(HEAD)
        for _ in range(10):
            connection.sendall(b"x" * 10)
            time.sleep(0.15)

    url, _ = serve(slowly)
    assert len(_fetch(url).body) == 100
    (tmp_path / "file").write_text("")
    cache = transfer.RangeCache(tmp_path / "file" / "folder")
    cache.keep("a", b"123")
    assert cache.read("a", 3) is None
