"""Live figures for JupyterLab and for the report: they stand above the chapters and nobody imports
them.

`SoftmaxExplorer`, `FoldExplorer`, `AttentionExplorer` and `HardmaxExplorer` are widgets whose state
lives in Python; `page(name)` is the same figure as one self-contained HTML text that needs no
kernel. `scan_page()` is a page on which a layer is dropped and scanned.
"""

from importlib import import_module
from typing import Any

from papers.explorers.page import NAMES, page
from papers.extras import naming_the_extra
from softgeom.web.scan_page import scan_page

__all__ = [
    "NAMES",
    "AttentionExplorer",
    "FoldExplorer",
    "HardmaxExplorer",
    "SoftmaxExplorer",
    "page",
    "scan_page",
]

# The widgets need anywidget and their chapters; a static page needs neither.
_WIDGETS = {
    "SoftmaxExplorer": "softmax",
    "FoldExplorer": "fold",
    "AttentionExplorer": "attention",
    "HardmaxExplorer": "hardmax",
}


def __getattr__(name: str) -> Any:
    if name in _WIDGETS:
        with naming_the_extra():
            return getattr(import_module(f"{__name__}.{_WIDGETS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
