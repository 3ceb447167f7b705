"""``softgeom prune MODEL --out FILE``: the same model without the outputs that can never be its
answer.

The answer stays the same on every input of the feature set, also in the runtime's float32
(`softgeom.bottleneck.pruning` has the argument): classes that trail by less than rounding are kept
unless ``--close-too`` asks for them, tied ones always. ``FILE.classes.json`` beside the new file
gives each new class its old number and its name.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from softgeom.bottleneck.pruning import Cut, cut, pruned
from softgeom.bottleneck.scan_result import Scan
from softgeom.bottleneck.scanner import scan
from softgeom.checkpoints import Head
from softgeom.checkpoints.released import RELEASED
from softgeom.checkpoints.rewriting import write_layer, write_onnx
from softgeom.commands import options as asked
from softgeom.commands.boundary import DONE
from softgeom.commands.results import EVIDENCE, folder_for, load_scan
from softgeom.writing import alone, write_text


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    asked.add_model(parser)
    asked.add_features(parser)
    asked.add_work(parser)
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="new file: .onnx from an ONNX model, .safetensors (the layer) from any",
    )
    parser.add_argument(
        "--results", help="folder of a finished scan of this model, instead of scanning now"
    )
    parser.add_argument(
        "--longest",
        type=float,
        help="features have at most this norm: rounding then proves more classes safe to cut",
    )
    parser.add_argument(
        "--close-too",
        action="store_true",
        help="also cut classes that trail by less than float32 rounding",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Scan or read the scan, cut, write, tell."""
    if options.out.exists():
        raise ValueError(f"--out {options.out} exists: name a new file.")
    if options.out.suffix not in {".onnx", ".safetensors"}:
        raise ValueError(f"--out {options.out}: write .onnx or .safetensors.")
    head = asked.read_head(options)
    source = model_file(str(options.model))
    if options.out.suffix == ".onnx" and (source is None or source.suffix != ".onnx"):
        raise ValueError(f"{options.model} is not an ONNX model: write .safetensors.")
    chosen = cut(_scan(options, head), longest=options.longest, close_too=options.close_too)
    if not len(chosen.dropped):
        print(
            "nothing to cut off: no class is certain never to be the answer "
            f"({len(chosen.close)} trail by less than rounding)."
        )
        return DONE
    layer = pruned(head.layer, chosen.kept)
    if options.out.suffix == ".onnx":
        assert source is not None
        write_onnx(source, options.out, layer, options.weight)
    else:
        write_layer(layer, options.out, {"pruned_from": str(options.model)})
    listing = [
        {"class": n, "was": int(t), "token": head.layer.token(int(t))}
        for n, t in enumerate(chosen.kept)
    ]
    write_text(
        options.out.with_suffix(options.out.suffix + ".classes.json"),
        json.dumps(listing, indent=0) + "\n",
    )
    _tell(options.out, head, chosen)
    return DONE


def model_file(model: str) -> Path | None:
    """The local file behind a model's name; None for a folder or a model on the hub."""
    if Path(model).is_file():
        return Path(model)
    return RELEASED[model].fetch()[0] if model in RELEASED else None


def _scan(options: argparse.Namespace, head: Head) -> Scan:
    folder = (
        Path(options.results)
        if options.results
        else folder_for(None, str(options.model), head.layer)
    )
    if options.results or (folder / EVIDENCE).is_file():
        found = load_scan(folder, head.layer)
        features, _ = asked.read_features(options, head)
        if options.results or found.features.describe() == features.describe():
            found.verify()
            return found
    features, _ = asked.read_features(options, head)
    with alone(folder):
        found = scan(
            head.layer,
            features=features,
            **asked.read_work(options),
            checkpoint=folder / "blocks",
            progress=True,
        )
    found.verify()
    return found


def _tell(path: Path, head: Head, chosen: Cut) -> None:
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
