"""Localising by intervention: what a prediction loses without a head or a feed-forward network, and
along which path (002, "localising").

Every intervention here replaces the mixed values z_h (T, K) of heads, or the write (T, D) of a
network, by those of a donor: zeros, the mean over the prompts, or another run, and reads how a
quantity of the final stream moves. The weights are the model's, nothing is linearised.

    ablation            z_h <- zero or mean; everything behind it is computed again
    activation patching z_h <- that of another prompt; everything behind it is computed again
    path patching       the receiver alone reads a stream in which the sender's write is the
                        donor's; every other component between them keeps what it had (Wang et al.
                        2023)

A share (`stream.logit_shares`) says what is *in* a logit; an intervention says what happens
*without* a writer: later blocks may make up for its loss, and the last norm divides by another
scale. `direct_effects` stands between: the final stream without the write, nothing else recomputed.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from papers.circuits.anatomy import Anatomy, BlockAnatomy, project

Readout = Callable[[Tensor], Tensor]  # final stream (B, T, D) -> (B,)


def mixed_values(anatomy: Anatomy, tokens: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """What a pass leaves for later replacements: L + 1 streams (B, T, D), before each block and
    after the last, and each block's z (B, H, T, K).
    """
    anatomy.check_tokens(tokens)
    streams, mixed = [anatomy.embed(tokens)], []
    for block in anatomy.blocks:
        mixed.append(_mix(block, streams[-1], anatomy.rotary_base))
        streams.append(_finish(block, streams[-1], mixed[-1]))
    return streams, mixed


def mean_donor(mixed: Sequence[Tensor]) -> list[Tensor]:
    """Means over prompts, by position: each block's values (1, H, T, K) or writes (1, T, D)."""
    return [z.mean(0, keepdim=True) for z in mixed]


def network_writes(
    anatomy: Anatomy, streams: Sequence[Tensor], mixed: Sequence[Tensor]
) -> list[Tensor]:
    """What each block's feed-forward network adds, (B, T, D), in a pass from `mixed_values`."""
    inside = zip(anatomy.blocks, streams[:-1], mixed, strict=True)
    return [_network(block, _attended(block, x, z)) for block, x, z in inside]


def logit_gap(
    anatomy: Anatomy, right: Tensor, wrong: Tensor | None = None, position: int = -1
) -> Readout:
    """A readout: the logit of the right token (B,) above the wrong one's, or the mean of all."""
    rows, shift = anatomy.W_U[right], anatomy.b_U[right]
    if wrong is None:
        direction, constant = rows - anatomy.W_U.mean(0), shift - anatomy.b_U.mean()
    else:
        direction, constant = rows - anatomy.W_U[wrong], shift - anatomy.b_U[wrong]

    def read(x: Tensor) -> Tensor:
        # variants of the same prompts
        state = anatomy.ln_final(x[:, position]).unflatten(0, (-1, len(direction)))
        return ((state * direction).sum(-1) + constant).flatten()

    return read


@torch.no_grad()
def effects_of_heads(
    anatomy: Anatomy, tokens: Tensor, donor: Sequence[Tensor] | None, readout: Readout
) -> Tensor:
    """How the readout, such as `logit_gap`, moves when one head at a time takes the donor's mixed
    values: (L, H, B). Prompts (B, T) have one length; a donor, of (B or 1, H, T, K) each, is from
    `mixed_values` of other prompts or `mean_donor`, None for zeros.
    """
    streams, mixed = mixed_values(anatomy, tokens)
    before, effects = readout(streams[-1]), []
    for depth, z in enumerate(mixed):
        H = z.shape[1]
        given = _given(donor, depth, z)
        variants = z.repeat(H, 1, 1, 1, 1)  # (H, B, H, T, K): in variant h head h is replaced
        for head in range(H):
            variants[head, :, head] = given[:, head]
        x = _finish(anatomy.blocks[depth], streams[depth].repeat(H, 1, 1), variants.flatten(0, 1))
        effects.append(readout(run_from(anatomy, depth + 1, x)).view(H, -1) - before)
    return torch.stack(effects)


@torch.no_grad()
def effects_of_attention(
    anatomy: Anatomy, tokens: Tensor, donor: Sequence[Tensor] | None, readout: Readout
) -> Tensor:
    """The same when all heads of one layer at a time take the donor's values: (L, B)."""
    streams, mixed = mixed_values(anatomy, tokens)
    before, effects = readout(streams[-1]), []
    for depth, (block, z) in enumerate(zip(anatomy.blocks, mixed, strict=True)):
        x = _finish(block, streams[depth], _given(donor, depth, z))
        effects.append(readout(run_from(anatomy, depth + 1, x)) - before)
    return torch.stack(effects)


@torch.no_grad()
def effects_of_networks(
    anatomy: Anatomy, tokens: Tensor, donor: Sequence[Tensor] | None, readout: Readout
) -> Tensor:
    """The same when one feed-forward network at a time writes what the donor says: (L, B). A donor,
    of (B or 1, T, D) each, is from `network_writes` or their `mean_donor`, None for zeros.
    """
    streams, mixed = mixed_values(anatomy, tokens)
    before, effects = readout(streams[-1]), []
    for depth, (block, z) in enumerate(zip(anatomy.blocks, mixed, strict=True)):
        x = _attended(block, streams[depth], z) + _given(donor, depth, streams[depth])
        effects.append(readout(run_from(anatomy, depth + 1, x)) - before)
    return torch.stack(effects)


@torch.no_grad()
def direct_effects(
    anatomy: Anatomy, tokens: Tensor, donor: Sequence[Tensor] | None, readout: Readout
) -> Tensor:
    """The same with only the head's write into the final stream replaced, (L, H, B)."""
    streams, mixed = mixed_values(anatomy, tokens)
    before, effects = readout(streams[-1]), []
    for depth, (block, z) in enumerate(zip(anatomy.blocks, mixed, strict=True)):
        given = _given(donor, depth, z)
        change = torch.einsum("bhtk,hkd->hbtd", given - z, block.W_O)
        effects.append(torch.stack([readout(streams[-1] + of_head) - before for of_head in change]))
    return torch.stack(effects)


@torch.no_grad()
def effects_along_paths(
    anatomy: Anatomy, tokens: Tensor, donor: Sequence[Tensor] | None,
    receiver: tuple[int, int], side: str, readout: Readout,
) -> Tensor:  # fmt: skip
    """How the readout moves when one head, the ``receiver`` (layer, head), reads one earlier head's
    write as the donor's on one ``side`` (`"queries"`, `"keys"` or `"values"`), and nobody else
    does: (layer, H, B). Other arguments as for `effects_of_heads`. ValueError without a sender or
    such a side.
    """
    layer, head = receiver
    if side not in _SIDES:
        raise ValueError(f"a head has no side {side!r}: choose one of {', '.join(_SIDES)}.")
    if not 0 < layer < len(anatomy.blocks):
        raise ValueError(
            f"a receiver in layer {layer} has no sender: choose a layer from 1 to "
            f"{len(anatomy.blocks) - 1}."
        )
    streams, mixed = mixed_values(anatomy, tokens)
    before, block, effects = readout(streams[-1]), anatomy.blocks[layer], []
    for depth in range(layer):
        z = mixed[depth]
        given = _given(donor, depth, z)
        # of the sender's write
        change = torch.einsum("bhtk,hkd->hbtd", given - z, anatomy.blocks[depth].W_O)
        H, B = change.shape[:2]
        own = streams[layer].repeat(H, 1, 1)
        read, changed = block.ln1(own), block.ln1((streams[layer] + change).flatten(0, 1))
        inputs = [changed if name == side else read for name in _SIDES]
        q, k, v = project(block, inputs, anatomy.rotary_base, slice(head, head + 1))
        variants = mixed[layer].repeat(H, 1, 1, 1)
        variants[:, head] = F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0]
        x = run_from(anatomy, layer + 1, _finish(block, own, variants))
        effects.append(readout(x).view(H, B) - before)
    return torch.stack(effects)


_SIDES = ("queries", "keys", "values")


def run_from(anatomy: Anatomy, depth: int, x: Tensor) -> Tensor:
    """The final stream from the stream (B, T, D) before block `depth`."""
    for block in anatomy.blocks[depth:]:
        x = _finish(block, x, _mix(block, x, anatomy.rotary_base))
    return x


def _given(donor: Sequence[Tensor] | None, depth: int, own: Tensor) -> Tensor:
    """What takes the place of a block's mixed values or write: the donor's, or zeros."""
    return torch.zeros_like(own) if donor is None else donor[depth].expand_as(own)


def _mix(block: BlockAnatomy, x: Tensor, base: float | None) -> Tensor:
    """Mixed values z (B, H, T, K) of the heads on a stream (B, T, D)."""
    y = block.ln1(x)
    return F.scaled_dot_product_attention(*project(block, (y, y, y), base), is_causal=True)


def _attended(block: BlockAnatomy, x: Tensor, z: Tensor) -> Tensor:
    """The stream between attention and network, from the heads' mixed values."""
    return x + torch.einsum("bhtk,hkd->btd", z, block.W_O) + block.b_O


def _network(block: BlockAnatomy, x_mid: Tensor) -> Tensor:
    """What the network writes."""
    return block.feed_forward(block.ln2(x_mid))[2]


def _finish(block: BlockAnatomy, x: Tensor, z: Tensor) -> Tensor:
    """The rest of a block, from the heads' mixed values on."""
    x_mid = _attended(block, x, z)
    return x_mid + _network(block, x_mid)
