"""Figures of the bottleneck chapter (notebooks 10 to 17): each function takes what was computed and returns a figure with its headline."""

from compendium.drawing.bottleneck.counted import draw_costs, draw_fractions
from compendium.drawing.bottleneck.growth import draw_cost, draw_iterations
from compendium.drawing.bottleneck.planes import draw_construction, draw_effect_of_bias, draw_unargmaxable_class
from compendium.drawing.bottleneck.reflections import draw_reflection_step
from compendium.drawing.bottleneck.slices import draw_slices
from compendium.drawing.bottleneck.vocabularies import draw_search_flow, draw_vocabulary

__all__ = [
    "draw_construction",
    "draw_cost",
    "draw_costs",
    "draw_effect_of_bias",
    "draw_fractions",
    "draw_iterations",
    "draw_reflection_step",
    "draw_search_flow",
    "draw_slices",
    "draw_unargmaxable_class",
    "draw_vocabulary",
]
