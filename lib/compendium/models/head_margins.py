"""The margins of 003 in the heads of real models: coupling, distance to both boundaries, folds, and
what noise does, position by position of real text, in float64.
"""

import itertools
import math
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from compendium import paths
from compendium.cache import Cache
from compendium.models.subjects import Subject
from papers.circuits import Anatomy, Normalisation, walk
from papers.circuits.anatomy import BlockAnatomy, attend, project
from papers.language_model import LayerInternals, rotate
from papers.margins.head_blocks import EQUAL, HeadWeights, head_blocks, margins

_TOGETHER = 8  # texts in memory at a time


def head_weights(block: BlockAnatomy, rotary_base: float | None) -> HeadWeights:
    """The heads of a block in the letters of 003: columns are vectors there, rows here. ValueError
    when its norm is folded, or queries, keys or values have biases, which the formulas lack.
    """
    if not isinstance(block.ln1, Normalisation):
        raise ValueError("the norms of this model are folded: take the model as it was trained.")
    if any(bias.any() for bias in (block.b_Q, block.b_K, block.b_V)):
        raise ValueError("queries, keys or values have biases, which the formulas do not cover.")
    W_Q, W_K, W_V, W_O = (W.double().mT for W in (block.W_Q, block.W_K, block.W_V, block.W_O))
    return HeadWeights(W_Q, W_K, W_V, W_O, block.ln1.gamma.double(), block.ln1.centred, rotary_base)


def blocks_of(
    heads: HeadWeights,
    layer: LayerInternals,
    text: int,
    positions: Tensor,
    *,
    together: bool = False,
) -> Tensor:
    """B at positions of a text of a pass: (H, P, r, r), or (P, H r, H r) of all heads together."""
    y, n, s = (t[text].double() for t in (layer.attn_in, layer.ln1_normalized, layer.ln1_scale))
    return head_blocks(heads, y, n, s[:, 0], positions, together=together)


@torch.no_grad()
def measure(
    anatomy: Anatomy, tokens: Tensor, positions: Tensor, sigma: float, draws: int, seed: int
) -> pd.DataFrame:
    """One row for each head, text (B, T) and position (P,): what `margins` says, and gain, how much
    longer than noise on the state the change of the head's write is (root mean square over draws).
    The noise has `sigma` times the state's root mean square; the anatomy is not folded.
    """
    generator, rows = torch.Generator().manual_seed(seed), []
    for depth, layer in enumerate(walk(anatomy, tokens)):
        block = anatomy.blocks[depth]
        heads = head_weights(block, anatomy.rotary_base)
        for text in range(len(tokens)):
            found = margins(blocks_of(heads, layer, text, positions))
            noise = (sigma, draws, generator)
            gain = _gains(block, anatomy.rotary_base, layer, text, positions, *noise)  # (H, P)
            for head in range(gain.shape[0]):
                for place, position in enumerate(positions.tolist()):
                    row = {"layer": depth, "head": head, "text": text, "position": position}
                    row |= {name: of[head, place].item() for name, of in found.items()}
                    rows.append(row | {"gain": float(gain[head, place])})
    return pd.DataFrame(rows)


@torch.no_grad()
def measure_layers(anatomy: Anatomy, tokens: Tensor, position: int) -> pd.DataFrame:
    """One row a layer: log |det| and sign of both maps of all heads, at one position."""
    rows, eye = [], torch.eye(anatomy.sizes["H"] * anatomy.sizes["K"], dtype=torch.float64)
    for depth, layer in enumerate(walk(anatomy, tokens[:1])):
        heads = head_weights(anatomy.blocks[depth], anatomy.rotary_base)
        (B,) = blocks_of(heads, layer, 0, torch.tensor([position]), together=True)
        residual, stream = torch.linalg.slogdet(eye - B), torch.linalg.slogdet(eye + B)
        row: dict[str, Any] = {"layer": depth}
        for name, found in (("residual", residual), ("stream", stream)):
            row |= {f"log {name}": float(found.logabsdet), f"{name} folded": bool(found.sign < 0)}
        rows.append(row)
    return pd.DataFrame(rows)


def by_head(table: pd.DataFrame) -> pd.DataFrame:
    """The positions of `measure` summed up, one row a head."""
    grouped = table.groupby(["layer", "head"])
    return grouped.agg(
        coupling=("coupling", "median"),
        positive=("coupling", lambda c: (c > 0).mean()),
        residual=("residual", "median"),
        closest=("residual", "min"),
        stream=("stream", "median"),
        folded=("folded", "mean"),
        gain=("gain", "median"),
    ).reset_index()


@torch.no_grad()
def census(
    anatomy: Anatomy, tokens: Tensor, asked: Collection[tuple[int, int]] = ()
) -> pd.DataFrame:
    """One row for each head (layer, head), text (B, T) and position: `folded`, whether det(I - B)
    is negative; `eigenvalue`, then the largest real one, else NaN; `first` and `itself`, the head's
    weights on the first token and on the token that it reads for. All heads, or those `asked`.
    """
    every = [(depth, h) for depth in range(len(anatomy.blocks)) for h in range(anatomy.sizes["H"])]
    of_depth: dict[int, list[int]] = {}
    for depth, head in asked or every:
        of_depth.setdefault(depth, []).append(head)
    last, tables = max(of_depth), []
    for start in range(0, len(tokens), _TOGETHER):
        layers = itertools.islice(walk(anatomy, tokens[start : start + _TOGETHER]), last + 1)
        for depth, layer in enumerate(layers):
            if some := of_depth.get(depth):
                heads = head_weights(anatomy.blocks[depth], anatomy.rotary_base).of(some)
                for text in range(len(layer.pattern)):
                    place = {"layer": depth, "text": start + text}
                    tables.append(_rows(heads, layer, text, some).assign(**place))
    return pd.concat(tables, ignore_index=True)


def kept_census(
    subject: Subject, anatomy: Anatomy, tokens: Tensor, asked: Collection[tuple[int, int]] = ()
) -> pd.DataFrame:
    """`census` of a model that is known by a hash of its file, read where it was made before."""

    def ask(_sha256: str, tokens: np.ndarray, asked: list[tuple[int, int]]) -> pd.DataFrame:
        return census(anatomy, torch.from_numpy(tokens), asked)

    if not subject.source.sha256:
        return census(anatomy, tokens, asked)
    code = ("papers/circuits", "papers/margins/head_blocks.py", "compendium/models/head_margins.py")
    cache = Cache(paths.processed_dir() / "folds", code)
    label = "some" if asked else "all"
    return cache.keep(ask, subject.source.sha256, tokens.numpy(), sorted(asked), label=label)


def _rows(heads: HeadWeights, layer: LayerInternals, text: int, some: list[int]) -> pd.DataFrame:
    """The rows of `census` for some heads of a layer on one text."""
    T, pattern = layer.pattern.shape[-1], layer.pattern[text, some]
    found = _folds(heads, layer, text) | {
        "first": pattern[..., 0],
        "itself": pattern.diagonal(dim1=-2, dim2=-1),
    }
    place = {"head": np.repeat(some, T), "position": np.tile(np.arange(T), len(some))}
    return pd.DataFrame(place | {name: of.flatten().numpy() for name, of in found.items()})


def _folds(heads: HeadWeights, layer: LayerInternals, text: int) -> dict[str, Tensor]:
    """`folded` and `eigenvalue` of `census` at all positions of a text, (H, T) each."""
    B = blocks_of(heads, layer, text, torch.arange(layer.attn_in.shape[1]))
    folded = torch.linalg.slogdet(torch.eye(B.shape[-1], dtype=B.dtype) - B).sign < 0
    eigenvalue = torch.full(folded.shape, torch.nan, dtype=B.dtype)
    if folded.any():  # the spectrum costs ten times the determinant
        spectrum = torch.linalg.eigvals(B[folded])
        real = spectrum.imag.abs() <= EQUAL * spectrum.abs().amax(-1, keepdim=True)
        eigenvalue[folded] = torch.where(real, spectrum.real, -torch.inf).amax(-1)
    return {"folded": folded, "eigenvalue": eigenvalue}


def determinants_by_autograd(
    anatomy: Anatomy, x: Tensor, depth: int, position: int
) -> tuple[Tensor, Tensor]:
    """Second route: sign and log |det| of both maps of every head, (H, 2) each, from the
    differentiated forward pass at a position of the stream x (T, d) before block `depth`, in d
    dimensions. Keys and values of the past are constants there: they read the past alone.
    """
    block, past = anatomy.blocks[depth], x[None, :position]
    read = block.ln1(past)
    _, k, v = project(block, (read, read, read), anatomy.rotary_base)  # (1, H, position, K)

    def mixed(state: Tensor) -> Tensor:
        read = block.ln1(state)
        of_state = (read @ W + b for W, b in _maps(block))
        q, own_k, own_v = (x[:, None] for x in of_state)  # (H, 1, K)
        if anatomy.rotary_base is not None:
            q, own_k = (rotate(x, anatomy.rotary_base, position) for x in (q, own_k))
        scores = q @ torch.cat((k[0], own_k), 1).mT / math.sqrt(q.shape[-1])
        return (scores.softmax(-1) @ torch.cat((v[0], own_v), 1))[:, 0]  # (H, K)

    derivative = block.W_O.mT @ torch.func.jacrev(mixed)(x[position])  # (H, d, d)
    eye = torch.eye(x.shape[-1], dtype=x.dtype)
    both = [torch.linalg.slogdet(eye + sign * derivative) for sign in (-1, 1)]
    return torch.stack([d.sign for d in both], -1), torch.stack([d.logabsdet for d in both], -1)


def _maps(block: BlockAnatomy) -> tuple[tuple[Tensor, Tensor], ...]:
    return (block.W_Q, block.b_Q), (block.W_K, block.b_K), (block.W_V, block.b_V)


def _gains(
    block: BlockAnatomy,
    base: float | None,
    layer: LayerInternals,
    text: int,
    positions: Tensor,
    sigma: float,
    draws: int,
    generator: torch.Generator,
) -> Tensor:
    x = layer.resid_pre[text]
    gains = []
    for position in positions.tolist():
        noise = torch.randn(draws, x.shape[-1], generator=generator, dtype=x.dtype)
        noise *= sigma * x[position].square().mean().sqrt()
        texts = x[: position + 1].repeat(draws, 1, 1)
        texts[:, -1] += noise
        written = attend(block, block.ln1(texts), base)["head_out"][:, -1]
        change = written - layer.head_out[text, position]  # (draws, H, d)
        power = sigma**2 * x[position].square().mean() * math.prod(x[position].shape)
        gains.append((change.square().sum(-1).mean(0) / power).sqrt())
    return torch.stack(gains, -1)
