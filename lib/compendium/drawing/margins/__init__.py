"""Figures of the chapter on margins (003): one `draw_...` each, which returns the figure with its
finding as headline.
"""

from __future__ import annotations

from compendium.drawing.margins.blocks import (
    draw_appendix_a,
    draw_depth,
    draw_support_tokens,
    draw_triangular,
)
from compendium.drawing.margins.head_atlas import draw_head_atlas, draw_margin_and_noise
from compendium.drawing.margins.line import (
    SIGNS,
    draw_densities,
    draw_interior_point,
    draw_mass,
    draw_population,
)
from compendium.drawing.margins.objectives import draw_layer_masses, draw_penalty
from compendium.drawing.margins.printed import draw_printed_robustness
from compendium.drawing.margins.processes import draw_consistency, draw_draws
from compendium.drawing.margins.rulers import draw_beside_the_paper, draw_gain, draw_two_rulers
from compendium.drawing.margins.supports import (
    draw_concentration,
    draw_positions,
    draw_selection,
    draw_text,
)
from compendium.drawing.margins.sweeps import draw_ablations, draw_sweep

__all__ = [
    "SIGNS",
    "draw_ablations",
    "draw_appendix_a",
    "draw_beside_the_paper",
    "draw_concentration",
    "draw_consistency",
    "draw_densities",
    "draw_depth",
    "draw_draws",
    "draw_gain",
    "draw_head_atlas",
    "draw_interior_point",
    "draw_layer_masses",
    "draw_margin_and_noise",
    "draw_mass",
    "draw_penalty",
    "draw_population",
    "draw_positions",
    "draw_printed_robustness",
    "draw_selection",
    "draw_support_tokens",
    "draw_sweep",
    "draw_text",
    "draw_triangular",
    "draw_two_rulers",
]
