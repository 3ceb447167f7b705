"""Paper 001: which rankings a low-rank softmax can realise, and the paper's own algorithms. The
scanner (`softgeom`) decides which classes can never win.
"""

from papers.bottleneck.counting.regions import count_regions, log10_regions
from papers.bottleneck.paper001 import braid_reflect

__all__ = ["braid_reflect", "count_regions", "log10_regions"]
