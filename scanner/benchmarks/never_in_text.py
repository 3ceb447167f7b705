"""What a file of answers proves about the texts of a released recogniser, by both checkers.

    softgeom ask ppocr-v4 --in-text --out answers
    python scanner/benchmarks/never_in_text.py ppocr-v4 answers/answers.safetensors

One row per head in results/bench/never_in_text.csv; seconds are of processor time.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from softgeom.asking import Router
from softgeom.checkpoints import load_head
from softgeom.results import write_layer

SCANNER = Path(__file__).resolve().parent.parent
TABLE = SCANNER.parent / "results" / "bench" / "never_in_text.csv"


def main(head: str, proofs: str) -> None:
    """Verify the file twice, and put the counts into the table."""
    layer = load_head(head).layer
    found = Router.load(proofs, layer)
    start = time.process_time()
    found.verify()
    ours, counts = time.process_time() - start, found.counts
    with tempfile.TemporaryDirectory() as folder:
        write_layer(Path(folder) / "layer", layer)
        tool = [sys.executable, SCANNER / "tools" / "check_proofs.py", proofs]
        subprocess.run([*tool, Path(folder) / "layer"], check=True)
    row = {
        "head": head,
        "can never win a frame": len(found.experts),
        "never in the text": counts["impossible"],
        "not excluded": counts["possible"],
        "undecided": counts["undecided"],
        "largest bound": max(e.margin for e in found.experts if e.verdict == "impossible"),
        "verify (s)": round(ours, 1),
        "exact (s)": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, 1),
    }
    table = pd.DataFrame([row])
    if TABLE.exists():
        old = pd.read_csv(TABLE)
        table = pd.concat([old[old["head"] != head], table], ignore_index=True)
    table.to_csv(TABLE, index=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
