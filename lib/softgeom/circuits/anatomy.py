"""A decoder-only model taken apart: every tensor under one name, whatever the model was, and one pass through them.

The identities of this chapter rewrite weights (fold a norm, turn a head's basis, centre a writer), and the rewritten
weights must run. So a model becomes an `Anatomy`, GPT and Llama alike, and `run` is the second route beside the model's
own forward pass. With rows as states, D = d_model, H heads, K = d_head, F = d_mlp, V = d_vocab, one block is (002,
"Attention Block" and "Feedforward Network Block", with the norms that the block equations there leave out)

    x_mid = x + sum_h softmax(q_h k_h^T / sqrt(K)) v_h W_O_h,    q_h, k_h, v_h = N1(x) W_h + b_h, q and k turned,
    x'    = x_mid + a W_out + b_out,    a = gelu(y W_in + b_in)  or  silu(y W_gate + b_gate) * (y W_in + b_in),

with y = N2(x_mid), and the logits are N_final(x) W_U^T + b_U. Biases that a model lacks are zero; folding fills them.
Key and value heads that query heads share are repeated, so that head h always has its own W_K and W_V.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from softgeom.circuits.layernorm import Division, Normalisation, on_sphere, scale
from softgeom.language_model import Internals, LayerInternals, explain_block, mix_heads, rotate


@dataclass(frozen=True)
class BlockAnatomy:
    """One block; each tensor with its shape."""

    ln1: Normalisation | Division
    W_Q: Tensor  # (H, D, K)
    b_Q: Tensor  # (H, K)
    W_K: Tensor  # (H, D, K)
    b_K: Tensor  # (H, K)
    W_V: Tensor  # (H, D, K)
    b_V: Tensor  # (H, K)
    W_O: Tensor  # (H, K, D)
    ln2: Normalisation | Division
    W_gate: Tensor | None  # (D, F), or None where the activation function acts on W_in's output
    b_gate: Tensor | None  # (F)
    W_in: Tensor  # (D, F)
    b_in: Tensor  # (F)
    W_out: Tensor  # (F, D)
    b_out: Tensor  # (D)

    def activations(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """What the activation function reads, and the coefficient of each value row: (..., D) -> 2 of (..., F)."""
        linear = y @ self.W_in + self.b_in
        if self.W_gate is None or self.b_gate is None:
            return linear, F.gelu(linear)
        gate = y @ self.W_gate + self.b_gate
        return gate, F.silu(gate) * linear

    def feed_forward(self, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The network in steps: what the activation function reads, coefficients, output."""
        pre, post = self.activations(y)
        return pre, post, post @ self.W_out + self.b_out


@dataclass(frozen=True)
class Anatomy:
    """A whole model in parts."""

    name: str
    W_E: Tensor  # (V, D)
    blocks: tuple[BlockAnatomy, ...]
    ln_final: Normalisation | Division
    W_U: Tensor  # (V, D)
    b_U: Tensor  # (V)
    rotary_base: float
    n_ctx: int
    group: int = 1  # query heads that share one key and value head
    tied: bool = False  # was W_U the same matrix as W_E?

    @property
    def sizes(self) -> dict[str, int]:
        """Letters of the shapes above, and L, the number of blocks."""
        H, D, K = self.blocks[0].W_Q.shape
        V, F_ = self.W_E.shape[0], self.blocks[0].W_in.shape[1]
        return {"V": V, "D": D, "H": H, "K": K, "F": F_, "L": len(self.blocks), "T": self.n_ctx}

    def check_tokens(self, tokens: Tensor) -> None:
        """Raise ``ValueError`` unless tokens (B, T) fit context and vocabulary."""
        if tokens.ndim != 2 or not 1 <= tokens.shape[1] <= self.n_ctx:
            raise ValueError(
                f"tokens of shape {tuple(tokens.shape)} do not fit: give (B, T) with T from 1 to {self.n_ctx}."
            )
        if tokens.min() < 0 or tokens.max() >= len(self.W_E):
            raise ValueError(
                f"tokens from {int(tokens.min())} to {int(tokens.max())} reach outside the vocabulary "
                f"0..{len(self.W_E) - 1}: encode the text with this model's own tokenizer."
            )


def dissect(model: Any, name: str, dtype: torch.dtype = torch.float64) -> Anatomy:
    """Take a `GPT` or a `Llama` apart, in float64 so that identities can be exact.

    Parameters
    ----------
    model : softgeom.language_model.GPT or Llama
        Read by the names of its parameters: a norm without ``b`` is an RMSNorm, an MLP with ``W_gate`` is gated, and
        fewer key heads than query heads are shared.
    name : str
        For tables and figures.
    dtype : torch.dtype
        Of every tensor of the anatomy.
    """
    group = model.blocks[0].attn.W_Q.shape[0] // model.blocks[0].attn.W_K.shape[0]
    return Anatomy(
        name=name,
        W_E=_copy(model.W_E, dtype),
        blocks=tuple(_dissect_block(block, group, dtype) for block in model.blocks),
        ln_final=_dissect_norm(model.ln_final, dtype),
        W_U=_copy(model.W_U, dtype),
        b_U=torch.zeros(model.W_U.shape[0], dtype=dtype),
        rotary_base=model.config.rotary_base,
        n_ctx=model.config.n_ctx,
        group=group,
        tied=model.W_U is model.W_E,
    )


def run(anatomy: Anatomy, tokens: Tensor) -> Internals:
    """Every intermediate value of a pass over tokens (B, T), in the records that the models themselves return.

    Raises
    ------
    ValueError
        If the sequence is longer than the context or a token lies outside the vocabulary.
    """
    anatomy.check_tokens(tokens)
    embed = anatomy.W_E[tokens]
    layers: list[LayerInternals] = []
    x = embed
    for block in anatomy.blocks:
        layers.append(run_block(block, x, anatomy.rotary_base))
        x = layers[-1].resid_post
    divisor, normalized, state = normalise(anatomy.ln_final, x)
    return Internals(embed, tuple(layers), x, divisor, normalized, state, state @ anatomy.W_U.T + anatomy.b_U)


def run_block(block: BlockAnatomy, x: Tensor, rotary_base: float) -> LayerInternals:
    """One pre-norm block on states (B, T, D)."""
    return explain_block(
        x,
        partial(normalise, block.ln1),
        partial(attend, block, rotary_base=rotary_base),
        partial(normalise, block.ln2),
        block.feed_forward,
    )


def attend(block: BlockAnatomy, attn_in: Tensor, rotary_base: float) -> dict[str, Tensor]:
    """All heads on what the norm hands them (B, T, D): queries, keys, values, scores, pattern, mixed values, writes."""
    q, k, v = (
        torch.einsum("btd,hdk->bhtk", attn_in, W) + b[:, None]
        for W, b in ((block.W_Q, block.b_Q), (block.W_K, block.b_K), (block.W_V, block.b_V))
    )
    return mix_heads(rotate(q, rotary_base), rotate(k, rotary_base), v, block.W_O)


def normalise(norm: Normalisation | Division, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A norm in steps: (divisor (..., 1), state after the division, what the next layer reads)."""
    divisor = scale(x, norm.eps, norm.centred)
    divided = on_sphere(x, norm.eps, norm.centred) if isinstance(norm, Normalisation) else x / divisor
    return divisor, divided, norm(x)


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Largest difference over the largest entry, max |found - expected| / max |expected|; equal infinities agree.

    Raises
    ------
    ValueError
        If the shapes differ: broadcasting would compare what does not belong together.
    """
    if found.shape != expected.shape:
        raise ValueError(f"shapes {tuple(found.shape)} and {tuple(expected.shape)} cannot be compared entry by entry.")
    finite = torch.isfinite(expected)
    if not torch.equal(torch.where(finite, 0.0, expected), torch.where(finite, 0.0, found)):
        return float("inf")
    return float((found - expected)[finite].abs().max() / expected[finite].abs().max())


def _dissect_norm(norm: Any, dtype: torch.dtype) -> Normalisation:
    gamma = _copy(norm.w, dtype)
    centred = hasattr(norm, "b")
    beta = _copy(norm.b, dtype) if centred else torch.zeros_like(gamma)
    return Normalisation(gamma, beta, float(norm.eps), centred)


def _dissect_block(block: Any, group: int, dtype: torch.dtype) -> BlockAnatomy:
    H, _, K = block.attn.W_Q.shape
    F_ = block.mlp.W_in.shape[1]
    gated = hasattr(block.mlp, "W_gate")
    biased = hasattr(block.mlp, "b_in")
    zeros = torch.zeros(H, K, dtype=dtype)
    return BlockAnatomy(
        ln1=_dissect_norm(block.ln1, dtype),
        W_Q=_copy(block.attn.W_Q, dtype),
        b_Q=zeros,
        W_K=_copy(block.attn.W_K, dtype).repeat_interleave(group, 0),
        b_K=zeros,
        W_V=_copy(block.attn.W_V, dtype).repeat_interleave(group, 0),
        b_V=zeros,
        W_O=_copy(block.attn.W_O, dtype),
        ln2=_dissect_norm(block.ln2, dtype),
        W_gate=_copy(block.mlp.W_gate, dtype) if gated else None,
        b_gate=torch.zeros(F_, dtype=dtype) if gated else None,
        W_in=_copy(block.mlp.W_in, dtype),
        b_in=_copy(block.mlp.b_in, dtype) if biased else torch.zeros(F_, dtype=dtype),
        W_out=_copy(block.mlp.W_out, dtype),
        b_out=_copy(block.mlp.b_out, dtype) if biased else torch.zeros(block.mlp.W_out.shape[1], dtype=dtype),
    )


def _copy(parameter: Tensor, dtype: torch.dtype) -> Tensor:
    return parameter.detach().to("cpu", dtype, copy=True)
