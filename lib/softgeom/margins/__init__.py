"""Where attention's change of variables is singular, and the log-barrier that keeps a model away from there.

The names below need no PyTorch until one of the training-time names (``log_barrier``, ...) is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# name -> module, for names whose module imports torch: `import softgeom.margins` must work without it
_TORCH_NAMES = {
    "log_barrier": "barrier",
    "signed_log_barrier": "barrier",
}

__all__ = sorted(_TORCH_NAMES)


def __getattr__(name: str) -> Any:
    if name in _TORCH_NAMES:
        return getattr(import_module(f"{__name__}.{_TORCH_NAMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
