"""Small language models that show what they compute: tokenizer, GPT, training."""

from __future__ import annotations

from softgeom.language_model.gpt import GPT, Decoder, GPTConfig, generate, rotate
from softgeom.language_model.internals import Internals, LayerInternals
from softgeom.language_model.llama import Llama, LlamaConfig
from softgeom.language_model.pieces import PieceTokenizer
from softgeom.language_model.tokens import BytePairTokenizer, train_tokenizer, windows

__all__ = [
    "GPT",
    "BytePairTokenizer",
    "Decoder",
    "GPTConfig",
    "Internals",
    "LayerInternals",
    "Llama",
    "LlamaConfig",
    "PieceTokenizer",
    "generate",
    "rotate",
    "train_tokenizer",
    "windows",
]
