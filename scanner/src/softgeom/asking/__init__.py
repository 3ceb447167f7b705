"""More questions to the same layer: each is an order to obey, answered with a proof or a point."""

from softgeom.asking.ask import Answers, ask, ask_rankings
from softgeom.asking.candidates import BlockingSet, ask_among, find_blocking_set
from softgeom.asking.experts import Chosen, Router, ask_experts
from softgeom.asking.label_sets import ask_label_sets, ask_labels, with_threshold
from softgeom.asking.mixtures import mixed_pair, mixture, survives_mixing
from softgeom.asking.retrieval import ask_together, largest_safe_set, make_index, never_first
from softgeom.asking.texts import ask_texts
from softgeom.certifying.checker import Checker
from softgeom.certifying.order import Order
from softgeom.certifying.verdict import Answer, Comparisons

__all__ = [
    "Answer", "Answers", "BlockingSet", "Checker", "Chosen", "Comparisons", "Order", "Router",
    "ask", "ask_among", "ask_experts", "ask_label_sets", "ask_labels", "ask_rankings",
    "ask_texts", "ask_together", "find_blocking_set",
    "largest_safe_set", "make_index", "mixed_pair", "mixture", "never_first",
    "survives_mixing", "with_threshold",
]  # fmt: skip
