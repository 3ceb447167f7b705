"""A model on the Hugging Face hub, of which only the byte ranges of the needed tensors are fetched.

The softmax layer of a 70-billion-parameter model is one gigabyte of its 140. Each file is asked for
its size and header by two small range requests; then W, b and the final norm are read where they
stand. The commit that the revision resolves to is fixed first, so that all requests see one
version, and is recorded with the layer. `HF_ENDPOINT` and the hub client's token and proxy settings
are honoured. What `transfer` allows a server, in bytes and in seconds, is all that it gets.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

from softgeom.checkpoints.folder import INDEXED, SINGLE, MergedStore, parse_json, weight_map
from softgeom.checkpoints.packages import cache_folder
from softgeom.checkpoints.safetensors_file import SafetensorsStore
from softgeom.checkpoints.tensors import TensorStore
from softgeom.checkpoints.token_strings import ADDED_TOKENS, TOKEN_FILES
from softgeom.checkpoints.transfer import RangeCache, Response, TransferError, fetch
from softgeom.progress import track
from softgeom.source import hub_reachable

_BLOCK = 64 * 2**20  # bytes a request: a broken connection costs this much and no more
# bytes of a listing, a configuration or an index; the largest known are under 10 MB
_MAX_JSON = 24 * 2**20
_MAX_VOCABULARY = 256 * 2**20
_MAX_FILE = 2**44  # bytes: what claims to be larger than 16 TB is no file of weights
_SHOWN = 16 * 2**20  # bytes from which a transfer shows progress


class HubModel:
    """One model repository, `owner/name` or the bare name of a canonical model, at the commit to
    which a branch, tag or commit (default `main`) resolved. ValueError if the hub cannot be
    reached, has no such model, or sends what is no answer.
    """

    def __init__(self, repo_id: str, revision: str | None = None):
        _require_network(repo_id)
        from huggingface_hub.errors import HFValidationError
        from huggingface_hub.utils import validate_repo_id

        self.repo_id = repo_id
        self._endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
        try:
            validate_repo_id(repo_id)
        except HFValidationError as error:
            reason = str(error).strip().partition("\n")[0].rstrip(".")
            raise ValueError(f"{_no_such_model(repo_id)} ({reason}).") from error
        listing = self._listing(revision or "main")
        commit, siblings = listing.get("sha"), listing.get("siblings")
        if not isinstance(commit, str) or not re.fullmatch(r"[0-9a-f]{40}", commit):
            raise ValueError(
                f"{repo_id}: the hub names no commit for revision {revision or 'main'!r}; "
                "try again."
            )
        self.commit = commit
        entries = siblings if isinstance(siblings, list) else []
        names = (entry.get("rfilename") for entry in entries if isinstance(entry, dict))
        self._files = {name for name in names if isinstance(name, str)}
        self._cache = RangeCache(cache_folder() / "hub" / quote(repo_id, safe="") / commit)

    def open(self) -> tuple[TensorStore, dict[str, Any]]:
        """The repository's tensors and `config.json` (or nothing). ValueError without safetensors
        weights: pickles cannot be read in part.
        """
        provenance = {"repository": self.repo_id, "commit": self.commit}
        config = self._json("config.json") if "config.json" in self._files else {}
        if SINGLE[0] in self._files:
            return self._open_file(SINGLE[0]), config
        if INDEXED[0] in self._files:
            shards = weight_map(self._json(INDEXED[0]), f"{self.repo_id}/{INDEXED[0]}")
            return MergedStore(shards, self._open_file, self.repo_id, provenance), config
        raise ValueError(
            f"{self.repo_id} has no safetensors weights at {self.commit[:12]}, so its layer "
            "cannot be read alone; download "
            "the model and pass its folder, or name a revision that has them (often refs/pr/1)."
        )

    def token_files(self) -> dict[str, bytes]:
        """The vocabulary, and the files that add tokens to it, by name; nothing without one."""
        names = [name for name in TOKEN_FILES if name in self._files][:1]
        if names and names[0] != TOKEN_FILES[0]:  # a tokenizer.json holds its added tokens
            names += [name for name in ADDED_TOKENS if name in self._files]
        return {name: self._whole(name, _MAX_VOCABULARY) for name in names}

    def _open_file(self, name: str) -> SafetensorsStore:
        return SafetensorsStore(
            functools.partial(self._read_range, name),
            self._size(name),
            f"{self.repo_id}/{name}",
            {"repository": self.repo_id, "commit": self.commit},
        )

    def _listing(self, revision: str) -> dict[str, Any]:
        """What the hub says about the repository at a revision: commit and names of files."""
        url = f"{self._endpoint}/api/models/{quote(self.repo_id)}/revision/"
        failed = f"{self.repo_id}: asking the hub failed:"
        try:
            answer = self._fetch(url + quote(revision, safe=""), {}, _MAX_JSON)
        except TransferError as error:
            raise ValueError(f"{failed} {error}; try again.") from error
        if answer.status in (401, 403, 404):
            raise ValueError(
                f"{_no_such_model(self.repo_id)} (it answered {answer.status} for revision "
                f"{revision!r})."
            )
        if answer.status != 200:
            raise ValueError(f"{failed} it answered {answer.status}; try again.")
        listing = parse_json(answer.body, f"the hub's answer about {self.repo_id}")
        return listing if isinstance(listing, dict) else {}

    @staticmethod
    def _fetch(
        url: str, headers: dict[str, str], cap: int, status: int = 200, progress: Any = None
    ) -> Response:
        from huggingface_hub.utils import build_hf_headers, get_session

        # the client leaves the token out where a redirection leads to another host
        headers = {**build_hf_headers(), **headers}
        return fetch(url, headers, cap, session=get_session(), status=status, progress=progress)

    def _get(self, name: str, start: int, stop: int, progress: Any = None) -> tuple[bytes, int]:
        """Bytes [start, stop) of a file, and the size that the server gives the file."""
        from huggingface_hub import hf_hub_url

        url = hf_hub_url(self.repo_id, name, revision=self.commit, endpoint=self._endpoint)
        asked = f"{start}-{stop - 1}"
        try:
            answer = self._fetch(url, {"Range": f"bytes={asked}"}, stop - start, 206, progress)
        except TransferError as error:
            raise ValueError(f"{self.repo_id}/{name}: {error}; try again.") from error
        if answer.status != 206:
            raise ValueError(
                f"{self.repo_id}/{name}: the server answered {answer.status} to a request for "
                f"bytes {asked}, so the layer cannot be read without the whole file; download the "
                "model and pass its folder."
            )
        said = answer.headers.get("content-range", "").strip()
        told = re.fullmatch(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", said)
        sent = (start, start + len(answer.body))
        if told is None or (int(told[1]), int(told[2]) + 1) != sent or not answer.body:
            raise ValueError(
                f"{self.repo_id}/{name}: the server sent other bytes than the range {asked}; "
                "try again."
            )
        return answer.body, int(told[3])

    def _size(self, name: str) -> int:
        size = self._get(name, 0, 1)[1]
        if size > _MAX_FILE:
            raise ValueError(
                f"{self.repo_id}/{name}: the server claims an impossible size of {size:,} bytes."
            )
        return size

    def _read_range(self, name: str, start: int, stop: int) -> bytes:
        blocks = [(first, min(stop, first + _BLOCK)) for first in range(start, stop, _BLOCK)]
        if stop - start < _SHOWN:
            return b"".join(self._block(name, *block) for block in blocks)
        with track(None, f"fetching {name}", stop - start, unit="B") as bar:
            return b"".join(self._block(name, *block, progress=bar.update) for block in blocks)

    def _block(self, name: str, start: int, stop: int, progress: Any = None) -> bytes:
        key = f"{quote(name, safe='')}.{start}-{stop}"
        if (kept := self._cache.read(key, stop - start)) is not None:
            return kept
        content, _ = self._get(name, start, stop, progress)
        if len(content) != stop - start:
            raise ValueError(
                f"{self.repo_id}/{name}: {stop - start - len(content)} of {stop - start} "
                "bytes did not arrive; try again."
            )
        self._cache.keep(key, content)
        return content

    def _whole(self, name: str, most: int) -> bytes:
        size = self._size(name)
        if size > most:
            raise ValueError(
                f"{self.repo_id}/{name} has {size:,} bytes, more than the {most:,} that such "
                "a file may have."
            )
        return self._read_range(name, 0, size)

    def _json(self, name: str) -> dict[str, Any]:
        content = parse_json(self._whole(name, _MAX_JSON), f"{self.repo_id}/{name}")
        return content if isinstance(content, dict) else {}


def cached_snapshot(repo_id: str, revision: str | None) -> Path | None:
    """The model's folder in the hub client's own cache (`HF_HOME`) by its commit, or None."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repo_id, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None


def _no_such_model(repo_id: str) -> str:
    return (
        f"no file or folder {repo_id!r} here, and the hub has no such model that this machine "
        "may read"
    )


def _require_network(repo_id: str) -> None:
    if not hub_reachable():
        raise ValueError(
            f"no file or folder {repo_id!r} here, and the hub cannot be reached from this "
            "machine to look for a model of that "
            "name; pass a local file or folder, or try again with a network."
        )
