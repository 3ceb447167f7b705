"""How many rankings a low-rank softmax can realise, which classes can never win, and the proof for each."""

from softgeom.bottleneck.regions import count_regions, log10_regions
from softgeom.bottleneck.scan import Scan, scan
from softgeom.bottleneck.verdict import Captors, Evidence, EvidenceError, Finding, Twin, Unknown, Witness
from softgeom.layer import Ball, Box, Ellipsoid, SoftmaxLayer, Unbounded

__all__ = [
    "Ball",
    "Box",
    "Captors",
    "Ellipsoid",
    "Evidence",
    "EvidenceError",
    "Finding",
    "Scan",
    "SoftmaxLayer",
    "Twin",
    "Unbounded",
    "Unknown",
    "Witness",
    "count_regions",
    "log10_regions",
    "scan",
]
