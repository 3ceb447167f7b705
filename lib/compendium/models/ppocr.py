"""The recognisers of PP-OCR, softmax layers in production that one pip install brings.

PP-OCRv4 (`rapidocr-onnxruntime`, Apache-2.0) is a linear layer with bias, C = 6,625 classes (class
0 the CTC blank, then the characters, then the space) over d = 120 features x = Swish(batch norm(.))
at each of the positions along a text line; v5 and v6 have 18,385 and 18,710 classes over as many
features. Swish z / (1 + exp(-z)) is never below its minimum -0.27846..., so in v4 and v5 the image
does not matter: x_k >= `SWISH_FLOOR` in every coordinate. No package is imported, because their
OpenCV wants system libraries; the pre-processing is repeated here in NumPy and Pillow and the model
runs in onnxruntime.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softgeom.checkpoints.loading import load_softmax_layer
from softgeom.checkpoints.onnx_head import read_onnx_head
from softgeom.checkpoints.released import RELEASED
from softgeom.layer import SoftmaxLayer
from softgeom.source import Source

if TYPE_CHECKING:
    from PIL.Image import Image

# below the minimum of z / (1 + exp(-z)), -0.278464543, by more than float32 rounding
SWISH_FLOOR = -0.2785
HEIGHT = 48  # pixels of every line that the network sees
MINIMUM_WIDTH = 320  # narrower lines are padded with mid-grey to this width, as the package does


def ppocr_source(name: str = "ppocr-v4") -> Source:
    """Package, version and hash of the model file."""
    return RELEASED[name].source


def ppocr_head(name: str = "ppocr-v4") -> SoftmaxLayer:
    """The recogniser's last layer: for PP-OCRv4 W (6625, 120), b (6625,), and the strings."""
    return load_softmax_layer(name)


class Recogniser:
    """The network in front of the head, so that the head can be exchanged: images of text lines in,
    features x out. ``model`` is a released recogniser's name, or a file. ValueError if onnxruntime
    is not installed or the model is not to be had.
    """

    def __init__(self, threads: int = 1, model: str | Path = "ppocr-v4"):
        known = str(model) in RELEASED
        file = RELEASED[str(model)].fetch()[0] if known else Path(model)
        self._session, self._names = _session(file, threads)

    def features(self, images: Sequence[Image], batch: int = 16) -> list[np.ndarray]:
        """The features (T, d) that the softmax layer is fed with, for each image of a text line,
        dark on light or the reverse; T grows with the widest image of its batch.
        """
        return [features for features, _ in self._run(images, batch)]

    def probabilities(self, images: Sequence[Image], batch: int = 16) -> list[np.ndarray]:
        """The network's own softmax, (T, C) for each image: a check of head and features."""
        return [probabilities for _, probabilities in self._run(images, batch)]

    def _run(self, images: Sequence[Image], batch: int) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, len(images), batch):
            lines = {self._session.get_inputs()[0].name: line_batch(images[start : start + batch])}
            yield from zip(*self._session.run(self._names, lines), strict=True)


def line_batch(images: Sequence[Image]) -> np.ndarray:
    """The network's input (N, 3, 48, width), float32, for some images, as the package prepares it:
    each is resized to height 48 at its own aspect ratio, x -> (x / 255 - 0.5) / 0.5, and padded on
    the right with zeros to the width of the widest, 320 at least.
    """
    from PIL.Image import Resampling

    widths = [int(np.ceil(HEIGHT * image.width / image.height)) for image in images]
    lines = np.zeros((len(images), 3, HEIGHT, max([MINIMUM_WIDTH, *widths])), dtype=np.float32)
    for line, image, width in zip(lines, images, widths, strict=True):
        resized = image.convert("RGB").resize((width, HEIGHT), Resampling.BILINEAR)
        pixels = np.asarray(resized, dtype=np.float32).transpose(2, 0, 1)
        line[:, :, :width] = (pixels / 255 - 0.5) / 0.5
    return lines


def ctc_decode(classes: np.ndarray, tokens: Sequence[str]) -> str:
    """The string of a greedy CTC path (T,): repeats are merged, then blanks (class 0) dropped."""
    changes = np.concatenate([[True], classes[1:] != classes[:-1]])
    return "".join(tokens[index] for index in classes[changes & (classes != 0)])


def read_lines(features: Iterable[np.ndarray], layer: SoftmaxLayer) -> list[str]:
    """What a layer reads in features (T, d): `ctc_decode` of the argmax of W x + b."""
    tokens = layer.tokens or tuple(map(str, range(layer.classes)))
    return [ctc_decode((x @ layer.W.T + layer.bias).argmax(axis=1), tokens) for x in features]


@functools.cache
def _session(path: Path, threads: int) -> tuple[Any, list[str]]:
    """The session of the model with the last product's input added to its outputs."""
    try:
        import onnxruntime
    except ImportError as error:
        told = "the recogniser runs in onnxruntime, which is not installed: pip install -e '.[ocr]'"
        raise ValueError(told) from error
    import onnx

    model = onnx.load(str(path))
    features = read_onnx_head(path).features_name
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(features))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    # waiting threads leave the cores to others
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3  # the graph's unused constants are the exporter's business
    content, where = model.SerializeToString(), ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(content, options, providers=where)
    return session, [features, model.graph.output[0].name]
