"""Figures of the chapter on margins (003): one `draw_...` each, which returns the figure with its finding as headline."""

from __future__ import annotations

from compendium.drawing.margins.line import SIGNS, draw_densities, draw_interior_point, draw_mass, draw_population

__all__ = ["SIGNS", "draw_densities", "draw_interior_point", "draw_mass", "draw_population"]
