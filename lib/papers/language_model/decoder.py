"""A GPT with rotary positions, on one page, that returns what it computes.

Pre-norm blocks (attention, then MLP, each reading a LayerNorm of the residual stream and adding to
it), GELU, no dropout. With states as rows and TransformerLens's names,

    x <- W_E[tokens]
    x <- x + sum_h softmax(q_h k_h^T / sqrt(d_head)) v_h W_O_h
    x <- x + gelu(y W_in + b_in) W_out + b_out
    logits = LN(x) W_U^T,

where q_h and k_h are LN(x) W_Q_h and LN(x) W_K_h with each adjacent pair of coordinates turned by
an angle proportional to the position (Su et al. 2021), so that q_i . k_j depends on positions only
through i - j. This is the architecture of the experiments in "Support tokens" (003, Section 7.1:
d_model 384, 6 heads, 12 blocks). It runs in whatever floating-point type its weights have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from papers.language_model.internals import Internals, LayerInternals

Steps = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]  # a norm or an MLP that explains itself


@dataclass(frozen=True)
class GPTConfig:
    """Sizes of a GPT; equal configurations and seeds give equal models."""

    d_vocab: int = 1024  # tokens that it can read and predict
    d_model: int = 64  # width of the residual stream
    n_heads: int = 4  # attention heads per block
    n_layers: int = 2  # blocks
    d_mlp: int = 256  # neurons of each feed-forward network
    n_ctx: int = 128  # longest sequence
    tie_embeddings: bool = False  # is W_U the same matrix as W_E?
    # slowest rotary wavelength is about 2 pi times this many positions
    rotary_base: float = 10_000.0
    layer_norm_eps: float = 1e-5  # added to the variance before its root
    init_std: float = 0.02  # standard deviation of every weight at the start

    def __post_init__(self) -> None:
        sizes = {
            name: getattr(self, name)
            for name in ("d_vocab", "d_model", "n_heads", "n_layers", "d_mlp", "n_ctx")
        }
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"GPTConfig.{name} is {size}: every size must be at least 1.")
        if self.d_model % (2 * self.n_heads):
            raise ValueError(
                f"d_model {self.d_model} does not split into {self.n_heads} heads of even width, "
                f"which rotary pairs need: choose d_model as a multiple of {2 * self.n_heads}."
            )

    @property
    def d_head(self) -> int:
        """Width of one head, ``d_model / n_heads``."""
        return self.d_model // self.n_heads


def rotate(x: Tensor, base: float, offset: int = 0) -> Tensor:
    """Turn each adjacent pair of coordinates of queries or keys (..., T, d_head) at positions
    ``offset, ...`` by ``position * base**(-2 pair / d_head)``: wavelengths grow from 2 pi to 2 pi
    base.
    """
    T, d_head = x.shape[-2:]
    # Angles in at least single precision: bfloat16 cannot tell neighbouring positions beyond 256
    # apart.
    kind = torch.promote_types(x.dtype, torch.float32)
    # (d_head / 2,)
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


class LayerNorm(nn.Module):
    """Centre, divide by the standard deviation, then gain ``w`` and bias ``b``."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(width))
        self.b = nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.w.shape, self.w, self.b, self.eps)

    def explain(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same in steps: (scale, normalised before gain and bias, output)."""
        centred = x - x.mean(-1, keepdim=True)
        scale = (centred.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()
        return scale, centred / scale, centred / scale * self.w + self.b


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
    return {
        "q": q,
        "k": k,
        "v": v,
        "scores": scores,
        "pattern": pattern,
        "z": z,
        "head_out": head_out,
    }


class MLP(nn.Module):
    """``gelu(x W_in + b_in) W_out + b_out``: activations times value rows, plus a constant."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.W_in = nn.Parameter(torch.empty(config.d_model, config.d_mlp))
        self.b_in = nn.Parameter(torch.zeros(config.d_mlp))
        self.W_out = nn.Parameter(torch.empty(config.d_mlp, config.d_model))
        self.b_out = nn.Parameter(torch.zeros(config.d_model))

    def forward(self, x: Tensor) -> Tensor:
        return self.explain(x)[2]

    def explain(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """In steps: (input of the activation function, coefficients of value rows, output)."""
        pre = F.linear(x, self.W_in.T, self.b_in)
        post = F.gelu(pre)
        return pre, post, F.linear(post, self.W_out.T, self.b_out)


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
    """Every intermediate value of a pre-norm block whose parts explain themselves.

    Parameters
    ----------
    x : (B, T, D)
        The residual stream.
    ln1, ln2 : callable
        A state to its scale, itself before gain and bias, and what the next layer reads.
    attention : callable
        What the first norm hands on to a dictionary as :func:`mix_heads` returns it.
    mlp : callable
        What the second norm hands on to its values before the activation function, after it, and
        the output.
    """
    ln1_scale, ln1_normalized, attn_in = ln1(x)
    heads = attention(attn_in)
    heads.setdefault("attn_bias", x.new_zeros(x.shape[-1]))
    resid_mid = x + heads["head_out"].sum(2) + heads["attn_bias"]
    ln2_scale, ln2_normalized, mlp_in = ln2(resid_mid)
    mlp_pre, mlp_post, mlp_out = mlp(mlp_in)
    return LayerInternals(
        resid_pre=x,
        ln1_scale=ln1_scale,
        ln1_normalized=ln1_normalized,
        attn_in=attn_in,
        resid_mid=resid_mid,
        ln2_scale=ln2_scale,
        ln2_normalized=ln2_normalized,
        mlp_in=mlp_in,
        mlp_pre=mlp_pre,
        mlp_post=mlp_post,
        mlp_out=mlp_out,
        resid_post=resid_mid + mlp_out,
        **heads,
    )


class Decoder(nn.Module):
    """A residual stream from embedding to logits: what every decoder-only model here shares,
    whatever its blocks.

    A model sets ``config``, ``W_E``, ``blocks`` and ``ln_final`` (each with ``explain``), and
    ``W_U``.
    """

    config: Any  # at least n_ctx and d_vocab
    W_E: nn.Parameter
    W_U: nn.Parameter
    blocks: nn.ModuleList
    ln_final: Any  # a norm: LayerNorm or another with its two methods

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
        """Raise ``ValueError`` unless ``tokens`` fit context and vocabulary.

        It reads the values, so it stays out of :meth:`forward`, which is compiled and runs on
        devices that it would stall.
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


class GPT(Decoder):
    """Decoder-only language model: ``model(tokens)`` gives logits,
    ``model.run_with_internals(tokens)`` everything. ``seed`` seeds the weights; the global random
    state is neither read nor changed.
    """

    def __init__(self, config: GPTConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.W_E = nn.Parameter(torch.empty(config.d_vocab, config.d_model))
        self.blocks = nn.ModuleList(self._block() for _ in range(config.n_layers))
        self.ln_final = LayerNorm(config.d_model, config.layer_norm_eps)
        self.W_U = (
            self.W_E
            if config.tie_embeddings
            else nn.Parameter(torch.empty(config.d_vocab, config.d_model))
        )
        self._initialise(torch.Generator().manual_seed(seed))

    def _block(self) -> Block:
        ln1, ln2 = (LayerNorm(self.config.d_model, self.config.layer_norm_eps) for _ in range(2))
        return Block(ln1, Attention(self.config), ln2, MLP(self.config))

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator) -> None:
        for name, parameter in self.named_parameters():
            leaf = name.rsplit(".", 1)[-1]
            if leaf.startswith("W_"):
                # 2 n_layers writes add up in the residual stream: each is scaled down so that their
                # sum keeps its size.
                writes = math.sqrt(2 * self.config.n_layers) if leaf in ("W_O", "W_out") else 1.0
                parameter.normal_(0.0, self.config.init_std / writes, generator=generator)
