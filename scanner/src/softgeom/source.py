"""Where a piece of data came from, and whether the hub can be asked for it."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

from softgeom.writing import write_text

logger = logging.getLogger("softgeom")

_PROBE_SECONDS = 1.0
_announced: set[Source] = set()  # said once per process, however often a corpus is loaded
# beside files that were fetched from a hub: repository, configuration and resolved commit
_ORIGIN_FILE = "ORIGIN.json"


@dataclass(frozen=True)
class Source:
    """Origin of a corpus or model, as it is printed on figures and written into results.

    Attributes
    ----------
    name
        What the data are, in a reader's words.
    kind
        `"local"` (a folder), `"hub"` (Hugging Face), `"package"` (files inside an installed Python
        package), `"computed"` (made by an earlier notebook), or `"embedded"` (the stand-in).
    detail
        Which file, repository or generator; never an absolute path.
    revision
        Resolved commit on the hub, or version of the package; empty where there is none.
    sha256
        Hash of the content that was read; empty where the file is too large to hash at each start.
    """

    name: str
    kind: str
    detail: str = ""
    revision: str = ""
    sha256: str = ""

    @property
    def stand_in(self) -> bool:
        """Whether this is a stand-in for data that could not be had."""
        return self.kind == "embedded"

    def __str__(self) -> str:
        place = {
            "local": "local folder",
            "hub": "Hugging Face hub",
            "embedded": "embedded stand-in",
        }.get(self.kind, self.kind)
        return f"{self.name} ({place}{f', {self.revision[:12]}' if self.revision else ''})"


def announce(source: Source) -> Source:
    """Say once, in the log and so in the executed notebook, which data are used."""
    if source not in _announced:
        _announced.add(source)
        logger.warning(
            "data: %s%s", source, f": {source.detail}" if source.stand_in and source.detail else ""
        )
    return source


def sha256_of(content: bytes) -> str:
    """Hexadecimal SHA-256."""
    return hashlib.sha256(content).hexdigest()


def read_origin(folder: Path) -> dict[str, str]:
    """What is known about a local folder that was filled from a hub; empty if nothing."""
    path = folder / _ORIGIN_FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write_origin(folder: Path, **facts: str) -> None:
    """Note beside fetched files where they came from, for runs that find them locally."""
    write_text(folder / _ORIGIN_FILE, json.dumps(facts, indent=2, sort_keys=True) + "\n")


@functools.cache
def hub_reachable() -> bool:
    """Whether the hub answers: one probe of at most a second per process, made before any hub
    library is imported.

    Honours `HF_ENDPOINT` and `HF_HUB_OFFLINE`. When the answer is no, `HF_HUB_OFFLINE=1` is set for
    the rest of the process, so that the hub's client does not spend half a minute on retries.
    """
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "true", "yes", "on"}:
        return False
    if os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy"):
        return True  # the probe below would bypass the proxy and say nothing about it
    endpoint = urlparse(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    address = (
        endpoint.hostname or "huggingface.co",
        endpoint.port or (80 if endpoint.scheme == "http" else 443),
    )
    answers: list[bool] = []
    # Name resolution ignores socket time-outs, so the probe runs in a thread that may be left
    # behind.
    probe = threading.Thread(target=lambda: answers.append(_connects(address)), daemon=True)
    probe.start()
    probe.join(_PROBE_SECONDS)
    if answers == [True]:
        return True
    os.environ["HF_HUB_OFFLINE"] = "1"
    logger.warning("hub: %s does not answer; going on without it", address[0])
    return False


def fetched(name: str, download: Callable[[], None]) -> bool:
    """Fetch from the hub; False when it does not answer or breaks off (said in the log)."""
    if not hub_reachable():
        return False
    try:
        download()
    # the client's transport, and with it the errors, change between its versions
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        logger.warning("hub: %s could not be fetched (%s); going on without it", name, reason)
        return False
    return True


def _connects(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, timeout=_PROBE_SECONDS):
            return True
    except OSError:
        return False
