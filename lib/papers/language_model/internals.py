"""What a decoder-only transformer computes on the way to its logits, by name.

Names are TransformerLens's; the letters of the shapes are

    B sequences, T positions, D = d_model, H heads, K = d_head, F = d_mlp, V = d_vocab.

Every model of this package returns these records, so that a circuit, a penalty or a picture is
written once. States are rows and weights act from the right: ``q = x W_Q`` with ``W_Q`` of shape
``(D, K)`` for each head.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class LayerInternals:
    """``resid_mid = resid_pre + sum_h head_out_h + attn_bias``, ``resid_post = resid_mid +
    mlp_out``.
    """

    resid_pre: Tensor  # (B, T, D) residual stream that enters the block
    ln1_scale: Tensor  # (B, T, 1) sqrt(variance + eps), or sqrt(mean square + eps) for RMSNorm
    ln1_normalized: Tensor  # (B, T, D) centred and divided by ln1_scale, before gain and bias
    attn_in: Tensor  # (B, T, D) after gain and bias: what W_Q, W_K and W_V read
    q: Tensor  # (B, H, T, K) queries, rotated by their position
    k: Tensor  # (B, H, T, K) keys, rotated by their position
    v: Tensor  # (B, H, T, K) values
    scores: Tensor  # (B, H, T, T) q . k / sqrt(K), -inf above the diagonal
    pattern: Tensor  # (B, H, T, T) softmax of the scores; row i sums to one over positions j <= i
    z: Tensor  # (B, H, T, K) values mixed by the pattern
    head_out: Tensor  # (B, T, H, D) each head's write z W_O into the residual stream
    # (D) what attention adds beside its heads: zero in most models, b_O in GPT-2
    attn_bias: Tensor
    resid_mid: Tensor  # (B, T, D) after all heads have written
    ln2_scale: Tensor  # (B, T, 1)
    ln2_normalized: Tensor  # (B, T, D)
    mlp_in: Tensor  # (B, T, D) what W_in reads
    mlp_pre: Tensor  # (B, T, F) before the activation function
    mlp_post: Tensor  # (B, T, F) what W_out reads: the coefficient of each value row
    mlp_out: Tensor  # (B, T, D) the feed-forward network's write, bias included
    resid_post: Tensor  # (B, T, D) residual stream that leaves the block


@dataclass(frozen=True)
class Internals:
    """A whole forward pass, from token embeddings to logits."""

    # (B, T, D) rows of W_E (and of learned positions): the residual stream before the first block
    embed: Tensor
    layers: tuple[LayerInternals, ...]  # one record per block, in order
    resid_final: Tensor  # (B, T, D) residual stream after the last block
    ln_final_scale: Tensor  # (B, T, 1)
    ln_final_normalized: Tensor  # (B, T, D)
    final_state: Tensor  # (B, T, D) after the last norm's gain and bias: what W_U reads
    logits: Tensor  # (B, T, V)
