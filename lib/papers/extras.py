"""What parts of `papers` need beyond the scanner's packages, and which extra brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_EXTRA = {"torch": "train", "tokenizers": "train", "anywidget": "lessons", "traitlets": "lessons"}


@contextmanager
def naming_the_extra() -> Iterator[None]:
    """Imports in this block that fail for want of an extra say which it is."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRA:
            raise
        cure = f"pip install -e '.[{_EXTRA[package]}]' in the clone."
        raise ModuleNotFoundError(
            f"this part of papers needs {package}: {cure}", name=package
        ) from error
