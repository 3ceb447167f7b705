"""``softgeom inspect``, ``prune`` and ``repair``: look for a layer, and write another."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Any, Unpack

from softgeom import pruning
from softgeom.checkpoints import Head, load_head
from softgeom.checkpoints.choosing import candidates
from softgeom.checkpoints.formats import damage_in_a_sentence, open_model
from softgeom.checkpoints.tensors import plain
from softgeom.commands.boundary import DONE
from softgeom.errors import quoted
from softgeom.options import LayerOptions
from softgeom.prevention import Method, repair_model

_LISTED = 8  # other candidates on the terminal: a transformer has hundreds of matrices


def inspect(model: str, *, all: bool = False, json: bool = False) -> int:
    """Print the layer that a scan would take, then the other candidates."""
    try:
        head = load_head(model)
    except ValueError as error:
        head, refusal = None, str(error)
    place, found = Path(model), []
    if place.is_file() or place.is_dir():  # a pipe has no end
        with damage_in_a_sentence(model):
            found = candidates(open_model(model).store)
    if json:
        print(dumps({"model": model, **_as_json(head, found)}))
        return DONE
    if head is not None:
        _print_head(model, head)
    elif not found:
        raise ValueError(refusal)
    else:
        print(refusal)
    chosen = None if head is None else head.names.get("weight")
    others = [each for each in found if each.name != chosen]
    for each in others if all else others[:_LISTED]:
        weight = f"--weight {quoted(plain(each.name))}"
        bias = f", bias {plain(each.bias)}" if each.bias else ""
        size = f"({each.classes}, {each.features})"
        print(f"softgeom scan {quoted(model)} {weight}  # {size}{bias}")
    if len(others) > _LISTED and not all:
        print(f"{len(others) - _LISTED} more matrices: --all lists them")
    return DONE


def _as_json(head: Head | None, found: list[Any]) -> dict[str, Any]:
    chosen: dict[str, Any] | None = None
    if head is not None:
        size = list(head.layer.W.shape)
        chosen = {"tensors": head.names, "shape": size, "notes": list(head.notes)}
        chosen |= {"readout": head.readout.to_json(), "behind": head.behind}
    listed = [
        {"weight": each.name, "shape": [each.classes, each.features], "bias": each.bias}
        for each in found
    ]
    return {"layer": chosen, "candidates": listed}


def _print_head(model: str, head: Head) -> None:
    layer = head.layer
    bias = "no" if layer.b is None else "with"
    print(f"{plain(model)}: {layer.classes:,} classes, {layer.dimension} features, {bias} bias")
    unnamed = "no names of the classes" if layer.tokens is None else None
    for note in (*head.notes, head.feature_set()[1], head.behind, unnamed):
        if note:
            print(f"  {note}")
    print(f"softgeom scan {quoted(model)} --features auto")


def prune(model: str, out: Path, **options: Any) -> int:
    """Scan or read the scan, cut, write, print."""
    chosen = pruning.prune(model, out=out, progress=True, **options)[1]
    kept, dropped, close = map(len, (chosen.kept, chosen.dropped, chosen.close))
    if not dropped:
        told = f"nothing to cut off: no class is certain never to be the answer ({close} trail by"
        print(f"{told} less than rounding).")
        return DONE
    total = kept + dropped
    print(f"{out}: {kept:,} of {total:,} classes kept, {dropped:,} ({dropped / total:.1%}) cut off")
    if close:
        told = f"  {close:,} classes can never win in exact arithmetic, but trail by less than"
        print(f"{told} float32 rounding")
    print(
        "  the answer is the same on every input of the set, up to ties of kept classes "
        "within rounding"
    )
    return DONE


def repair(
    model: str, out: Path, *, method: Method = "bias", **options: Unpack[LayerOptions]
) -> int:
    """Repair and write."""
    layer = repair_model(model, method=method, out=out, **options)
    print(
        f"{out}: {layer.classes:,} classes, repaired by {method}; but for "
        "the rounding of its numbers, every class with a row of its own can win somewhere: "
        "softgeom scan proves which can"
    )
    return DONE
