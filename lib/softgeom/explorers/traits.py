"""A traitlet that is a NumPy array in Python and nested lists in the browser."""

from __future__ import annotations

from typing import Any

import numpy as np
import traitlets


class Numbers(traitlets.TraitType[Any, Any]):
    """An array of finite float64, read-only: assign a new one, since a change in place could not be seen."""

    info_text = "an array of finite numbers"

    def __init__(self, default_value: Any, **kwargs: Any) -> None:
        start = None if default_value is None else _freeze(default_value)
        super().__init__(start, **kwargs)
        self.tag(to_json=lambda value, _: None if value is None else value.tolist(), from_json=lambda value, _: value)

    def validate(self, obj: Any, value: Any) -> Any:
        """Convert, or raise a ValueError of one sentence."""
        try:
            array = _freeze(value)
        except (TypeError, ValueError):
            raise ValueError(f"{self.name} must be an array of numbers, with rows of equal length.") from None
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{self.name} has a NaN or infinite entry: every entry must be a finite number.")
        return array


def _freeze(value: Any) -> np.ndarray:
    array = np.array(value, dtype=float)
    array.flags.writeable = False
    return array
