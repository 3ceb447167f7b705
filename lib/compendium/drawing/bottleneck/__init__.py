"""Figures of the bottleneck chapter (notebooks 10 to 19): each function takes what was computed and
returns a figure with its headline.
"""

from compendium.drawing.bottleneck.captives import draw_poster, draw_proof, draw_read_shares
from compendium.drawing.bottleneck.counted import draw_fractions
from compendium.drawing.bottleneck.planes import (
    draw_construction,
    draw_effect_of_bias,
    draw_unargmaxable_class,
)
from compendium.drawing.bottleneck.questions import (
    draw_experts_and_rankings,
    draw_flocks,
    draw_label_sets,
    draw_retrieval,
)
from compendium.drawing.bottleneck.reachable import draw_letters, draw_reach, draw_signs
from compendium.drawing.bottleneck.reflections import draw_reflection_step
from compendium.drawing.bottleneck.slices import draw_slices
from compendium.drawing.bottleneck.victims_drawn import draw_lost_tokens, draw_steps_by_rank

__all__ = [
    "draw_construction",
    "draw_effect_of_bias",
    "draw_experts_and_rankings",
    "draw_flocks",
    "draw_fractions",
    "draw_label_sets",
    "draw_letters",
    "draw_lost_tokens",
    "draw_poster",
    "draw_proof",
    "draw_reach",
    "draw_read_shares",
    "draw_reflection_step",
    "draw_retrieval",
    "draw_signs",
    "draw_slices",
    "draw_steps_by_rank",
    "draw_unargmaxable_class",
]
