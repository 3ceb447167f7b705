"""A GPT with rotary positions: LayerNorm, GELU, no dropout.

This is the architecture of the experiments in "Support tokens" (003, Section 7.1: d_model 384, 6
heads, 12 blocks).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from papers.language_model.decoder import Attention, Block, Decoder


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
        for name in ("d_vocab", "d_model", "n_heads", "n_layers", "d_mlp", "n_ctx"):
            if (size := getattr(self, name)) < 1:
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


class GPT(Decoder):
    """``model(tokens)`` gives logits, ``model.run_with_internals(tokens)`` everything. ``seed``
    seeds the weights; the global random state is neither read nor changed.
    """

    def __init__(self, config: GPTConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.W_E = nn.Parameter(torch.empty(config.d_vocab, config.d_model))

        def norm() -> LayerNorm:
            return LayerNorm(config.d_model, config.layer_norm_eps)

        self.blocks = nn.ModuleList(
            Block(norm(), Attention(config), norm(), MLP(config)) for _ in range(config.n_layers)
        )
        self.ln_final = norm()
        self.W_U = self.W_E if config.tie_embeddings else nn.Parameter(torch.empty_like(self.W_E))
        self._initialise(torch.Generator().manual_seed(seed))

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator) -> None:
        for name, parameter in self.named_parameters():
            leaf = name.rsplit(".", 1)[-1]
            if leaf.startswith("W_"):
                # 2 n_layers writes add up in the residual stream: each is scaled down so that their
                # sum keeps its size.
                writes = math.sqrt(2 * self.config.n_layers) if leaf in ("W_O", "W_out") else 1.0
                parameter.normal_(0.0, self.config.init_std / writes, generator=generator)
