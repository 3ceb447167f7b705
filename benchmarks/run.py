"""Run every benchmark in turn: ours beside the papers' methods, as ratios within one run; tables go
to results/bench/.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NOT_BENCHMARKS = {
    "run.py",
    "among_the_best.py",
    "ceilings.py",
    "oracle.py",
    "sceptic.py",
    "targets.py",
    "verifying.py",
}  # they take what they are told, or half an hour and more


def main() -> int:
    failed = []
    for script in sorted(HERE.glob("*.py")):
        if script.name in NOT_BENCHMARKS:
            continue
        print(f"== {script.name}", flush=True)
        if subprocess.run([sys.executable, str(script)], cwd=HERE.parent).returncode:
            failed.append(script.name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
