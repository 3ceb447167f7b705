"""Figures of the chapter on hardmax dynamics (004): one `draw_...` each, which returns the figure
with its finding as headline.
"""

from __future__ import annotations

from compendium.drawing.hardmax.dynamics import (
    SHOWN,
    draw_attraction,
    draw_cases,
    draw_convergence,
    draw_growth,
    draw_polytope,
    film_cases,
)
from compendium.drawing.hardmax.general import (
    draw_cells,
    draw_classifier,
    draw_collapse,
    draw_metastability,
)
from compendium.drawing.hardmax.recipe import draw_equal_loss, draw_histories
from compendium.drawing.hardmax.sentiment import (
    LAYERS,
    draw_accuracy,
    draw_depth,
    draw_faithfulness,
    draw_frequent_leaders,
    draw_two_reviews,
)

__all__ = [
    "LAYERS",
    "SHOWN",
    "draw_accuracy",
    "draw_attraction",
    "draw_cases",
    "draw_cells",
    "draw_classifier",
    "draw_collapse",
    "draw_convergence",
    "draw_depth",
    "draw_equal_loss",
    "draw_faithfulness",
    "draw_frequent_leaders",
    "draw_growth",
    "draw_histories",
    "draw_metastability",
    "draw_polytope",
    "draw_two_reviews",
    "film_cases",
]
