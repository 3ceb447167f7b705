"""One door to every format: `load_softmax_layer` for the layer, `load_head` for all that stands around it.

==========================  =====================================================================================
``.npz``                    W, b; Nematus' and Marian's names
``.onnx``                   the last product with a constant before the softmax or the output
``.safetensors``            names of the Hugging Face model families, or weight= and bias=
``.pt .pth .bin .ckpt``     PyTorch state dict, read with weights_only
``.bin`` (llama2.c)         recognised by its header
a folder                    Hugging Face model folder, sharded or not
``owner/name``              a model on the hub: only the byte ranges of the needed tensors are fetched
``ppocr-v4``                the text recogniser inside the package rapidocr-onnxruntime
==========================  =====================================================================================
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softgeom.checkpoints import conventions, npz
from softgeom.checkpoints.folder import find_token_file, open_folder
from softgeom.checkpoints.hub import HubModel
from softgeom.checkpoints.llama2c import looks_like_llama2c, read_llama2c
from softgeom.checkpoints.onnx_graph import read_onnx_head
from softgeom.checkpoints.ppocr import ppocr_file
from softgeom.checkpoints.safetensors_file import open_safetensors
from softgeom.checkpoints.state_dict import open_state_dict
from softgeom.checkpoints.tensors import TensorStore
from softgeom.checkpoints.token_strings import read_tokens
from softgeom.layer import Ellipsoid, SoftmaxLayer
from softgeom.source import Source

Tokens = str | Path | Sequence[str] | None

_HUB_ID = re.compile(r"[\w][\w.-]*(?:/[\w.-]+)?")
_PYTORCH = {".pt", ".pth", ".bin", ".ckpt"}
PPOCR = "ppocr-v4"  # a first model to scan, which one pip install brings
SUFFIXES = (".npz", ".onnx", ".safetensors", *sorted(_PYTORCH))
_GEMMA = re.compile(r"gemma")


@dataclass(frozen=True)
class Head:
    """A softmax layer with what is known about it.

    Attributes
    ----------
    layer : SoftmaxLayer
        W, b and token strings.
    features : Ellipsoid or None
        What the model's final normalisation can feed the layer; None where it has none of a known name.
    source : Source
        Where the layer was read, on the hub with the commit that the revision resolved to.
    names : dict
        The tensors that were taken: `weight`, and `bias`, `gain`, `shift` where there are any.
    """

    layer: SoftmaxLayer
    features: Ellipsoid | None
    source: Source
    names: dict[str, str]


def load_softmax_layer(
    path_or_hub_id: str | Path,
    *,
    weight: str | None = None,
    bias: str | None = None,
    tokens: Tokens = None,
    revision: str | None = None,
) -> SoftmaxLayer:
    """The softmax layer of a model; parameters and errors as `load_head`."""
    return load_head(path_or_hub_id, weight=weight, bias=bias, tokens=tokens, revision=revision).layer


def load_head(
    path_or_hub_id: str | Path,
    *,
    weight: str | None = None,
    bias: str | None = None,
    tokens: Tokens = None,
    revision: str | None = None,
) -> Head:
    """The softmax layer of a model with the set of its features and its origin.

    Parameters
    ----------
    path_or_hub_id : str or Path
        A file or folder (see the table above), or the id of a model on the hub.
    weight, bias : str, optional
        Names of the tensors, where the model uses none of the known names.
    tokens : path or sequence of str, optional
        Token strings, or the vocabulary file that holds them; found beside the model where its format has a place for it.
    revision : str, optional
        Branch, tag or commit on the hub.

    Returns
    -------
    Head

    Raises
    ------
    ValueError
        With one sentence that says what is wrong where and what to do: no such file and no hub, an unknown format, a
        truncated file, unknown tensor names (the candidates are listed with their shapes), shapes that do not fit.
    """
    path = Path(path_or_hub_id)
    if str(path_or_hub_id) == PPOCR and not path.exists():
        path = ppocr_file()
    if path.is_dir():
        store, config = open_folder(path)
        tokens = tokens if tokens is not None else find_token_file(path)
        return _assemble(store, config, weight, bias, tokens, _local(path, store))
    if path.is_file():
        return _load_file(path, weight, bias, tokens)
    if not _HUB_ID.fullmatch(str(path_or_hub_id)) or path.suffix in SUFFIXES:
        raise ValueError(
            f"there is no file or folder {str(path_or_hub_id)!r}; a model on the hub is called owner/name."
        )
    return _load_from_hub(HubModel(str(path_or_hub_id), revision), weight, bias, tokens)


def _load_file(path: Path, weight: str | None, bias: str | None, tokens: Tokens) -> Head:
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty: fetch or write the file again.")
    if path.suffix == ".onnx":
        head = read_onnx_head(path, weight)
        names = {"weight": head.weight_name}
        strings = _strings(tokens, len(head.W)) or head.tokens
        return Head(_softmax_layer(head.W, head.b, strings, path), None, Source(path.name, "local", "onnx"), names)
    if path.suffix == ".npz":
        return _load_npz(npz.NpzStore(path), weight, bias, tokens, path)
    if path.suffix == ".safetensors":
        store: TensorStore = open_safetensors(path)
    elif path.suffix == ".bin" and looks_like_llama2c(path):
        return _load_llama2c_head(path, tokens)
    elif path.suffix in _PYTORCH:
        store = open_state_dict(path)
    else:
        raise ValueError(f"{path} has no known format: {', '.join(SUFFIXES)}, a model folder, or a hub id.")
    return _assemble(store, {}, weight, bias, tokens, _local(path, store))


def _load_npz(store: npz.NpzStore, weight: str | None, bias: str | None, tokens: Tokens, path: Path) -> Head:
    found = None if weight else npz.find_names(store)
    if found is None:
        return _assemble(store, {}, weight, bias, tokens, _local(path, store))
    name, transposed, known_bias = found
    bias = bias or known_bias
    W = store.read(conventions.require(store, name, (2,)))
    names = {"weight": name} | ({"bias": bias} if bias else {})
    b = store.read(conventions.require(store, bias, (1, 2))) if bias else None
    layer = _layer(W.T if transposed else W, b, tokens, store, name)
    return Head(layer, None, _local(path, store), names)


def _load_llama2c_head(path: Path, tokens: Tokens) -> Head:
    config, weights = read_llama2c(path)
    layer = _softmax_layer(weights["output"], None, _strings(tokens, config.vocab_size), path)
    names = {"weight": "tok_embeddings" if config.tied else "output", "gain": "norm"}
    return Head(layer, Ellipsoid.rms_norm(weights["norm"]), Source(path.name, "local", "llama2.c"), names)


def _load_from_hub(model: HubModel, weight: str | None, bias: str | None, tokens: Tokens) -> Head:
    store, config = model.open()
    source = Source(model.repo_id, "hub", store.provenance.get("format", "safetensors"), revision=model.commit)
    vocabulary = model.token_file() if tokens is None else None
    if vocabulary is None:
        return _assemble(store, config, weight, bias, tokens, source)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / vocabulary[0]
        file.write_bytes(vocabulary[1])
        return _assemble(store, config, weight, bias, file, source)


def _assemble(
    store: TensorStore,
    config: Mapping[str, Any],
    weight: str | None,
    bias: str | None,
    tokens: Tokens,
    source: Source,
) -> Head:
    """Choose the tensors by name, read them and nothing else, and put the layer together."""
    weight = conventions.require(store, weight, (2,)) if weight else conventions.find_weight(store, config)
    classes = store.shape(weight)[0]
    bias = conventions.require(store, bias, (1, 2)) if bias else conventions.find_bias(store, classes)
    layer = _layer(store.read(weight), store.read(bias) if bias else None, tokens, store, weight)
    names = {"weight": weight} | ({"bias": bias} if bias else {})
    norm = conventions.find_norm(store, config)
    if norm is None or store.shape(norm.gain) != (layer.dimension,):
        return Head(layer, None, source, names)
    gain = store.read(norm.gain).astype(float) + (1.0 if _GEMMA.match(str(config.get("model_type", ""))) else 0.0)
    shift = store.read(norm.shift) if norm.shift else None
    ellipsoid = Ellipsoid.layer_norm(gain, shift) if norm.kind == "layernorm" else Ellipsoid.rms_norm(gain)
    return Head(layer, ellipsoid, source, names | {"gain": norm.gain} | ({"shift": norm.shift} if norm.shift else {}))


def _layer(W: np.ndarray, b: np.ndarray | None, tokens: Tokens, store: TensorStore, name: str) -> SoftmaxLayer:
    if b is not None and b.size == W.shape[1] != W.shape[0]:
        raise ValueError(
            f"{store.label}: {name!r} is {W.shape} but its bias has {b.size} entries, so the matrix is stored transposed; "
            "save W as (classes, features)."
        )
    return _softmax_layer(W, b, _strings(tokens, len(W)), store.label)


def _softmax_layer(
    W: np.ndarray, b: np.ndarray | None, tokens: Sequence[str] | None, label: str | Path
) -> SoftmaxLayer:
    try:
        return SoftmaxLayer(W, b, tokens)
    except ValueError as error:
        raise ValueError(f"{label}: {error}") from None


def _strings(tokens: Tokens, classes: int) -> Sequence[str] | None:
    if isinstance(tokens, str | Path):
        path = Path(tokens)
        if not path.is_file():
            raise ValueError(f"there is no vocabulary file {str(path)!r}.")
        return read_tokens(path, classes)
    return tokens


def _local(path: Path, store: TensorStore) -> Source:
    return Source(path.name, "local", store.provenance.get("format", "model folder"))
