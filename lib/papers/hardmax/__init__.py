"""Hardmax transformers: clustering, leaders, and what they say about sentiment.

`dynamics` and `leaders` need NumPy and SciPy only; `sentiment`, `training`, `faithfulness` and
`leading_words` need PyTorch: import them by name.
"""

from papers.hardmax.dynamics import Limit, attention, hardmax_step, limit, softmax_step, trajectory
from papers.hardmax.hypotheses import HypothesisWarning, violated_hypotheses
from papers.hardmax.leaders import TheoremCheck, check_theorem, clusters, leader_history, leaders

__all__ = [
    "HypothesisWarning", "Limit", "TheoremCheck", "attention", "check_theorem", "clusters",
    "hardmax_step", "leader_history", "leaders", "limit", "softmax_step", "trajectory",
    "violated_hypotheses",
]  # fmt: skip
