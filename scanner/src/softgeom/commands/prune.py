"""``softgeom prune MODEL --out FILE``: the same model without the outputs that can never be its
answer.

The answer stays the same on every input of the feature set, also in the runtime's float32
(`softgeom.pruning` has the argument): classes that trail by less than rounding are kept
unless ``--close-too`` asks for them, tied ones always. ``FILE.classes.json`` beside the new file
gives each new class its old number and its name.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Unpack

from softgeom.checkpoints import Head
from softgeom.checkpoints.released import RELEASED
from softgeom.checkpoints.rewriting import write_layer, write_onnx
from softgeom.commands import options as asked
from softgeom.commands.boundary import DONE
from softgeom.commands.results import EVIDENCE, folder_for, load_scan
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.pruning import Cut, cut, pruned
from softgeom.scan_result import Scan
from softgeom.scanner import scan
from softgeom.writing import alone, write_text

# of a model that decides each label by itself
_CUT = "cutting off what is never the largest would cut off labels that can be on"


def add(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    asked.add_model(parser)
    asked.add_features(parser)
    asked.add_work(parser)
    add = parser.add_argument
    new = "new file: .onnx from an ONNX model, .npz or .safetensors (the layer) from any"
    add("--out", type=Path, required=True, help=new)
    add("--results", help="folder of a finished scan of this model, instead of scanning now")
    longest = "features have at most this norm: rounding then proves more classes safe to cut"
    add("--longest", type=float, help=longest)
    close = "also cut classes that trail by less than float32 rounding"
    add("--close-too", action="store_true", help=close)
    parser.set_defaults(run=run, features=None)


def run(options: argparse.Namespace) -> int:
    """Scan or read the scan, cut, write, tell."""
    check_out(options.out, str(options.model))
    if options.results:
        kinds = (asked.SetOptions, asked.WorkOptions)
        asked.refuse_said(options, kinds, "--results are a finished scan")
    options.features = options.features or "box"
    head, features, _ = asked.question(options.model, **asked.chosen(options, asked.Options))
    asked.refuse_threshold(head, _CUT)
    found = _scan(options, head, features)
    chosen = cut(found, longest=options.longest, close_too=options.close_too)
    if not len(chosen.dropped):
        print(
            "nothing to cut off: no class is certain never to be the answer "
            f"({len(chosen.close)} trail by less than rounding)."
        )
        return DONE
    _write(options.out, head, chosen, str(options.model), options.weight)
    _tell(options.out, head, chosen)
    return DONE


def prune_model(
    model: Any,
    *,
    out: str | Path | None = None,
    results: Scan | str | Path | None = None,
    longest: float | None = None,
    close_too: bool = False,
    **options: Unpack[asked.ScanOptions],
) -> tuple[SoftmaxLayer, Cut]:
    """The same layer without classes that can never be the answer, and which those are.

    Parameters
    ----------
    model, **options
        As for ``softgeom.scan``.
    out : path, optional
        New file: .onnx from an ONNX model, .safetensors (the layer) from any; not written where
        nothing can be cut off.
    results : Scan or path, optional
        A finished scan of this model or the folder of one, instead of scanning now.
    longest : float, optional
        Features have at most this norm: rounding then proves more classes safe to cut.
    close_too : bool
        Also cut classes that trail by less than float32 rounding.

    Raises
    ------
    ValueError
        When the model cannot be used, the scan is another layer's, or the file exists or has
        another format.

    Examples
    --------
    >>> import softgeom as sg
    >>> model = [[1, 0], [-1, 1], [-1, -1], [0, 0]], [0, 0, 0, -1]
    >>> layer, cut = sg.prune(model)
    >>> layer.classes, cut.dropped.tolist()
    (3, [3])
    """
    if out is not None:
        check_out(Path(out), str(model))
    work, given = asked.split(options, asked.WorkOptions)
    head, where, _ = asked.question(model, **given)
    asked.refuse_threshold(head, _CUT)
    if results is None:
        found = scan(head.layer, features=where, **work)
    elif work or not given.keys().isdisjoint(asked.SetOptions.__annotations__):
        raise ValueError("results are a finished scan: leave out how to scan.")
    elif isinstance(results, Scan):
        found = Scan(head.layer, results.features, results.findings)
    else:
        found = load_scan(Path(results), head.layer, head)
    found.verify()
    chosen = cut(found, longest=longest, close_too=close_too)
    if out is not None and len(chosen.dropped):
        _write(Path(out), head, chosen, str(model), options.get("weight"))
    return pruned(head.layer, chosen.kept), chosen


def check_out(out: Path, model: str) -> Path | None:
    """The graph that a new ONNX file is made from; None for a file of the layer alone. ValueError
    if the file exists, is of another format, or there is no graph.
    """
    if out.exists():
        raise ValueError(f"--out {out} exists: name a new file.")
    if out.suffix not in {".npz", ".onnx", ".safetensors"}:
        raise ValueError(f"--out {out}: write .onnx, .npz or .safetensors.")
    if out.suffix != ".onnx":
        return None
    there = Path(model).exists() or model not in RELEASED
    file = Path(model) if there else RELEASED[model].fetch()[0]
    if not file.is_file() or file.suffix != ".onnx":
        raise ValueError(f"{model} is not an ONNX model: write .safetensors.")
    return file


def _write(out: Path, head: Head, chosen: Cut, model: str, weight: str | None) -> None:
    layer, source = pruned(head.layer, chosen.kept), check_out(out, model)
    if source is not None:
        write_onnx(source, out, layer, weight)
    else:
        write_layer(layer, out, {"pruned_from": model})
    listing = [
        {"class": n, "was": int(t), "token": head.layer.token(int(t))}
        for n, t in enumerate(chosen.kept)
    ]
    write_text(out.with_suffix(out.suffix + ".classes.json"), json.dumps(listing, indent=0) + "\n")


def _scan(options: argparse.Namespace, head: Head, features: FeatureSet) -> Scan:
    named = Path(options.results) if options.results else None
    folder = named or folder_for(None, str(options.model), head.layer)
    found = load_scan(folder, head.layer, head) if named or (folder / EVIDENCE).is_file() else None
    if found is None or not (named or found.features == features):
        work: Any = asked.chosen(options, asked.WorkOptions)
        work |= {"checkpoint": folder / "blocks", "progress": True}
        with alone(folder):
            found = scan(head.layer, features=features, **work)
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
