"""The residual stream as a sum of writers (002, "residual stream perspective"), and each logit as a
sum of shares.

Embedding, each head and each feed-forward network add a vector to the stream, so the final state is
x = sum_n w_n. With the last norm folded into the unembedding (`fold_norms`), the only thing between
a write and a logit is the division by the scale s(x) of the whole sum:

    logit_t(x) = sum_n  w_n . u_t / s(x)  +  b_t,    u_t = row t of the folded W_U (V, D).

The shares are exact, but s(x) depends on all writers: they say what is in the sum, not what would
happen without one.
"""

from dataclasses import dataclass, replace

import pandas as pd
import torch
from torch import Tensor

from papers.circuits.anatomy import Anatomy, walk
from papers.language_model import Internals


@dataclass(frozen=True)
class Writers:
    """Everything that was added to the stream, in order, and who added it."""

    names: tuple[str, ...]
    writes: Tensor  # (N, B, T, D)


def writers(internals: Internals) -> Writers:
    """Embedding (with learned positions), then for each layer its heads, the bias of its attention
    where there is one (GPT-2's b_O), and its feed-forward network (bias included).
    """
    names, writes = ["embedding"], [internals.embed]
    for layer, record in enumerate(internals.layers):
        for head, write in enumerate(record.head_out.unbind(2)):
            names.append(f"L{layer}.H{head}")
            writes.append(write)
        if record.attn_bias.any():
            names.append(f"L{layer}.bias")
            writes.append(record.attn_bias.expand_as(record.mlp_out))
        names.append(f"L{layer}.FFN")
        writes.append(record.mlp_out)
    return Writers(tuple(names), torch.stack(writes))


def logit_shares(folded: Anatomy, internals: Internals, targets: Tensor | None = None) -> Tensor:
    """What each writer, and last the folded bias, adds to logits, which sum to the model's: (N + 1,
    B, T, V), or (N + 1, B, T) of the ``targets`` (B, T). Of ``folded``, from `fold_norms`, only the
    unembedding is used, so that internals of the unfolded model fit too.
    """
    folded.check_folded()
    normalised = writers(internals).writes / internals.ln_final_scale  # (N, B, T, D)
    if targets is None:
        shares, bias = normalised @ folded.W_U.T, folded.b_U.expand(internals.logits.shape)
    else:
        shares = torch.einsum("nbtd,btd->nbt", normalised, folded.W_U[targets])
        bias = folded.b_U[targets]
    return torch.cat((shares, bias[None]))


def shares_above_average(folded: Anatomy, internals: Internals, targets: Tensor) -> Tensor:
    """`logit_shares` of a target minus those of the average token, (N + 1, B, T): without what is
    added to all logits alike, which softmax does not see.
    """
    centred = replace(
        folded, W_U=folded.W_U - folded.W_U.mean(0), b_U=folded.b_U - folded.b_U.mean()
    )
    return logit_shares(centred, internals, targets)


def logit_lens(anatomy: Anatomy, internals: Internals) -> Tensor:
    """Logits read from the embedding and from the stream after each layer: (L + 1, B, T, V)."""
    states = [internals.embed, *(record.resid_post for record in internals.layers)]
    return torch.stack([anatomy.unembed(state) for state in states])


@torch.no_grad()
def lens_by_depth(anatomy: Anatomy, windows: Tensor) -> pd.DataFrame:
    """The logit lens on windows (N, T + 1) of a corpus, one depth in memory at a time: depth (0 is
    the embedding, L the model itself), agrees (share of positions whose leading token is the
    model's own), nats (mean loss on the token that follows), rank (that token's median rank, 1
    leads).
    """
    read, following = windows[:, :-1], windows[:, 1:].flatten()
    states = [anatomy.embed(read), *(layer.resid_post for layer in walk(anatomy, read))]
    rows, final = [], None
    for depth in range(len(states) - 1, -1, -1):
        logits = anatomy.unembed(states[depth].flatten(0, 1))
        leading, right = logits.argmax(-1), logits.gather(-1, following[:, None])
        final = leading if final is None else final
        agrees = (leading == final).double().mean()
        nats = (logits.logsumexp(-1) - right[:, 0]).mean()
        rank = (1 + (logits > right).sum(-1)).double().median()
        rows.append((depth, float(agrees), float(nats), float(rank)))
    return pd.DataFrame(rows[::-1], columns=["depth", "agrees", "nats", "rank"])
