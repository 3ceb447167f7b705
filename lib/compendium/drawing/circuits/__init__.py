"""Figures of the chapter on circuits (002): one `draw_...` each, which returns the figure with its
finding as headline.
"""

from __future__ import annotations

from compendium.drawing.circuits.heads import draw_copying, draw_offset_profiles, draw_patterns
from compendium.drawing.circuits.neurons import draw_memory, draw_sparsity
from compendium.drawing.circuits.norms import draw_sphere, draw_stream_lengths
from compendium.drawing.circuits.opened import (
    draw_atlas,
    draw_depths,
    draw_localising,
    draw_memories,
    draw_paths,
)
from compendium.drawing.circuits.predictions import draw_along, draw_losses, draw_margins
from compendium.drawing.circuits.writers import draw_lens, draw_writers

__all__ = [
    "draw_along",
    "draw_atlas",
    "draw_copying",
    "draw_depths",
    "draw_lens",
    "draw_localising",
    "draw_losses",
    "draw_margins",
    "draw_memories",
    "draw_memory",
    "draw_offset_profiles",
    "draw_paths",
    "draw_patterns",
    "draw_sparsity",
    "draw_sphere",
    "draw_stream_lengths",
    "draw_writers",
]
