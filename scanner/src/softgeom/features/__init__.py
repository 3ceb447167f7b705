"""Feature sets: which inputs ``x`` of a softmax layer can occur; a file each, with everything that
is particular to it.

==============  ========================================  ======================================
feature set     x                                         where it comes from
==============  ========================================  ======================================
``Box``         ``low <= x <= high``                      paper 001, eq. (6); Swish, ReLU, tanh
``Ball``        ``||x||_2 <= radius``                     any normalised encoder
``Unbounded``   all of R^d                                convex hulls; Demeter et al. (2020)
``Ellipsoid``   ``bias + gain * u``, ``||u|| <= radius``  a final LayerNorm or RMSNorm
==============  ========================================  ======================================

Another set is one more subclass of ``FeatureSet``: nothing else asks which set it has before it.
"""

from softgeom.features.ball import Ball
from softgeom.features.box import Box
from softgeom.features.ellipsoid import Ellipsoid
from softgeom.features.feature_set import FeatureSet, Region
from softgeom.features.unbounded import Unbounded

__all__ = ["Ball", "Box", "Ellipsoid", "FeatureSet", "Region", "Unbounded"]
