"""The models to look inside: the GPT trained here, a small Llama-type model where there is one, and
on request a released one.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compendium import paths
from compendium.corpora import checksums
from compendium.models.language_models import load_trained
from compendium.models.vocabularies import available
from papers.language_model.decoder import Decoder, generate
from papers.language_model.llama import Llama
from papers.language_model.llama_files import load_gguf_llama, load_llama2c
from papers.language_model.tokens import windows
from softgeom.checkpoints import RELEASED
from softgeom.source import Source, announce, fetched, read_origin, sha256_of, write_origin

# Small models of Llama's type in the llama2.c format, 0.23 and 0.26 million parameters: title,
# weights, pieces. Both have the same 512 pieces.
_LOCAL = ("AI Dreams 260K", "models/aidreams260K.bin", "models/tok512.bin")
_HUB = ("TinyStories 260K", "models/stories260K/stories260K.bin", "models/stories260K/tok512.bin")
_REPOSITORY = "karpathy/tinyllamas"


@dataclass(frozen=True)
class Subject:
    """A model with its tokenizer, ready to read a sentence or to speak."""

    name: str
    model: Decoder  # in float64; a released model of a hundred million parameters in float32
    tokenizer: Any  # encode, decode, strings
    source: Source

    def read(self, text: str) -> Tensor:
        """Tokens of a text, (1, T); the model's context cuts it."""
        ids = torch.as_tensor([int(i) for i in self.tokenizer.encode(text)], dtype=torch.long)
        return ids[None, : self.model.config.n_ctx]

    @property
    def start(self) -> int:
        """The token before a text: the beginning, or the end of the document before."""
        return int(getattr(self.tokenizer, "beginning", None) or self.tokenizer.end)

    def windows(self, text: str, length: int, count: int) -> Tensor:
        """At most `count` windows (N, length + 1): `length` tokens and the one that follows."""
        enough = text[: 8 * count * (length + 1)]  # hardly a token has more than eight characters
        ids = np.asarray(self.tokenizer.encode(enough), dtype=np.int32)
        found = windows(ids, min(length, self.model.config.n_ctx), count)
        return torch.from_numpy(found.astype(np.int64))

    def beginnings(self, texts: Iterable[str], length: int, count: int) -> Tensor:
        """The first `length` tokens of the first `count` texts that are as long: (N, length)."""
        length = min(length, self.model.config.n_ctx)
        # hardly a token has more than eight characters
        read = (self.tokenizer.encode(text[: 16 * length])[:length] for text in texts)
        whole = itertools.islice((ids for ids in read if len(ids) == length), count)
        return torch.tensor([[int(i) for i in ids] for ids in whole])

    def pieces(self, tokens: Tensor) -> list[str]:
        """Tokens (T,) as labels for a figure: no blank, no line break, no half of a character."""
        return [_label(self._strings[int(token)]) for token in tokens]

    @cached_property
    def _strings(self) -> list[str]:
        return self.tokenizer.strings()

    def speak(
        self, count: int, length: int, prompt: Tensor, seed: int, temperature: float = 1.0
    ) -> Tensor:
        """Continue a prompt (P,) `count` times by draws: (count, P + length), cut by context."""
        generator = torch.Generator().manual_seed(seed)
        length = min(length, self.model.config.n_ctx - len(prompt))
        prompts = prompt.repeat(count, 1)
        return generate(self.model, prompts, length, temperature=temperature, generator=generator)


def load_subjects(profile: str) -> tuple[list[Subject], list[Source]]:
    """The GPT of a profile and, where it can be had, the Llama-type model; the sources of both."""
    trained = load_trained("gpt", profile)
    corpus = Source(**trained.about["source"])
    subjects = [Subject("GPT", _exact(trained.model), trained.tokenizer, corpus)]
    llama, source = load_released_llama()
    if llama is None or source is None:
        return subjects, [corpus]
    subjects.append(Subject("Llama", _exact(llama), llama.tokenizer, source))
    return subjects, [corpus, source]


def load_released_llama() -> tuple[Llama | None, Source | None]:
    """The first Llama-type model that can be had, and where it came from; None twice when there is
    none, neither in the data folder nor on the hub. ValueError if a file is damaged.
    """
    if _find(_LOCAL) is None and _find(_HUB) is None:
        fetched("stories260K", _fetch_from_hub)
    for title, model, tokenizer in (_LOCAL, _HUB):
        if found := _find((title, model, tokenizer)):
            origin = read_origin(found[0].parent)
            kind = "hub" if origin else "local"
            source = Source(
                title, kind, model, origin.get("commit", ""), sha256_of(found[0].read_bytes())
            )
            return load_llama2c(*map(checksums.check, found)), announce(source)
    return None, None


def load_known(name: str) -> tuple[Subject | None, str]:
    """A released language model by name (`smollm2`), fetched once by hash, or None and why it
    cannot be had. ValueError when the name is none of them, or a file is damaged.
    """
    known = [key for key, released in RELEASED.items() if released.model.path.endswith(".gguf")]
    if name not in known:
        choose = f"choose one of {', '.join(known)}"
        raise ValueError(f"no released language model is called {name!r}: {choose}")
    _, absent = available([name])
    if absent:
        return None, absent[name]
    released = RELEASED[name]
    model = load_gguf_llama(released.fetch()[0])
    return Subject(released.title.partition("-")[0], model, model.tokenizer, released.source), ""


def _find(files: tuple[str, str, str]) -> tuple[Path, Path] | None:
    model, tokenizer = (paths.find_data(relative) for relative in files[1:])
    return (model, tokenizer) if model and tokenizer else None


def _fetch_from_hub() -> None:
    from huggingface_hub import HfApi, hf_hub_download

    commit = HfApi().model_info(_REPOSITORY).sha or "main"
    folder = paths.downloads_dir() / "models"
    for relative in _HUB[1:]:
        hf_hub_download(
            _REPOSITORY, relative.removeprefix("models/"), revision=commit, local_dir=folder
        )
    write_origin(folder / "stories260K", repository=_REPOSITORY, commit=commit)


def _label(piece: str) -> str:
    if "\ufffd" in piece:  # a byte of a character that needs several
        return "‹byte›"
    text = piece.replace("<s>", "start").strip()
    return text or ("⏎" if "\n" in piece else "␣")


def _exact(model: Any) -> Any:
    return model.double().requires_grad_(False).eval()
