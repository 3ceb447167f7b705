"""A Llama-type model, on one page, that returns what it computes, in the records of the GPT.

Same residual stream as `gpt.py`, other parts: RMSNorm (no centring, no bias), query heads that share key and value
heads in groups, and a gated feed-forward network (SwiGLU). With rows as states and TransformerLens's names,

    x <- x + sum_h softmax(q_h k_g(h)^T / sqrt(d_head)) v_g(h) W_O_h,   x <- x + (silu(y W_gate) * (y W_in)) W_out,
    logits = RMS(x) W_U^T,

where g(h) = h // (n_heads / n_kv_heads) and rotary positions turn adjacent pairs of coordinates. Source: Touvron et
al. 2023 (Llama 2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softgeom.language_model.gpt import Decoder, rotate
from softgeom.language_model.internals import LayerInternals
from softgeom.language_model.pieces import PieceTokenizer


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of a Llama-type model."""

    d_vocab: int  # tokens that it can read and predict
    d_model: int  # width of the residual stream
    n_heads: int  # query heads per block
    n_kv_heads: int  # key and value heads per block, each shared by n_heads / n_kv_heads query heads
    n_layers: int  # blocks
    d_mlp: int  # neurons of each feed-forward network
    n_ctx: int  # longest sequence
    tie_embeddings: bool = True  # is W_U the same matrix as W_E?
    rotary_base: float = 10_000.0
    rms_norm_eps: float = 1e-5  # added to the mean square before its root

    def __post_init__(self) -> None:
        for name in ("d_vocab", "d_model", "n_heads", "n_kv_heads", "n_layers", "d_mlp", "n_ctx"):
            if getattr(self, name) < 1:
                raise ValueError(f"LlamaConfig.{name} is {getattr(self, name)}: every size must be at least 1.")
        if self.d_model % (2 * self.n_heads):
            raise ValueError(f"d_model {self.d_model} does not split into {self.n_heads} heads of even width.")
        if self.n_heads % self.n_kv_heads:
            raise ValueError(f"{self.n_heads} query heads do not share {self.n_kv_heads} key heads evenly.")

    @property
    def d_head(self) -> int:
        """Width of one head, ``d_model / n_heads``."""
        return self.d_model // self.n_heads


class RMSNorm(nn.Module):
    """Divide by the root mean square, then gain ``w``."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.w.shape, self.w, self.eps)

    def explain(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same in steps: (scale, normalised before the gain, output)."""
        scale = (x.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()
        return scale, x / scale, x / scale * self.w


class GroupedAttention(nn.Module):
    """Causal self-attention whose key and value heads serve several query heads each."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        H, G, D, K = config.n_heads, config.n_kv_heads, config.d_model, config.d_head
        self.W_Q = nn.Parameter(torch.zeros(H, D, K))
        self.W_K = nn.Parameter(torch.zeros(G, D, K))
        self.W_V = nn.Parameter(torch.zeros(G, D, K))
        self.W_O = nn.Parameter(torch.zeros(H, K, D))
        self.base = config.rotary_base

    def explain(self, x: Tensor) -> dict[str, Tensor]:
        """Queries, keys, values, scores, pattern, mixed values and each head's write, for all H query heads."""
        q, k, v = (torch.einsum("btd,hdk->bhtk", x, W) for W in (self.W_Q, self.W_K, self.W_V))
        group = self.W_Q.shape[0] // self.W_K.shape[0]
        q, k, v = rotate(q, self.base), rotate(k, self.base).repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(future, -torch.inf)  # (B, H, T, T)
        pattern = scores.softmax(-1)
        z = pattern @ v  # (B, H, T, K)
        head_out = torch.einsum("bhtk,hkd->bthd", z, self.W_O)
        return {"q": q, "k": k, "v": v, "scores": scores, "pattern": pattern, "z": z, "head_out": head_out}

    def forward(self, x: Tensor) -> Tensor:
        return self.explain(x)["head_out"].sum(2)


class GatedMLP(nn.Module):
    """``(silu(x W_gate) * (x W_in)) W_out``: each neuron has two keys, and their product is its activation."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.W_gate = nn.Parameter(torch.zeros(config.d_model, config.d_mlp))
        self.W_in = nn.Parameter(torch.zeros(config.d_model, config.d_mlp))
        self.W_out = nn.Parameter(torch.zeros(config.d_mlp, config.d_model))

    def forward(self, x: Tensor) -> Tensor:
        return (F.silu(x @ self.W_gate) * (x @ self.W_in)) @ self.W_out


class LlamaBlock(nn.Module):
    """Grouped attention and gated network, each reading a normalised stream and adding to it."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.ln1 = RMSNorm(config.d_model, config.rms_norm_eps)
        self.attn = GroupedAttention(config)
        self.ln2 = RMSNorm(config.d_model, config.rms_norm_eps)
        self.mlp = GatedMLP(config)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))

    def explain(self, x: Tensor) -> LayerInternals:
        """The same block, step by step; ``mlp_pre`` is what the gate's activation function reads."""
        ln1_scale, ln1_normalized, attn_in = self.ln1.explain(x)
        heads = self.attn.explain(attn_in)
        resid_mid = x + heads["head_out"].sum(2)
        ln2_scale, ln2_normalized, mlp_in = self.ln2.explain(resid_mid)
        mlp_pre = mlp_in @ self.mlp.W_gate
        mlp_post = F.silu(mlp_pre) * (mlp_in @ self.mlp.W_in)
        mlp_out = mlp_post @ self.mlp.W_out
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

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Take one layer's weights under llama2.c's names, each acting as ``x @ W.T``."""
        heads = {"wq": self.attn.W_Q, "wk": self.attn.W_K, "wv": self.attn.W_V}
        for name, parameter in heads.items():
            H, D, K = parameter.shape
            parameter.copy_(weights[name].view(H, K, D).transpose(1, 2))
        H, K, D = self.attn.W_O.shape
        self.attn.W_O.copy_(weights["wo"].view(D, H, K).permute(1, 2, 0))
        self.mlp.W_gate.copy_(weights["w1"].T)
        self.mlp.W_out.copy_(weights["w2"].T)
        self.mlp.W_in.copy_(weights["w3"].T)
        self.ln1.w.copy_(weights["attention_norm"])
        self.ln2.w.copy_(weights["ffn_norm"])


class Llama(Decoder):
    """Decoder-only model of Llama's parts; same calls as the GPT.

    Parameters
    ----------
    config : LlamaConfig
    seed : int
        Seeds the weights, normal with standard deviation ``d_model ** -0.5``.
    """

    def __init__(self, config: LlamaConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.W_E = nn.Parameter(torch.zeros(config.d_vocab, config.d_model))
        self.blocks = nn.ModuleList(LlamaBlock(config) for _ in range(config.n_layers))
        self.ln_final = RMSNorm(config.d_model, config.rms_norm_eps)
        self.W_U = self.W_E if config.tie_embeddings else nn.Parameter(torch.zeros(config.d_vocab, config.d_model))
        self.tokenizer: Any = None
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.rsplit(".", 1)[-1].startswith("W_"):
                    parameter.normal_(0.0, config.d_model**-0.5, generator=generator)


def from_llama2c(
    sizes: Any, weights: Mapping[str, np.ndarray], tokens: Sequence[bytes], scores: np.ndarray, dtype: str = "float64"
) -> Llama:
    """The model of a llama2.c file, in float64 so that identities can be exact, with its ``tokenizer``.

    The file's matrices act as ``x @ W.T`` with all heads stacked; here, and nowhere else, they become ``x W`` for
    each head.

    Parameters
    ----------
    sizes, weights, tokens, scores
        As `softgeom.checkpoints.llama2c` reads them: ``wq (L, H K, D)``, ``w1 (L, F, D)`` (the gate), ``w3 (L, F,
        D)``, ...
    dtype : str
        Name of a floating-point type of torch.

    Raises
    ------
    ValueError
        If a weight is NaN or infinite.
    """
    for name, array in weights.items():
        if not np.isfinite(array).all():
            raise ValueError(f"{name} of the llama2.c model has NaN or infinite values: fetch the file again.")
    config = LlamaConfig(
        d_vocab=sizes.vocab_size,
        d_model=sizes.dim,
        n_heads=sizes.n_heads,
        n_kv_heads=sizes.n_kv_heads,
        n_layers=sizes.n_layers,
        d_mlp=sizes.hidden_dim,
        n_ctx=sizes.seq_len,
        tie_embeddings=sizes.tied,
    )
    model = Llama(config).to(getattr(torch, dtype)).requires_grad_(False)
    model.W_E.copy_(_tensor(weights["tok_embeddings"]))
    model.W_U.copy_(_tensor(weights["output"]))  # when tied, the same values into the same matrix
    model.ln_final.w.copy_(_tensor(weights["norm"]))
    for layer, block in enumerate(model.blocks):
        of_layer = {name: _tensor(array[layer]) for name, array in weights.items() if name in _OF_BLOCKS}
        block.load(of_layer)  # type: ignore[operator]
    model.tokenizer = PieceTokenizer(tuple(tokens), tuple(scores.tolist()))
    return model


_OF_BLOCKS = ("attention_norm", "wq", "wk", "wv", "wo", "ffn_norm", "w1", "w2", "w3")


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(array))  # a copy: the file's arrays are mapped from the disk and read-only
