"""Rewriting a model's weights without changing its logits (002: "folded into the linear layer").

Three rewritings, each an identity on the logits of every prompt. `fold_norms` moves gain, shift and
centring of each norm into the matrices that read it, so that a norm is a division and nothing else.
`centre_writers` subtracts from everything that writes into the residual stream (rows of W_E, W_pos,
W_O, W_out, and b_O, b_out) its mean over the D coordinates; every LayerNorm would have subtracted
it anyway, so it becomes an RMSNorm. `change_basis` turns the inner coordinates of the heads.

A norm after each block (post-norm, the original transformer) cannot be folded this way: the skip
connection reads it too. `placement.run_post_norm` computes that variant, for the comparison.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from softgeom.circuits.anatomy import Anatomy, BlockAnatomy
from softgeom.circuits.layernorm import Division, Normalisation, fold


def fold_norms(anatomy: Anatomy) -> Anatomy:
    """The same logits with every norm reduced to a division by the scale."""
    # the unembedding reads as x W_U^T
    W_U, b_U = fold(_unfolded(anatomy.ln_final), anatomy.W_U.T, anatomy.b_U)
    return replace(
        anatomy,
        blocks=tuple(_fold_block(block) for block in anatomy.blocks),
        ln_final=Division(anatomy.ln_final.eps, anatomy.ln_final.centred),
        W_U=W_U.T.contiguous(),
        b_U=b_U,
        tied=False,
    )


def centre_writers(anatomy: Anatomy) -> Anatomy:
    """The same logits with every write centred and every LayerNorm replaced by an RMSNorm of the
    same gain and shift. ValueError if the model's norms do not subtract the mean: centring its
    writers would change what it computes.
    """
    if not anatomy.ln_final.centred:
        raise ValueError(
            f"{anatomy.name} has RMSNorm, which reads the mean: its writers cannot be centred."
        )
    blocks = tuple(
        replace(
            block,
            ln1=replace(block.ln1, centred=False),
            W_O=_centred(block.W_O),
            ln2=replace(block.ln2, centred=False),
            W_out=_centred(block.W_out),
            b_out=_centred(block.b_out),
            b_O=_centred(block.b_O),
        )
        for block in anatomy.blocks
    )
    return replace(
        anatomy,
        W_E=_centred(anatomy.W_E),
        W_pos=None if anatomy.W_pos is None else _centred(anatomy.W_pos),
        blocks=blocks,
        ln_final=replace(anatomy.ln_final, centred=False),
        tied=False,
    )


def change_basis(block: BlockAnatomy, M: Tensor) -> BlockAnatomy:
    """W_Q -> W_Q M, W_K -> W_K M^-T for each head, biases too; scores stay when M commutes with the
    rotations.

    Parameters
    ----------
    block : BlockAnatomy
        Its heads are turned.
    M : Tensor
        (H, K, K), invertible. Without rotary positions any M leaves q k^T = q M M^-1 k^T; with them
        the score of positions i, j is q R(i - j) k^T, and M R(i - j) M^-1 = R(i - j) is needed.
    """
    inverse = torch.linalg.inv(M).transpose(-1, -2)
    return replace(
        block,
        W_Q=block.W_Q @ M,
        b_Q=torch.einsum("hk,hkl->hl", block.b_Q, M),
        W_K=block.W_K @ inverse,
        b_K=torch.einsum("hk,hkl->hl", block.b_K, inverse),
    )


def _fold_block(block: BlockAnatomy) -> BlockAnatomy:
    ln1, ln2 = _unfolded(block.ln1), _unfolded(block.ln2)
    W_Q, b_Q = fold(ln1, block.W_Q, block.b_Q)
    W_K, b_K = fold(ln1, block.W_K, block.b_K)
    W_V, b_V = fold(ln1, block.W_V, block.b_V)
    W_in, b_in = fold(ln2, block.W_in, block.b_in)
    W_gate, b_gate = (None, None) if block.W_gate is None else fold(ln2, block.W_gate, block.b_gate)
    return replace(
        block,
        ln1=Division(ln1.eps, ln1.centred),
        W_Q=W_Q,
        b_Q=b_Q,
        W_K=W_K,
        b_K=b_K,
        W_V=W_V,
        b_V=b_V,
        ln2=Division(ln2.eps, ln2.centred),
        W_gate=W_gate,
        b_gate=b_gate,
        W_in=W_in,
        b_in=b_in,
    )


def _unfolded(norm: Normalisation | Division) -> Normalisation:
    if isinstance(norm, Division):
        raise ValueError("the norms of this model are folded already.")
    return norm


def _centred(writes: Tensor) -> Tensor:
    return writes - writes.mean(-1, keepdim=True)
