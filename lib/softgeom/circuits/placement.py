"""Where the norms of a model stand: before each block (as trained), after it, or nowhere (002,
"Layer Normalization").

Pre-norm adds to the stream what a block makes of its *normalised* state, x + B(N(x)); post-norm
normalises the sum, N(x + B(x)), as early transformers did; the block equations of the notes, taken
literally, have no norm at all, x + B(x). All three run here on the same weights.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from softgeom.circuits.anatomy import Anatomy, attend
from softgeom.circuits.layernorm import Division, Normalisation, radius
from softgeom.language_model import Internals


def norms_with_inputs(
    anatomy: Anatomy, internals: Internals
) -> Iterator[tuple[Normalisation, Tensor, Tensor]]:
    """Each norm of the model in the order of the pass, the states (B, T, D) that it reads, and a
    matrix (D, k) that reads its output. ValueError if the norms are folded: there is nothing left
    to look at.
    """
    for block, layer in zip(anatomy.blocks, internals.layers, strict=True):
        yield _there(block.ln1), layer.resid_pre, block.W_Q[0]
        yield _there(block.ln2), layer.resid_mid, block.W_in
    yield _there(anatomy.ln_final), internals.resid_final, anatomy.W_U.T


def run_post_norm(anatomy: Anatomy, tokens: Tensor) -> list[Tensor]:
    """Streams of x <- N1(x + attention(x)), x <- N2(x + FFN(x)): 2 L + 1 states (B, T, D)."""
    anatomy.check_tokens(tokens)
    states = [anatomy.embed(tokens)]
    for block in anatomy.blocks:
        heads = attend(block, states[-1], anatomy.rotary_base)["head_out"].sum(2) + block.b_O
        states.append(block.ln1(states[-1] + heads))
        states.append(block.ln2(states[-1] + block.feed_forward(states[-1])[2]))
    return states


def run_without_norms(anatomy: Anatomy, tokens: Tensor) -> Tensor:
    """Logits (B, T, V) of the block equations taken literally, with no norm anywhere."""
    anatomy.check_tokens(tokens)
    x = anatomy.embed(tokens)
    for block in anatomy.blocks:
        x = x + attend(block, x, anatomy.rotary_base)["head_out"].sum(2) + block.b_O
        x = x + block.feed_forward(x)[2]
    return x @ anatomy.W_U.T + anatomy.b_U


def pre_norm_stream(internals: Internals) -> list[Tensor]:
    """The stream as trained: embedding, then after each half block; 2 L + 1 states (B, T, D)."""
    return [
        internals.embed,
        *(state for layer in internals.layers for state in (layer.resid_mid, layer.resid_post)),
    ]


def mean_lengths(states: list[Tensor]) -> list[float]:
    """Mean over positions of |x| / sqrt(D), for each state of a stream."""
    return [float((state.norm(dim=-1) / state.shape[-1] ** 0.5).mean()) for state in states]


def off_the_sphere(anatomy: Anatomy, states: list[Tensor]) -> float:
    """Largest relative distance of the last post-norm state from its sphere, gain undone."""
    norm = _there(anatomy.blocks[-1].ln2)
    before = states[-2] + anatomy.blocks[-1].feed_forward(states[-2])[2]
    length = ((states[-1] - norm.beta) / norm.gamma).norm(dim=-1)
    expected = radius(before, norm.eps, norm.centred)
    return float(((length - expected).abs() / expected).max())


def _there(norm: Normalisation | Division) -> Normalisation:
    if isinstance(norm, Division):
        raise ValueError("the norms of this model are folded: take the model as it was trained.")
    return norm
