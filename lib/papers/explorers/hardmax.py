"""The hardmax explorer: tokens dragged to where they start, and the layers that follow (004,
equations 1a and 1b).

    explorer = HardmaxExplorer()
    explorer                          # show it; drag a start, step through the layers
    explorer.Z, explorer.A            # the start (n, 2) and the matrix of the scores (2, 2)
    explorer.states                   # every layer's tokens, (layers + 1, n, 2)
    explorer.leaders                  # who leads at some layer, (n,) booleans

The numbers come from `papers.hardmax`. A = R diag(sqrt(ratio), 1 / sqrt(ratio)) R^T is symmetric
positive definite by construction.
"""

from typing import Any

import numpy as np
import traitlets

from papers.explorers import examples, scripts
from papers.explorers.explorer import Explorer, Number, Numbers, check_points, check_range
from papers.hardmax.dynamics import softmax_step, trajectory
from papers.hardmax.leaders import leader_history

MOST_TOKENS = 16  # as in hardmax.js
MOST_LAYERS = 24
_START = examples.initial_state("hardmax")


class HardmaxExplorer(Explorer):
    """Tokens in the plane, to be dragged and stepped through hardmax layers; leaders starred, with
    trails.

    `Z` (n, 2) is where 1 to 16 tokens start; `alpha` the step size; `ratio` (at least 1) of A's
    eigenvalues and `angle` of the larger one in degrees; `layers` (1 to 24) are computed and
    `layer` is shown. `temperature` is 0 for hardmax; above, each layer is the softmax layer of that
    temperature (0 to 16), and nobody leads.
    """

    _esm = scripts.module("hardmax")

    Z = Numbers(_START["Z"]).tag(sync=True)
    alpha = Number(_START["alpha"], 1 / 64, 64).tag(sync=True)
    ratio = Number(_START["ratio"], 1, 64).tag(sync=True)
    angle = Number(_START["angle"], -360, 360).tag(sync=True)
    temperature = Number(_START["temperature"], 0, 16).tag(sync=True)
    layers = traitlets.CInt(_START["layers"]).tag(sync=True)
    layer = traitlets.CInt(_START["layer"]).tag(sync=True)
    presets = traitlets.List(examples.PRESETS["hardmax"]).tag(sync=True)

    def __init__(self, Z: Any = None, **kwargs: Any) -> None:
        super().__init__(Z=Z, **kwargs)

    @property
    def A(self) -> np.ndarray:  # noqa: N802 (the source's letter)
        """The matrix of the scores <A z_i, z_j>, (2, 2)."""
        c, s = np.cos(np.deg2rad(self.angle)), np.sin(np.deg2rad(self.angle))
        R = np.array([[c, -s], [s, c]])
        return R @ np.diag([np.sqrt(self.ratio), 1 / np.sqrt(self.ratio)]) @ R.T

    @property
    def states(self) -> np.ndarray:
        """The tokens of every layer, (layers + 1, n, 2)."""
        if self.temperature == 0:
            return trajectory(self.Z, self.A, self.alpha, self.layers, check=False)
        states = [self.Z]
        for _ in range(self.layers):
            states.append(softmax_step(states[-1], self.A, self.alpha, self.temperature))
        return np.array(states)

    @property
    def leaders(self) -> np.ndarray:
        """Which tokens (n,) lead at some layer up to `layers`; none when warm."""
        if self.temperature > 0:
            return np.zeros(len(self.Z), bool)
        return np.asarray(leader_history(self.states, self.A).any(axis=0))

    @traitlets.observe("layers")
    def _show_a_layer_that_exists(self, change: dict[str, Any]) -> None:
        self.layer = min(self.layer, self.layers)

    @traitlets.validate("Z")
    def _validate_tokens(self, proposal: dict[str, Any]) -> Any:
        return check_points("Z", proposal["value"], at_least=1, at_most=MOST_TOKENS)

    @traitlets.validate("layers", "layer")
    def _validate_layer(self, proposal: dict[str, Any]) -> Any:
        name = proposal["trait"].name
        low, high = (1, MOST_LAYERS) if name == "layers" else (0, self.layers)
        return check_range(name, proposal["value"], low, high)
