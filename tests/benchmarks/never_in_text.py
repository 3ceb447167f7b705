"""What a file of answers proves about the texts of a released recogniser, by both checkers; and how
near `PICTURES` pictures come to a counterexample.

    softgeom ask ppocr-v4 --in-text --out answers
    python tests/benchmarks/never_in_text.py ppocr-v4 answers/answers.safetensors

One row per head in results/bench/never_in_text.csv; seconds are of processor time. A picture climbs
for one text with a proven class. Its log ratio to the best text with a rival of the proof in that
place is negative wherever the theorem holds, and bounds that to the most probable text from above.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from papers.bottleneck.ctc import BLANK, climb
from softgeom.asking import Router
from softgeom.asking.experts import Chosen
from softgeom.certifying.verdict import Comparisons
from softgeom.checkpoints import load_head
from softgeom.layer import SoftmaxLayer
from softgeom.results import write_layer

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "results" / "bench" / "never_in_text.csv"
PICTURES, FRAMES, STEPS = 100_000, 4, 5
NEIGHBOURS = 10  # of the rivals, those with most weight: what may stand beside the class


def main(head: str, proofs: str) -> None:
    """Verify the file twice, attack what it proves, and put the counts into the table."""
    layer = load_head(head).layer
    found = Router.load(proofs, layer)
    start = time.process_time()
    found.verify()
    ours, counts = time.process_time() - start, found.counts
    with tempfile.TemporaryDirectory() as folder:
        write_layer(Path(folder) / "layer", layer)
        tool = [sys.executable, ROOT / "scanner" / "tools" / "check_proofs.py", proofs]
        subprocess.run([*tool, Path(folder) / "layer"], check=True)
    proven = [e for e in found.experts if e.verdict == "impossible"]
    each, rng = -(-PICTURES // len(proven)), np.random.default_rng(0)
    row = {
        "head": head,
        "can never win a frame": len(found.experts),
        "never in the text": counts["impossible"],
        "not excluded": counts["possible"],
        "undecided": counts["undecided"],
        "largest bound": max(e.margin for e in proven),
        "verify (s)": round(ours, 1),
        "exact (s)": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, 1),
        "pictures": each * len(proven),
        "nearest log ratio": max(nearest(layer, e, each, rng) for e in proven),
    }
    table = pd.DataFrame([row])
    if TABLE.exists():
        old = pd.read_csv(TABLE)
        table = pd.concat([old[old["head"] != head], table], ignore_index=True)
    table.to_csv(TABLE, index=False)


def nearest(layer: SoftmaxLayer, proven: Chosen, pictures: int, rng: np.random.Generator) -> float:
    """The largest log ratio that so many pictures reach for a proven class, among its rivals: what
    the other classes of the head add to a frame cancels in a ratio of texts without them.
    """
    shares: Counter[int] = Counter()
    for answer in proven.answers:
        assert isinstance(answer.evidence, Comparisons)
        rivals, weights = answer.evidence.below.tolist(), answer.evidence.weights.astype(float)
        shares.update(dict(zip(rivals, weights / weights.sum(), strict=True)))
    some = [BLANK, proven.expert, *shares]
    near = [some.index(rival) for rival, _ in shares.most_common(NEIGHBOURS)]
    before, after = (tuple(rng.choice(near, k).tolist()) for k in rng.integers(2, size=2))
    part = SoftmaxLayer(layer.W[some], layer.bias[some])
    X = rng.normal(size=(pictures, FRAMES, layer.dimension))
    X *= 10.0 ** rng.uniform(-2, 0, (pictures, 1, 1))
    return float(climb(part, (before, 1, after), X, STEPS, 100.0)[0].max())


if __name__ == "__main__":
    main(*sys.argv[1:])
