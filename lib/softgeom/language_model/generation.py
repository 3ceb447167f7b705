"""Continuing a text: each next token from the softmax, with the keys and values of the past kept.

Attention is causal, so the keys and values of a position never change once it has been read. A `Continuation` keeps
them, (G, n_ctx, K) for each layer and side, and reads each new token alone: one row through every matrix in place of
all rows so far. For one token the cost of a small model is that of starting its operations, so queries, keys and values
come from one product, and rotations from one table of complex numbers.

When the context is full the window would slide, and every kept key would belong to another past: from there on each
token is read with a window of its own, as without a cache.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgeom.language_model.gpt import Block, Decoder


class Continuation:
    """A text that grows: `read` tokens, get the logits after the last one.

    Parameters
    ----------
    model : GPT or Llama
        Read only; weights that change afterwards are not seen.
    longest : int
        Positions to keep room for, at most `n_ctx`: 2 G K numbers each, in every layer.
    """

    def __init__(self, model: Decoder, longest: int) -> None:
        model._check_length(longest)
        self._model, self._read = model, 0
        K = model.config.d_head
        kind = torch.promote_types(model.W_E.dtype, torch.float32)
        frequency = model.config.rotary_base ** (-torch.arange(0, K, 2, dtype=kind) / K)
        angle = torch.arange(longest, dtype=kind)[:, None] * frequency  # (longest, K / 2)
        turns = torch.polar(torch.ones_like(angle), angle).to(model.W_E.device)
        self._layers = [_Layer(block, turns, longest) for block in model.blocks]  # type: ignore[arg-type]
        self._W_U = model.W_U.detach()

    def __len__(self) -> int:
        return self._read

    @torch.no_grad()
    def read(self, tokens: Tensor) -> Tensor:
        """Read (T,) tokens after what was read before; logits (V,) of what follows them.

        Raises
        ------
        ValueError
            When there is no token, or no room for as many.
        """
        start, stop = self._read, self._read + len(tokens)
        room = self._layers[0].keys.shape[1]
        if not start < stop <= room:
            raise ValueError(
                f"{len(tokens)} tokens after {start} do not fit the {room} positions kept: give 1 to {room - start}."
            )
        x = F.embedding(tokens, self._model.W_E)  # (T, D)
        for layer in self._layers:
            x = layer(x, start, stop)
        self._read = stop
        return F.linear(self._model.ln_final(x[-1]), self._W_U)


class _Layer:
    """One block with the keys and values that it has seen."""

    def __init__(self, block: Block, turns: Tensor, longest: int) -> None:
        H, _, K = block.attn.W_Q.shape
        G = block.attn.W_K.shape[0]
        weights = (block.attn.W_Q / math.sqrt(K), block.attn.W_K, block.attn.W_V)
        stacked = torch.cat([W.detach().transpose(0, 1).flatten(1) for W in weights], dim=1)
        self._W_QKV = stacked.T.contiguous()  # ((H + 2 G) K, D)
        self._W_O = block.attn.W_O.detach().flatten(0, 1).T.contiguous()  # (D, H K)
        self._ln1, self._ln2, self._mlp = block.ln1, block.ln2, block.mlp
        self._turns, self._sizes = turns, (H, G, K)
        self.keys, self._values = (self._W_QKV.new_empty(G, longest, K) for _ in range(2))

    def __call__(self, x: Tensor, start: int, stop: int) -> Tensor:
        (H, G, K), T = self._sizes, stop - start
        y = F.linear(self._ln1(x), self._W_QKV).view(T, H + 2 * G, K)
        turned = y[:, : H + G].unflatten(-1, (K // 2, 2))  # partners of a rotation as one complex number
        if turned.dtype in (torch.float32, torch.float64):
            turned = torch.view_as_real(torch.view_as_complex(turned) * self._turns[start:stop, None]).flatten(-2)
        else:  # half precision has no complex numbers: angles must not be rounded to it
            turned = torch.view_as_real(torch.view_as_complex(turned.float()) * self._turns[start:stop, None])
            turned = turned.flatten(-2).to(y.dtype)
        self.keys[:, start:stop] = turned[:, H:].transpose(0, 1)
        self._values[:, start:stop] = y[:, H + G :].transpose(0, 1)
        q = turned[:, :H].unflatten(1, (G, H // G)).permute(1, 2, 0, 3).flatten(1, 2)  # (G, H/G T, K)
        scores = q @ self.keys[:, :stop].transpose(1, 2)  # (G, H/G T, stop)
        if T > 1:
            future = torch.ones(T, stop, dtype=torch.bool, device=x.device).triu(start + 1)
            scores = scores.unflatten(1, (H // G, T)).masked_fill(future, -torch.inf).flatten(1, 2)
        z = (scores.softmax(-1) @ self._values[:, :stop]).unflatten(1, (H // G, T))  # (G, H/G, T, K)
        x = x + F.linear(z.permute(2, 0, 1, 3).reshape(T, H * K), self._W_O)
        return x + self._mlp(self._ln2(x))


@torch.no_grad()
def generate(
    model: nn.Module,
    tokens: Tensor,
    n_new: int,
    *,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
    cache: bool = True,
) -> Tensor:
    """Continue a sequence by sampling each next token from the softmax (the chain rule read forwards).

    Parameters
    ----------
    model : Decoder, or without a cache any callable (1, T) -> (1, T, V) with ``config.n_ctx`` and ``check_tokens``
        Only the last ``n_ctx`` tokens are read.
    tokens : (T,) integers
        The prompt, at least one token.
    n_new : int
        Tokens to add.
    temperature : float
        Logits are divided by it; 0 takes the most probable token.
    generator : torch.Generator, optional
        Source of the randomness, on the CPU.
    cache : bool
        Whether keys and values of the past are kept: the same tokens, sooner.

    Returns
    -------
    (T + n_new,) integers, prompt included.
    """
    if tokens.ndim != 1 or len(tokens) == 0:
        raise ValueError(f"the prompt has shape {tuple(tokens.shape)}: give at least one token, as a vector.")
    if temperature < 0:
        raise ValueError(f"temperature is {temperature}: it must be zero (greedy) or positive.")
    config: Any = model.config
    n_ctx: int = config.n_ctx
    model.check_tokens(tokens[-n_ctx:][None])  # type: ignore[operator]
    T = len(tokens)
    text = torch.cat((tokens, tokens.new_empty(n_new)))
    kept: Continuation | None = None
    if cache and isinstance(model, Decoder) and n_new > 0 and n_ctx >= T:
        kept = Continuation(model, min(n_ctx, T + n_new - 1))
    for stop in range(T, T + n_new):
        if kept is not None and stop <= n_ctx:
            logits = kept.read(text[len(kept) : stop])
        else:
            logits = model(text[None, max(0, stop - n_ctx) : stop])[0, -1]
        text[stop] = _draw(logits.float().cpu(), temperature, generator)
    return text


def _draw(logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
    if temperature == 0:
        return logits.argmax()
    return torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)[0]
