"""A tokenizer, a GPT and a Llama that return their internals, and a training loop."""

from __future__ import annotations

from papers.extras import naming_the_extra

with naming_the_extra():
    from papers.language_model.configuration import (
        TrainingConfig,
        configuration_hash,
        draw_batch,
        learning_rate,
    )
    from papers.language_model.decoder import Decoder, explain_block, generate, mix_heads, rotate
    from papers.language_model.gpt import GPT, GPTConfig
    from papers.language_model.internals import Internals, LayerInternals
    from papers.language_model.llama import Llama, LlamaConfig
    from papers.language_model.losses import table_losses, window_losses
    from papers.language_model.tokens import BytePairTokenizer, Tokens, train_tokenizer, windows
    from papers.language_model.training import (
        DivergedError,
        Penalty,
        Training,
        resolve_device,
        train,
    )

__all__ = [
    "GPT",
    "BytePairTokenizer",
    "Decoder",
    "DivergedError",
    "GPTConfig",
    "Internals",
    "LayerInternals",
    "Llama",
    "LlamaConfig",
    "Penalty",
    "Tokens",
    "Training",
    "TrainingConfig",
    "configuration_hash",
    "draw_batch",
    "explain_block",
    "generate",
    "learning_rate",
    "mix_heads",
    "resolve_device",
    "rotate",
    "table_losses",
    "train",
    "train_tokenizer",
    "window_losses",
    "windows",
]
