"""A Llama-type model, on one page, that returns what it computes, in the records of the GPT.

Same residual stream as `gpt.py`, other parts: RMSNorm (no centring, no bias), query heads that
share key and value heads in groups, and a gated feed-forward network (SwiGLU). With rows as states
and TransformerLens's names,

    x <- x + sum_h softmax(q_h k_g(h)^T / sqrt(d_head)) v_g(h) W_O_h,
    x <- x + (silu(y W_gate) * (y W_in)) W_out,
    logits = RMS(x) W_U^T,

where g(h) = h // (n_heads / n_kv_heads) and rotary positions turn adjacent pairs of coordinates.
Source: Touvron et al. 2023 (Llama 2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from papers.language_model.gpt import Attention, Block, Decoder
from papers.language_model.pieces import PieceTokenizer


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of a Llama-type model."""

    d_vocab: int  # tokens that it can read and predict
    d_model: int  # width of the residual stream
    n_heads: int  # query heads per block
    # key and value heads per block, each shared by n_heads / n_kv_heads query heads
    n_kv_heads: int
    n_layers: int  # blocks
    d_mlp: int  # neurons of each feed-forward network
    n_ctx: int  # longest sequence
    tie_embeddings: bool = True  # is W_U the same matrix as W_E?
    rotary_base: float = 10_000.0
    rms_norm_eps: float = 1e-5  # added to the mean square before its root

    def __post_init__(self) -> None:
        for name in ("d_vocab", "d_model", "n_heads", "n_kv_heads", "n_layers", "d_mlp", "n_ctx"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"LlamaConfig.{name} is {getattr(self, name)}: every size must be at least 1."
                )
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


class LlamaBlock(Block):
    """Grouped attention and gated network between RMSNorms."""

    def __init__(self, config: LlamaConfig) -> None:
        ln1, ln2 = (RMSNorm(config.d_model, config.rms_norm_eps) for _ in range(2))
        super().__init__(ln1, Attention(config, config.n_kv_heads), ln2, GatedMLP(config))

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
    """Decoder-only model of Llama's parts; same calls as the GPT. ``seed`` seeds the weights,
    normal with standard deviation ``d_model ** -0.5``; None leaves them to be filled by a loader.
    """

    def __init__(self, config: LlamaConfig, seed: int | None = 0) -> None:
        super().__init__()
        self.config = config
        self.W_E = nn.Parameter(torch.zeros(config.d_vocab, config.d_model))
        self.blocks = nn.ModuleList(LlamaBlock(config) for _ in range(config.n_layers))
        self.ln_final = RMSNorm(config.d_model, config.rms_norm_eps)
        self.W_U = (
            self.W_E
            if config.tie_embeddings
            else nn.Parameter(torch.zeros(config.d_vocab, config.d_model))
        )
        self.tokenizer: Any = None
        if seed is None:
            return
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.rsplit(".", 1)[-1].startswith("W_"):
                    parameter.normal_(0.0, config.d_model**-0.5, generator=generator)


def from_llama2c(
    sizes: Any,
    weights: Mapping[str, np.ndarray],
    tokens: Sequence[bytes],
    scores: np.ndarray,
    dtype: str = "float64",
) -> Llama:
    """The model of a llama2.c file, in float64 so that identities can be exact, with its
    ``tokenizer``.

    The file's matrices act as ``x @ W.T`` with all heads stacked; here, and nowhere else, they
    become ``x W`` for each head.

    Parameters
    ----------
    sizes, weights, tokens, scores
        As `softgeom.checkpoints.llama2c` reads them: ``wq (L, H K, D)``, ``w1 (L, F, D)`` (the
        gate), ``w3 (L, F, D)``, ...
    dtype : str
        Name of a floating-point type of torch.

    Raises
    ------
    ValueError
        If a weight is NaN or infinite.
    """
    for name, array in weights.items():
        if not np.isfinite(array).all():
            raise ValueError(
                f"{name} of the llama2.c model has NaN or infinite values: fetch the file again."
            )
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
    model = filled(
        config, lambda name, layer: weights[name] if layer is None else weights[name][layer], dtype
    )
    model.tokenizer = PieceTokenizer(tuple(tokens), tuple(scores.tolist()))
    return model


def filled(
    config: LlamaConfig, weight: Callable[[str, int | None], np.ndarray], dtype: str
) -> Llama:
    """A model whose weights come one at a time, so that a large file is never held beside it.

    Parameters
    ----------
    config : LlamaConfig
        Sizes.
    weight : function (name, layer) -> array
        llama2.c's names, rows first; the layer is None for ``tok_embeddings``, ``output`` and
        ``norm``. ``output`` is asked for only where the embeddings are not tied.
    dtype : str
        Name of a floating-point type of torch.
    """
    model = Llama(config, seed=None).to(getattr(torch, dtype)).requires_grad_(False)
    model.W_E.copy_(_tensor(weight("tok_embeddings", None)))
    if not config.tie_embeddings:
        model.W_U.copy_(_tensor(weight("output", None)))
    model.ln_final.w.copy_(_tensor(weight("norm", None)))
    for layer, block in enumerate(model.blocks):
        block.load({name: _tensor(weight(name, layer)) for name in _OF_BLOCKS})  # type: ignore[operator]
    return model


_OF_BLOCKS = ("attention_norm", "wq", "wk", "wv", "wo", "ffn_norm", "w1", "w2", "w3")


def _tensor(array: np.ndarray) -> Tensor:
    # a copy: the file's arrays are mapped from the disk and read-only
    return torch.from_numpy(np.array(array))
