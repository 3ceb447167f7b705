"""Figures of the chapter on margins (003): one `draw_...` each, which returns the figure with its finding as headline."""

from __future__ import annotations

from compendium.drawing.margins.blocks import draw_appendix_a, draw_depth, draw_support_tokens, draw_triangular
from compendium.drawing.margins.line import SIGNS, draw_densities, draw_interior_point, draw_mass, draw_population
from compendium.drawing.margins.processes import draw_consistency, draw_draws

__all__ = [
    "SIGNS",
    "draw_appendix_a",
    "draw_consistency",
    "draw_densities",
    "draw_depth",
    "draw_draws",
    "draw_interior_point",
    "draw_mass",
    "draw_population",
    "draw_support_tokens",
    "draw_triangular",
]
