"""The paper's exact algorithm beside certified verdicts: the Chebyshev programme of 001, Section
3.3.1, equations (5) and (6).

    maximise r   subject to   (w_i - w_t).x + r ||w_i - w_t|| <= b_t - b_i  for all i != t,   -100 <= x <= 100.

A class is argmaxable when r > 0 (the authors' code asks for 1e-8 at least), and r bounds the size
of its region from below; the ball itself may leave the box. The solver's answer is no proof, which
is why it is compared with verdicts that are checked without one.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from softgeom.bottleneck.scan_result import Scan

__all__ = ["CODE_THRESHOLD", "compare_with_programme"]

CODE_THRESHOLD = 1e-8  # of r, in the authors' code
_TOLERANCE = 1e-6  # relative, of the solver's radii


def compare_with_programme(scan: Scan, classes: Iterable[int]) -> pd.DataFrame:
    """Solve the programme for some classes of a scan over a box.

    Returns
    -------
    DataFrame
        class, verdict (certified), radius (certified lower bound, NaN without a witness), chebyshev
        (the programme's r), agree (whether r > 0 says what the verdict says), bounded (whether the
        certified radius stays below r, as it must).
    """
    verdicts = scan.table.set_index("class")
    rows = []
    for index in classes:
        verdict, certified = verdicts.verdict[index], float(verdicts.radius[index])
        r = scan.chebyshev_radius(int(index))
        bounded = not certified > r * (1 + _TOLERANCE) + _TOLERANCE
        rows.append((index, verdict, certified, r, (r > 0) == (verdict == "argmaxable"), bounded))
    return pd.DataFrame(
        rows, columns=["class", "verdict", "radius", "chebyshev", "agree", "bounded"]
    )
