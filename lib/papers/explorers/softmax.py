"""The softmax explorer: a layer y = W x + b with two features, dragged by hand (001, Figures 1, 2,
3, 7 and 8).

    explorer = SoftmaxExplorer()
    explorer                      # show it; drag a class vector
    explorer.W, explorer.b        # what it was dragged to
    explorer.verdicts             # which classes can win, with proofs, by softgeom

W (C, 2) and b (C,) live here and in the browser; either side may change them. The browser computes
its own verdicts, so that a drag is answered at once; `verdicts` is the library's answer for the
same numbers, with all of the plane as features.
"""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import traitlets

from papers.bottleneck.counting.arrangement import braid_arrangement, count_arrangement_regions
from papers.explorers import examples, scripts
from papers.explorers.explorer import Explorer, Numbers
from softgeom.layer import SoftmaxLayer, Unbounded

# as in geometry.js: beyond that labels overlap and a drag is no longer answered at once
MOST_CLASSES = 16


class SoftmaxExplorer(Explorer):
    """Class vectors in the plane, to be dragged; the regions that they win, drawn beside them.

    `W` (C, 2) holds 1 to 16 classes, `b` (C,) their biases and `names` what they are called (c₁,
    c₂, ...). `among` (C,) has a 0 for each class that does not compete. `first` is 1 for the
    regions of the winner, 2 for those of the pair that comes first (in layers without a bias, such
    as an index of documents).
    """

    _esm = scripts.module("softmax")

    W = Numbers(examples.initial_state("softmax")["W"]).tag(sync=True)
    b = Numbers(None, allow_none=True).tag(sync=True)
    names: Any = traitlets.List(traitlets.Unicode(), default_value=None, allow_none=True).tag(
        sync=True
    )
    among = Numbers(None, allow_none=True).tag(sync=True)
    first = traitlets.CInt(1).tag(sync=True)
    presets = traitlets.List(examples.PRESETS["softmax"]).tag(sync=True)

    def __init__(
        self, W: Any = None, b: Any = None, names: Any = None, among: Any = None, **kwargs: Any
    ) -> None:
        listed = None if names is None else list(names)
        super().__init__(W=W, b=b, names=listed, among=among, **kwargs)

    def set_layer(self, W: Any, b: Any = None, names: Any = None) -> None:
        """Change weights, biases and names together, as a change of the number of classes needs."""
        checked = _check_layer(W, b, names)
        with self.hold_trait_notifications():
            self.among = None
            self.names = None if names is None else list(names)
            self.b = checked.b
            self.W = checked.W

    @property
    def layer(self) -> SoftmaxLayer:
        """The layer as it stands, for any function of `softgeom`."""
        return SoftmaxLayer(self.W, self.b, self.names)

    @property
    def candidates(self) -> list[int]:
        """The numbers of the classes that compete."""
        return (
            list(range(len(self.W))) if self.among is None else np.flatnonzero(self.among).tolist()
        )

    @property
    def verdicts(self) -> pd.DataFrame:
        """The table of a scan of the candidates' layer, over the whole plane."""
        from softgeom.scanner import scan

        who, layer = self.candidates, self.layer
        tokens = None if layer.tokens is None else [layer.tokens[i] for i in who]
        table = scan(
            SoftmaxLayer(layer.W[who], None if layer.b is None else layer.b[who], tokens),
            features=Unbounded(),
        ).table
        return table.assign(**{"class": who})

    @property
    def pairs(self) -> pd.DataFrame:
        """Which pairs of candidates some x puts before all others, with proofs."""
        from softgeom.asking import ask
        from softgeom.asking.candidates import above

        orders = [above([pair], self.candidates) for pair in combinations(self.candidates, 2)]
        return ask(self.layer, orders, features=Unbounded()).table

    @property
    def rankings(self) -> int:
        """The number of rankings that the layer realises, counted exactly."""
        lines = braid_arrangement(self.W, self.b)
        return 0 if lines is None else count_arrangement_regions(lines)

    @traitlets.validate("W", "b", "names", "among")
    def _validate(self, proposal: dict[str, Any]) -> Any:
        state = {"W": self.W, "b": self.b, "names": self.names, "among": self.among}
        _check_layer(**state | {proposal["trait"].name: proposal["value"]})
        return proposal["value"]

    @traitlets.validate("first")
    def _validate_first(self, proposal: dict[str, Any]) -> int:
        if proposal["value"] not in (1, 2):
            raise ValueError(
                f"first must be 1, for winners, or 2, for pairs, not {proposal['value']}."
            )
        return int(proposal["value"])


def _check_layer(W: Any, b: Any, names: Any, among: Any = None) -> SoftmaxLayer:
    layer = SoftmaxLayer(W, b, names)
    if layer.dimension != 2:
        raise ValueError(
            f"W must have two columns to be drawn in the plane, not {layer.dimension}."
        )
    if layer.classes > MOST_CLASSES:
        raise ValueError(
            f"W has {layer.classes} rows; the explorer shows at most {MOST_CLASSES} classes."
        )
    if among is not None and (
        np.shape(among) != (layer.classes,) or not np.isin(among, (0, 1)).all() or not np.any(among)
    ):
        raise ValueError(
            f"among must hold 0 or 1 for each of the {layer.classes} classes, and at least one 1."
        )
    return layer
