"""The site's reference: public names of each chapter, grouped by the module that defines them."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator
from types import ModuleType

# asks about PyTorch's arrays while it is imported: before PyTorch is a mock
import scipy.stats  # noqa: F401
from sphinx.ext.autodoc.mock import mock, undecorate

_PACKAGES = {
    "Bottleneck": "bottleneck",
    "More questions": "bottleneck.asking",
    "Feature sets": "features",
    "Margins": "margins",
    "Circuits": "circuits",
    "Hardmax": "hardmax",
    "Language models": "language_model",
    "Checkpoints": "checkpoints",
    "Explorers": "explorers",
}
_LEAVES = ("layer", "progress", "parallel")
_HEAVY = ("torch", "numba", "gguf", "onnxruntime", "transformers")


def absent() -> list[str]:
    """Packages that the library imports and the site's environment does without."""
    return [name for name in _HEAVY if importlib.util.find_spec(name) is None]


def pages() -> dict[str, str]:
    """Name and text of every page, the table of contents as `index`."""
    with mock(absent()):
        found = {name: _page(title, f"softgeom.{name}") for title, name in _PACKAGES.items()}
    leaves = "\n".join(_module(f"softgeom.{name}", None) for name in _LEAVES)
    found["leaves"] = f"# Leaves\n\n{leaves}"
    contents = "\n".join(found)
    return found | {"index": f"# Library\n\n```{{toctree}}\n:maxdepth: 2\n{contents}\n```\n"}


def _page(title: str, package: str) -> str:
    module = importlib.import_module(package)
    parts = [f"# {title}\n", f"```{{eval-rst}}\n.. automodule:: {package}\n   :no-members:\n```\n"]
    parts += [_module(name, names) for name, names in _public(module)]
    return "\n".join(parts)


def _public(package: ModuleType) -> Iterator[tuple[str, list[str] | None]]:
    """Modules to show, each with its public names; all (None) where the package has no `__all__`."""
    if not hasattr(package, "__all__"):
        found = pkgutil.iter_modules(package.__path__)
        yield from ((f"{package.__name__}.{module.name}", None) for module in found)
        return
    homes: dict[str, list[str]] = {}
    for name in package.__all__:
        home = getattr(undecorate(getattr(package, name)), "__module__", None)
        # a name from elsewhere is shown there
        if home is not None and home.startswith(f"{package.__name__}."):
            homes.setdefault(home, []).append(name)
    yield from homes.items()


def _module(name: str, names: list[str] | None) -> str:
    members = f"\n   :members: {', '.join(names)}" if names else ""
    heading = name.split(".", 2)[-1]
    return f"## {heading}\n\n```{{eval-rst}}\n.. automodule:: {name}{members}\n```\n"
