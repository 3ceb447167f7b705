"""How many rankings a low-rank softmax can realise, which classes can never win, and the proof for each."""

from softgeom.bottleneck.regions import count_regions, log10_regions

__all__ = ["count_regions", "log10_regions"]
