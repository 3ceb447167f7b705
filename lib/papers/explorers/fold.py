"""The fold explorer: attention on a line, with a slider for the coupling (003, Section 3,
Proposition 1).

    explorer = FoldExplorer()
    explorer                          # show it; drag the past, move c
    explorer.past, explorer.coupling  # past tokens (n,) and c
    explorer.preimages                # every token with the residual `level`
    explorer.smallest_slope           # the least 1 - c Var(x) over the window |x| <= 3

The numbers come from `papers.margins.scalar`.
"""

from typing import Any

import numpy as np
import traitlets

from papers.explorers import examples, scripts
from papers.explorers.explorer import Explorer, Number, Numbers
from papers.margins import scalar

MOST_TOKENS = 8  # as in fold.js
_START = examples.initial_state("fold")
_WINDOW = np.linspace(-3, 3, 601)


class FoldExplorer(Explorer):
    """The residual e(x) = x - mu(x) of a token on the line, its slope 1 - c Var(x), and the tokens
    that share one residual.

    `past` holds 1 to 8 tokens, `coupling` is c of the logits c x x_j, of either sign, and `level`
    the residual whose tokens are marked. While it is hidden the coupling stops at a half.
    """

    _esm = scripts.module("fold")

    past = Numbers(_START["past"]).tag(sync=True)
    coupling = Number(_START["coupling"], -100, 100).tag(sync=True)
    level = Number(_START["level"], -10, 10).tag(sync=True)
    presets = traitlets.List(examples.PRESETS["fold"]).tag(sync=True)

    def __init__(self, past: Any = None, **kwargs: Any) -> None:
        super().__init__(past=past, **kwargs)

    @property
    def preimages(self) -> np.ndarray:
        """Every token whose residual is `level`, in increasing order."""
        return scalar.preimages(self.level, self.past, self.coupling)

    @property
    def smallest_slope(self) -> float:
        """The least slope of the residual in the window |x| <= 3; negative where the line folds."""
        return float(scalar.margin(_WINDOW, self.past, self.coupling).min())

    @traitlets.validate("past")
    def _validate_past(self, proposal: dict[str, Any]) -> Any:
        past = proposal["value"]
        if past.ndim != 1 or not 1 <= len(past) <= MOST_TOKENS:
            raise ValueError(
                f"past must be a list of 1 to {MOST_TOKENS} numbers, not of shape {past.shape}."
            )
        return past
