"""``softgeom inspect MODEL``: what could be a softmax layer in it, as commands to copy."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from softgeom.checkpoints import load_head
from softgeom.checkpoints.listing import list_candidates
from softgeom.checkpoints.tensors import plain
from softgeom.commands.boundary import DONE

_LISTED = 8  # other candidates on the terminal: a transformer has hundreds of matrices


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("model", help="a file, folder, hub id or released model")
    parser.add_argument(
        "--all",
        action="store_true",
        help=f"list every matrix of the file, not the likeliest {_LISTED} alone",
    )
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
    candidates = list_candidates(place) if place.is_file() or place.is_dir() else []
    if options.json:
        chosen = (
            None
            if head is None
            else {
                "tensors": head.names,
                "shape": list(head.layer.W.shape),
                "notes": list(head.notes),
            }
        )
        listed = [
            {"weight": name, "shape": list(shape), "bias": bias} for name, shape, bias in candidates
        ]
        print(json.dumps({"model": model, "layer": chosen, "candidates": listed}))
        return DONE
    if head is not None:
        layer = head.layer
        print(
            f"{plain(model)}: {layer.classes:,} classes, {layer.dimension} features, "
            f"{'no' if layer.b is None else 'with'} bias"
        )
        for note in (
            *head.notes,
            head.feature_set()[1],
            "no names of the classes" if layer.tokens is None else "",
        ):
            print(f"  {note}" if note else "", end="\n" if note else "")
        print(f"softgeom scan {shlex.quote(model)} --features auto")
    elif not candidates:
        raise ValueError(refusal)
    else:
        print(f"{plain(model)}: {refusal}")
    others = [
        candidate
        for candidate in candidates[::-1]
        if head is None or candidate[0] != head.names.get("weight")
    ]
    for name, shape, bias in others if options.all else others[:_LISTED]:
        print(
            f"softgeom scan {shlex.quote(model)} --weight {shlex.quote(plain(name))}  # "
            f"{shape}{', bias ' + plain(bias) if bias else ''}"
        )
    if len(others) > _LISTED and not options.all:
        print(f"{len(others) - _LISTED} more matrices: --all lists them")
    return DONE
