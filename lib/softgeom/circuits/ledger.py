"""A ledger of identities, tried on many tensors of several models; the largest errors are kept."""

from __future__ import annotations

import pandas as pd
from torch import Tensor

from softgeom.circuits.anatomy import relative_error


class Ledger:
    """Errors max |found - expected| / max |expected| by identity and model: the largest of each."""

    def __init__(self) -> None:
        self._errors: dict[tuple[str, str], float] = {}

    def note(self, identity: str, model: str, found: Tensor, expected: Tensor) -> float:
        """Compare two tensors of one shape; the error, kept if it is the largest so far."""
        error = relative_error(found, expected)
        key = identity, model
        self._errors[key] = max(error, self._errors.get(key, 0.0))
        return error

    def worst(self, *identities: str) -> float:
        """The largest error of these identities over all models; of everything when none is named.
        KeyError if an identity was never noted: a claim must not rest on a test that did not run.
        """
        known = {identity for identity, _ in self._errors}
        if missing := [identity for identity in identities if identity not in known]:
            raise KeyError(
                f"never tested: {', '.join(missing)}; tested were "
                f"{', '.join(sorted(known)) or 'none'}"
            )
        return max(
            error
            for (identity, _), error in self._errors.items()
            if not identities or identity in identities
        )

    def table(self) -> pd.DataFrame:
        """One row per identity, one column per model; empty where one does not apply."""
        rows = [
            {"identity": i, "model": m, "max relative error": error}
            for (i, m), error in self._errors.items()
        ]
        return (
            pd.DataFrame(rows)
            .pivot(index="identity", columns="model", values="max relative error")
            .rename_axis(columns=None)
            .reset_index()
        )
