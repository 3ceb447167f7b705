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
    """Continue texts by sampling each next token; every step reads the whole window, nothing is
    kept between them.

    Parameters
    ----------
    model : torch.nn.Module
        A `Decoder`, or any callable (B, T) -> (B, T, V) with ``config.n_ctx`` and ``check_tokens``.
        Only the last ``n_ctx`` tokens are read.
    tokens : (..., T) integers
        The prompts, at least one token each.
    n_new : int
        Tokens to add.
    temperature : float
        Logits are divided by it; 0 takes the most probable token.
    generator : torch.Generator, optional
        Source of the randomness, on the CPU.

    Returns
    -------
    (..., T + n_new) integers, prompts included.
    """
    if not tokens.ndim or not tokens.numel():
        raise ValueError(
            f"the prompt has shape {tuple(tokens.shape)}: give at least one token, as a vector."
        )
    if temperature < 0:
        raise ValueError(f"temperature is {temperature}: it must be zero (greedy) or positive.")
    config: Any = model.config
    model.check_tokens(tokens[..., -config.n_ctx :])  # type: ignore[operator]
    texts = torch.cat((tokens, tokens.new_empty(*tokens.shape[:-1], n_new)), -1)
    rows = texts.view(-1, texts.shape[-1])
    for stop in range(tokens.shape[-1], texts.shape[-1]):
        logits = model(rows[:, max(0, stop - config.n_ctx) : stop])[:, -1].cpu()
        if temperature == 0:
            rows[:, stop] = logits.argmax(-1)
        else:
            fine = logits.to(torch.promote_types(logits.dtype, torch.float32))
            probabilities = (fine / temperature).softmax(-1)
            rows[:, stop] = torch.multinomial(probabilities, 1, generator=generator)[:, 0]
    return texts
