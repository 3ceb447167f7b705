"""``softgeom inspect``, ``prune`` and ``repair``: look for a layer, and write another."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Any, Unpack

from softgeom.checkpoints import Head, load_head
from softgeom.checkpoints.choosing import candidates
from softgeom.checkpoints.formats import damage_in_a_sentence, open_model
from softgeom.checkpoints.tensors import plain
from softgeom.commands.boundary import DONE
from softgeom.commands.ceiling import refuse_options
from softgeom.errors import quoted
from softgeom.layer import FeatureSet
from softgeom.options import LayerOptions, ScanOptions, WorkOptions, question, split
from softgeom.prevention import Method, repair_model
from softgeom.pruning import Cut, cut, graph_for, refuse_argmaxless, write_pruned
from softgeom.results import EVIDENCE, folder_for, load_scan
from softgeom.scan_result import Scan
from softgeom.scanner import scan
from softgeom.writing import alone

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


def prune(
    model: str,
    out: Path,
    *,
    results: str | None = None,
    longest: float | None = None,
    close_too: bool = False,
    **options: Unpack[ScanOptions],
) -> int:
    """Scan or read the scan, cut, write, print."""
    graph_for(out, model)
    work, asked = split(options, WorkOptions)
    if results is not None:
        refuse_options(split(options, LayerOptions)[1], "--results are a finished scan")
    head, features, _ = question(model, **asked)
    refuse_argmaxless(head)
    found = _scanned(model, head, features, None if results is None else Path(results), work)
    chosen = cut(found, longest=longest, close_too=close_too)
    if not len(chosen.dropped):
        print(
            "nothing to cut off: no class is certain never to be the answer "
            f"({len(chosen.close)} trail by less than rounding)."
        )
        return DONE
    write_pruned(out, head, chosen, model, options.get("weight"))
    _print_cut(out, head, chosen)
    return DONE


def _scanned(
    model: str, head: Head, features: FeatureSet, results: Path | None, work: dict[str, Any]
) -> Scan:
    """The named scan, else one that is kept for this model, else a new one; verified."""
    folder = results or folder_for(None, model, head.layer)
    there = results is not None or (folder / EVIDENCE).is_file()
    found = load_scan(folder, head.layer, head) if there else None
    if found is None or not (results or found.features == features):
        with alone(folder):
            kept: Any = {"checkpoint": folder / "blocks", "progress": True}
            found = scan(head.layer, features=features, **work, **kept)
    found.verify()
    return found


def _print_cut(path: Path, head: Head, chosen: Cut) -> None:
    share = len(chosen.dropped) / head.layer.classes
    print(
        f"{path}: {len(chosen.kept):,} of {head.layer.classes:,} classes kept, "
        f"{len(chosen.dropped):,} ({share:.1%}) cut off"
    )
    if len(chosen.close):
        print(
            f"  {len(chosen.close):,} classes can never win in exact arithmetic, but trail "
            "by less than float32 rounding"
        )
    print(
        "  the answer is the same on every input of the set, up to ties of kept classes "
        "within rounding"
    )


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
