"""A model on the Hugging Face hub, of which only the byte ranges of the needed tensors are fetched.

The softmax layer of a 70-billion-parameter model is one gigabyte of its 140. The commit that the
revision resolves to is fixed first, so that all requests see one version, and is recorded with the
layer. The hub's client brings configuration and vocabulary into its own cache; the ranges that
were read stay in the cache folder of softgeom. `HF_ENDPOINT` and the client's token and proxy
settings are honoured.
"""

from __future__ import annotations

import functools
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from softgeom.checkpoints.folder import INDEXED, SINGLE, MergedStore, read_json, weight_map
from softgeom.checkpoints.label_files import ADDED_TOKENS, TOKEN_FILES
from softgeom.checkpoints.packages import cache_folder
from softgeom.checkpoints.safetensors_file import SafetensorsStore
from softgeom.checkpoints.tensors import TensorStore, plain
from softgeom.parallel import track
from softgeom.source import hub_reachable
from softgeom.writing import write_bytes

_BLOCK = 64 * 2**20  # bytes a request: a broken connection costs this much and no more
_PATIENCE = 10.0  # seconds without an answer


class HubModel:
    """One model repository, `owner/name` or the bare name of a canonical model, at the commit to
    which a branch, tag or commit (default `main`) resolved. ValueError if the hub cannot be
    reached or has no such model.
    """

    def __init__(self, repo_id: str, revision: str | None = None):
        _require_hub(repo_id)
        from huggingface_hub import HfApi
        from huggingface_hub.errors import (
            HFValidationError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )

        self.repo_id = repo_id
        self._endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
        try:
            about = HfApi(self._endpoint).model_info(
                repo_id, revision=revision, files_metadata=True, timeout=_PATIENCE
            )
        except (HFValidationError, RepositoryNotFoundError, RevisionNotFoundError) as error:
            raise ValueError(
                f"no file or folder {repo_id!r} here, and the hub has no such model that this "
                f"machine may read ({_reason(error)})."
            ) from error
        # the client's transport, and with it the errors, change between its versions
        except Exception as error:
            raise ValueError(
                f"{repo_id}: asking the hub failed ({_reason(error)}); try again."
            ) from error
        if not re.fullmatch(r"[0-9a-f]{40}", about.sha or ""):
            raise ValueError(
                f"{repo_id}: the hub names no commit for revision {revision or 'main'!r}; "
                "try again."
            )
        self.commit = str(about.sha)
        self._sizes = {file.rfilename: file.size or 0 for file in about.siblings or ()}

    def open(self) -> tuple[TensorStore, dict[str, Any]]:
        """The repository's tensors and `config.json` (or nothing). ValueError without safetensors
        weights: pickles cannot be read in part.
        """
        config = read_json(self._file("config.json")) if "config.json" in self._sizes else {}
        if SINGLE[0] in self._sizes:
            return self._open_file(SINGLE[0]), config
        if INDEXED[0] in self._sizes:
            shards = weight_map(read_json(self._file(INDEXED[0])), f"{self.repo_id}/{INDEXED[0]}")
            return MergedStore(shards, self._open_file, self.repo_id, self._provenance), config
        raise ValueError(
            f"{self.repo_id} has no safetensors weights at {self.commit[:12]}, so its layer "
            "cannot be read alone; download "
            "the model and pass its folder, or name a revision that has them (often refs/pr/1)."
        )

    def token_file(self) -> Path | None:
        """The vocabulary, with the files that add tokens to it beside it; None without one."""
        names = [name for name in TOKEN_FILES if name in self._sizes][:1]
        if names and names[0] != TOKEN_FILES[0]:  # a tokenizer.json holds its added tokens
            names += [name for name in ADDED_TOKENS if name in self._sizes]
        return next(iter([self._file(name) for name in names]), None)

    @property
    def _provenance(self) -> dict[str, str]:
        return {"repository": self.repo_id, "commit": self.commit}

    def _open_file(self, name: str) -> SafetensorsStore:
        if name not in self._sizes:
            raise ValueError(f"{self.repo_id}: its index names {name!r}, which is not there.")
        read = functools.partial(self._read_range, name)
        return SafetensorsStore(read, self._sizes[name], f"{self.repo_id}/{name}", self._provenance)

    def _file(self, name: str) -> Path:
        """A small file, in the client's cache."""
        from huggingface_hub import hf_hub_download

        try:
            return Path(
                hf_hub_download(self.repo_id, name, revision=self.commit, endpoint=self._endpoint)
            )
        except Exception as error:
            raise self._failed(name, error) from error

    def _read_range(self, name: str, start: int, stop: int) -> bytes:
        with track(None, f"fetching {name}", stop - start, unit="B") as bar:
            blocks = []
            for first in range(start, stop, _BLOCK):
                blocks.append(self._block(name, first, min(stop, first + _BLOCK)))
                bar.update(len(blocks[-1]))
        return b"".join(blocks)

    def _block(self, name: str, start: int, stop: int) -> bytes:
        """Bytes [start, stop) of a file, kept for the next time: a commit never changes."""
        folder = cache_folder() / "hub" / quote(self.repo_id, safe="") / self.commit
        kept = folder / f"{quote(name, safe='')}.{start}-{stop}"
        with suppress(OSError):
            if kept.stat().st_size == stop - start:
                return kept.read_bytes()
        content = self._fetch(name, start, stop)
        with suppress(OSError):
            write_bytes(kept, content)
        return content

    def _fetch(self, name: str, start: int, stop: int) -> bytes:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, http_backoff

        url = hf_hub_url(self.repo_id, name, revision=self.commit, endpoint=self._endpoint)
        asked = {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
        headers = build_hf_headers() | asked
        try:
            answer = http_backoff("GET", url, headers=headers, timeout=_PATIENCE, max_retries=2)
            hf_raise_for_status(answer)
        except Exception as error:
            raise self._failed(name, error) from error
        place = answer.headers.get("Content-Range", "").strip().partition("/")[0]
        if place != f"bytes {start}-{stop - 1}" or len(answer.content) != stop - start:
            raise ValueError(
                f"{self.repo_id}/{name}: the server sent other bytes than the range "
                f"{start}-{stop - 1}; try again, or download the model and pass its folder."
            )
        return answer.content

    def _failed(self, name: str, error: Exception) -> ValueError:
        return ValueError(f"{self.repo_id}/{name}: {_reason(error)}; try again.")


def cached_snapshot(repo_id: str, revision: str | None) -> Path | None:
    """The model's folder in the hub client's own cache (`HF_HOME`) by its commit, or None."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
    except ImportError:
        return None
    try:
        return Path(snapshot_download(repo_id, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None


def _reason(error: Exception) -> str:
    return plain(" ".join(str(error).split()) or type(error).__name__).rstrip(".")


def _require_hub(repo_id: str) -> None:
    """ValueError without a network, or without the hub's client."""
    if not hub_reachable():
        raise ValueError(
            f"no file or folder {repo_id!r} here, and the hub cannot be reached from this "
            "machine to look for a model of that "
            "name; pass a local file or folder, or try again with a network."
        )
    try:
        import huggingface_hub  # noqa: F401
    except ImportError:
        raise ValueError(
            f"no file or folder {repo_id!r} here; models on the hub need the package "
            "huggingface-hub: pip install 'softgeom[hub]'."
        ) from None
