"""The recogniser before and after `softgeom prune`: do both networks read the same text?

Usage: `python benchmarks/pruned_lines.py [--model ppocr-v6] [--lines 1000]`. Each line is drawn
from the model's own letters, in one font, in one of three sizes; both ONNX files run whole in
onnxruntime, as a user would run them, and classes of the smaller one are named by the list that
prune wrote beside it. The row of the model in results/bench/pruned_lines.csv is written anew.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
from numpy.typing import NDArray

from softgeom.checkpoints import RELEASED, glyphs, load_head
from softgeom.checkpoints.ppocr import ctc_decode, line_batch
from softgeom.cli import main as softgeom

TABLE = Path(__file__).resolve().parent.parent / "results" / "bench" / "pruned_lines.csv"
LETTERS, BATCH, SIZES = 7, 8, (20, 32, 48)


class Reader:
    """One ONNX file with the names of its classes."""

    def __init__(self, path: Path, tokens: list[str]) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self.tokens = tokens

    def read(self, lines: NDArray[np.float32]) -> list[str]:
        """The text of each line (N, 3, 48, width)."""
        (answers,) = self.session.run(None, {self.session.get_inputs()[0].name: lines})
        return [ctc_decode(line.argmax(axis=1), self.tokens) for line in answers]


def pictures(tokens: list[str], lines: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """Batches of drawn lines of random letters."""
    rng, font = np.random.default_rng(seed), glyphs.latin_font()
    alphabet = [
        token
        for token in tokens
        if len(token) == 1 and token in font.characters and token.isalnum()
    ]
    for start in range(0, lines, BATCH):
        texts = ["".join(rng.choice(alphabet, LETTERS)) for _ in range(min(BATCH, lines - start))]
        yield line_batch([glyphs.render_line(text, font, int(rng.choice(SIZES))) for text in texts])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="ppocr-v6")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--longest", type=float, default=150.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    source, layer = RELEASED[options.model].fetch()[0], load_head(options.model).layer
    with tempfile.TemporaryDirectory() as folder:
        smaller = Path(folder) / "smaller.onnx"
        code = softgeom(
            ["prune", options.model, "--longest", str(options.longest), "--out", str(smaller)]
        )
        if code:
            return code
        listing = json.loads(Path(f"{smaller}.classes.json").read_text(encoding="utf-8"))
        whole = Reader(source, [layer.token(t) for t in range(layer.classes)])
        short = Reader(smaller, [row["token"] for row in listing])
        differing = done = letters = 0
        for lines in pictures(whole.tokens, options.lines, options.seed):
            before, after = whole.read(lines), short.read(lines)
            differing += sum(a != b for a, b in zip(before, after, strict=True))
            letters += sum(map(len, before))
            done += len(before)
            print(f"{done} lines, {differing} differ", file=sys.stderr, flush=True)
        row = {
            "model": RELEASED[options.model].title,
            "outputs": layer.classes,
            "kept": len(listing),
            "lines": done,
            "letters read": letters,
            "differing": differing,
            "megabytes before": round(source.stat().st_size / 1e6, 1),
            "megabytes after": round(smaller.stat().st_size / 1e6, 1),
        }
    rows = pd.read_csv(TABLE).to_dict("records") if TABLE.is_file() else []
    table = pd.DataFrame([*(old for old in rows if old["model"] != row["model"]), row])
    table.sort_values("model").to_csv(TABLE, index=False, lineterminator="\n")
    print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
