"""What the explorers share: a widget with the stylesheet and a veil, whose script and state each of
them adds.
"""

from __future__ import annotations

import anywidget
import traitlets

from softgeom.explorers import scripts


class Explorer(anywidget.AnyWidget):
    """A live figure whose state lives in Python.

    Parameters
    ----------
    veiled : bool
        Whether counts, verdicts and presets wait, as a lesson wants before a guess; Python answers
        all the same.
    """

    _css = scripts.stylesheet()

    veiled = traitlets.Bool(False).tag(sync=True)
