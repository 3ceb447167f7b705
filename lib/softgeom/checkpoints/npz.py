"""Softmax layers in NumPy's `.npz`: our own, Nematus' and Marian's names.

`W` or `weight` (C, d) with `b` or `bias` (C,) is the plain form. Nematus ties the output to the decoder's embedding
`Wemb_dec` (C, d) with `ff_logit_b` (C,), or unties it as `ff_logit_W` (d, C); Marian has `Wemb` (all tied),
`decoder_Wemb` or `decoder_ff_logit_out_W` (d, C) with `decoder_ff_logit_out_b` (1, C).
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

# (weight, whether it is stored as (d, C), bias): the untied output first, since an embedding stands beside it unused.
CONVENTIONS: tuple[tuple[str, bool, str], ...] = (
    ("W", False, "b"),
    ("weight", False, "bias"),
    ("decoder_ff_logit_out_Wt", False, "decoder_ff_logit_out_b"),
    ("decoder_ff_logit_out_W", True, "decoder_ff_logit_out_b"),
    ("decoder_Wemb", False, "decoder_ff_logit_out_b"),
    ("Wemb", False, "decoder_ff_logit_out_b"),
    ("ff_logit_W", True, "ff_logit_b"),
    ("Wemb_dec", False, "ff_logit_b"),
)


class NpzStore:
    """The arrays of one `.npz` file; object arrays are refused, so nothing in the file is ever executed.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    ValueError
        When the file is no `.npz`, is cut short, or holds Python objects instead of numbers.
    """

    def __init__(self, path: Path):
        self.label = str(path)
        self.provenance = {"format": "npz"}
        self._path = path
        self._shapes = {name: array.shape for name, array in self._load().items()}

    def names(self) -> list[str]:
        return list(self._shapes)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shapes[name]

    def read(self, name: str) -> np.ndarray:
        return self._load(name)[name]

    def _load(self, *wanted: str) -> dict[str, np.ndarray]:
        """These arrays, or all of them."""
        # The file is opened here because numpy leaves its own handle open when the archive turns out to be broken.
        with self._path.open("rb") as handle:
            if not zipfile.is_zipfile(handle) and handle.seek(0) == 0 and handle.read(6) != b"\x93NUMPY":
                raise ValueError(
                    f"{self._path} is not a whole .npz file: fetch it again, or write it with numpy.savez."
                )
            handle.seek(0)
            try:
                loaded = np.load(handle, allow_pickle=False)
                if not isinstance(loaded, np.ndarray):
                    return {name: loaded[name] for name in wanted or loaded.files}
            except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
                raise ValueError(
                    f"{self._path} is not a whole .npz file of numbers ({error}); write it with numpy.savez."
                ) from error
        raise ValueError(f"{self._path} holds one unnamed array: write the layer with numpy.savez(path, W=W, b=b).")


def find_names(store: NpzStore) -> tuple[str, bool, str | None] | None:
    """The names of the layer in a store.

    Parameters
    ----------
    store : NpzStore
        An opened file.

    Returns
    -------
    (weight, transposed, bias) or None
        `transposed` tells that the weight is stored as (d, C); the bias is None where the file has none.
    """
    present = set(store.names())
    for weight, transposed, bias in CONVENTIONS:
        if weight in present:
            return weight, transposed, bias if bias in present else None
    return None
