"""Continuing a text: each next token from the softmax, the chain rule read forwards."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


@torch.no_grad()
def generate(
    model: nn.Module,
    tokens: Tensor,
    n_new: int,
    *,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Continue a sequence by sampling each next token; every step reads the whole window, nothing
    is kept between them.

    Parameters
    ----------
    model : torch.nn.Module
        A `Decoder`, or any callable (1, T) -> (1, T, V) with ``config.n_ctx`` and ``check_tokens``.
        Only the last ``n_ctx`` tokens are read.
    tokens : (T,) integers
        The prompt, at least one token.
    n_new : int
        Tokens to add.
    temperature : float
        Logits are divided by it; 0 takes the most probable token.
    generator : torch.Generator, optional
        Source of the randomness, on the CPU.

    Returns
    -------
    (T + n_new,) integers, prompt included.
    """
    if tokens.ndim != 1 or len(tokens) == 0:
        raise ValueError(
            f"the prompt has shape {tuple(tokens.shape)}: give at least one token, as a vector."
        )
    if temperature < 0:
        raise ValueError(f"temperature is {temperature}: it must be zero (greedy) or positive.")
    config: Any = model.config
    model.check_tokens(tokens[-config.n_ctx :][None])  # type: ignore[operator]
    text = torch.cat((tokens, tokens.new_empty(n_new)))
    for stop in range(len(tokens), len(text)):
        logits = model(text[None, max(0, stop - config.n_ctx) : stop])[0, -1].float().cpu()
        if temperature == 0:
            text[stop] = logits.argmax()
        else:
            probabilities = (logits / temperature).softmax(-1)
            text[stop] = torch.multinomial(probabilities, 1, generator=generator)[0]
    return text
