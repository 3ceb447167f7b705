"""Second routes: what the closed forms of 003 are compared with.

A complex step loses no digits to cancellation, automatic differentiation none at all, library
distributions and grids know no formula of the chapter.
"""

from compendium.second_routes.jacobians import (
    attention_jacobian,
    compare_blocks,
    negative_couplings,
    slope_by_complex_step,
)
from compendium.second_routes.masses import weigh_conditionals
from compendium.second_routes.posteriors import compare_objectives
from compendium.second_routes.stacks import compare_stack_densities, compare_stacks, layer_masses

__all__ = [
    "attention_jacobian",
    "compare_blocks",
    "compare_objectives",
    "compare_stack_densities",
    "compare_stacks",
    "layer_masses",
    "negative_couplings",
    "slope_by_complex_step",
    "weigh_conditionals",
]
