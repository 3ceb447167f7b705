"""Ceilings and floors of probability: how sure can a layer ever be?"""

from softgeom.bottleneck.ceilings.ceilings import Ceilings as Ceilings
from softgeom.bottleneck.ceilings.ceilings import ceilings as ceilings
from softgeom.bottleneck.ceilings.ceilings import floor as floor
