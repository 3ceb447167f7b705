"""Do verdicts survive rounding of the weights? Heads of recognisers in the formats of deployment.

    python scanner/benchmarks/quantised.py ppocr-v4 ppocr-v6

One row per head and format in results/bench/quantised.csv. `never` counts the classes that can
never win after the rounding (unargmaxable, or tied with a copy), and `still` those of them that
could never win before. The bias stays as it is.
int8 is symmetric, ``scale = max |w| / 127``, with one scale per row or per tensor; uint8 has one
scale and one zero point per tensor, as dynamic quantisation of ONNX Runtime has.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import softgeom as sg

OUT = Path(__file__).resolve().parents[2] / "results/bench/quantised.csv"


def symmetric(W: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """W on the grid of 255 values from -largest to largest."""
    scale = largest / 127
    return np.round(W / scale) * scale


def uint8(W: np.ndarray) -> np.ndarray:
    """W on the grid of 256 values between its ends, of which one is 0."""
    low, high = min(W.min(), 0.0), max(W.max(), 0.0)
    scale = (high - low) / 255
    zero = np.round(-low / scale)
    return (np.clip(np.round(W / scale) + zero, 0, 255) - zero) * scale


FORMATS = {
    "float32": lambda W: W,
    "float16": lambda W: W.astype(np.float16).astype(float),
    "int8, a scale per row": lambda W: symmetric(W, np.abs(W).max(axis=1, keepdims=True)),
    "int8, a scale per tensor": lambda W: symmetric(W, np.abs(W).max()),
    "uint8, a scale per tensor": uint8,
}


def rows_of(model: str) -> list[dict[str, object]]:
    """A row per format."""
    layer = sg.load(model).layer
    before: set[int] = set()
    rows: list[dict[str, object]] = []
    for name, rounded in FORMATS.items():
        found = sg.scan(rounded(np.asarray(layer.W, float)), bias=layer.b, verdicts_only=True)
        never = {t for t in found if found[t].verdict in ("unargmaxable", "tied")}
        before = before or never
        counts = {"never": len(never), "still": len(before & never)}
        rows.append(
            {"head": model, "classes": len(found), "format": name, **counts, **found.counts}
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", help="as softgeom scan takes them")
    models = parser.parse_args().models
    table = pd.DataFrame([row for model in models for row in rows_of(model)])
    table.to_csv(OUT, index=False)


if __name__ == "__main__":
    main()
