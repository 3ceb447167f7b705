"""A decoder-only transformer that returns what it computes: the parts that GPT and Llama share.

Pre-norm blocks: attention, then a feed-forward network, each reading a norm N of the residual
stream and adding to it. With states as rows and TransformerLens's names,

    x <- W_E[tokens]
    x <- x + sum_h softmax(q_h k_h^T / sqrt(d_head)) v_h W_O_h
    x <- x + network(N(x))
    logits = N(x) W_U^T,

where q_h and k_h are N(x) W_Q_h and N(x) W_K_h with each adjacent pair of coordinates turned by an
angle proportional to the position (Su et al. 2021), so that q_i . k_j depends on positions only
through i - j. A model runs in the floating-point type of its weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from papers.language_model.internals import Internals, LayerInternals

Steps = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]  # a norm or an MLP that explains itself


def rotate(x: Tensor, base: float, offset: int = 0) -> Tensor:
    """Turn each adjacent pair of coordinates of queries or keys (..., T, d_head) at positions
    ``offset, ...`` by ``position * base**(-2 pair / d_head)``: wavelengths grow from 2 pi to 2 pi
    base.
    """
    T, d_head = x.shape[-2:]
    # Angles in at least single precision: bfloat16 cannot tell neighbouring positions beyond 256
    # apart.
    kind = torch.promote_types(x.dtype, torch.float32)
    frequency = base ** (-torch.arange(0, d_head, 2, device=x.device, dtype=kind) / d_head)
    # (T, d_head / 2)
    angle = torch.arange(offset, offset + T, device=x.device, dtype=kind)[:, None] * frequency
    pairs = x.to(kind).unflatten(-1, (-1, 2))
    if torch.compiler.is_compiling():
        # A compiler writes no kernels for complex numbers; it fuses these products instead.
        (even, odd), (cos, sin) = pairs.unbind(-1), (angle.cos(), angle.sin())
        turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
    else:
        turned = torch.view_as_real(
            torch.view_as_complex(pairs) * torch.polar(torch.ones_like(angle), angle)
        )
    return turned.flatten(-2).to(x.dtype)


class Attention(nn.Module):
    """Causal self-attention with one set of factors per head; query head h reads key and value head
    number h // (H / G) of ``n_kv_heads`` = G, by default its own.
    """

    def __init__(self, config: Any, n_kv_heads: int | None = None) -> None:
        super().__init__()
        H, D, K = config.n_heads, config.d_model, config.d_head
        G = n_kv_heads or H
        self.W_Q = nn.Parameter(torch.empty(H, D, K))
        self.W_K = nn.Parameter(torch.empty(G, D, K))
        self.W_V = nn.Parameter(torch.empty(G, D, K))
        self.W_O = nn.Parameter(torch.empty(H, K, D))
        self.base = config.rotary_base
        self.group = H // G  # query heads that share one key and value head

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries, rotated keys and values, each (B, H, T, K)."""
        # (H + 2 G, D, K): one product instead of three
        heads = torch.cat((self.W_Q, self.W_K, self.W_V))
        H, G = len(self.W_Q), len(self.W_K)
        # (B, H + 2 G, T, K)
        y = (x @ heads.transpose(0, 1).flatten(1)).unflatten(-1, (H + 2 * G, -1)).transpose(1, 2)
        turned, v = y.split((H + G, G), 1)
        q, k = rotate(turned, self.base).split((H, G), 1)
        if self.group > 1:
            k, v = k.repeat_interleave(self.group, 1), v.repeat_interleave(self.group, 1)
        return q, k, v

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, H, T, K)
        return z.transpose(1, 2).flatten(2) @ self.W_O.flatten(0, 1)

    def explain(self, x: Tensor) -> dict[str, Tensor]:
        """The same in steps, as :func:`mix_heads` names them."""
        return mix_heads(*self.project(x), self.W_O)


def mix_heads(q: Tensor, k: Tensor, v: Tensor, W_O: Tensor) -> dict[str, Tensor]:
    """Causal attention written out: queries, keys, values (B, H, T, K) and W_O (H, K, D) to the
    fields ``q``, ``k``, ``v``, ``scores``, ``pattern``, ``z`` and ``head_out`` of
    :class:`LayerInternals`.
    """
    future = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
    # (B, H, T, T)
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(future, -torch.inf)
    pattern = scores.softmax(-1)
    z = pattern @ v  # (B, H, T, K)
    head_out = torch.einsum("bhtk,hkd->bthd", z, W_O)
    fields = {"q": q, "k": k, "v": v, "scores": scores, "pattern": pattern, "z": z}
    return fields | {"head_out": head_out}


class Block(nn.Module):
    """A pre-norm block: attention and a feed-forward network, each reading a normalised stream and
    adding to it; each part has an ``explain`` beside its ``forward``, for :func:`explain_block`.
    """

    ln1: Any
    attn: Any
    ln2: Any
    mlp: Any

    def __init__(self, ln1: nn.Module, attn: nn.Module, ln2: nn.Module, mlp: nn.Module) -> None:
        super().__init__()
        self.ln1, self.attn, self.ln2, self.mlp = ln1, attn, ln2, mlp

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))

    def explain(self, x: Tensor) -> LayerInternals:
        """The same block, step by step."""
        return explain_block(
            x, self.ln1.explain, self.attn.explain, self.ln2.explain, self.mlp.explain
        )


def explain_block(
    x: Tensor, ln1: Steps, attention: Callable[[Tensor], dict[str, Tensor]], ln2: Steps, mlp: Steps
) -> LayerInternals:
    """Every intermediate value of a pre-norm block on a stream (B, T, D), from parts that explain
    themselves: a norm by scale, state before gain and bias, output; attention as
    :func:`mix_heads` does; the network by its values before the activation function, after it, and
    its output.
    """
    ln1_scale, ln1_normalized, attn_in = ln1(x)
    heads = attention(attn_in)
    heads.setdefault("attn_bias", x.new_zeros(x.shape[-1]))
    resid_mid = x + heads["head_out"].sum(2) + heads["attn_bias"]
    ln2_scale, ln2_normalized, mlp_in = ln2(resid_mid)
    mlp_pre, mlp_post, mlp_out = mlp(mlp_in)
    return LayerInternals(
        resid_pre=x, ln1_scale=ln1_scale, ln1_normalized=ln1_normalized, attn_in=attn_in,
        resid_mid=resid_mid, ln2_scale=ln2_scale, ln2_normalized=ln2_normalized, mlp_in=mlp_in,
        mlp_pre=mlp_pre, mlp_post=mlp_post, mlp_out=mlp_out, resid_post=resid_mid + mlp_out,
        **heads,
    )  # fmt: skip


class Decoder(nn.Module):
    """A residual stream from embedding to logits: what every decoder-only model here shares. A
    model sets the fields below; blocks and the last norm have ``explain`` beside ``forward``.
    """

    config: Any  # at least n_ctx and d_vocab
    W_E: nn.Parameter
    W_U: nn.Parameter
    blocks: nn.ModuleList
    ln_final: Any

    def embed(self, tokens: Tensor) -> Tensor:
        """Token embeddings, rows of ``W_E``: (B, T) -> (B, T, D)."""
        if tokens.ndim != 2:
            raise ValueError(
                f"tokens have shape {tuple(tokens.shape)}: give a batch of sequences, (B, T)."
            )
        return F.embedding(tokens, self.W_E)

    def decode(self, embeddings: Tensor) -> Tensor:
        """Logits (B, T, V) from token embeddings (B, T, D), which a caller may have perturbed."""
        self._check_length(embeddings.shape[1])
        x = embeddings
        for block in self.blocks:
            x = block(x)
        return self.ln_final(x) @ self.W_U.T

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits (B, T, V) of the token after each position of ``tokens`` (B, T)."""
        return self.decode(self.embed(tokens))

    def run_with_internals(self, tokens: Tensor, embeddings: Tensor | None = None) -> Internals:
        """Run tokens (B, T) step by step and keep every intermediate value; ``embeddings`` (B, T,
        D) take the place of rows of ``W_E``. ValueError if the sequence is longer than the context
        or a token lies outside the vocabulary.
        """
        self.check_tokens(tokens)
        embed = self.embed(tokens) if embeddings is None else embeddings
        layers: list[LayerInternals] = []
        x = embed
        for block in self.blocks:
            layers.append(block.explain(x))  # type: ignore[operator]
            x = layers[-1].resid_post
        scale, normalized, final_state = self.ln_final.explain(x)
        return Internals(
            embed, tuple(layers), x, scale, normalized, final_state, final_state @ self.W_U.T
        )

    def check_tokens(self, tokens: Tensor) -> None:
        """Raise ``ValueError`` unless ``tokens`` fit context and vocabulary. It reads the values,
        so it stays out of :meth:`forward`, which is compiled and runs on devices that it would
        stall.
        """
        self._check_length(tokens.shape[-1])
        low, high = int(tokens.min()), int(tokens.max())
        if low < 0 or high >= self.config.d_vocab:
            raise ValueError(
                f"token {low if low < 0 else high} is outside the vocabulary "
                f"0..{self.config.d_vocab - 1}: encode the text with this model's own tokenizer."
            )

    def _check_length(self, length: int) -> None:
        if not 1 <= length <= self.config.n_ctx:
            raise ValueError(
                f"a sequence of {length} tokens does not fit a context of {self.config.n_ctx}: "
                f"give 1 to {self.config.n_ctx} tokens."
            )


@torch.no_grad()
def generate(
    model: nn.Module,
    tokens: Tensor,
    n_new: int,
    *,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Continue prompts (..., T) by ``n_new`` tokens, each drawn from the softmax of the logits over
    ``temperature`` (0 takes the most probable token): (..., T + n_new).

    The model is a `Decoder`, or any callable (B, T) -> (B, T, V) with ``config.n_ctx`` and
    ``check_tokens``; it reads the last ``n_ctx`` tokens anew at each step. The generator is on the
    CPU. ValueError if a prompt is empty or holds a token outside the vocabulary.
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
