"""Continuing a text: each next token from the softmax, with the keys and values of the past kept.

Attention is causal, so the keys and values of a position never change once it has been read. A
`Continuation` keeps them, (G, n_ctx, K) for each layer and side, and reads each new token alone:
one row through every matrix in place of all rows so far. For one token the cost of a small model is
that of starting its operations, which NumPy does five times sooner than PyTorch: so a continuation
runs in NumPy, on the model's own memory; queries, keys and values come from one product, rotations
from one table of complex numbers.

When the context is full the window would slide, and every kept key would belong to another past:
from there on each token is read with a window of its own, as without a cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit, ndtr
from torch import Tensor, nn

from softgeom.language_model.gpt import Block, Decoder

Array = NDArray[Any]  # float32 or float64, as the model


class Continuation:
    """A text that grows: `read` tokens, get the logits after the last one. The model, on the CPU in
    float32 or float64, shares most of its weights: do not train it meanwhile. Room is kept for
    ``longest`` <= `n_ctx` positions, 2 G K numbers each in every layer.
    """

    def __init__(self, model: Decoder, longest: int) -> None:
        model._check_length(longest)
        if not can_continue(model):
            raise ValueError(
                f"a model in {model.W_E.dtype} on {model.W_E.device} cannot keep its past: "
                "take float32 or float64 on the CPU."
            )
        K, kind = model.config.d_head, _array(model.W_E).dtype
        frequency = model.config.rotary_base ** (-np.arange(0, K, 2) / K)
        turns = np.exp(1j * np.arange(longest)[:, None, None] * frequency)  # (longest, 1, K / 2)
        turns = turns.astype(np.result_type(kind, np.complex64))
        self._layers = [_Layer(block, turns, longest) for block in model.blocks]  # type: ignore[arg-type]
        self._W_E, self._W_U, self._norm = (
            _array(model.W_E),
            _array(model.W_U).T,
            _norm(model.ln_final),
        )
        self._room, self._read = longest, 0

    def __len__(self) -> int:
        return self._read

    def read(self, tokens: Tensor) -> Tensor:
        """Read (T,) tokens after what was read before; logits (V,) of what follows them. ValueError
        if there is no token, or no room for as many.
        """
        start, stop = self._read, self._read + len(tokens)
        if not start < stop <= self._room:
            raise ValueError(
                f"{len(tokens)} tokens after {start} do not fit the {self._room} positions "
                f"kept: give 1 to {self._room - start}."
            )
        x = self._W_E[tokens.numpy()]  # (T, D)
        for layer in self._layers:
            x = layer(x, start, stop)
        self._read = stop
        return torch.from_numpy((self._norm(x[-1:]) @ self._W_U)[0])


def can_continue(model: Any) -> bool:
    """Whether a `Continuation` can be made: a model of this package on the CPU, no half floats."""
    return (
        isinstance(model, Decoder)
        and model.W_E.device.type == "cpu"
        and model.W_E.dtype in (torch.float32, torch.float64)
    )


class _Layer:
    """One block with the keys and values that it has seen."""

    def __init__(self, block: Block, turns: Array, longest: int) -> None:
        H, _, K = block.attn.W_Q.shape
        G = block.attn.W_K.shape[0]
        weights = (
            _array(block.attn.W_Q) / math.sqrt(K),
            _array(block.attn.W_K),
            _array(block.attn.W_V),
        )
        self._W_QKV = np.concatenate(
            [W.transpose(1, 0, 2).reshape(W.shape[1], -1) for W in weights], axis=1
        )
        self._W_QKV = self._W_QKV.astype(weights[1].dtype)  # (D, (H + 2 G) K)
        self._W_O = _array(block.attn.W_O).reshape(H * K, -1)
        self._ln1, self._ln2, self._mlp = _norm(block.ln1), _norm(block.ln2), _network(block.mlp)
        self._turns, self._sizes = turns, (H, G, K)
        self._keys, self._values = (np.empty((G, longest, K), weights[1].dtype) for _ in range(2))

    def __call__(self, x: Array, start: int, stop: int) -> Array:
        (H, G, K), T = self._sizes, stop - start
        y = self._ln1(x) @ self._W_QKV  # (T, (H + 2 G) K)
        pairs = (
            y[:, : (H + G) * K].view(self._turns.dtype).reshape(T, H + G, K // 2)
        )  # partners of a rotation as one number
        turned = (pairs * self._turns[start:stop]).view(y.dtype)  # (T, H + G, K)
        self._keys[:, start:stop] = turned[:, H:].transpose(1, 0, 2)
        self._values[:, start:stop] = y[:, (H + G) * K :].reshape(T, G, K).transpose(1, 0, 2)
        q = turned[:, :H].reshape(T, G, H // G, K).transpose(1, 2, 0, 3).reshape(G, H // G * T, K)
        scores = q @ self._keys[:, :stop].transpose(0, 2, 1)  # (G, H/G T, stop)
        if T > 1:
            future = np.triu(np.ones((T, stop), dtype=bool), start + 1)
            scores.reshape(G, H // G, T, stop)[:, :, future] = -np.inf
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        z = (
            (scores @ self._values[:, :stop])
            .reshape(G, H // G, T, K)
            .transpose(2, 0, 1, 3)
            .reshape(T, H * K)
        )
        x = x + z @ self._W_O
        return x + self._mlp(self._ln2(x))


def _array(parameter: Tensor) -> Array:
    return parameter.detach().numpy()


def _norm(norm: Any) -> Callable[[Array], Array]:
    """LayerNorm or RMSNorm of rows."""
    gain, eps, D = _array(norm.w), float(norm.eps), len(norm.w)
    shift = _array(norm.b) if hasattr(norm, "b") else None

    def apply(x: Array) -> Array:
        if shift is not None:
            x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).sum(-1, keepdims=True) / D + eps) * gain
        return x if shift is None else x + shift

    return apply


def _network(mlp: Any) -> Callable[[Array], Array]:
    """The feed-forward network of either model on rows."""
    W_in, W_out = _array(mlp.W_in), _array(mlp.W_out)
    if hasattr(mlp, "W_gate"):
        W_gate = _array(mlp.W_gate)

        def gated(y: Array) -> Array:
            gate = y @ W_gate
            return (gate * expit(gate) * (y @ W_in)) @ W_out

        return gated
    b_in, b_out = _array(mlp.b_in), _array(mlp.b_out)

    def plain(y: Array) -> Array:
        pre = y @ W_in + b_in
        return (pre * ndtr(pre)) @ W_out + b_out  # GELU: x times the normal distribution function

    return plain


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
    """Continue a sequence by sampling each next token (the chain rule read forwards).

    Parameters
    ----------
    model : torch.nn.Module
        A `Decoder`; without a cache any callable (1, T) -> (1, T, V) with ``config.n_ctx`` and
        ``check_tokens``. Only the last ``n_ctx`` tokens are read.
    tokens : (T,) integers
        The prompt, at least one token.
    n_new : int
        Tokens to add.
    temperature : float
        Logits are divided by it; 0 takes the most probable token.
    generator : torch.Generator, optional
        Source of the randomness, on the CPU.
    cache : bool
        Whether keys and values of the past are kept, where they can be (`can_continue`): the same
        tokens, sooner.

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
    n_ctx: int = config.n_ctx
    model.check_tokens(tokens[-n_ctx:][None])  # type: ignore[operator]
    T = len(tokens)
    text = torch.cat((tokens, tokens.new_empty(n_new)))
    kept: Continuation | None = None
    if cache and n_new > 0 and n_ctx >= T and can_continue(model):
        kept = Continuation(model, min(n_ctx, T + n_new - 1))  # type: ignore[arg-type]
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
