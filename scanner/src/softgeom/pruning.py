"""``softgeom.prune``: outputs that can be cut off without changing an answer, although the runtime
computes in float32.

*Argument.* Let class t be unargmaxable with certified best margin at most -g < 0: its evidence is
weights l >= 0 with sum 1 on its blocking classes such that ``sum l_i (y_t(x) - y_i(x)) <= -g`` for
every x of the feature set. A runtime computes each logit, in any order of summation, with an error
of at most ``e_i = gamma_n (sup |w_i|.|x| + |b_i|)`` and what is lost below float32's range; a sum
that may leave that range has no bound. A term is rounded n = d + 2 times: as an input, in its
product and in d additions; of float64 weights once more. Suppose that its answer,
the class of the largest *computed* logit, were t. Then no blocking class's computed logit is
larger, so ``0 <= sum l_i (computed y_t - computed y_i) <= -g + e_t + sum l_i e_i``: a contradiction
where ``g > e_t + sum l_i e_i``. The blocking classes may be cut off themselves, for the argument
never uses that they stay. So no answer of the runtime is among the classes cut off, and every
answer stays. What may change are ties of *kept* classes that lead by less than rounding, where a
narrower product may sum in another order.

The supremum over a box of radius 100 is far from what networks compute: all features at their bound
at once. Where features are known to be no *longer* than R (their norm, not each entry), ``|w|.|x|
<= R ||w||`` is smaller, and the answer is the same on the set's part within R.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from softgeom.arrays import Floats, Ints
from softgeom.certifying.verdict import BlockingClasses
from softgeom.checkpoints import RELEASED, Head
from softgeom.checkpoints.rewriting import write_layer, write_onnx
from softgeom.layer import Ball, Box, Ellipsoid, FeatureSet, SoftmaxLayer
from softgeom.options import (
    ScanOptions,
    SetOptions,
    WorkOptions,
    question,
    refuse_threshold,
    spelled_out,
    split,
)
from softgeom.results import load_scan
from softgeom.rounding import gamma, norm_up, underflow
from softgeom.scan_result import Scan
from softgeom.scanner import scan
from softgeom.writing import write_text


@dataclass(frozen=True)
class Cut:
    """Which classes a pruned layer keeps: ``kept`` (K,) in their old order; ``dropped`` (C - K,),
    proven never to be the runtime's answer; ``close``, unargmaxable in exact arithmetic, but by
    less than the runtime's rounding, and kept unless asked for.
    """

    kept: Ints
    dropped: Ints
    close: Ints


def cut(scan: Scan, *, longest: float | None = None, close_too: bool = False) -> Cut:
    """The classes to keep, so that the answer is the same on features x of the set with ``||x||_2
    <= longest`` (default all). ``close_too`` also cuts classes certified unargmaxable by less
    than rounding: the same answer in exact arithmetic only. ValueError if some class was not
    scanned or is undecided, or the features have no bound, so that rounding has none either.
    """
    layer = scan.layer
    if len(scan.findings) != layer.classes:
        count = f"{len(scan.findings)} of {layer.classes} classes were scanned"
        raise ValueError(f"{count}: prune needs the verdict of each.")
    if undecided := scan.counts["undecided"]:
        raise ValueError(f"{undecided} classes are undecided: nothing can be cut off before.")
    errors = rounding_errors(layer, scan.features, longest)
    certain: list[int] = []
    close: list[int] = []
    for finding in scan.findings:
        if isinstance(finding.evidence, BlockingClasses):
            weights = np.asarray(finding.evidence.weights, dtype=float)
            theirs = weights @ errors[finding.evidence.rivals] / weights.sum()
            needed = errors[finding.index] + theirs
            (certain if -finding.margin > needed else close).append(finding.index)
    dropped = np.array(sorted(certain + close if close_too else certain), dtype=np.intp)
    kept = np.setdiff1d(np.arange(layer.classes), dropped)
    return Cut(kept, dropped, np.array(close, dtype=np.intp))


def rounding_errors(
    layer: SoftmaxLayer, features: FeatureSet, longest: float | None = None
) -> Floats:
    """``gamma_n (sup |w_i|.|x| + |b_i|)`` (C,) and what underflows, infinite where a sum may
    overflow: how far a float32 logit can be from the true one, for features of the set of norm at
    most ``longest``. ValueError without bounds, or for a norm that is no positive number.
    """
    W, root = np.abs(layer.W.astype(np.float64)), layer.dimension**0.5
    b = np.abs(layer.bias.astype(np.float64))
    if longest is not None and not (np.isfinite(longest) and longest > 0):
        raise ValueError(f"the longest feature vector must have a positive norm, not {longest}.")
    norms = norm_up(W)
    within, far = (np.inf, np.inf) if longest is None else (longest * norms, longest * root)
    if isinstance(features, Box):
        low, high = features.bounds(layer.dimension)
        largest = W @ (most := np.maximum(np.abs(low), np.abs(high)))
        far = min(far, float(most.sum()))
    elif isinstance(features, Ball):
        largest = features.radius * norms
        far = min(far, features.radius * root)
    elif isinstance(features, Ellipsoid):
        gain, shift = np.abs(features.gain), np.abs(features.bias)
        largest = W @ shift + features.radius * norm_up(W * gain)
        far = min(far, float(shift.sum() + features.radius * norm_up(gain)))
    elif longest is not None:
        largest = np.full(layer.classes, np.inf)
    else:
        raise ValueError(
            "without bounds on the features there is none on rounding: say how long they can "
            "be, or scan a box."
        )
    sizes = np.minimum(largest, within) + b
    # numbers, and products, of which nothing is left below the normal range
    lost = underflow(1, np.float32) * (far + W.sum(axis=1))
    roundings = layer.dimension + (3 if layer.W.dtype == np.float64 else 2)
    lost += underflow(roundings, np.float32)
    beyond = np.maximum(sizes, np.maximum(W.max(axis=1), far)) >= np.finfo(np.float32).max / 2
    return np.where(beyond, np.inf, gamma(roundings, np.float32) * sizes + lost)


def pruned(layer: SoftmaxLayer, kept: Ints) -> SoftmaxLayer:
    """The layer of the kept classes alone."""
    tokens = None if layer.tokens is None else [layer.tokens[t] for t in kept]
    return SoftmaxLayer(layer.W[kept], None if layer.b is None else layer.b[kept], tokens)


@spelled_out(ScanOptions)
def prune(
    model: Any,
    *,
    out: str | Path | None = None,
    results: Scan | str | Path | None = None,
    longest: float | None = None,
    close_too: bool = False,
    progress: bool = False,
    **options: Unpack[ScanOptions],
) -> tuple[SoftmaxLayer, Cut]:
    """The same layer without classes that can never be the answer, and which those are.

    Parameters
    ----------
    model, **options
        As for ``softgeom.scan``.
    out : path, optional
        New file: .onnx from an ONNX model, .npz or .safetensors (the layer) from any; not written
        where nothing can be cut off. ``OUT.classes.json`` beside it gives each new class its old
        number and its name.
    results : Scan or path, optional
        A finished scan of this model or the folder of one, instead of scanning now.
    longest : float, optional
        Features have at most this norm: rounding then proves more classes safe to cut.
    close_too : bool
        Also cut classes that trail by less than float32 rounding.
    progress : bool
        Print how far the scan is.

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
        graph_for(Path(out), str(model))
    work, given = split(options, WorkOptions)
    head, where, _ = question(model, **given)
    what = "cutting off what is never the largest would cut off labels that can be on"
    refuse_threshold(head, what)
    if results is None:
        found = scan(head.layer, features=where, progress=progress, **work)
    elif work or not given.keys().isdisjoint(SetOptions.__annotations__):
        raise ValueError("results are a finished scan: leave out how to scan.")
    elif isinstance(results, Scan):
        found = Scan(head.layer, results.features, results.findings)
    else:
        found = load_scan(Path(results), head.layer, head)
    found.verify()
    chosen = cut(found, longest=longest, close_too=close_too)
    if out is not None and len(chosen.dropped):
        write_pruned(Path(out), head, chosen, str(model), options.get("weight"))
    return pruned(head.layer, chosen.kept), chosen


def graph_for(out: Path, model: str) -> Path | None:
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


def write_pruned(out: Path, head: Head, chosen: Cut, model: str, weight: str | None) -> None:
    """The pruned layer, or network, and the names of its classes."""
    layer, source = pruned(head.layer, chosen.kept), graph_for(out, model)
    if source is not None:
        write_onnx(source, out, layer, weight)
    else:
        write_layer(layer, out, {"pruned_from": model})
    listing = [
        {"class": n, "was": int(t), "token": head.layer.token(int(t))}
        for n, t in enumerate(chosen.kept)
    ]
    write_text(out.with_suffix(out.suffix + ".classes.json"), json.dumps(listing, indent=0) + "\n")
