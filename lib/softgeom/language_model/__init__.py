"""A byte-level tokenizer, a GPT that returns its internals, a training loop, and where trained models are kept."""

from __future__ import annotations

from softgeom.language_model.configuration import TrainingConfig, configuration_hash, draw_batch, learning_rate
from softgeom.language_model.encoded import EncodedText, load_encoded
from softgeom.language_model.gpt import GPT, Decoder, GPTConfig, explain_block, generate, mix_heads, rotate
from softgeom.language_model.internals import Internals, LayerInternals
from softgeom.language_model.llama import Llama, LlamaConfig
from softgeom.language_model.pieces import PieceTokenizer
from softgeom.language_model.store import (
    Trained,
    find_trained,
    load_model,
    load_trained,
    models_dir,
    save_model,
    save_trained,
)
from softgeom.language_model.tokens import BytePairTokenizer, Tokens, train_tokenizer, windows
from softgeom.language_model.training import (
    DivergedError,
    Penalty,
    Training,
    resolve_device,
    train,
    window_losses,
)

__all__ = [
    "GPT",
    "BytePairTokenizer",
    "Decoder",
    "DivergedError",
    "EncodedText",
    "GPTConfig",
    "Internals",
    "LayerInternals",
    "Llama",
    "LlamaConfig",
    "Penalty",
    "PieceTokenizer",
    "Tokens",
    "Trained",
    "Training",
    "TrainingConfig",
    "configuration_hash",
    "draw_batch",
    "explain_block",
    "find_trained",
    "generate",
    "learning_rate",
    "load_encoded",
    "load_model",
    "load_trained",
    "mix_heads",
    "models_dir",
    "resolve_device",
    "rotate",
    "save_model",
    "save_trained",
    "train",
    "train_tokenizer",
    "window_losses",
    "windows",
]
