"""One door to every format: `load_softmax_layer` for the layer, `load_head` for all that stands
around it.

From top to bottom: what was given is opened (`formats`, `live`), its last layer is chosen by what
the format shows or by names (`choosing`), its tensors are read, its classes named (`labels`).
"""

from __future__ import annotations

import functools
import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from softgeom.checkpoints.activation import Activation
from softgeom.checkpoints.conventions import find_norm, readout_of
from softgeom.checkpoints.formats import damage_in_a_sentence, open_model, refuse_revision
from softgeom.checkpoints.labels import choose_names
from softgeom.checkpoints.live import aligned, as_array, open_object
from softgeom.checkpoints.matrices import matrix_shape
from softgeom.checkpoints.opened import Asked, Opened, shown
from softgeom.checkpoints.tensors import TensorStore, plain, weights_of
from softgeom.layer import Box, Ellipsoid, FeatureSet, SoftmaxLayer, read_only
from softgeom.readout import PLAIN, Readout
from softgeom.source import Source

_CONFINES = "confines the features to an ellipsoid, with room for rounding"


@dataclass(frozen=True)
class Head:
    """A softmax layer with what is known about it."""

    layer: SoftmaxLayer  # W, b and token strings
    features: Ellipsoid | None  # what the model's final normalisation can feed the layer, if known
    source: Source  # where it was read, on the hub with the commit of the revision
    names: dict[str, str]  # the tensors taken: weight, and bias, gain, shift where there are any
    activation: Activation | None = None  # what stands in front of the layer, if the file shows it
    notes: tuple[str, ...] = ()  # how layer, bias and names were found, and what to know of them
    is_embedding: bool = False  # an input embedding that nothing shows to be the output too
    readout: Readout = PLAIN  # what the model does between the layer's scores and its answer
    chosen: str = ""  # how the matrix was found, in a sentence

    def __post_init__(self) -> None:
        if self.layer.classes < 2:
            raise ValueError(
                f"{self.source.name}: a layer with {self.layer.classes} class has nothing to "
                "choose from."
            )

    def __repr__(self) -> str:
        bias = "no bias" if self.layer.b is None else "with bias"
        size = f"{self.layer.classes:,} classes, {self.layer.dimension} features, {bias}"
        return plain(f"Head({self.source.name}, {self.names.get('weight', 'W')}: {size})")

    def _repr_html_(self) -> str:
        from softgeom.card import piece

        known = [*self.notes, self.feature_set()[1], self.behind]
        return piece(repr(self), [each for each in known if each])

    @property
    def behind(self) -> str | None:
        """What stands between the layer's scores and the model's answer, in a sentence."""
        return self.readout.sentence()

    def feature_set(self, bound: float | None = None) -> tuple[FeatureSet, str]:
        """Where the features lie, and why. A bound that is given holds beside what is known; 100
        is assumed where nothing else is.
        """
        given, bound = bound, 100.0 if bound is None else bound
        step, scale = self.activation, self.readout.feature_scale
        times = "" if scale == 1 else f", times {scale:.6g}"
        if self.features is not None:
            return self.features.times(scale), f"the final normalisation{times} {_CONFINES}"
        if step is None:
            why = f"nothing in the file bounds the features: the box of {bound:g} is an assumption"
            return Box(bound), why
        front = f"{step.name} in front of the layer"
        if step.gain is not None:
            norm = Ellipsoid.rms_norm(step.gain, rounded=True)
            if step.name == "LayerNorm":
                norm = Ellipsoid.layer_norm(step.gain, step.shift, rounded=True)
            return norm.times(scale), f"{front}{times} {_CONFINES}"
        low, high = scale * step.low, scale * step.high
        bounded = np.isfinite([low, high]).all()
        if given is not None:
            if max(low, -given) >= min(high, given):
                raise ValueError(f"--bound {given:g} leaves nothing of {low:g} <= x <= {high:g}.")
            low, high = max(low, -given), min(high, given)
        # the assumption may lie beyond the bound that the step gives
        low = low if low > -np.inf else min(-bound, high - bound)
        high = high if high < np.inf else bound if bound > low else low + bound
        outer = "" if bounded else f"; {bound:g} is assumed where it gives no bound"
        return Box(high, low=low), f"{front}{times} gives {low:g} <= x <= {high:g}{outer}"


def load_softmax_layer(model: Any, **options: Any) -> SoftmaxLayer:
    """The softmax layer of a model; options and errors as `load_head`."""
    return load_head(model, **options).layer


def load_head(
    model: Any,
    *,
    weight: str | None = None,
    bias: Any = None,
    tokens: Any = None,
    revision: str | None = None,
    without_bias: bool = False,
    blank: str | None = None,
) -> Head:
    """The softmax layer of a model with the set of its features and its origin.

    Parameters
    ----------
    model : path, str or object
        A file (``.npz .npy .onnx .safetensors .gguf .tflite .pdiparams .pkl``,
        PyTorch's ``.pt .pth .ckpt .bin``, ``.bin`` of llama2.c), a model folder, a released model
        such as `ppocr-v6`, an id `owner/name` on the hub; or in memory a matrix (array, list,
        DataFrame, sparse), (W, b), a SoftmaxLayer, a torch module or state dict, a linear model of
        scikit-learn.
    weight : str, optional
        The name of the tensor that is W, of a module also the path of its layer, where the model
        uses none of the known names. A named weight takes its sibling bias.
    bias : str or array (C,), optional
        The name of the tensor that is b; or the numbers themselves, in place of a bias that the
        model has.
    tokens : path, sequence of str or mapping, optional
        Token strings, the vocabulary file that holds them, or a vocabulary from token to number;
        found in or beside the model where it has a place for it.
    revision : str, optional
        Branch, tag or commit, of a model on the hub only.
    without_bias : bool
        Leave out a bias that is there.
    blank : "first", "last" or "none", optional
        Where the blank of a network that reads text lines stands, when the list of names lacks it;
        "none": the first name is that of class 0, further ones have no name, or no class.

    Returns
    -------
    Head

    Raises
    ------
    ValueError
        With one sentence that says what is wrong where and what to do: no such file and no hub, an
        unknown format, a truncated file, unknown tensor names (the candidates are listed with their
        shapes), shapes that do not fit, an option that has no meaning with the model.

    Examples
    --------
    >>> import softgeom as sg
    >>> head = sg.load([[1.0, 0.0], [0.0, 1.0], [0.2, 0.2]], bias=[0.0, 0.0, 1.0])
    >>> head.layer.classes, head.layer.dimension
    (3, 2)
    """
    if bias is not None and without_bias:
        raise ValueError("a bias is given and to be left out at once: pass --bias or --no-bias.")
    if not isinstance(model, str | os.PathLike):
        refuse_revision(revision, "an object in memory")
        return _load(open_object(model), weight, bias, tokens, without_bias, blank)
    # what overflows here is not finite afterwards, and refused
    with damage_in_a_sentence(str(model)), np.errstate(all="ignore"):
        opened = open_model(os.fspath(model), revision)
        return _load(opened, weight, bias, tokens, without_bias, blank)


def _load(
    opened: Opened, weight: Any, bias: Any, tokens: Any, without_bias: bool, blank: str | None
) -> Head:
    """Choose the tensors, read them and nothing else, and put the layer together."""
    named = bias if isinstance(bias, str) else None
    numbers = None if bias is None or named is not None else as_array(bias, "bias")
    asked = Asked(weight, named, without_bias or numbers is not None)
    show = opened.show or functools.partial(shown, opened.store, config=opened.config)
    found = show(asked)
    store, choice = found.store, found.choice
    # a convolution of width 1 is a matrix
    W = _read(store, choice.weight).reshape(matrix_shape(store, choice.weight) or (-1, 1))
    W = W.T if choice.transposed else W
    if opened.source.kind != "memory":
        read_only(W)
    b = _read_bias(store, choice.bias, W.shape) if choice.bias else None
    names, how = choose_names(tokens, len(W), opened, blank)
    if numbers is not None:
        b = as_array(aligned(bias, names), "bias")
    try:
        layer = SoftmaxLayer(W, b, names)
    except ValueError as error:
        raise ValueError(f"{store.label}: {error}") from None
    notes = [*choice.why, *(["with the bias that was given"] if numbers is not None else [])]
    if choice.is_embedding:
        notes.append(
            f"{choice.weight} is an input embedding and nothing shows that the model ends "
            "with it: the verdicts are about nearest rows, not about outputs"
        )
    tensors = {"weight": choice.weight} | ({"bias": choice.bias} if choice.bias else {})
    norm: dict[str, str] = {}
    ellipsoid = found.features
    if ellipsoid is None:
        ellipsoid, norm = _norm(opened, choice.weight, layer.dimension)
    return Head(
        layer,
        ellipsoid,
        opened.source,
        tensors | norm,
        opened.activation or found.activation,
        (*notes, *how, *opened.notes),
        choice.is_embedding,
        opened.readout or found.readout or readout_of(opened.config),
        choice.why[0] if choice.why else opened.source.name,
    )


def _read(store: TensorStore, name: str) -> np.ndarray:
    return weights_of(store.read(name), store.label, name)


def _read_bias(store: TensorStore, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The bias, read only when its declared size can be one."""
    size = math.prod(store.shape(name))
    if size == shape[1] != shape[0]:
        raise ValueError(
            f"{store.label}: W is {shape} but its bias {plain(name)!r} has {size} entries, so the "
            "matrix is stored transposed; save W as (classes, features)."
        )
    if size != shape[0]:
        raise ValueError(
            f"{store.label}: b must have one entry per class ({shape[0]}), not shape "
            f"{store.shape(name)}."
        )
    return _read(store, name)


def _norm(opened: Opened, weight: str, dimension: int) -> tuple[Ellipsoid | None, dict[str, str]]:
    """The ellipsoid that the normalisation before the layer, if any, gives, and its tensors."""
    store, config = opened.store, opened.config
    norm = find_norm(store, config, weight)
    if norm is None or store.shape(norm.gain) != (dimension,):
        return None, {}
    names = {"gain": norm.gain} | ({"shift": norm.shift} if norm.shift else {})
    gain = _read(store, norm.gain).astype(float) + norm.less
    if norm.kind == "rmsnorm":
        return Ellipsoid.rms_norm(gain, rounded=True), names
    shift = _read(store, norm.shift) if norm.shift else None
    return Ellipsoid.layer_norm(gain, shift, rounded=True), names
