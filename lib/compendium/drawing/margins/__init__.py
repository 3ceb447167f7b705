"""Figures of notebook 24."""

from compendium.drawing.margins.rulers import draw_beside_the_paper, draw_gain, draw_two_rulers

__all__ = ["draw_beside_the_paper", "draw_gain", "draw_two_rulers"]
