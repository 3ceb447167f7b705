"""Ceilings in one ``.npz``: points, and the bounds that they prove
(docs/certificates_of_answers.md).

=============  =====  =======  =============================================================
array          dtype  shape    rule
=============  =====  =======  =============================================================
``classes``    <i8    n        strictly increasing, in [0, C)
``points``     <f8    (m, d)   finite; in the coordinates of evidence; each is used
``at``         <i8    n        whose point is which, in [0, m)
``ceilings``   <f8    n        in (0, 1]: at every x of the set the class has at most this
``reached``    <f8    n        in [0, 1]: at its point it has at least this
=============  =====  =======  =============================================================

``head`` is canonical JSON with the keys ``format`` 4, ``holds`` "ceilings", ``layer`` and
``features``, as in files of evidence; and ``readout`` where the probabilities are not
``softmax(W x + b)``: what they are instead (``softgeom.readout``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.arrays import Array
from softgeom.bottleneck.certifying.evidence_file import DAMAGE, FORMAT, read_members, read_text
from softgeom.features.feature_set import FeatureSet
from softgeom.layer import SoftmaxLayer, identity
from softgeom.readout import PLAIN, Readout
from softgeom.writing import whole

ARRAYS = {"classes": "<i8", "points": "<f8", "at": "<i8", "ceilings": "<f8", "reached": "<f8"}
KEYS = {"format", "holds", "layer", "features"}


def save(
    path: str | Path,
    layer: SoftmaxLayer,
    features: FeatureSet,
    arrays: dict[str, Array],
    readout: Readout = PLAIN,
) -> None:
    """Write the arrays of the table above, all or nothing."""
    head = {"format": FORMAT, "holds": "ceilings", "layer": identity(layer)}
    head |= {} if readout == PLAIN else {"readout": readout.to_json()}
    text = json.dumps({**head, "features": features.to_json()}, sort_keys=True)
    typed = {name: np.asarray(arrays[name], dtype=dtype) for name, dtype in ARRAYS.items()}
    with whole(path) as fresh, fresh.open("wb") as file:
        np.savez(file, allow_pickle=False, head=np.array(text), **typed)


def load(path: str | Path, layer: SoftmaxLayer) -> tuple[FeatureSet, dict[str, Array], Readout]:
    """The feature set, the arrays and the readout of a file, unproven. ValueError if it is missing,
    damaged, not canonical, of another kind, or about another layer.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no file of ceilings at {path}.")
    try:
        arrays = read_members(path, ("head", *ARRAYS))
        head = json.loads(text := read_text(arrays.pop("head")))
        _require(
            type(head) is dict and set(head) - {"readout"} == KEYS, "its head has other fields"
        )
        _require(text == json.dumps(head, sort_keys=True), "its head is not canonical")
        _require(type(head["format"]) is int and head["format"] == FORMAT, "another format")
        _require(head["holds"] == "ceilings", f"it holds {head['holds']!r:.20}")
        features = FeatureSet.from_json(head["features"])
        _require(features.to_json() == head["features"], "its feature set is not canonical")
        features.check(layer.dimension)
        readout = Readout.from_json(head["readout"]) if "readout" in head else PLAIN
        _require("readout" not in head or readout != PLAIN, "it names a plain readout")
        _check_arrays(arrays, layer)
    except DAMAGE as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise ValueError(f"{path} is not a valid file of ceilings ({reason}).") from None
    if json.dumps(head["layer"], sort_keys=True) != json.dumps(identity(layer), sort_keys=True):
        raise ValueError(f"{path} belongs to another layer: its fingerprint differs.")
    return features, arrays, readout


def _check_arrays(arrays: dict[str, Array], layer: SoftmaxLayer) -> None:
    classes, points, at, ceilings, reached = (arrays[name] for name in ARRAYS)
    for name, dtype in ARRAYS.items():
        _require(arrays[name].dtype.str == dtype, f"{name} is {arrays[name].dtype}, not {dtype}")
    n = len(classes)
    _require(n and classes.shape == at.shape == ceilings.shape == reached.shape == (n,), "sizes")
    inside = classes[0] >= 0 and classes[-1] < layer.classes and bool((np.diff(classes) > 0).all())
    _require(inside, "classes are not in increasing order, or none of the layer's")
    fits = points.ndim == 2 and points.shape[1] == layer.dimension and np.isfinite(points).all()
    _require(fits, "points do not fit the layer")
    _require(np.array_equal(np.unique(at), np.arange(len(points))), "a point is not used, or none")
    _require((ceilings > 0).all() and (ceilings <= 1).all(), "a ceiling is no probability")
    _require((reached >= 0).all() and (reached <= 1).all(), "a probability is none")


def _require(condition: Any, reason: str) -> None:
    if not condition:
        raise ValueError(reason)
