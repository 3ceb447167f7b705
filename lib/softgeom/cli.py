"""``softgeom scan PATH``: which outputs can this model never produce?

Loads the softmax layer of a model, scans it and writes

    OUT/verdicts.csv     one row per class: class, token, verdict, method, steps, margin, radius
    OUT/summary.json     counts, feature set, fingerprint of the layer, versions
    OUT/evidence.npz     the evidence; softgeom.bottleneck.Scan.load(path, layer).verify() re-checks it anywhere

Finished blocks are kept in OUT/blocks, so that a scan that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from softgeom.checkpoints import Head, classes_in_script, load_head
from softgeom.layer import Ball, Box, FeatureSet, SoftmaxLayer, Unbounded

_EXAMPLES = 20  # classes that can never win are named on the terminal up to here; verdicts.csv has them all


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code: 0 done, 1 an error told in one sentence, 3 some class undecided."""
    options = _parser().parse_args(arguments)
    try:
        return _scan(options)
    except (ValueError, OSError) as error:
        print(f"softgeom: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("softgeom: stopped; the same command goes on where it was.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="softgeom", description="The geometry of softmax.")
    commands = parser.add_subparsers(dest="command", required=True)
    scan = commands.add_parser("scan", help="find the outputs that a model can never produce, each proven")
    scan.add_argument(
        "path",
        help=".npz, .onnx, .safetensors, .pt, .bin, a model folder, a hub id, or ppocr-v4 (a first model to try)",
    )
    scan.add_argument("--out", type=Path, default=Path("scan"), help="folder for the results (default: scan)")
    scan.add_argument(
        "--features", choices=["box", "ball", "unbounded", "norm"], default="box", help="where inputs lie"
    )
    scan.add_argument("--bound", type=float, default=100.0, help="of the box, or radius of the ball (default: 100)")
    scan.add_argument("--low", type=float, help="lower bound of the box where it differs, such as -0.2785 after Swish")
    scan.add_argument("--weight", help="name of the weight tensor, when it cannot be told from the file")
    scan.add_argument("--bias", help="name of the bias tensor")
    scan.add_argument(
        "--tokens", help="vocabulary file, where the model's folder has none: tokenizer.json or one per line"
    )
    scan.add_argument("--script", help="scan only tokens written in this script, such as CYRILLIC or HAN")
    scan.add_argument("--jobs", type=int, default=1, help="parallel workers (default: 1)")
    scan.add_argument("--backend", choices=["loky", "dask", "threading"], help="how workers run (default: loky)")
    scan.add_argument("--scheduler", help="address of a Dask scheduler")
    scan.add_argument("--device", help="PyTorch device of the search, such as cuda (default: none, NumPy)")
    scan.add_argument("--seed", type=int, default=0, help="seed of every random choice")
    return parser


def _scan(options: argparse.Namespace) -> int:
    from softgeom.bottleneck.scanner import scan

    if options.out.exists() and not options.out.is_dir():
        raise ValueError(f"--out {options.out} is a file: name a folder for the results.")
    head, features, classes = _load(options)
    layer = head.layer
    print(
        f"{options.path}: {layer.classes:,} classes, {layer.dimension} features, {_bias(layer)}; {features.describe()}"
    )
    started = time.perf_counter()
    found = scan(
        layer,
        classes,
        features=features,
        seed=options.seed,
        n_jobs=options.jobs,
        backend=options.backend,
        address=options.scheduler,
        device=options.device,
        checkpoint=options.out / "blocks",
        progress=True,
    )
    found.verify()
    seconds = time.perf_counter() - started
    options.out.mkdir(parents=True, exist_ok=True)
    found.table.to_csv(options.out / "verdicts.csv", index=False)
    found.save(options.out / "evidence.npz")
    (options.out / "summary.json").write_text(
        json.dumps(_summary(options, head, features, found.counts), indent=2) + "\n"
    )
    for verdict, count in found.counts.items():
        print(f"{verdict:>13}: {count:,}")
    if found.counts["unargmaxable"]:
        print(f"never an output: {_examples(found.table)}")
    claimed = "every verdict" if not found.counts["undecided"] else "every verdict but the undecided"
    print(f"{claimed} proven and re-checked in {seconds:.1f} s; written to {options.out}")
    return 3 if found.counts["undecided"] else 0


def _load(options: argparse.Namespace) -> tuple[Head, FeatureSet, np.ndarray | None]:
    head = load_head(
        options.path, weight=options.weight, bias=options.bias, tokens=options.tokens or _npz_tokens(Path(options.path))
    )
    if not options.script:
        return head, _features(options, head), None
    if head.layer.tokens is None:
        raise ValueError("--script needs the token strings: pass --tokens with the model's vocabulary file.")
    return head, _features(options, head), classes_in_script(head.layer.tokens, options.script)


def _npz_tokens(path: Path) -> list[str] | None:
    """Token strings from an array named ``tokens`` beside the weights of an ``.npz`` file."""
    if path.suffix != ".npz" or not path.is_file():
        return None
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return [str(token) for token in file["tokens"].tolist()] if "tokens" in file.files else None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile):
        return None  # the loader says what is wrong with the file


def _features(options: argparse.Namespace, head: Head) -> FeatureSet:
    if options.features == "ball":
        return Ball(options.bound)
    if options.features == "unbounded":
        return Unbounded()
    if options.features == "norm":
        if head.features is None:
            raise ValueError(f"{options.path} has no final normalisation of a known name: use box, ball or unbounded.")
        return head.features
    return Box(options.bound, low=options.low)


def _summary(
    options: argparse.Namespace, head: Head, features: FeatureSet, counts: dict[str, int]
) -> dict[str, object]:
    from importlib.metadata import version

    from softgeom.bottleneck.certifying.archive import fingerprint

    layer = head.layer
    return {
        "model": str(options.path),
        "source": head.source.name,
        "tensors": head.names,
        "classes": layer.classes,
        "features": layer.dimension,
        "bias": layer.b is not None,
        "dtype": str(layer.W.dtype),
        "feature_set": features.describe(),
        "counts": counts,
        "seed": options.seed,
        "fingerprint": fingerprint(layer),
        "versions": {name: version(name) for name in ("softgeom", "numpy", "scipy", "highspy")},
    }


def _examples(table: pd.DataFrame) -> str:
    tokens = table["token"][table["verdict"] == "unargmaxable"]
    shown = [token if token.isprintable() and token.strip() else repr(token) for token in tokens[:_EXAMPLES]]
    return " ".join(shown) + (" ..." if len(tokens) > _EXAMPLES else "")


def _bias(layer: SoftmaxLayer) -> str:
    return "no bias" if layer.b is None else "with bias"


if __name__ == "__main__":
    sys.exit(main())
