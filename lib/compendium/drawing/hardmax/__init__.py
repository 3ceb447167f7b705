"""Figures of the chapter on hardmax dynamics (004): one `draw_...` each, which returns the figure with its finding as headline."""

from __future__ import annotations

from compendium.drawing.hardmax.lengths import draw_review_lengths

__all__ = ["draw_review_lengths"]
