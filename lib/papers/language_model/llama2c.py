"""Language models in the llama2.c format."""

from __future__ import annotations

from pathlib import Path

from papers.language_model import llama
from softgeom.checkpoints.llama2c import read_llama2c, read_llama2c_tokenizer


def load_llama2c(model: str | Path, tokenizer: str | Path) -> llama.Llama:
    """The whole language model of a llama2.c file and its tokenizer's; errors as of the two
    readers.
    """
    config, weights = read_llama2c(model)
    tokens, scores = read_llama2c_tokenizer(tokenizer, config.vocab_size)
    return llama.from_llama2c(config, weights, tokens, scores)
