"""``softgeom inspect MODEL``: what could be a softmax layer in it, as commands to copy."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

from softgeom.checkpoints import load_head
from softgeom.checkpoints.choosing import candidates
from softgeom.checkpoints.formats import damage_in_a_sentence, open_model
from softgeom.checkpoints.tensors import plain
from softgeom.commands.boundary import DONE

_LISTED = 8  # other candidates on the terminal: a transformer has hundreds of matrices


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("model", help="a file, folder, hub id or released model")
    every = f"list every matrix of the file, not the likeliest {_LISTED} alone"
    parser.add_argument("--all", action="store_true", help=every)
    parser.add_argument("--json", action="store_true", help="print as JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """The layer that a scan would take, then the other candidates."""
    model = str(options.model)
    try:
        head = load_head(model)
    except ValueError as error:
        head, refusal = None, str(error)
    place = Path(model)
    # a pipe has no end
    found = []
    if place.is_file() or place.is_dir():
        with damage_in_a_sentence(model):
            found = candidates(open_model(model).store)
    if options.json:
        chosen: dict[str, Any] | None = None
        if head is not None:
            size = list(head.layer.W.shape)
            chosen = {"tensors": head.names, "shape": size, "notes": list(head.notes)}
            chosen |= {"readout": head.readout.to_json(), "behind": head.behind}
        listed: list[dict[str, Any]] = [
            {"weight": each.name, "shape": [each.classes, each.features], "bias": each.bias}
            for each in found
        ]
        print(json.dumps({"model": model, "layer": chosen, "candidates": listed}))
        return DONE
    if head is not None:
        layer = head.layer
        with_bias = "no" if layer.b is None else "with"
        print(
            f"{plain(model)}: {layer.classes:,} classes, {layer.dimension} features, "
            f"{with_bias} bias"
        )
        unnamed = ["no names of the classes"] if layer.tokens is None else []
        for note in (*head.notes, head.feature_set()[1], head.behind, *unnamed):
            if note:
                print(f"  {note}")
        print(f"softgeom scan {shlex.quote(model)} --features auto")
    elif not found:
        raise ValueError(refusal)
    else:
        print(refusal)
    chosen_name = None if head is None else head.names.get("weight")
    others = [each for each in found if each.name != chosen_name]
    for each in others if options.all else others[:_LISTED]:
        shape = f"({each.classes}, {each.features})"
        print(
            f"softgeom scan {shlex.quote(model)} --weight {shlex.quote(plain(each.name))}  # "
            f"{shape}{', bias ' + plain(each.bias) if each.bias else ''}"
        )
    if len(others) > _LISTED and not options.all:
        print(f"{len(others) - _LISTED} more matrices: --all lists them")
    return DONE
