"""Small random models on disk, as their own tools write them, and a hub on this machine."""

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def layer_arrays():
    """W (7, 3) and b (7,) in float32, all different."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((7, 3)).astype(np.float32), rng.standard_normal(7).astype(np.float32)


@pytest.fixture(scope="session")
def model_folders(tmp_path_factory):
    """A folder for each family, written by `transformers`, and (W, b) of the live model."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    small = dict(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    small |= dict(intermediate_size=8)
    marian = dict(vocab_size=11, decoder_vocab_size=11, d_model=8, encoder_layers=1)
    marian |= dict(decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2)
    marian |= dict(encoder_ffn_dim=8, decoder_ffn_dim=8, pad_token_id=10)
    marian |= dict(decoder_start_token_id=10, eos_token_id=0, forced_eos_token_id=0)
    gpt2 = dict(vocab_size=11, n_embd=8, n_layer=1, n_head=2)
    families = {
        "gpt2": ("GPT2LMHeadModel", "GPT2Config", gpt2),
        "llama": ("LlamaForCausalLM", "LlamaConfig", small | {"tie_word_embeddings": False}),
        "marian": ("MarianMTModel", "MarianConfig", marian),
    }
    folders = {}
    for name, (made, configured, sizes) in families.items():
        model = getattr(transformers, made)(getattr(transformers, configured)(**sizes))
        with torch.no_grad():  # random where the initialisation is constant, so that a mix-up shows
            for tensor in (*model.parameters(), *model.buffers()):
                if tensor.is_floating_point():
                    tensor.copy_(torch.randn_like(tensor))
        folder = tmp_path_factory.mktemp(name)
        model.save_pretrained(folder)
        head = model.get_output_embeddings()
        b = model.final_logits_bias[0] if name == "marian" else head.bias
        W, b = head.weight.detach().numpy(), None if b is None else b.detach().numpy()
        folders[name] = folder, W, b
        if name == "llama":
            sharded = tmp_path_factory.mktemp("sharded")
            model.save_pretrained(sharded, max_shard_size="1KB")
            folders["sharded"] = sharded, W, b
    return folders


@dataclass
class FakeHub:
    """Files served as the hub serves them, and every byte range that was asked for."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    requested: list[tuple[str, int, int]] = field(default_factory=list)
    honours_ranges: bool = True
    commit: str | None = COMMIT
    told: str | None = ""  # the range that is said to be sent, in place of the truth

    def add_folder(self, folder: Path) -> None:
        self.files.update({file.name: file.read_bytes() for file in folder.iterdir()})

    def bytes_of(self, name: str) -> int:
        return sum(stop - start for file, start, stop in self.requested if file == name)


@pytest.fixture
def hub(monkeypatch, tmp_path_factory, asked_anew):
    """A hub at 127.0.0.1 with the repository `someone/model`."""
    hub = FakeHub("")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "HF_HUB_OFFLINE"):
        for spelled in (name, name.lower()):
            monkeypatch.delenv(spelled, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("SOFTGEOM_CACHE", str(tmp_path_factory.mktemp("cache")))
    # The client reads the environment once, at its import, which another test of the session may
    # have done offline.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    cache = str(tmp_path_factory.mktemp("client"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", cache)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield hub
    server.shutdown()
    server.server_close()


def _handler(hub: FakeHub):
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.do_GET()

        def do_GET(self):
            path = self.path.split("?")[0]
            if path.startswith("/api/models/someone/model"):
                files = hub.files.items()
                siblings = [{"rfilename": name, "size": len(content)} for name, content in files]
                told = {"id": "someone/model", "sha": hub.commit, "siblings": siblings}
                self._send(200, json.dumps(told).encode())
            elif path.startswith(f"/someone/model/resolve/{COMMIT}/"):
                self._send_file(path.rsplit("/", 1)[1])
            else:
                self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})

        def _send_file(self, name: str):
            content = hub.files[name]
            if not hub.honours_ranges or "Range" not in self.headers:
                etag = hashlib.sha256(content).hexdigest()
                self._send(200, content, {"ETag": etag, "X-Repo-Commit": COMMIT})
                return
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            start, stop = int(first), min(int(last) + 1, len(content))
            hub.requested.append((name, start, stop))
            told = f"bytes {start}-{stop - 1}/{len(content)}" if hub.told == "" else hub.told
            self._send(206, content[start:stop], {} if told is None else {"Content-Range": told})

        def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None):
            self.send_response(status)
            for key, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_):
            """Nothing: the test's own output is enough."""

    return Handler
