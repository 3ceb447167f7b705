"""Classes as people name them: by token, as it is or as the tables write it, else by number."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from softgeom.layer import SoftmaxLayer
from softgeom.verdict_table import escape_token

_NUMBER = re.compile(r"[0-9]{1,18}")


class Names:
    """Finds the classes of a layer; ``of`` says in an error whose names they are."""

    def __init__(self, layer: SoftmaxLayer) -> None:
        self.layer = layer

    @cached_property
    def _places(self) -> dict[str, set[int]]:
        places: dict[str, set[int]] = {}
        for i, token in enumerate(self.layer.tokens or ()):
            for name in {token, escape_token(token)}:
                places.setdefault(name, set()).add(i)
        return places

    def find(self, name: str | int, of: str) -> int:
        """The class of that name or number; ValueError when there is none, or several have it."""
        places = self._places.get(name, set()) if isinstance(name, str) else set()
        if len(places) == 1:
            return next(iter(places))
        if len(places) > 1:
            which = f"classes {sorted(places)[:4]} are all called {name!r:.80}"
            raise ValueError(f"{of}: {which}: give the number.")
        whole = isinstance(name, int | np.integer) and not isinstance(name, bool)
        written = isinstance(name, str) and _NUMBER.fullmatch(name)
        if (whole or written) and 0 <= int(name) < self.layer.classes:
            return int(name)
        raise ValueError(
            f"{of}: the model has no class {name!r:.80}: pass a token of its vocabulary "
            f"or a number below {self.layer.classes}."
        )

    def named(self, name: str) -> set[int]:
        """All classes of that name; where no token is called so, the class of that number."""
        if name in self._places:
            return self._places[name]
        return {int(name)} if _NUMBER.fullmatch(name) else set()

    def find_all(self, names: Iterable[str | int], of: str) -> list[int]:
        """Classes in the given order, each once; ValueError also when there are none, or one
        repeats.
        """
        if isinstance(names, str):
            one = f"not one text: [{names!r}] holds one"
            raise ValueError(f"{of}: give a list of class numbers or tokens, {one}.")
        found: dict[int, None] = {}
        for name in names:
            if (i := self.find(name, of)) in found:
                raise ValueError(f"{of}: there is a duplicate: {name!r:.80}.")
            found[i] = None
        if not found:
            raise ValueError(f"{of}: no class is named: give at least one.")
        return list(found)
