"""Figures of the chapter on circuits (002): one `draw_...` each, which returns the figure with its
finding as headline.
"""

from __future__ import annotations

from compendium.drawing.circuits.opened import draw_atlas, draw_depths, draw_localising, draw_paths
from compendium.drawing.circuits.predictions import draw_losses
from compendium.drawing.circuits.writers import draw_lens, draw_writers

__all__ = [
    "draw_atlas",
    "draw_depths",
    "draw_lens",
    "draw_localising",
    "draw_losses",
    "draw_paths",
    "draw_writers",
]
