"""More questions to the same layer: each is an order to obey, answered with a proof or a point."""

from softgeom.bottleneck.asking.ask import Answers, ask, ask_rankings
from softgeom.bottleneck.asking.candidates import BlockingSet, ask_among, find_blocking_set
from softgeom.bottleneck.asking.experts import Chosen, Router, ask_experts
from softgeom.bottleneck.asking.label_sets import (
    ask_label_sets,
    ask_labels,
    fourier_layer,
    with_threshold,
)
from softgeom.bottleneck.asking.mixtures import mixed_pair, mixture, survives_mixing
from softgeom.bottleneck.asking.retrieval import (
    ask_together,
    largest_safe_set,
    make_index,
    moment_index,
    never_first,
)
from softgeom.bottleneck.certifying.checker import Checker
from softgeom.bottleneck.certifying.order import Order
from softgeom.bottleneck.certifying.verdict import Answer, Comparisons

__all__ = [
    "Answer", "Answers", "BlockingSet", "Checker", "Chosen", "Comparisons", "Order", "Router",
    "ask", "ask_among", "ask_experts", "ask_label_sets", "ask_labels", "ask_rankings",
    "ask_together", "find_blocking_set", "fourier_layer",
    "largest_safe_set", "make_index", "mixed_pair", "mixture", "moment_index", "never_first",
    "survives_mixing", "with_threshold",
]  # fmt: skip
