"""Figures of the bottleneck chapter (notebooks 10 to 17): each function takes what was computed and returns a figure with its headline."""

from compendium.drawing.bottleneck.counted import draw_costs, draw_fractions

__all__ = [
    "draw_costs",
    "draw_fractions",
]
