"""Paddle's `inference.pdiparams`: parameters one after the other, whose names stand in the program
beside it, `.json` (PIR, since 3.0) or `.pdmodel` (protobuf).

The order is that of the sorted names of what persists. A parameter is uint32 version, uint64 levels
of nesting (each uint64 length and as many bytes), uint32 version, int32 length and a protobuf
message with type and sizes, then the numbers (lod_tensor.cc, tensor_util.cc). Matrices of linear
layers are stored as (features, classes). In the new program a parameter is an operation `p`, and
the layer is the last product with one; the old one is read for names alone.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softgeom.checkpoints.activation import Activation, named_activation
from softgeom.checkpoints.choosing import choose
from softgeom.checkpoints.cursor import Cursor, CutShortError, reading
from softgeom.checkpoints.folder import read_json
from softgeom.checkpoints.opened import Asked, Opened, Shown, shown
from softgeom.checkpoints.tensors import ArrayStore, plain
from softgeom.readout import PLAIN, Readout

SUFFIX = ".pdiparams"
# VarType.Type of framework.proto
_TYPES = {
    0: "?", 1: "<i2", 2: "<i4", 3: "<i8", 4: "<f2", 5: "<f4", 6: "<f8", 20: "u1", 21: "i1",
    22: "bfloat16",
}  # fmt: skip
_FEED_AND_FETCH = {9, 10}
_RANGES = {
    "relu": "ReLU", "relu6": "ReLU6", "swish": "Swish", "silu": "Swish", "hardswish": "HardSwish",
    "gelu": "GELU", "sigmoid": "sigmoid", "tanh": "tanh", "softmax": "softmax",
}  # fmt: skip
_MOVES = set("squeeze unsqueeze transpose reshape flatten dropout assign".split())
_ENDS = {"cast", "fetch", "shadow_output"}
_ANSWERS = {"softmax", "log_softmax", "sigmoid"}
_KEEPS_INTERVAL = {*_MOVES, "slice"}


class _Step(NamedTuple):
    """One operation: what it does, the numbers of the values that it reads and makes, of a
    parameter the name, and of a product whether its second factor has a row for each class.
    """

    kind: str
    reads: list[int]
    makes: list[int]
    name: str
    turned: bool = False


def open_paddle(path: Path) -> Opened:
    """Parameters with the program beside them. ValueError if that is missing, or one is damaged."""
    program = next((p for s in (".json", ".pdmodel") if (p := path.with_suffix(s)).is_file()), None)
    if program is None:
        raise ValueError(
            f"{path} holds numbers alone: their names stand in {path.stem}.json or "
            f"{path.stem}.pdmodel, which is not beside it."
        )
    steps = _steps(program) if program.suffix == ".json" else []
    with reading(program, "Paddle program") as cursor:
        names = {step.name for step in steps if step.name} if steps else {*_persistent(cursor)}
    with reading(path, "Paddle file of parameters") as cursor:
        tensors = {name: _tensor(cursor) for name in sorted(names)}
        if cursor.left:
            raise CutShortError(f"{cursor.left} bytes are left behind {len(tensors)} parameters")
    store = ArrayStore(tensors, str(path), {"format": "paddle"})
    return Opened(store, show=functools.partial(_show, store, steps))


def _show(store: ArrayStore, steps: list[_Step], asked: Asked) -> Shown:
    names = {value: step.name for step in steps if step.name for value in step.makes}
    products = [s for s in steps if s.kind == "matmul" and s.reads[1:2] and s.reads[1] in names]
    if asked.weight is not None:
        products = [s for s in products if names[s.reads[1]] == asked.weight]
    if not products:
        found = shown(store, asked)
        # Paddle's Linear stores (features, classes), its Embedding a row for each token
        turned = "embedding" not in found.choice.weight
        return replace(found, choice=replace(found.choice, transposed=turned))
    last = products[-1]
    x, weight = last.reads[0], names[last.reads[1]]
    bias = asked.bias or (None if asked.without_bias else _added(steps, last, names))
    choice = choose(store, {}, weight, bias, without_bias=asked.without_bias)
    told = choice.why[0] if asked.weight else f"{weight}, the last product with a parameter"
    why = (told, *choice.why[1:])
    readout = None if asked.weight else _behind(store.label, steps, last, names)
    choice, before = replace(choice, why=why, transposed=not last.turned), _step_before(steps, x)
    return Shown(store, choice, before, readout=readout)


def _behind(label: str, steps: list[_Step], product: _Step, names: dict[int, str]) -> Readout:
    """How the program reads the scores: behind a bias, at most one softmax or sigmoid. ValueError
    for what may change the order of the classes.
    """
    value, biased, answer = product.makes[0], False, ""
    for step in steps:
        kind = step.kind.rstrip("_")
        if value not in step.reads or kind.startswith("shape"):
            continue
        value = step.makes[0] if step.makes else value
        if kind in _MOVES | _ENDS or (kind == "scale" and "softmax" in answer):
            continue
        if kind == "add" and not (biased or answer) and any(n in names for n in step.reads):
            biased = True
        elif kind in _ANSWERS and not answer:
            answer = kind
        else:
            raise ValueError(
                f"{label}: {plain(step.kind)} behind the last product is not followed; name the "
                "matrix (--weight) to take the product as it stands."
            )
    return Readout("threshold", probability="sigmoid") if answer == "sigmoid" else PLAIN


def _added(steps: list[_Step], product: _Step, names: dict[int, str]) -> str | None:
    """The parameter that is added to a product next, if any."""
    for step in steps:
        if step.kind == "add" and product.makes and product.makes[0] in step.reads:
            added = [names[value] for value in step.reads if value in names]
            return added[0] if len(added) == 1 else None
    return None


def _step_before(steps: list[_Step], value: int) -> Activation | None:
    """What bounds a value, through operations that move numbers alone; they stand in order."""
    for step in reversed(steps):
        if value not in step.makes:
            continue
        if step.kind in _RANGES:
            return named_activation(_RANGES[step.kind])
        if step.kind not in _KEEPS_INTERVAL or not step.reads:
            return None
        value = step.reads[0]
    return None


def _steps(program: Path) -> list[_Step]:
    """The operations of the outermost block, in their order."""
    try:
        found = []
        for op in read_json(program)["program"]["regions"][0]["blocks"][0]["ops"]:
            # the format writes one value without brackets
            reads, makes = (v if isinstance(v, list) else [v] for v in (op.get("I"), op["O"]))
            name = plain(op["A"][-1]) if op["#"] == "p" else ""
            read, made = ([v["%"] for v in values if v] for values in (reads, makes))
            turned = any(
                isinstance(a, dict) and a.get("N") == "transpose_y" and a["AT"]["D"] is True
                for a in op.get("A", ())
            )
            found.append(_Step(op["#"].rpartition(".")[2], read, made, name, turned))
        return found
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ValueError(f"{program} is not a program of Paddle.") from None


def _persistent(cursor: Cursor) -> list[str]:
    """Names of persisting variables: ProgramDesc.blocks, BlockDesc.vars, VarDesc."""
    found = []
    for _, block in (f for f in _message(cursor) if f[0] == 1):
        for _, variable in (f for f in _message(block) if f[0] == 3):
            said = dict(_message(variable))
            kind = dict(_message(said[2])).get(1) if 2 in said else None
            if said.get(3) and 1 in said and kind not in _FEED_AND_FETCH:
                found.append(plain(said[1].take(said[1].left).decode("utf-8", "replace")))
    return found


def _tensor(cursor: Cursor) -> np.ndarray:
    cursor.skip(4)
    for _ in range(cursor.number("Q")):
        cursor.skip(cursor.number("Q"))
    cursor.skip(4)
    size = cursor.number("i")
    said = list(_message(cursor.part(cursor.at, cursor.at + size)))
    cursor.skip(size)
    kind, shape = dict(said).get(1), [value for field, value in said if field == 2]
    if kind not in _TYPES:
        raise CutShortError(f"a parameter is of type {kind}")
    if _TYPES[kind] == "bfloat16":  # which NumPy does not know: the upper half of a float32
        return (cursor.array("<u2", *shape).astype("<u4") << 16).view("<f4")
    return cursor.array(_TYPES[kind], *shape)


def _message(cursor: Cursor) -> Iterator[tuple[int, Any]]:
    """Fields of a protobuf message: numbers, or the bytes of a text or message."""
    while cursor.left:
        key = _varint(cursor)
        match key & 7:
            case 0:
                yield key >> 3, _varint(cursor)
            case 2:
                size = _varint(cursor)
                yield key >> 3, cursor.part(cursor.at, cursor.at + size)
                cursor.skip(size)
            case 1 | 5:
                cursor.skip(8 if key & 7 == 1 else 4)
            case other:
                raise CutShortError(f"a field of kind {other}")


def _varint(cursor: Cursor) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = cursor.number("B")
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise CutShortError("a number of more than ten bytes")
