"""The recogniser before and after `softgeom prune` and `softgeom repair`: what does each read?

Usage: `python benchmarks/pruned_lines.py [--model ppocr-v6] [--lines 1000]`. Each line is drawn
from the model's own letters, in one font, in one of three sizes; both ONNX files run whole in
onnxruntime, as a user would run them, and classes of the smaller one are named by the list that
prune wrote beside it. The row of the model in results/bench/pruned_lines.csv is written anew.

With `--right` the same lines, read by the model as published, pruned, and repaired in both ways,
are compared with what was drawn: `right` of `letters` is how many are left after as few changes as
lead from one to the other. The rows of the model in results/bench/read_right.csv are written anew.
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
RIGHT = TABLE.with_name("read_right.csv")
HEADS = {
    "pruned": ["prune", "--longest", "150"],
    "repaired by bias": ["repair", "--method", "bias"],
    "repaired by unit norm": ["repair", "--method", "unit-norm"],
}
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


def pictures(
    tokens: list[str], lines: int, seed: int
) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
    """Batches of lines of random letters, and as they are drawn."""
    rng, font = np.random.default_rng(seed), glyphs.latin_font()
    alphabet = [
        token
        for token in tokens
        if len(token) == 1 and token in font.characters and token.isalnum()
    ]
    for start in range(0, lines, BATCH):
        texts = ["".join(rng.choice(alphabet, LETTERS)) for _ in range(min(BATCH, lines - start))]
        images = [glyphs.render_line(text, font, int(rng.choice(SIZES))) for text in texts]
        yield texts, line_batch(images)


def changes(one: str, other: str) -> int:
    """Letters put in, left out or exchanged between two texts, as few as possible."""
    row = list(range(len(other) + 1))
    for n, letter in enumerate(one, 1):
        before, row = row, [n]
        for m, wanted in enumerate(other, 1):
            row.append(min(before[m] + 1, row[-1] + 1, before[m - 1] + (letter != wanted)))
    return row[-1]


def read_right(model: str, lines: int, seed: int) -> None:
    """The rows of one model in results/bench/read_right.csv."""
    source, layer = RELEASED[model].fetch()[0], load_head(model).layer
    tokens = [layer.token(t) for t in range(layer.classes)]
    batches, rows = list(pictures(tokens, lines, seed)), []
    with tempfile.TemporaryDirectory() as folder:
        for name, words in {"as published": [], **HEADS}.items():
            path, named = source, tokens
            if words:
                path = Path(folder) / f"{words[-1]}.onnx"
                if softgeom([words[0], model, *words[1:], "--out", str(path)]):
                    raise RuntimeError(f"{name}: nothing was written.")
                listing = Path(f"{path}.classes.json")
                if listing.is_file():
                    named = [row["token"] for row in json.loads(listing.read_text("utf-8"))]
            reader = Reader(path, named)
            drawn = [text for texts, _ in batches for text in texts]
            read = [text for _, images in batches for text in reader.read(images)]
            letters = sum(map(len, drawn))
            wrong = sum(map(changes, drawn, read))
            row = {"model": RELEASED[model].title, "head": name, "outputs": len(named)}
            rows.append(row | {"lines": len(drawn), "letters": letters, "right": letters - wrong})
            print(rows[-1], file=sys.stderr, flush=True)
    known = pd.read_csv(RIGHT).to_dict("records") if RIGHT.is_file() else []
    others = [old for old in known if old["model"] != rows[0]["model"]]
    table = pd.DataFrame([*others, *rows])
    table["share"] = (table.right / table.letters).round(3)
    table.to_csv(RIGHT, index=False, lineterminator="\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="ppocr-v6")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--longest", type=float, default=150.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--right", action="store_true", help="compare with what was drawn")
    options = parser.parse_args()
    if options.right:
        read_right(options.model, options.lines, options.seed)
        return 0
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
        for _, lines in pictures(whole.tokens, options.lines, options.seed):
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
