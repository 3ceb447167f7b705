"""One door to every format: `load_softmax_layer` for the layer, `load_head` for all that stands
around it.

==========================  =====================================================================================
``.npz``                    W, b; Nematus' and Marian's names
``.onnx``                   the last product with a constant before the softmax or the output
``.safetensors``            names of the Hugging Face model families, or weight= and bias=
``.pt .pth .bin .ckpt``     PyTorch state dict, read with weights_only
``.pkl``                    a pickled dictionary of arrays, read by an allow-list
``.gguf``                   llama.cpp, dequantised (package gguf)
``.tflite``                 the fully connected layer before the output
``.bin`` (llama2.c)         recognised by its header
a folder                    Hugging Face model folder, sharded or not
``owner/name``              a model on the hub: only the byte ranges of the needed tensors are fetched
a name of `released.py`     such as ppocr-v6: a file of a published package, fetched once and by hash
an object in memory         torch.nn.Linear, a Transformers model, a matrix, a SoftmaxLayer
==========================  =====================================================================================
"""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.checkpoints import conventions, npz
from softgeom.checkpoints.activation import Activation, named_activation
from softgeom.checkpoints.choosing import choose
from softgeom.checkpoints.folder import find_token_file, open_folder
from softgeom.checkpoints.gguf_file import GgufStore
from softgeom.checkpoints.hub import HubModel, cached_snapshot
from softgeom.checkpoints.labels import (
    LabelsError,
    fit_labels,
    labels_beside,
    read_labels,
    read_tokens,
)
from softgeom.checkpoints.live import is_model, live_layer
from softgeom.checkpoints.llama2c import looks_like_llama2c, read_llama2c
from softgeom.checkpoints.onnx_head import read_onnx_head
from softgeom.checkpoints.plain_pickle import open_plain_pickle
from softgeom.checkpoints.released import RELEASED
from softgeom.checkpoints.safetensors_file import open_safetensors
from softgeom.checkpoints.state_dict import open_state_dict
from softgeom.checkpoints.tensors import TensorStore, plain, weights_of
from softgeom.checkpoints.tflite_file import TfliteStore
from softgeom.foreseen import foreseen
from softgeom.layer import Box, Ellipsoid, FeatureSet, SoftmaxLayer
from softgeom.source import Source, hub_reachable

Tokens = str | Path | Sequence[str] | None

_HUB_ID = re.compile(r"[\w][\w.-]*(?:/[\w.-]+)?")
_PYTORCH = {".pt", ".pth", ".bin", ".ckpt"}
SUFFIXES = (".npz", ".onnx", ".safetensors", ".gguf", ".tflite", ".pkl", *sorted(_PYTORCH))
_OPENERS: dict[str, Callable[[Path], TensorStore]] = {
    ".npz": npz.NpzStore,
    ".gguf": GgufStore,
    ".safetensors": open_safetensors,
    ".pkl": open_plain_pickle,
    ".tflite": TfliteStore,
}
_GEMMA = re.compile(r"gemma")


@dataclass(frozen=True)
class Head:
    """A softmax layer with what is known about it.

    Attributes
    ----------
    layer : SoftmaxLayer
        W, b and token strings.
    features : Ellipsoid or None
        What the model's final normalisation can feed the layer; None where it has none of a known
        name.
    source : Source
        Where the layer was read, on the hub with the commit that the revision resolved to.
    names : dict
        The tensors that were taken: `weight`, and `bias`, `gain`, `shift` where there are any.
    activation : Activation or None
        What stands in front of the layer, where the file shows it.
    notes : tuple of str
        How the layer, its bias and its names were found, and what the reader should know about
        them.
    is_embedding : bool
        The matrix is an input embedding, and nothing shows that the model also ends with it.
    """

    layer: SoftmaxLayer
    features: Ellipsoid | None
    source: Source
    names: dict[str, str]
    activation: Activation | None = None
    notes: tuple[str, ...] = ()
    is_embedding: bool = False

    def __post_init__(self) -> None:
        if self.layer.classes < 2:
            raise ValueError(
                f"{self.source.name}: a layer with {self.layer.classes} class has nothing to "
                "choose from."
            )

    def feature_set(self, bound: float = 100.0) -> tuple[FeatureSet, str]:
        """Where the model's own features lie, and why; the box of the bound is the outer set where
        nothing else is known.
        """
        step = self.activation
        if self.features is not None:
            return self.features, "the final normalisation confines the features to an ellipsoid"
        if step is None:
            return Box(
                bound
            ), f"nothing in the file bounds the features: the box of {bound:g} is an assumption"
        if step.gain is not None:
            make = (
                Ellipsoid.layer_norm(step.gain, step.shift)
                if step.name == "LayerNorm"
                else Ellipsoid.rms_norm(step.gain)
            )
            return make, f"{step.name} in front of the layer confines the features to an ellipsoid"
        low, high = max(step.low, -bound), min(step.high, bound)
        outer = (
            ""
            if high < bound and low > -bound
            else f"; {bound:g} is assumed where it gives no bound"
        )
        return Box(
            high, low=low
        ), f"{step.name} in front of the layer gives {low:g} <= x <= {high:g}{outer}"


def load_softmax_layer(
    model: Any,
    *,
    weight: str | None = None,
    bias: Any = None,
    tokens: Tokens = None,
    revision: str | None = None,
    without_bias: bool = False,
) -> SoftmaxLayer:
    """The softmax layer of a model; parameters and errors as `load_head`."""
    return load_head(
        model, weight=weight, bias=bias, tokens=tokens, revision=revision, without_bias=without_bias
    ).layer


def load_head(
    model: Any,
    *,
    weight: str | None = None,
    bias: Any = None,
    tokens: Tokens = None,
    revision: str | None = None,
    without_bias: bool = False,
    labels_confirmed: bool = False,
    cache: Path | None = None,
) -> Head:
    """The softmax layer of a model with the set of its features and its origin.

    Parameters
    ----------
    model : str, Path, torch.nn.Module, array or SoftmaxLayer
        A file, folder or name (see the table above), the id of a model on the hub, or an object in
        memory.
    weight, bias : str, optional
        Names of the tensors, where the model uses none of the known names; those of a module are
        its state dict's. A named weight takes its sibling bias. The bias of a matrix in memory is
        the vector (C,) itself.
    tokens : path or sequence of str, optional
        Token strings, or the vocabulary file that holds them; found in or beside the model where it
        has a place for it.
    revision : str, optional
        Branch, tag or commit, of a model on the hub only.
    without_bias : bool
        Leave out a bias that is there.
    labels_confirmed : bool
        Take names whose number does not fit the classes.
    cache : Path, optional
        Where fetched packages are kept.

    Returns
    -------
    Head

    Raises
    ------
    ValueError
        With one sentence that says what is wrong where and what to do: no such file and no hub, an
        unknown format, a truncated file, unknown tensor names (the candidates are listed with their
        shapes), shapes that do not fit, an option that has no meaning with the model.
    """
    if bias is not None and without_bias:
        raise ValueError("a bias is given and to be left out at once: pass --bias or --no-bias.")
    if is_model(model):
        _refuse_revision(revision, "an object in memory")
        layer, where, activation = live_layer(model, weight, bias, without_bias=without_bias)
        layer = replace_tokens(layer, tokens, labels_confirmed)
        return Head(layer, None, Source(where, "memory"), {"weight": where}, activation, (where,))
    if not isinstance(model, str | os.PathLike):
        raise ValueError(
            f"a {type(model).__name__} is not a model: pass a path, a hub id, a torch module, "
            "an array (classes, features), or softgeom.SoftmaxLayer(W, b)."
        )
    if not isinstance(bias, str | None):
        raise ValueError(f"the bias of {plain(str(model))} is given by its name in the file.")
    asked = _Asked(weight, bias, tokens, without_bias, labels_confirmed)
    path = Path(model)
    try:
        # what overflows here is not finite afterwards, and refused
        with np.errstate(all="ignore"):
            return _load(path, str(model), asked, revision, cache)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # libraries fail on damaged files in ways of their own
        if foreseen(error):
            raise
        reason = plain(f"{type(error).__name__}: {error}")
        raise ValueError(
            f"{plain(str(model))} cannot be read ({reason}): is it damaged?"
        ) from error


def _load(path: Path, model: str, asked: _Asked, revision: str | None, cache: Path | None) -> Head:
    if path.exists() or model in RELEASED:
        _refuse_revision(revision, f"{plain(model)}, which is not read from the hub")
    if model in RELEASED and not path.exists():
        return _load_released(model, asked, cache)
    if path.is_dir():
        store, config = open_folder(path)
        return _assemble(
            store, config, asked, _local(path, store), vocabulary=find_token_file(path)
        )
    if path.is_file():
        return _load_file(path, asked)
    if not _HUB_ID.fullmatch(model) or path.suffix in SUFFIXES:
        raise ValueError(
            f"there is no file or folder {plain(model)!r}; a model on the hub is called "
            "owner/name, released ones "
            f"{', '.join(RELEASED)}."
        )
    if not hub_reachable() and (folder := cached_snapshot(model, revision)) is not None:
        store, config = open_folder(folder)
        kind = store.provenance.get("format", "safetensors")
        source = Source(model, "hub", kind, revision=folder.name)
        return _assemble(store, config, asked, source, vocabulary=find_token_file(folder))
    return _load_from_hub(HubModel(model, revision), asked)


def _refuse_revision(revision: str | None, what: str) -> None:
    if revision is not None:
        raise ValueError(f"a revision ({plain(revision)}) has no meaning for {what}.")


def replace_tokens(layer: SoftmaxLayer, tokens: Tokens, confirmed: bool = False) -> SoftmaxLayer:
    """The layer with other names of its classes; None leaves them."""
    if tokens is None:
        return layer
    return SoftmaxLayer(layer.W, layer.b, _named(tokens, layer.classes, "tokens", confirmed)[0])


@dataclass(frozen=True)
class _Asked:
    """What the caller says about the layer."""

    weight: str | None
    bias: str | None
    tokens: Tokens
    without_bias: bool
    labels_confirmed: bool


def _load_released(name: str, asked: _Asked, cache: Path | None) -> Head:
    released = RELEASED[name]
    path, labels = released.fetch(cache)
    head = _load_file(
        path, asked if asked.tokens is not None or labels is None else replace(asked, tokens=labels)
    )
    activation = named_activation(released.activation) if released.activation else head.activation
    return replace(head, source=released.source, activation=activation)


def _load_file(path: Path, asked: _Asked) -> Head:
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty: fetch or write the file again.")
    if path.suffix == ".onnx":
        return _load_onnx(path, asked)
    if path.suffix == ".bin" and looks_like_llama2c(path):
        return _load_llama2c_head(path, asked)
    store = open_store(path)
    if isinstance(store, npz.NpzStore):
        return _load_npz(store, asked, path)
    if isinstance(store, GgufStore):
        head = _assemble(store, {}, asked, _local(path, store), strings=store.tokens)
        return replace(head, notes=(*head.notes, *store.notes))
    if isinstance(store, TfliteStore) and asked.weight is None:
        return _load_tflite(store, asked, path)
    return _assemble(store, {}, asked, _local(path, store), beside=path)


def _load_tflite(store: TfliteStore, asked: _Asked, path: Path) -> Head:
    found = store.head()
    bias = None if asked.without_bias else asked.bias or found.bias
    asked = replace(asked, weight=found.weight, bias=bias, without_bias=bias is None)
    head = _assemble(store, {}, asked, _local(path, store), beside=path)
    how = "the fully connected layer before the output"
    return replace(head, activation=found.activation, notes=(how, *head.notes))


def open_store(path: Path) -> TensorStore:
    """The named tensors of a local file or model folder; ValueError for a format without names or
    an unknown one.
    """
    if path.is_dir():
        return open_folder(path)[0]
    if path.suffix in _PYTORCH:
        return open_state_dict(path)
    opener = _OPENERS.get(path.suffix)
    if opener is None:
        raise ValueError(
            f"{path} has no known format: {', '.join(SUFFIXES)}, a model folder, or a hub id."
        )
    return opener(path)


def _load_onnx(path: Path, asked: _Asked) -> Head:
    if asked.bias is not None:
        raise ValueError(
            "an ONNX graph shows its bias itself: leave --bias out (--no-bias ignores the bias)."
        )
    found = read_onnx_head(path, asked.weight)
    W = weights_of(found.W, str(path), found.weight_name)
    b = None if found.b is None or asked.without_bias else found.b
    notes = [
        *found.notes,
        f"W is {plain(found.weight_name)}, {'with' if b is not None else 'without'} bias",
    ]
    if found.b is not None and asked.without_bias:
        notes.append("its bias is left out, as asked")
    tokens: Sequence[str] | None = None
    how: str | None = None
    if asked.tokens is None and found.tokens is not None:
        try:
            tokens, how = fit_labels(found.tokens, len(W), "the metadata entry 'character'")
            how = f"names from the metadata entry 'character'{how}"
        except LabelsError as error:
            notes.append(f"no names: {error}")
    if tokens is None:
        tokens, how = _names(asked, len(W), path)
    names = {"weight": plain(found.weight_name)}
    layer = _softmax_layer(W, b, tokens, path)
    return Head(
        layer,
        None,
        Source(path.name, "local", "onnx"),
        names,
        found.activation,
        (*notes, *([how] if how else [])),
    )


def _load_npz(store: npz.NpzStore, asked: _Asked, path: Path) -> Head:
    found = None if asked.weight else npz.find_names(store)
    if asked.tokens is None and (stored := npz.stored_tokens(store)) is not None:
        asked = replace(asked, tokens=stored)
    if found is None:
        return _assemble(store, {}, asked, _local(path, store), beside=path)
    name, transposed, known_bias = found
    bias = None if asked.without_bias else asked.bias or known_bias
    W = _weights(store, conventions.require(store, name, (2,)))
    names = {"weight": name} | ({"bias": bias} if bias else {})
    W = W.T if transposed else W
    b = _bias(store, conventions.require(store, bias, (1, 2)), W.shape) if bias else None
    if b is not None and b.size == W.shape[1] != W.shape[0]:
        raise ValueError(
            f"{store.label}: {name!r} is {W.shape} but its bias has {b.size} entries, so the "
            "matrix is stored transposed; "
            "save W as (classes, features)."
        )
    tokens, how = _names(asked, len(W), path)
    return Head(
        _softmax_layer(W, b, tokens, path),
        None,
        _local(path, store),
        names,
        notes=(how,) if how else (),
    )


def _load_llama2c_head(path: Path, asked: _Asked) -> Head:
    if asked.weight is not None or asked.bias is not None:
        raise ValueError(f"{path} is a llama2.c file, whose tensors have no names to choose from.")
    config, weights = read_llama2c(path)
    tokens, how = _names(asked, config.vocab_size, None)
    layer = _softmax_layer(weights["output"], None, tokens, path)
    names = {"weight": "tok_embeddings" if config.tied else "output", "gain": "norm"}
    ellipsoid = Ellipsoid.rms_norm(weights["norm"])
    return Head(
        layer, ellipsoid, Source(path.name, "local", "llama2.c"), names, notes=(how,) if how else ()
    )


def _load_from_hub(model: HubModel, asked: _Asked) -> Head:
    store, config = model.open()
    source = Source(
        model.repo_id, "hub", store.provenance.get("format", "safetensors"), revision=model.commit
    )
    vocabulary = model.token_file() if asked.tokens is None else None
    if vocabulary is None:
        return _assemble(store, config, asked, source)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / vocabulary[0]
        file.write_bytes(vocabulary[1])
        try:
            return _assemble(store, config, asked, source, vocabulary=file)
        except ValueError as error:  # told of the hub's file, not of the copy here
            raise ValueError(
                str(error).replace(str(file), f"{model.repo_id}/{file.name}")
            ) from error


def _assemble(
    store: TensorStore,
    config: Mapping[str, Any],
    asked: _Asked,
    source: Source,
    *,
    vocabulary: Path | None = None,
    beside: Path | None = None,
    strings: Sequence[str] | None = None,
) -> Head:
    """Choose the tensors by name, read them and nothing else, and put the layer together."""
    choice = choose(store, config, asked.weight, asked.bias, without_bias=asked.without_bias)
    W = _weights(store, choice.weight)
    W = W.T if choice.transposed else W
    b = _bias(store, choice.bias, W.shape) if choice.bias else None
    notes = list(choice.why)
    if choice.is_embedding:
        notes.append(
            f"{choice.weight} is an input embedding and nothing shows that the model ends "
            "with it: the verdicts are about nearest "
            "rows, not about outputs"
        )
    if asked.tokens is None and strings is not None and len(strings) == len(W):
        tokens: Sequence[str] | None = strings
        notes.append("names from the file's own vocabulary")
    elif asked.tokens is None and vocabulary is not None:
        tokens = read_tokens(vocabulary, len(W), confirmed=asked.labels_confirmed)
        notes.append(f"names from {vocabulary.name}")
    else:
        tokens, found_how = _names(asked, len(W), beside)
        notes += [found_how] if found_how else []
    layer = _softmax_layer(W, b, tokens, store.label)
    names = {"weight": choice.weight} | ({"bias": choice.bias} if choice.bias else {})
    head = Head(layer, None, source, names, notes=tuple(notes), is_embedding=choice.is_embedding)
    norm = conventions.find_norm(store, config)
    if norm is None or store.shape(norm.gain) != (layer.dimension,):
        return head
    gain = _weights(store, norm.gain).astype(float) + (
        1.0 if _GEMMA.match(str(config.get("model_type", ""))) else 0.0
    )
    shift = _weights(store, norm.shift) if norm.shift else None
    ellipsoid = (
        Ellipsoid.layer_norm(gain, shift) if norm.kind == "layernorm" else Ellipsoid.rms_norm(gain)
    )
    names |= {"gain": norm.gain} | ({"shift": norm.shift} if norm.shift else {})
    return replace(head, features=ellipsoid, names=names)


def _bias(store: TensorStore, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The bias, read only when its declared size can be one: a vector of classes, or of features
    where W is stored transposed.
    """
    if math.prod(store.shape(name)) not in shape:
        raise ValueError(
            f"{store.label}: b must have one entry per class ({shape[0]}), not shape "
            f"{store.shape(name)}."
        )
    return _weights(store, name)


def _weights(store: TensorStore, name: str) -> np.ndarray:
    return weights_of(store.read(name), store.label, name)


def _names(
    asked: _Asked, classes: int, beside: Path | None
) -> tuple[Sequence[str] | None, str | None]:
    if asked.tokens is not None:
        return _named(asked.tokens, classes, "tokens", asked.labels_confirmed)
    found = labels_beside(beside, classes) if beside is not None else None
    return found if found is not None else (None, None)


def _named(tokens: Tokens, classes: int, label: str, confirmed: bool) -> tuple[Sequence[str], str]:
    if isinstance(tokens, str | Path):
        return read_labels(tokens, classes, confirmed=confirmed)
    assert tokens is not None
    fitted, how = fit_labels([str(token) for token in tokens], classes, label, confirmed=confirmed)
    return fitted, f"names as given{how}"


def _softmax_layer(
    W: np.ndarray, b: np.ndarray | None, tokens: Sequence[str] | None, label: str | Path
) -> SoftmaxLayer:
    try:
        return SoftmaxLayer(W, b, tokens)
    except ValueError as error:
        raise ValueError(f"{label}: {error}") from None


def _local(path: Path, store: TensorStore) -> Source:
    return Source(path.name, "local", store.provenance.get("format", "model folder"))
