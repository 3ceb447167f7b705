"""A model on the Hugging Face hub, of which only the byte ranges of the needed tensors are fetched.

The softmax layer of a 70-billion-parameter model is one gigabyte of its 140. Each file is asked for its size and header by two small
range requests; then W, b and the final norm are read where they stand. The commit that the revision resolves to is fixed
first, so that all requests see one version, and is recorded with the layer. `HF_ENDPOINT` and the hub client's token and
proxy settings are honoured.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from softgeom.checkpoints.folder import INDEXED, SINGLE, shard_openers, weight_map
from softgeom.checkpoints.safetensors_file import SafetensorsStore
from softgeom.checkpoints.tensors import MergedStore, TensorStore
from softgeom.checkpoints.token_strings import TOKEN_FILES

_CHUNK = 64 * 2**20  # bytes a request: a broken connection costs this much and no more
_TIMEOUT = 30.0  # seconds without an answer


class HubModel:
    """One model repository at one commit.

    Parameters
    ----------
    repo_id : str
        `owner/name`, or the bare name of a canonical model.
    revision : str, optional
        Branch, tag or commit; `main` by default.

    Attributes
    ----------
    commit : str
        What the revision resolved to.

    Raises
    ------
    ValueError
        When the hub cannot be reached (noticed within a second or so) or has no such model.
    """

    def __init__(self, repo_id: str, revision: str | None = None):
        _require_network(repo_id)
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError

        self.repo_id, self._endpoint = repo_id, os.environ.get("HF_ENDPOINT", "https://huggingface.co")
        try:
            info = HfApi(endpoint=self._endpoint).model_info(repo_id, revision=revision, timeout=_TIMEOUT)
        except (HfHubHTTPError, HFValidationError) as error:
            reason = str(error).strip().splitlines()[0]
            raise ValueError(
                f"no file or folder {repo_id!r} here, and the hub has no such model that this machine may read ({reason})."
            ) from error
        except Exception as error:  # the client's transport errors derive from no common public class
            raise ValueError(
                f"{repo_id}: asking the hub failed ({type(error).__name__}: {error}); try again."
            ) from error
        self.commit = str(info.sha)
        self._files = {sibling.rfilename for sibling in info.siblings or []}

    def open(self) -> tuple[TensorStore, dict[str, Any]]:
        """The repository's tensors and its `config.json` (empty where there is none).

        Raises
        ------
        ValueError
            When there are no safetensors weights: pickles cannot be read in part.
        """
        provenance = {"repository": self.repo_id, "commit": self.commit}
        config = self._json("config.json") if "config.json" in self._files else {}
        if SINGLE[0] in self._files:
            return self._open_file(SINGLE[0]), config
        if INDEXED[0] in self._files:
            shards = weight_map(self._json(INDEXED[0]), f"{self.repo_id}/{INDEXED[0]}")
            return MergedStore(shard_openers(shards, self._open_file), self.repo_id, provenance), config
        raise ValueError(
            f"{self.repo_id} has no safetensors weights at {self.commit[:12]}, so its layer cannot be read alone; download "
            "the model and pass its folder, or name a revision that has them (often refs/pr/1)."
        )

    def token_file(self) -> tuple[str, bytes] | None:
        """Name and content of the vocabulary, or None."""
        name = next((name for name in TOKEN_FILES if name in self._files), None)
        return (name, self._whole(name)) if name else None

    def _open_file(self, name: str) -> SafetensorsStore:
        return SafetensorsStore(
            functools.partial(self._read_range, name),
            self._size(name),
            f"{self.repo_id}/{name}",
            {"repository": self.repo_id, "commit": self.commit},
        )

    def _url(self, name: str) -> str:
        from huggingface_hub import hf_hub_url

        return hf_hub_url(self.repo_id, name, revision=self.commit, endpoint=self._endpoint)

    def _get(self, name: str, byte_range: str) -> Any:
        from huggingface_hub.utils import build_hf_headers, get_session

        headers = {**build_hf_headers(), "Range": f"bytes={byte_range}", "Accept-Encoding": "identity"}
        try:
            answer = get_session().get(self._url(name), headers=headers, timeout=_TIMEOUT, follow_redirects=True)
        except OSError as error:
            raise ValueError(f"{self.repo_id}/{name}: the connection broke ({error}); try again.") from error
        except Exception as error:  # the client's transport errors derive from no common public class
            raise ValueError(f"{self.repo_id}/{name}: the request failed ({type(error).__name__}: {error}).") from error
        if answer.status_code != 206:
            raise ValueError(
                f"{self.repo_id}/{name}: the server answered {answer.status_code} to a request for bytes {byte_range}, so the "
                "layer cannot be read without the whole file; download the model and pass its folder."
            )
        return answer

    def _size(self, name: str) -> int:
        return int(self._get(name, "0-0").headers["content-range"].rsplit("/", 1)[1])

    def _read_range(self, name: str, start: int, stop: int) -> bytes:
        parts = []
        for position in range(start, stop, _CHUNK):
            wanted = min(stop, position + _CHUNK) - position
            content = self._get(name, f"{position}-{position + wanted - 1}").content
            if len(content) != wanted:
                raise ValueError(
                    f"{self.repo_id}/{name}: {wanted - len(content)} of {wanted} bytes did not arrive; try again."
                )
            parts.append(content)
        return b"".join(parts)

    def _whole(self, name: str) -> bytes:
        return self._read_range(name, 0, self._size(name))

    def _json(self, name: str) -> dict[str, Any]:
        import json

        try:
            content = json.loads(self._whole(name))
        except ValueError as error:
            raise ValueError(f"{self.repo_id}/{name} is no JSON file ({error}).") from error
        return content if isinstance(content, dict) else {}


def _require_network(repo_id: str) -> None:
    from softgeom.source import hub_reachable

    if not hub_reachable():
        raise ValueError(
            f"no file or folder {repo_id!r} here, and the hub cannot be reached from this machine to look for a model of that "
            "name; pass a local file or folder, or try again with a network."
        )
