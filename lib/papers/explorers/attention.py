"""The attention explorer: one token dragged among its past, and where its change of variables is
singular (003, Theorem 1).

    explorer = AttentionExplorer()
    explorer                  # show it; drag the token x
    explorer.X, explorer.M    # tokens (T, 2), the last one being x, and coupling W_K^T W_Q (2, 2)
    explorer.weights          # the attention of x on its past
    explorer.determinants     # det J_i of every position; the support token has the smallest

The numbers come from `papers.margins.jacobian` with strict-causal attention, W_K = I and W_Q = M.
"""

from typing import Any

import numpy as np
import traitlets

from papers.explorers import examples, scripts
from papers.explorers.explorer import Explorer, Number, Numbers, check_points
from papers.margins.jacobian import attend, attention_jacobian_blocks

MOST_TOKENS = 12  # as in attention.js
_START = examples.initial_state("attention")


class AttentionExplorer(Explorer):
    """Tokens in the plane, to be dragged; attention, covariance ellipse, and the field det(I - S M)
    with its zero curve.

    `X` (T, 2) holds 2 to 12 tokens, the last being the one that attends to the others; M = c R with
    c the `coupling`, of either sign, and R a rotation by `turn` degrees.
    """

    _esm = scripts.module("attention")

    X = Numbers(_START["X"]).tag(sync=True)
    coupling = Number(_START["coupling"], -100, 100).tag(sync=True)
    turn = Number(_START["turn"], -360, 360).tag(sync=True)
    presets = traitlets.List(examples.PRESETS["attention"]).tag(sync=True)

    def __init__(self, X: Any = None, **kwargs: Any) -> None:
        super().__init__(X=X, **kwargs)

    @property
    def M(self) -> np.ndarray:  # noqa: N802 (the source's letter)
        """The coupling matrix W_K^T W_Q (2, 2): the logits are x_j . M x_i."""
        angle = np.deg2rad(self.turn)
        return self.coupling * np.array(
            [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        )

    @property
    def weights(self) -> np.ndarray:
        """Attention of the last token on its past, (T - 1,)."""
        return attend(self.X, self.M, np.eye(2)).weights[-1, :-1]

    @property
    def covariance(self) -> np.ndarray:
        """Covariance S (2, 2) of the past under those weights."""
        return attend(self.X, self.M, np.eye(2)).covariance[-1]

    @property
    def determinants(self) -> np.ndarray:
        """det J_i of every position, (T,), J_i = I - S_i M."""
        return np.linalg.det(attention_jacobian_blocks(self.X, self.M, np.eye(2)))

    @property
    def support_token(self) -> int:
        """The position, counted from 0, with the smallest determinant."""
        return int(np.argmin(self.determinants))

    @traitlets.validate("X")
    def _validate_tokens(self, proposal: dict[str, Any]) -> Any:
        return check_points("X", proposal["value"], at_least=2, at_most=MOST_TOKENS)
