"""A Llama-type model that returns what it computes, in the records of the GPT.

Same residual stream, other parts: RMSNorm (no centring, no bias), query heads that share key and
value heads in groups, and a gated feed-forward network (SwiGLU),

    x <- x + (silu(y W_gate) * (y W_in)) W_out,    y = RMS(x).

Source: Touvron et al. 2023 (Llama 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from papers.language_model.decoder import Attention, Block, Decoder


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of a Llama-type model, under the names of a GPT's."""

    d_vocab: int
    d_model: int
    n_heads: int  # query heads per block
    n_kv_heads: int  # key and value heads, each shared by n_heads / n_kv_heads query heads
    n_layers: int
    d_mlp: int
    n_ctx: int
    tie_embeddings: bool = True  # is W_U the same matrix as W_E?
    rotary_base: float = 10_000.0
    rms_norm_eps: float = 1e-5  # added to the mean square before its root

    def __post_init__(self) -> None:
        for name in ("d_vocab", "d_model", "n_heads", "n_kv_heads", "n_layers", "d_mlp", "n_ctx"):
            if (size := getattr(self, name)) < 1:
                raise ValueError(f"LlamaConfig.{name} is {size}: every size must be at least 1.")
        if self.d_model % (2 * self.n_heads):
            raise ValueError(
                f"d_model {self.d_model} does not split into {self.n_heads} heads of even width."
            )
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"{self.n_heads} query heads do not share {self.n_kv_heads} key heads evenly."
            )

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


class GatedMLP(nn.Module):
    """``(silu(x W_gate) * (x W_in)) W_out``: the product of two keys is the activation."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.W_gate = nn.Parameter(torch.zeros(config.d_model, config.d_mlp))
        self.W_in = nn.Parameter(torch.zeros(config.d_model, config.d_mlp))
        self.W_out = nn.Parameter(torch.zeros(config.d_mlp, config.d_model))

    def forward(self, x: Tensor) -> Tensor:
        return self.explain(x)[2]

    def explain(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """In steps: (input of the gate's activation, coefficients of value rows, output)."""
        pre = x @ self.W_gate
        post = F.silu(pre) * (x @ self.W_in)
        return pre, post, post @ self.W_out


class Llama(Decoder):
    """Decoder-only model of Llama's parts; same calls as the GPT. ``seed`` seeds the weights,
    normal with standard deviation ``d_model ** -0.5``; None leaves them zero, to be filled.
    """

    def __init__(self, config: LlamaConfig, seed: int | None = 0) -> None:
        super().__init__()
        self.config = config
        self.tokenizer: Any = None
        self.W_E = nn.Parameter(torch.zeros(config.d_vocab, config.d_model))

        def norm() -> RMSNorm:
            return RMSNorm(config.d_model, config.rms_norm_eps)

        self.blocks = nn.ModuleList(
            Block(norm(), Attention(config, config.n_kv_heads), norm(), GatedMLP(config))
            for _ in range(config.n_layers)
        )
        self.ln_final = norm()
        self.W_U = self.W_E if config.tie_embeddings else nn.Parameter(torch.zeros_like(self.W_E))
        if seed is not None:
            generator = torch.Generator().manual_seed(seed)
            for name, parameter in self.named_parameters():
                if name.rsplit(".", 1)[-1].startswith("W_"):
                    nn.init.normal_(parameter, 0.0, config.d_model**-0.5, generator=generator)

    @torch.no_grad()
    def fill(self, weight: Callable[[str, int | None], np.ndarray]) -> None:
        """Take weights one at a time, so that a large file is never held beside the model.

        ``weight(name, layer)`` is an array under llama2.c's name, rows first and all heads stacked,
        which acts as ``x @ W.T``; here, and nowhere else, it becomes ``x W`` for each head. The
        layer is None for ``tok_embeddings``, ``norm`` and, where it is not tied, ``output``.
        """

        def tensor(name: str, layer: int | None = None) -> Tensor:
            # a copy: the file's arrays are mapped from the disk and read-only
            return torch.from_numpy(np.array(weight(name, layer)))

        self.W_E.copy_(tensor("tok_embeddings"))
        self.ln_final.w.copy_(tensor("norm"))
        if not self.config.tie_embeddings:
            self.W_U.copy_(tensor("output"))
        for layer, block in enumerate(self.blocks):
            attn: Any = block.attn
            mlp: Any = block.mlp
            for name, part in {"wq": attn.W_Q, "wk": attn.W_K, "wv": attn.W_V}.items():
                H, D, K = part.shape
                part.copy_(tensor(name, layer).view(H, K, D).transpose(1, 2))
            H, K, D = attn.W_O.shape
            attn.W_O.copy_(tensor("wo", layer).view(D, H, K).permute(1, 2, 0))
            for name, part in {"w1": mlp.W_gate, "w2": mlp.W_out, "w3": mlp.W_in}.items():
                part.copy_(tensor(name, layer).T)
            block.ln1.w.copy_(tensor("attention_norm", layer))  # type: ignore[union-attr, operator]
            block.ln2.w.copy_(tensor("ffn_norm", layer))  # type: ignore[union-attr, operator]
