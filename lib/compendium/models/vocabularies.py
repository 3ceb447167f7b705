"""What recognisers advertise and what they can answer with: their scans, kept, and what is read
where a character that can never win is drawn, in a font that matplotlib brings (DejaVu Sans).

Several notebooks ask about the same head. What is read back of a scan is the evidence, which every
notebook verifies again.
"""

import os
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from compendium import paths
from compendium.cache import Cache
from compendium.models import glyphs
from compendium.models.characters import partners
from softgeom.card import script_of
from softgeom.checkpoints import RELEASED, Head, load_head, load_softmax_layer
from softgeom.layer import Box, SoftmaxLayer
from softgeom.scan_result import Scan
from softgeom.scanner import scan

# language, word and meaning: a word of everyday life for each letter that one of the recognisers
# lists; capitals, as on a sign
_SIGNS = paths.LIB.parent / "data" / "reference" / "words_on_signs.csv"
WORDS = tuple(pd.read_csv(_SIGNS).itertuples(index=False, name=None))
# rows of one head under another set, in another kind of file, or of a handful of classes
_TWICE = (
    "rapidocrlite, box of 10",
    "PP-OCRv5 mobile, Paddle's own file",
    "human, gear",
    "Tesseract, English",
    "Tesseract, Japanese",
)


def kept_scan(layer: SoftmaxLayer, classes: np.ndarray, features: Box) -> Scan:
    """`scan(layer, classes, features=features)`, read where the same code has made it from the same
    layer before; a run that was killed goes on.
    """
    cache = Cache(paths.processed_dir() / "scans", ("../scanner/src/softgeom",))
    tokens = np.asarray(layer.tokens or (), dtype=str)
    arguments = (layer.W, layer.b, tokens, np.asarray(classes), features)
    findings = cache.keep(_findings, *arguments, label="scan", resumes=True)
    return Scan(layer, features, findings)


def _findings(
    W: np.ndarray,
    b: np.ndarray | None,
    tokens: np.ndarray,
    classes: np.ndarray,
    features: Box,
    checkpoint: Path | None = None,
):
    layer = SoftmaxLayer(W, b, tuple(tokens.tolist()) or None)
    workers = int(os.environ.get("JOBS") or 1)  # other notebooks run beside
    found = scan(
        layer, classes, features=features, n_jobs=workers, checkpoint=checkpoint, progress=True
    )
    return found.findings


def available(names: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Which released models can be had, and of the others why not; fetches missing files once."""
    found, absent = [], {}
    for name in names:
        try:
            RELEASED[name].fetch()
            if RELEASED[name].model.path.endswith(".gguf"):
                import gguf  # noqa: F401 - its reader is in the extra `models`
            found.append(name)
        except (ValueError, ImportError) as error:
            absent[name] = str(error)
    return found, absent


def heads(names: Iterable[str]) -> tuple[dict[str, Head], dict[str, str]]:
    """The last layers of those that can be had, by name, and of the others why not."""
    found, absent = available(names)
    return {name: load_head(name) for name in found}, absent


def scan_released(name: str) -> Scan:
    """The scan of a released model's head in the box of 100, all classes; kept."""
    layer = load_softmax_layer(name)
    return kept_scan(layer, np.arange(layer.classes), Box(100.0))


def scanned_heads() -> pd.DataFrame:
    """Every head that the benchmarks `found_unaided` and `tesseract` scanned: model, package,
    classes, features, lost, always (with any features), own (where the step before the layer
    puts the features), alike (lost outputs that share a row), share.
    """
    bench = paths.root() / "results" / "bench"
    found = pd.read_csv(bench / "found_unaided.csv", thousands=",")
    found = found[found.layer.notna() & ~found.model.isin(_TWICE)]
    size = found.layer.str.replace(",", "").str.extract(r"(\d+) x (\d+)").astype(int)
    columns = {"unargmaxable": "lost", "for any features": "always", "rows alike": "alike"}
    columns["in its own range"] = "own"
    found = found.rename(columns=columns).assign(classes=size[0], features=size[1])
    files = pd.read_csv(bench / "tesseract.csv")
    files = files.assign(model="Tesseract, " + files.file, lost=files.unargmaxable)
    files = files.assign(always=0, alike=0, own=files.lost)
    heads = pd.concat([found, files], ignore_index=True)
    counts = ["classes", "features", "lost", "always", "own", "alike"]
    heads = heads[["model", "package", *counts]].astype(dict.fromkeys(counts, "Int64"))
    return heads.assign(share=(heads.lost / heads.classes).astype(float))


def writing_of(token: str) -> str:
    """The script of a token; Chinese ones as simplified or traditional by national standards."""
    script = {"Other": "signs, no letters"}.get(script_of(token), script_of(token))
    if script != "Han" or len(token) != 1:
        return {"Hiragana": "kana", "Katakana": "kana"}.get(script, script)
    simplified, traditional = (_in_standard(token, encoding) for encoding in ("gb2312", "big5"))
    if simplified == traditional:
        return "Han, both" if simplified else "Han, other"
    return "Han, simplified" if simplified else "Han, traditional"


def letters(found: Scan, *, lost: bool, font: glyphs.Font) -> list[str]:
    """Letters outside ASCII that the font draws and the model can never (or can) answer with."""
    verdict = "unargmaxable" if lost else "argmaxable"
    table = found.table
    tokens = table["token"][table["verdict"] == verdict]
    kept = [t for t in tokens if len(t) == 1 and t.isalpha() and not t.isascii()]
    scripts = {"Latin", "Greek", "Cyrillic"}
    return [t for t in kept if t in font.characters and script_of(t) in scripts]


def matched(lost: Sequence[str], free: Sequence[str], font: glyphs.Font) -> list[str]:
    """For each lost letter another one of the same script and case, of the same Unicode block,
    which stands for rarity, where there is one left, with the closest ink.
    """
    inks = {c: glyphs.ink(c, font) for c in {*lost, *free}}

    def kind(c: str) -> tuple[str, bool]:
        return script_of(c), c.isupper()

    def distance(a: str, b: str) -> tuple[int, float]:
        return abs(_block(a) - _block(b)), abs(inks[a] - inks[b])

    return partners(lost, free, kind, distance)


def between(letter: str) -> str:
    """The letter between two plain ones of its script and case, which every recogniser reads."""
    neighbours = {"Greek": "ΑΕ", "Cyrillic": "АЕ"}.get(script_of(letter), "AE")
    pair = neighbours if letter.isupper() else neighbours.lower()
    return pair[0] + letter + pair[1]


def _block(letter: str) -> int:
    starts = [0x100, 0x180, 0x250, 0x370, 0x400, 0x460, 0x1E00, 0x1F00]
    return int(np.searchsorted(starts, ord(letter), side="right"))


def _in_standard(character: str, encoding: str) -> bool:
    return len(unicodedata.normalize("NFC", character).encode(encoding, errors="ignore")) == 2
