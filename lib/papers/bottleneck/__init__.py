"""Which classes can never win, with proofs, and which rankings a low-rank softmax can realise."""

from softgeom.arithmetic import survives
from softgeom.certifying.verdict import (
    Captors,
    Evidence,
    EvidenceError,
    Finding,
    Twin,
    Unknown,
    Witness,
)
from papers.bottleneck.counting.regions import count_regions, log10_regions
from papers.bottleneck.paper001 import braid_reflect
from softgeom.prevention import repair
from softgeom.scan_result import Scan
from softgeom.scanner import scan
from softgeom.unargmaxable import RankBounds, bound_rank, smallest_shift
from softgeom.layer import Ball, Box, Ellipsoid, SoftmaxLayer, Unbounded

__all__ = [
    "Ball", "Box", "Captors", "Ellipsoid", "Evidence", "EvidenceError", "Finding", "RankBounds",
    "Scan", "SoftmaxLayer", "Twin", "Unbounded", "Unknown", "Witness", "bound_rank",
    "braid_reflect", "count_regions", "log10_regions", "repair", "scan", "smallest_shift",
    "survives",
]  # fmt: skip
