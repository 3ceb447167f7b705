"""Heads that the benchmarks scanned, in one table."""

from __future__ import annotations

import pandas as pd

from compendium import paths

# rows of one head under another set, in another kind of file, or of a handful of classes
_TWICE = (
    "rapidocrlite, box of 10",
    "PP-OCRv5 mobile, Paddle's own file",
    "human, gear",
    "Tesseract, English",
    "Tesseract, Japanese",
)


def scanned_heads() -> pd.DataFrame:
    """Every head that the benchmarks `found_unaided` and `tesseract` scanned: model, package,
    classes, features, lost, always (whatever the features), own (where the step before the layer
    puts the features), alike (lost outputs that share a row), share.
    """
    found = pd.read_csv(paths.root() / "results/bench/found_unaided.csv", thousands=",")
    found = found[found.layer.notna() & ~found.model.isin(_TWICE)]
    size = found.layer.str.replace(",", "").str.extract(r"(\d+) x (\d+)").astype(int)
    columns = {"unargmaxable": "lost", "whatever the features": "always", "rows alike": "alike"}
    columns["in its own range"] = "own"
    found = found.rename(columns=columns).assign(classes=size[0], features=size[1])
    files = pd.read_csv(paths.root() / "results/bench/tesseract.csv")
    files = files.assign(model="Tesseract, " + files.file, lost=files.unargmaxable)
    files = files.assign(always=0, alike=0, own=files.lost)
    heads = pd.concat([found, files], ignore_index=True)
    counts = ["classes", "features", "lost", "always", "own", "alike"]
    heads = heads[["model", "package", *counts]].astype(dict.fromkeys(counts, "Int64"))
    return heads.assign(share=(heads.lost / heads.classes).astype(float))
