"""Figures of the chapter on circuits (002): one `draw_...` each, which returns the figure with its finding as headline."""

from __future__ import annotations

from compendium.drawing.circuits.heads import draw_copying, draw_offset_profiles, draw_patterns
from compendium.drawing.circuits.neurons import draw_memory, draw_sparsity
from compendium.drawing.circuits.norms import draw_sphere, draw_stream_lengths
from compendium.drawing.circuits.predictions import draw_along, draw_losses, draw_margins
from compendium.drawing.circuits.writers import draw_lens, draw_writers

__all__ = [
    "draw_along",
    "draw_copying",
    "draw_lens",
    "draw_losses",
    "draw_margins",
    "draw_memory",
    "draw_offset_profiles",
    "draw_patterns",
    "draw_sparsity",
    "draw_sphere",
    "draw_stream_lengths",
    "draw_writers",
]
