"""Ceilings and floors of probability: how sure can a layer ever be?"""

from softgeom.ceiling.ceilings import Ceilings as Ceilings
from softgeom.ceiling.ceilings import ceilings as ceilings
from softgeom.ceiling.ceilings import floor as floor
