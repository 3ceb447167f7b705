"""Which matrix of a file of tensors is the softmax layer, which vector its bias, and why.

In this order: the name that the caller gives; the names of the model families (`conventions.py`);
the embedding of a model that ties the two; the only matrix of the file; the last matrix that has a
bias of its own. A bias is the sibling of its matrix (`X.weight` and `X.bias`, `X_w` and `X_b`,
`X.w_0` and `X.b_0`, `weights` and `biases`, `kernel` and `bias`) before it is any vector of a known
name. Every choice is told in a sentence, so that a reader can object to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from softgeom.checkpoints import conventions
from softgeom.checkpoints.conventions import BIASES, EMBEDDINGS, HEADS, require
from softgeom.checkpoints.tensors import TensorStore, describe, plain

_SIBLINGS = (
    ("weight", "bias"), ("weights", "biases"), ("weights", "bias"), ("kernel", "bias"),
    ("_w", "_b"), (".w_0", ".b_0"), (".w", ".b"), ("_W", "_b"), ("W", "b"),
)  # fmt: skip
_RECURRENT = re.compile(r"(^|[._])(weight_[ih]h|w_[ih]h|[ih]2h|rnn|lstm|gru)", re.IGNORECASE)
_HEADED = re.compile(
    r"LMHead|CausalLM|MaskedLM|ConditionalGeneration|Classification|PreTraining|MTModel|LMModel|Seq2Seq"
)
_UNMISTAKABLE = frozenset(HEADS) - {"output.weight", "W", "weight"}


@dataclass(frozen=True)
class Choice:
    """Names of the tensors of a layer; whether the file holds W as (d, C); a sentence for each
    decision; whether the matrix is an input embedding that nothing shows to be the output too.
    """

    weight: str
    bias: str | None
    transposed: bool
    why: tuple[str, ...]
    is_embedding: bool = False


def choose(
    store: TensorStore,
    config: Mapping[str, Any],
    weight: str | None = None,
    bias: str | None = None,
    *,
    without_bias: bool = False,
) -> Choice:
    """The layer's tensors: ``weight`` and ``bias`` are what the caller says. ValueError when no
    matrix stands out, or several heads of known names do: the candidates are listed with their
    shapes.
    """
    given = weight is not None
    embedding = False
    if weight is not None:
        require(store, weight, (2,))
        why = f"{plain(weight)}, as named"
    else:
        weight, why = _found(store, config)
        embedding = weight in EMBEDDINGS and not _is_headed(config)
    chosen, transposed, reason = _bias_of(store, weight, bias, without_bias, given)
    if not transposed and given and store.shape(weight)[0] < store.shape(weight)[1]:
        rows, columns = store.shape(weight)
        reason = (
            *reason,
            f"fewer classes ({rows}) than features ({columns}): is the matrix stored transposed?",
        )
    return Choice(weight, chosen, transposed, (why, *reason), embedding)


def candidates(store: TensorStore) -> list[tuple[str, tuple[int, ...], str | None]]:
    """Matrices that could be a softmax layer, likely ones last, as (name, shape, sibling bias)."""
    shapes = {name: store.shape(name) for name in store.names()}
    matrices = [name for name, shape in shapes.items() if len(shape) == 2 and min(shape) > 0]
    likely = [name for name in matrices if not _RECURRENT.search(name)]
    with_bias = {name: _sibling(store, name) for name in likely}
    ordered = sorted(likely, key=lambda name: (with_bias[name] is not None, name in HEADS))
    return [(name, shapes[name], with_bias[name]) for name in ordered]


def _found(store: TensorStore, config: Mapping[str, Any]) -> tuple[str, str]:
    heads = [n for n in store.names() if n in _UNMISTAKABLE and len(store.shape(n)) == 2]
    if len(heads) > 1:
        raise ValueError(
            f"{store.label} has several heads; choose one (--weight): {describe(store, heads)}."
        )
    try:
        name = conventions.find_weight(store, config)
        tied = "; the file has no head of its own" if name in EMBEDDINGS else ""
        return name, f"{name}, a name that model families use{tied}"
    except ValueError as error:
        if config.get("tie_word_embeddings") is False:
            raise
        refusal = error
    options = [(name, bias) for name, _, bias in candidates(store)]
    if len(options) == 1:
        return options[0][0], f"{plain(options[0][0])}, the only matrix of the file that can be one"
    biased = [name for name, bias in options if bias]
    if not biased:
        raise refusal
    order = {name: position for position, name in enumerate(store.names())}
    last = max(biased, key=lambda name: _natural(name) if _sorted(store) else (order[name],))
    others = [name for name in biased if name != last][-3:]
    why = f"{plain(last)}, the last matrix with a bias of its own"
    if others:
        why += f"; others: {', '.join(map(plain, others))} (--weight takes one of them)"
    return last, why


def _bias_of(
    store: TensorStore, weight: str, bias: str | None, without_bias: bool, given: bool
) -> tuple[str | None, bool, tuple[str, ...]]:
    """The bias, whether it shows that the matrix is stored as (d, C), and why."""
    rows, columns = store.shape(weight)
    sibling = _sibling(store, weight)
    transposed = sibling is not None and _size(store, sibling) == columns != rows
    if without_bias:
        left_out = f"its bias {plain(sibling)} is left out, as asked"
        return None, transposed, (left_out,) if sibling else ()
    if bias is not None:
        require(store, bias, (1, 2))
        return bias, False, (f"with the bias {plain(bias)}, as named",)
    if sibling is not None:
        note = ", whose length says that the matrix is stored as (features, classes)"
        why = f"with its sibling bias {plain(sibling)}{note if transposed else ''}"
        return sibling, transposed, (f"{why} (--no-bias leaves it out)",)
    usual = weight in HEADS + EMBEDDINGS
    known = conventions.find_bias(store, rows) if not given or usual else None
    if known is not None:
        return known, False, (f"with the bias {plain(known)}",)
    loose = (name for name in store.names() if name in BIASES)
    if any(_size(store, name) == columns != rows for name in loose):
        raise ValueError(
            f"{store.label}: {plain(weight)!r} is {store.shape(weight)} but its bias has {columns} "
            "entries, so the matrix is stored transposed; save W as (classes, features)."
        )
    # guessed: a vector left aside might make it another layer
    if not given and not usual:
        unused = [name for name in store.names() if store.shape(name) in {(rows,), (1, rows)}]
        if unused:
            raise ValueError(
                f"{store.label}: {plain(weight)!r} has no bias of its name, but one of these "
                "may be it; say which (--bias), or leave it "
                f"out (--no-bias): {describe(store, unused)}."
            )
    return None, False, ()


def _sibling(store: TensorStore, weight: str) -> str | None:
    """The bias beside a matrix: same stem, and as many numbers as it has rows or columns."""
    present = set(store.names())
    for ending, replacement in _SIBLINGS:
        if not weight.endswith(ending):
            continue
        name = weight[: len(weight) - len(ending)] + replacement
        if name != weight and name in present and _size(store, name) in store.shape(weight):
            return name
    return None


def _size(store: TensorStore, name: str) -> int:
    """How many numbers a vector, possibly of two axes, has; -1 for what is none."""
    shape = store.shape(name)
    row = len(shape) == 1 or (len(shape) == 2 and min(shape) == 1)
    return max(shape) if row else -1


def _is_headed(config: Mapping[str, Any]) -> bool:
    """Whether the configuration shows a model that ends with its embedding; true without one."""
    listed = config.get("architectures")
    if not isinstance(listed, list) or not listed:
        return not config or bool(config.get("tie_word_embeddings"))
    return any(_HEADED.search(str(name)) for name in listed)


def _sorted(store: TensorStore) -> bool:
    """Whether tensors are listed by name, as in safetensors, so that their order means nothing."""
    return store.names() == sorted(store.names())


def _natural(name: str) -> tuple[Any, ...]:
    return tuple(
        (int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)
    )
