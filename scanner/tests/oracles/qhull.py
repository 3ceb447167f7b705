"""Which classes can win with features without bounds, by Qhull: another algorithm, for few features
(001, Section 2.2).

Without a bias a class wins somewhere iff its row is a vertex of the convex hull of all rows. With
one it wins iff (w, b) is a vertex of the hull seen from above (b upwards), or w a vertex of the
hull of the rows: far enough out the bias does not matter.
"""

import numpy as np
from scipy.spatial import ConvexHull

from softgeom.layer import SoftmaxLayer

__all__ = ["winners_by_hull"]


def winners_by_hull(layer: SoftmaxLayer) -> set[int]:
    """The classes that win strictly at some feature vector without bounds; rows in general
    position, a handful of features.
    """
    W = layer.W.astype(np.float64)
    edge = (
        set(ConvexHull(W).vertices.tolist())
        if layer.dimension > 1
        else {int(W.argmin()), int(W.argmax())}
    )
    if layer.b is None:
        return edge
    hull = ConvexHull(np.column_stack([W, layer.bias]))
    upper = hull.equations[:, -2] > 0  # outward normals that point up along the bias
    return edge | {int(v) for simplex in hull.simplices[upper] for v in simplex}
