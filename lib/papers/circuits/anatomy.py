"""A decoder-only model taken apart: every tensor under one name for all families, and one
pass through them.

The identities of this chapter rewrite weights (fold a norm, turn a head's basis, centre a writer),
and the rewritten weights must run. So a model of any family becomes an `Anatomy`, and `run` is the
second route beside the model's own forward pass. With rows as states, D = d_model, H heads, K =
d_head, F = d_mlp, V = d_vocab, one block is (002, "Attention Block" and "Feedforward Network
Block", with the norms that the block equations there leave out)

    x_mid = x + sum_h softmax(q_h k_h^T / sqrt(K)) v_h W_O_h + b_O,
        q_h, k_h, v_h = N1(x) W_h + b_h, q and k turned,
    x'    = x_mid + a W_out + b_out,
        a = g(y W_in + b_in)  or  g(y W_gate + b_gate) * (y W_in + b_in),

with y = N2(x_mid), and the logits are N_final(x) W_U^T + b_U. Biases that a model lacks are zero;
folding fills them. Key and value heads that query heads share are repeated, so that head h always
has its own W_K and W_V. Positions are turned into queries and keys (rotary), or learned vectors are
added to the embedding. `run` keeps every intermediate value; `walk` holds one block's at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from typing import Any, cast

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from papers.circuits.layernorm import Division, Normalisation, on_sphere, scale
from papers.language_model import Internals, LayerInternals, explain_block, mix_heads, rotate

# g of the feed-forward network, under the names of Transformers' configurations.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_new": partial(F.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
}


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
    b_O: Tensor  # (D)
    activation: str  # a name of `ACTIVATIONS`

    def activations(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """What the activation reads, and each value row's coefficient: (..., D) -> 2 (..., F)."""
        g = ACTIVATIONS[self.activation]
        linear = y @ self.W_in + self.b_in
        if self.W_gate is None or self.b_gate is None:
            return linear, g(linear)
        gate = y @ self.W_gate + self.b_gate
        return gate, g(gate) * linear

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
    rotary_base: float | None  # None where positions are learned vectors
    n_ctx: int
    W_pos: Tensor | None = None  # (T, D), added to the embedding

    def __repr__(self) -> str:
        tokens, width = self.W_E.shape
        heads = self.blocks[0].W_Q.shape[0] if self.blocks else 0
        shape = f"{tokens:,} tokens, {width} features, {len(self.blocks)} blocks of {heads} heads"
        return f"Anatomy({self.name!r}: {shape})"

    def to(self, device: str | torch.device) -> Anatomy:
        """The same parts on another device, such as "cuda": a dissection is made on the CPU."""
        return cast(Anatomy, _moved(self, device))

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
                f"tokens of shape {tuple(tokens.shape)} do not fit: give (B, T) with T from "
                f"1 to {self.n_ctx}."
            )
        if tokens.min() < 0 or tokens.max() >= len(self.W_E):
            raise ValueError(
                f"tokens from {int(tokens.min())} to {int(tokens.max())} are outside the "
                f"vocabulary 0..{len(self.W_E) - 1}: use this model's own tokenizer."
            )

    def check_folded(self) -> None:
        """Raise ``ValueError`` unless every norm is a division, as `fold_norms` leaves them."""
        if not isinstance(self.ln_final, Division):
            raise ValueError(f"the norms of {self.name} are not folded: use fold_norms first.")

    def embed(self, tokens: Tensor) -> Tensor:
        """Rows of W_E, and of W_pos where there are any: (B, T) -> (B, T, D)."""
        rows = self.W_E[tokens]
        return rows if self.W_pos is None else rows + self.W_pos[: tokens.shape[1]]

    def unembed(self, x: Tensor) -> Tensor:
        """Logits that the last norm and W_U read from a stream: (..., D) -> (..., V)."""
        return self.ln_final(x) @ self.W_U.T + self.b_U


def _moved(part: Any, device: str | torch.device) -> Any:
    """A tensor, or a record of tensors and records, on a device."""
    if isinstance(part, Tensor):
        return part.to(device)
    if isinstance(part, tuple):
        return tuple(_moved(each, device) for each in part)
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{key: _moved(value, device) for key, value in vars(part).items()})
    return part


def run(anatomy: Anatomy, tokens: Tensor) -> Internals:
    """Every intermediate value of a pass over tokens (B, T), in the records that the models
    themselves return. ValueError if the tokens do not fit context and vocabulary.
    """
    layers = tuple(walk(anatomy, tokens))
    x = layers[-1].resid_post
    divisor, normalized, state = normalise(anatomy.ln_final, x)
    logits = state @ anatomy.W_U.T + anatomy.b_U
    return Internals(anatomy.embed(tokens), layers, x, divisor, normalized, state, logits)


def walk(anatomy: Anatomy, tokens: Tensor) -> Iterator[LayerInternals]:
    """The records of one block after the other; errors as of `run`."""
    anatomy.check_tokens(tokens)
    x = anatomy.embed(tokens)
    for block in anatomy.blocks:
        attention = partial(attend, block, rotary_base=anatomy.rotary_base)
        ln1, ln2 = partial(normalise, block.ln1), partial(normalise, block.ln2)
        layer = explain_block(x, ln1, attention, ln2, block.feed_forward)
        x = layer.resid_post
        yield layer


def attend(block: BlockAnatomy, attn_in: Tensor, rotary_base: float | None) -> dict[str, Tensor]:
    """All heads on the norm's output (B, T, D): queries, keys, values, scores, pattern, writes."""
    q, k, v = project(block, (attn_in, attn_in, attn_in), rotary_base)
    return mix_heads(q, k, v, block.W_O) | {"attn_bias": block.b_O}


def project(
    block: BlockAnatomy,
    inputs: Sequence[Tensor],
    rotary_base: float | None,
    heads: slice = slice(None),
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries and keys, turned, and values of some heads, (B, H, T, K), from (B, T, D) each."""
    maps = ((block.W_Q, block.b_Q), (block.W_K, block.b_K), (block.W_V, block.b_V))
    q, k, v = (
        torch.einsum("btd,hdk->bhtk", x, W[heads]) + b[heads][:, None]
        for x, (W, b) in zip(inputs, maps, strict=True)
    )
    if rotary_base is not None:
        q, k = rotate(q, rotary_base), rotate(k, rotary_base)
    return q, k, v


def normalise(norm: Normalisation | Division, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A norm in steps: (divisor (..., 1), state after the division, what the next layer reads)."""
    divisor = scale(x, norm.eps, norm.centred)
    divided = (
        on_sphere(x, norm.eps, norm.centred) if isinstance(norm, Normalisation) else x / divisor
    )
    return divisor, divided, norm(x)


def relative_error(found: Tensor, expected: Tensor) -> float:
    """max |found - expected| / max |expected|; equal infinities agree. ValueError if the shapes
    differ: broadcasting would compare what does not belong together.
    """
    if found.shape != expected.shape:
        raise ValueError(
            f"shapes {tuple(found.shape)} and {tuple(expected.shape)} cannot be compared."
        )
    finite = torch.isfinite(expected)
    if not torch.equal(torch.where(finite, 0.0, expected), torch.where(finite, 0.0, found)):
        return float("inf")
    largest = (found - expected)[finite].abs().max()
    # zeros agree with zeros
    return 0.0 if largest == 0 else float(largest / expected[finite].abs().max())


class Ledger:
    """Identities, tried on many tensors of several models: the largest relative error of each."""

    def __init__(self) -> None:
        self._errors: dict[tuple[str, str], float] = {}

    def note(self, identity: str, model: str, found: Tensor, expected: Tensor) -> float:
        """Compare two tensors of one shape; the error, kept if it is the largest so far."""
        error = relative_error(found, expected)
        key = identity, model
        self._errors[key] = max(error, self._errors.get(key, 0.0))
        return error

    def worst(self, *identities: str) -> float:
        """The largest error of these identities, or of all, over all models. KeyError if one was
        never noted: a claim must not rest on a test that did not run.
        """
        known = {identity for identity, _ in self._errors}
        if missing := [identity for identity in identities if identity not in known]:
            tested = ", ".join(sorted(known)) or "none"
            raise KeyError(f"never tested: {', '.join(missing)}; tested were {tested}")
        asked = identities or known
        return max(error for (identity, _), error in self._errors.items() if identity in asked)

    def table(self) -> pd.DataFrame:
        """One row per identity, one column per model; empty where one does not apply."""
        rows = [(identity, model, error) for (identity, model), error in self._errors.items()]
        table = pd.DataFrame(rows, columns=["identity", "model", "error"])
        table = table.pivot(index="identity", columns="model", values="error")
        return table.rename_axis(columns=None).reset_index()
