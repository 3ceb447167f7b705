"""What the explorers share: a widget with the stylesheet, which can hide its conclusions. Each of
them adds its script and its state.
"""

from typing import Any

import anywidget
import numpy as np
import traitlets

from papers.explorers import scripts


class Explorer(anywidget.AnyWidget):
    """A live figure whose state lives in Python: a value that it cannot show raises a ValueError of
    one sentence, and the state is kept. While it is `hidden`, as a lesson wants before a guess,
    counts, verdicts and presets are hidden; Python answers all the same.
    """

    _css = scripts.stylesheet()

    hidden = traitlets.Bool(False).tag(sync=True)

    def __init__(self, **given: Any) -> None:
        super().__init__(**{name: value for name, value in given.items() if value is not None})


class Numbers(traitlets.TraitType[Any, Any]):
    """A read-only array of finite float64: assign a new one, as no change in place is seen."""

    info_text = "an array of finite numbers"

    def __init__(self, default_value: Any, **kwargs: Any) -> None:
        start = None if default_value is None else _freeze(default_value)
        super().__init__(start, **kwargs)
        self.tag(
            to_json=lambda value, _: None if value is None else value.tolist(),
            from_json=lambda value, _: value,
        )

    def validate(self, obj: Any, value: Any) -> Any:
        """Convert, or raise a ValueError of one sentence."""
        try:
            array = _freeze(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"{self.name} must be an array of numbers, with rows of equal length."
            ) from None
        if not np.all(np.isfinite(array)):
            raise ValueError(
                f"{self.name} has a NaN or infinite entry: every entry must be a finite number."
            )
        return array


class Number(traitlets.CFloat[Any, Any]):
    """A number between `low` and `high`."""

    def __init__(self, default_value: float, low: float, high: float, **kwargs: Any) -> None:
        super().__init__(default_value, **kwargs)
        self._range = low, high

    def validate(self, obj: Any, value: Any) -> Any:
        """Convert, or raise a ValueError of one sentence."""
        return check_range(str(self.name), super().validate(obj, value), *self._range)


def _freeze(value: Any) -> np.ndarray:
    array = np.array(value, dtype=float)
    array.flags.writeable = False
    return array


def check_points(name: str, points: np.ndarray, *, at_least: int, at_most: int) -> np.ndarray:
    """The points, if so many points of the plane; else a ValueError of one sentence."""
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"{name} must be an (n, 2) matrix, one point of the plane a row, not of shape "
            f"{points.shape}."
        )
    if not at_least <= len(points) <= at_most:
        raise ValueError(
            f"{name} has {len(points)} rows; the explorer shows {at_least} to {at_most} tokens."
        )
    return points


def check_range(name: str, value: Any, low: float, high: float) -> Any:
    """The number, if it lies in the range; else a ValueError of one sentence."""
    if not low <= value <= high:  # also refuses NaN
        raise ValueError(f"{name} must lie between {low:g} and {high:g}, not be {value:g}.")
    return value
