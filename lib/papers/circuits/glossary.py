"""Each symbol of the notes (002), its tensor, and its shape as written there and as in a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
from torch import Tensor

from papers.circuits.anatomy import Anatomy
from papers.circuits.heads import ov_circuit, qk_circuit
from papers.circuits.layernorm import Division, Normalisation


@dataclass(frozen=True)
class Entry:
    """One line of the glossary."""

    symbol: str  # as in the notes
    meaning: str
    name: str  # in this package and in TransformerLens
    # shape in the notes, in the letters of `Anatomy.sizes`; None where they give none
    stated: tuple[str, ...] | None
    # the tensor of the first block's first head; None where a model has none
    find: Callable[[Anatomy], Tensor | None]


def _norm(anatomy: Anatomy) -> Normalisation:
    norm = anatomy.blocks[0].ln1
    if isinstance(norm, Division):
        raise ValueError(
            f"the norms of {anatomy.name} are folded: list the tensors of the model as it "
            "was trained."
        )
    return norm


ENTRIES = (
    Entry("W_E", "embedding", "W_E", ("V", "D"), lambda a: a.W_E),
    Entry("W_Q^{l,h}", "queries", "blocks[l].W_Q[h]", ("D", "K"), lambda a: a.blocks[0].W_Q[0]),
    Entry("W_K^{l,h}", "keys", "blocks[l].W_K[h]", ("D", "K"), lambda a: a.blocks[0].W_K[0]),
    Entry("W_V^{l,h}", "values", "blocks[l].W_V[h]", ("D", "K"), lambda a: a.blocks[0].W_V[0]),
    Entry("W_O^{l,h}", "output of a head", "blocks[l].W_O[h]", ("K", "D"),
          lambda a: a.blocks[0].W_O[0]),
    Entry("W_{OV}^{l,h}", "W_V W_O", "ov_circuit(block, h)", ("D", "D"),
          lambda a: ov_circuit(a.blocks[0], 0).full()),
    Entry("W_{QK}^h", "W_Q W_K^T", "qk_circuit(block, h, offset)", ("D", "D"),
          lambda a: qk_circuit(a.blocks[0], 0).full()),
    Entry("W_{in}^l", "keys of the memory", "blocks[l].W_in", ("D", "F"),
          lambda a: a.blocks[0].W_in),
    Entry("(none)", "second keys, of a gated network", "blocks[l].W_gate", None,
          lambda a: a.blocks[0].W_gate),
    Entry("W_{out}^l", "values of the memory", "blocks[l].W_out", ("D", "F"),
          lambda a: a.blocks[0].W_out),
    Entry("gamma", "gain of a norm", "blocks[l].ln1.gamma", ("D",), lambda a: _norm(a).gamma),
    Entry("beta", "shift of a norm", "blocks[l].ln1.beta", ("D",),
          lambda a: _norm(a).beta if _norm(a).centred else None),
    Entry("W_U", "unembedding", "W_U", ("V", "D"), lambda a: a.W_U),
)  # fmt: skip


def glossary(anatomies: Sequence[Anatomy]) -> pd.DataFrame:
    """Symbol, meaning, name, stated shape, shape in each model ("-" where it has no such tensor),
    and whether the stated one is right (empty where the notes state none).
    """
    rows = []
    for entry in ENTRIES:
        found = [entry.find(anatomy) for anatomy in anatomies]
        shapes = [None if tensor is None else tuple(tensor.shape) for tensor in found]
        stated = [tuple(anatomy.sizes[s] for s in entry.stated or ()) for anatomy in anatomies]
        right = all(s is None or s == asked for s, asked in zip(shapes, stated, strict=True))
        shown = [" x ".join(map(str, shape)) if shape else "-" for shape in shapes]
        rows.append(
            {
                "symbol": entry.symbol,
                "meaning": entry.meaning,
                "name here": entry.name,
                "shape in the notes": " x ".join(entry.stated or ()),
                **dict(zip((anatomy.name for anatomy in anatomies), shown, strict=True)),
                "agrees": "" if entry.stated is None else "yes" if right else "no",
            }
        )
    return pd.DataFrame(rows)
