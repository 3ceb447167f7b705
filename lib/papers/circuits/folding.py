"""Rewriting a model's weights without changing its logits (002: "folded into the linear layer").

Three rewritings, each an identity on the logits of every prompt. `fold_norms` moves gain, shift and
centring of each norm into the matrices that read it, so that a norm is a division and nothing else.
`centre_writers` subtracts from everything that writes into the residual stream (rows of W_E, W_pos,
W_O, W_out, and b_O, b_out) its mean over the D coordinates; every LayerNorm would have subtracted
it anyway, so it becomes an RMSNorm. `change_basis` turns the inner coordinates of the heads.

A norm after each block (post-norm, the original transformer) cannot be folded this way: the skip
connection reads it too.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from papers.circuits.anatomy import Anatomy, BlockAnatomy
from papers.circuits.layernorm import Division, Normalisation, fold


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

    def centre(part: Any, *names: str, **norms: Any) -> Any:
        """The part with these writers centred and these norms reading no mean."""
        writers = {name: getattr(part, name) for name in names}
        return replace(
            part,
            **{name: W - W.mean(-1, keepdim=True) for name, W in writers.items() if W is not None},
            **{name: replace(norm, centred=False) for name, norm in norms.items()},
        )

    blocks = (
        centre(block, "W_O", "b_O", "W_out", "b_out", ln1=block.ln1, ln2=block.ln2)
        for block in anatomy.blocks
    )
    whole = centre(anatomy, "W_E", "W_pos", ln_final=anatomy.ln_final)
    return replace(whole, blocks=tuple(blocks))


def change_basis(block: BlockAnatomy, M: Tensor) -> BlockAnatomy:
    """W_Q -> W_Q M, W_K -> W_K M^-T for each head's invertible M (H, K, K), biases too.

    Without rotary positions any M leaves q k^T = q M M^-1 k^T; with them the score of positions i,
    j is q R(i - j) k^T, and M R(i - j) M^-1 = R(i - j) is needed.
    """
    inverse = torch.linalg.inv(M).mT
    b_Q, b_K = ((b[:, None] @ A)[:, 0] for b, A in ((block.b_Q, M), (block.b_K, inverse)))
    return replace(block, W_Q=block.W_Q @ M, b_Q=b_Q, W_K=block.W_K @ inverse, b_K=b_K)


def _fold_block(block: BlockAnatomy) -> BlockAnatomy:
    ln1, ln2 = _unfolded(block.ln1), _unfolded(block.ln2)
    changed: dict[str, Any] = {
        "ln1": Division(ln1.eps, ln1.centred),
        "ln2": Division(ln2.eps, ln2.centred),
    }
    for norm, readers in ((ln1, ("Q", "K", "V")), (ln2, ("in", "gate"))):
        for part in readers:
            W, b = getattr(block, f"W_{part}"), getattr(block, f"b_{part}")
            if W is not None:
                changed[f"W_{part}"], changed[f"b_{part}"] = fold(norm, W, b)
    return replace(block, **changed)


def _unfolded(norm: Normalisation | Division) -> Normalisation:
    if isinstance(norm, Division):
        raise ValueError("the norms of this model are folded already.")
    return norm
