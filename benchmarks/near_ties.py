"""False proofs and false witnesses that near ties win: against the checkers as they are, and with
every rounding bound set to zero.

    python benchmarks/near_ties.py --attempts 1500 --seed 0

The attack is tests/oracles/near_ties.py. As the checkers are it must find nothing;
without bounds it must find plenty, or it would show nothing. A row each in
results/bench/near_ties.csv.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "oracles"))

from near_ties import false_proofs, false_witnesses, without_bounds


def main() -> None:
    """Attack, and keep what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attempts", type=int, default=1500, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/bench/near_ties.csv"))
    options = parser.parse_args()
    rows = []
    for bounds, context in (("as they are", nullcontext), ("all zero", without_bounds)):
        with context():
            for evidence, attack in (("weights", false_proofs), ("points", false_witnesses)):
                accepted = attack(options.attempts, options.seed)
                rows.append((bounds, evidence, options.attempts, accepted))
    table = pd.DataFrame(
        rows, columns=["rounding_bounds", "evidence", "attempts", "falsely_accepted"]
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.out, index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
