"""Evidence in one ``.npz``: typed arrays and one JSON string, nothing that executes when it is read
(docs/certificates.md).

Points are stacked by dtype; weights of all proofs are concatenated; fractions are text. The SHA-256
of W and b go with them, so that evidence is never checked against another layer unnoticed. A scan's
findings and the answers about orders are two forms of it.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from softgeom.bottleneck.certifying.verdict import Unknown, Witness
from softgeom.layer import FeatureSet, SoftmaxLayer
from softgeom.writing import whole

T = TypeVar("T")


@dataclass(frozen=True)
class Form:
    """One kind of evidence file.

    Attributes
    ----------
    version : int or str
        What `format` in the head says.
    holds : str
        What it is to a reader, such as "saved scan".
    remedy : str
        What a reader of a damaged one does, such as "scan the layer again".
    dtypes : mapping
        The dtype of each array, such as "<i8", in the order of the file.
    """

    version: int | str
    holds: str
    remedy: str
    dtypes: Mapping[str, str]

    def save(
        self,
        path: str | Path,
        layer: SoftmaxLayer,
        features: FeatureSet,
        evidence: Sequence[Any],
        head: Mapping[str, Any],
        arrays: Mapping[str, Any],
        key: str | None = None,
    ) -> None:
        """Write the evidence with what else the form holds, all or nothing; `key` takes the place
        of the layer's fingerprint.
        """
        points = [e.point for e in evidence if isinstance(e, Witness)]
        weights = [e.weights for e in evidence if hasattr(e, "weights")]
        unknown = [e for e in evidence if isinstance(e, Unknown)]
        head = {
            "format": self.version,
            "layer": key or fingerprint(layer),
            "identity": None if key else identity(layer),
            "features": features.to_json(),
            "reasons": [e.reason for e in unknown],
            "exact_points": [_texts(p) for p in points if p.dtype == object],
            "exact_weights": [_texts(w) for w in weights if w.dtype == object],
            **head,
        }
        arrays = {
            "points32": [p for p in points if p.dtype not in (object, np.float64)],
            "points64": [p for p in points if p.dtype == np.float64],
            "weights": joined(w for w in weights if w.dtype != object),
            "bounds": [e.bound for e in unknown],
            **arrays,
        }
        typed = {name: np.array(arrays[name], dtype=dtype) for name, dtype in self.dtypes.items()}
        with whole(path) as fresh, fresh.open("wb") as file:
            np.savez(file, allow_pickle=False, head=np.array(json.dumps(head)), **typed)

    def load(
        self,
        path: str | Path,
        layer: SoftmaxLayer,
        read: Callable[[Supply], list[T]],
        key: str | None = None,
    ) -> tuple[FeatureSet, list[T]]:
        """The feature set, and what `read` makes of the evidence.

        Raises
        ------
        ValueError
            If the file is missing, damaged, of another form, or belongs to another layer.
        """
        path = Path(path)
        with self._told(path):
            head, arrays = _content(path)
            known = head["format"] == self.version
            belongs = known and head["layer"] == (key or fingerprint(layer))
            features = FeatureSet.from_json(head["features"]) if belongs else None
            found: list[T] = []
            if belongs:
                self._check(arrays, layer.dimension)
                supply = Supply(head, arrays, layer.dimension)
                found = read(supply)
                supply.check_spent()
        if not known:
            written = f"{head['format']!r:.20}"
            raise ValueError(
                f"{path} was written in format {written}; this version reads format "
                f"{self.version!r}."
            )
        if features is None:
            raise ValueError(
                f"{path} belongs to another layer: its fingerprint differs from this one's."
            )
        return features, found

    def head(self, path: str | Path) -> dict[str, Any]:
        """What the file says of itself, before any layer is at hand; ValueError if it is missing or
        damaged.
        """
        with self._told(Path(path)):
            return dict(_content(Path(path))[0])

    @contextmanager
    def _told(self, path: Path) -> Iterator[None]:
        """Whatever a file that is missing or damaged raises, as one sentence."""
        if not path.is_file():
            raise ValueError(f"There is no {self.holds} at {path}.")
        try:
            yield
        except (
            KeyError, IndexError, TypeError, ValueError, OSError, EOFError, StopIteration, ArithmeticError, AttributeError,
            RuntimeError, MemoryError, zipfile.BadZipFile, zipfile.LargeZipFile,
        ) as error:  # fmt: skip
            reason = " ".join(str(error).split())[:120] or type(error).__name__
            raise ValueError(
                f"{path} is no {self.holds}, or is damaged ({reason}): {self.remedy}."
            ) from None

    def _check(self, arrays: Mapping[str, NDArray[Any]], dimension: int) -> None:
        for name, dtype in self.dtypes.items():
            if arrays[name].dtype.str != dtype:
                raise ValueError(f"{name} is stored as {arrays[name].dtype.str}, not {dtype}")
            if (
                name.startswith("points")
                and len(arrays[name])
                and arrays[name].shape[1:] != (dimension,)
            ):
                raise ValueError(f"{name} has shape {arrays[name].shape} for {dimension} features")


class Supply:
    """The evidence of a file, handed out in the order in which it was written; asking for more than
    it holds is a StopIteration.
    """

    def __init__(
        self, head: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], dimension: int
    ) -> None:
        self.head, self.arrays = head, arrays
        self._dimension = dimension
        self._points = {bits: iter(arrays[f"points{bits}"]) for bits in (32, 64)}
        self._unknown = zip(arrays["bounds"].tolist(), head["reasons"], strict=True)
        self._exact_points, self._exact_weights = (
            iter(head["exact_points"]),
            iter(head["exact_weights"]),
        )
        self._weights = 0

    def witness(self, kind: str) -> Witness:
        """The next point of a kind `witness32`, `witness64` or `witness_exact`."""
        if kind == "witness_exact":
            return Witness(read_fractions(next(self._exact_points), self._dimension))
        return Witness(next(self._points[int(kind.removeprefix("witness"))]))

    def weights(self, size: int, exact: bool) -> NDArray[Any]:
        """The next weights (size,) of one proof."""
        if exact:
            return read_fractions(next(self._exact_weights), size)
        self._weights += size
        return self.arrays["weights"][self._weights - size : self._weights]

    def unknown(self) -> Unknown:
        """The next bound with its reason."""
        bound, reason = next(self._unknown)
        return Unknown(float(bound), str(reason))

    def check_spent(self) -> None:
        """ValueError unless everything was asked for."""
        rests = (*self._points.values(), self._unknown, self._exact_points, self._exact_weights)
        if self._weights != len(self.arrays["weights"]) or any(
            next(rest, None) is not None for rest in rests
        ):
            raise ValueError("it holds evidence that nothing asks for")


def _content(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(str(arrays["head"])), arrays


def filed_as(evidence: Any, name: str) -> str:
    """The kind under which evidence called `name` is filed: by the dtype of a witness, and `_exact`
    for fractions.
    """
    if isinstance(evidence, Witness):
        exact, wide = evidence.point.dtype == object, evidence.point.dtype == np.float64
        return "witness_exact" if exact else "witness64" if wide else "witness32"
    weights = getattr(evidence, "weights", None)
    return f"{name}_exact" if weights is not None and weights.dtype == object else name


def joined(arrays: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """The arrays (k,) one after the other; of none, no entries."""
    return np.concatenate([np.zeros(0), *arrays])


def identity(layer: SoftmaxLayer) -> dict[str, Any]:
    """Shape, dtype and SHA-256 (of the little-endian bytes, row by row) of W and of b; null for no
    b.
    """
    return {"W": _digest(layer.W), "b": None if layer.b is None else _digest(layer.b)}


def fingerprint(layer: SoftmaxLayer) -> str:
    """SHA-256 of the layer's identity as JSON."""
    return hashlib.sha256(json.dumps(identity(layer), sort_keys=True).encode()).hexdigest()


def text_size(fractions: NDArray[Any]) -> int:
    """Bytes that exact weights or points (k,) take in the file."""
    return len(json.dumps(_texts(fractions)))


def _texts(fractions: NDArray[Any]) -> list[str]:
    """Numerators and denominators in hexadecimal."""
    return [f"{value.numerator:x}/{value.denominator:x}" for value in fractions]


def read_fractions(texts: list[str], size: int) -> NDArray[Any]:
    """Fractions from their text, of ``size`` numbers. ValueError when there are more or fewer."""
    if len(texts) != size:
        raise ValueError(f"{len(texts)} fractions stand where {size} belong")
    found = np.empty(size, dtype=object)
    for n, text in enumerate(texts):
        numerator, denominator = text.split("/")
        found[n] = Fraction(int(numerator, 16), int(denominator, 16))
    return found


def _digest(array: NDArray[Any]) -> dict[str, Any]:
    dtype = array.dtype.newbyteorder("<")
    digest = hashlib.sha256()
    for start in range(0, len(array), 4096):
        digest.update(np.ascontiguousarray(array[start : start + 4096], dtype=dtype).data)
    return {"shape": list(array.shape), "dtype": dtype.str, "sha256": digest.hexdigest()}
