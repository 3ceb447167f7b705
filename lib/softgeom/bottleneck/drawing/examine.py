"""A layer of two features from all sides: polygons, rankings, formula, bounded regions, winners."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from softgeom.bottleneck.counting.rankings import effective_shape, feasible_rankings
from softgeom.bottleneck.counting.regions import count_regions
from softgeom.bottleneck.drawing import planar

__all__ = ["examine_plane"]


def examine_plane(W: Any, b: Any = None) -> dict[str, Any]:
    """Compare what is drawn of a layer W (C, 2), b (C,), with what is counted: classes; polygons,
    visited and formula (rankings by cutting the plane, by visiting the arrangement, by Stirling
    numbers); bounded and added_by_bias (Zaslavsky's theorem: equal in general position);
    unargmaxable (classes without a polygon); corollary_2 (classes for which having no polygon and
    ending no feasible ranking are the same); same_rankings; tiles (whether the polygons fill the
    window exactly).
    """
    reach = max((abs(x) for point in planar.crossings(W, b) for x in point), default=0) or 1
    window = planar.square(Fraction(6, 5) * reach)
    cells, winners = planar.ranking_cells(window, W, b), planar.argmax_cells(window, W, b)
    visited = feasible_rankings(W, b)
    dimension, counts = effective_shape(W, b)
    on_top = {ranking[-1] for ranking in visited}
    added = count_regions(len(W), 2, True) - count_regions(len(W), 2, False)
    return {
        "classes": len(W),
        "bias": counts,
        "polygons": len(cells),
        "visited": len(visited),
        "formula": count_regions(len(W), dimension, counts),
        "bounded": len(planar.bounded_rankings(W, b)),
        "added_by_bias": added * counts,
        "unargmaxable": len(W) - len(winners),
        "corollary_2": sum((c in winners) == (c in on_top) for c in range(len(W))),
        "same_rankings": set(cells) == set(visited),
        "tiles": sum(map(planar.area, cells.values())) == planar.area(window),
    }
