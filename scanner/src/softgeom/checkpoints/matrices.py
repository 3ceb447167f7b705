"""Matrices of a store that could be a layer, by name and shape, and the biases beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from softgeom.checkpoints import head_table as table
from softgeom.checkpoints.tensors import TensorStore, describe, plain

_KERNELS = ("kernel",)  # Keras and Flax store (features, classes)


@dataclass(frozen=True)
class Matrix:
    """A tensor that could be W: its name, canonical and without its ending too; (C, d) as it is
    used; its sibling bias.
    """

    name: str
    stem: str
    classes: int
    features: int
    bias: str | None

    def called(self, patterns: Iterable[str]) -> bool:
        """Whether its canonical name fits one of these."""
        return any(fnmatchcase(self.stem, pattern) for pattern in patterns)


def candidates(store: TensorStore) -> list[Matrix]:
    """Matrices that could be a softmax layer, likely ones first."""
    likely = [_matrix(store, name) for name in store.names() if not table.RECURRENT.search(name)]
    names = table.LANGUAGE_HEADS + table.FRAME_HEADS + table.CLASS_HEADS + table.EMBEDDINGS
    return sorted(
        (each for each in likely if each is not None),
        key=lambda each: (not each.called(names), each.bias is None, each.features - each.classes),
    )


def require(store: TensorStore, name: str, *, vector: bool = False) -> str:
    """`name`, after a check that the store has it as a matrix, or as a vector. ValueError
    otherwise: the tensors that would fit are listed with their shapes.
    """

    def fits(other: str) -> bool:
        return _size(store, other) > 0 if vector else matrix_shape(store, other) is not None

    if name in store.names() and fits(name):
        return name
    fitting = [other for other in store.names() if fits(other)]
    wanted = "a vector (classes)" if vector else "a matrix (classes, features)"
    problem = f"has no tensor {name!r}"
    if name in store.names():
        problem = f"has tensor {name!r} in shape {store.shape(name)}, not as {wanted}"
    raise ValueError(f"{store.label} {problem}; candidates: {describe(store, fitting) or 'none'}.")


def matrix_shape(store: TensorStore, name: str) -> tuple[int, int] | None:
    """(C, d) of a matrix, or of a convolution of width 1; None for what is neither."""
    shape = store.shape(name)
    fits = len(shape) >= 2 and min(shape) > 0 and set(shape[2:]) <= {1} and len(shape) <= 4
    return (shape[0], shape[1]) if fits else None


def canonical(name: str) -> str:
    """A name without what wrappers put into it and without the ending of a matrix; a copy that PEFT
    trained stands for what it replaces.
    """
    parts = [part for part in name.split(".") if part not in table.WRAPPERS]
    if "modules_to_save" in parts:
        at = parts.index("modules_to_save")
        del parts[at : at + 2]
    while len(parts) > 1 and parts[0] in table.CONTAINERS:
        del parts[0]
    return ".".join(parts)


def called(text: str, patterns: Iterable[str]) -> bool:
    """Whether a canonical name, with or without its ending, fits a pattern."""
    stem = table.ENDING.sub("", text)
    return any(fnmatchcase(stem, pattern) or fnmatchcase(text, pattern) for pattern in patterns)


def _matrix(store: TensorStore, name: str) -> Matrix | None:
    shape = matrix_shape(store, name)
    if shape is None or ".original_module." in name:
        return None
    bias = sibling(store, name)
    rows, columns = shape
    if _is_transposed(store, name, bias):
        rows, columns = columns, rows
    return Matrix(name, table.ENDING.sub("", canonical(name)), rows, columns, bias)


def _is_transposed(store: TensorStore, name: str, bias: str | None) -> bool:
    """Whether W is stored as (d, C): the bias's length says it, or the custom of a library."""
    rows, columns = matrix_shape(store, name) or (0, 0)
    if bias is not None and rows != columns:
        return _size(store, bias) == columns
    return name.endswith(_KERNELS)


def bias_of(
    store: TensorStore, weight: str, bias: str | None, without_bias: bool, given: bool
) -> tuple[str | None, bool, tuple[str, ...]]:
    """The bias, whether it shows that the matrix is stored as (d, C), and why."""
    rows, columns = matrix_shape(store, weight) or (0, 0)
    beside = sibling(store, weight)
    transposed = _is_transposed(store, weight, beside)
    if without_bias:
        left_out = f"its bias {plain(beside)} is left out, as asked"
        return None, transposed, (left_out,) if beside else ()
    if bias is not None:
        return (
            require(store, bias, vector=True),
            transposed and bias == beside,
            (f"with the bias {plain(bias)}, as named",),
        )
    if beside is not None:
        note = ", whose length says that the matrix is stored as (features, classes)"
        why = f"with its sibling bias {plain(beside)}{note if transposed else ''}"
        return beside, transposed, (f"{why} (--no-bias leaves it out)",)
    known = known_biases(store)
    usual = not given or called(
        canonical(weight), table.LANGUAGE_HEADS + table.EMBEDDINGS + ("W", "weight", "")
    )
    for name in known if usual else ():
        if _size(store, name) == rows:
            return name, transposed, (f"with the bias {plain(name)}",)
    loose = (
        _loose_biases(store, rows) if usual and called(canonical(weight), table.EMBEDDINGS) else []
    )
    if loose:
        raise ValueError(
            f"{store.label}: {plain(weight)!r} is tied to the output, and one of these may be the "
            f"output's bias; say which (--bias), or leave it out (--no-bias): "
            f"{describe(store, loose)}."
        )
    if any(_size(store, name) == columns != rows for name in known):
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
    return None, transposed, ()


def known_biases(store: TensorStore) -> list[str]:
    vectors = {canonical(name): name for name in store.names()}
    return [vectors[name] for name in table.BIASES if name in vectors]


def _loose_biases(store: TensorStore, rows: int) -> list[str]:
    """Biases of as many numbers that no matrix has beside it."""
    taken = {sibling(store, name) for name in store.names()}
    biases = [name for name in store.names() if name.endswith("bias") and name not in taken]
    return [name for name in biases if _size(store, name) == rows]


def sibling(store: TensorStore, weight: str) -> str | None:
    """The bias beside a matrix: same stem, and as many numbers as it has rows or columns."""
    present = set(store.names())
    for ending, replacement in table.SIBLINGS:
        if not weight.endswith(ending):
            continue
        name = weight[: len(weight) - len(ending)] + replacement
        if name != weight and name in present and _size(store, name) in store.shape(weight)[:2]:
            return name
    return None


def _size(store: TensorStore, name: str) -> int:
    """How many numbers a vector, possibly of two axes, has; -1 for what is none."""
    shape = store.shape(name)
    row = len(shape) == 1 or (len(shape) == 2 and min(shape) == 1)
    return max(shape) if row else -1
