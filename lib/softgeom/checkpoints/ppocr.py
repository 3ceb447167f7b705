"""The recognition head of PP-OCRv4: a softmax layer in production that one pip install brings.

`rapidocr-onnxruntime` (Apache-2.0) carries PaddleOCR's Chinese recogniser as an ONNX file: a linear layer with bias, C = 6,625 classes
(class 0 the CTC blank, then the characters, then the space) over d = 120 features x = Swish(batch norm(.)) at each of
the positions along a text line. Swish z / (1 + exp(-z)) is never below its minimum -0.27846..., so the image does not
matter: x_k >= `SWISH_FLOOR` in every coordinate. The package itself is not imported, because its OpenCV wants system libraries; its
pre-processing is repeated here in NumPy and Pillow and the model runs in onnxruntime.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softgeom.checkpoints.onnx_graph import read_onnx_head
from softgeom.layer import SoftmaxLayer
from softgeom.source import Source

if TYPE_CHECKING:
    from PIL.Image import Image

PACKAGE = "rapidocr-onnxruntime"
SWISH_FLOOR = -0.2785  # below the minimum of z / (1 + exp(-z)), -0.278464543, by more than float32 rounding
HEIGHT = 48  # pixels of every line that the network sees
MINIMUM_WIDTH = 320  # narrower lines are padded with mid-grey to this width, as the package does


def ppocr_file() -> Path:
    """The recogniser's ONNX file inside the installed package, found without importing the package.

    Raises
    ------
    ValueError
        When the package is not installed.
    """
    found = importlib.util.find_spec("rapidocr_onnxruntime")
    folders = list(found.submodule_search_locations or []) if found else []
    files = [file for folder in folders for file in Path(folder, "models").glob("*PP-OCRv4_rec_infer.onnx")]
    if not files:
        raise ValueError(
            f"the package {PACKAGE} with the PP-OCRv4 recogniser is not installed: pip install 'softgeom[ocr]'."
        )
    return files[0]


def ppocr_source() -> Source:
    """Package, version and hash of the model file."""
    file = ppocr_file()
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return Source(
        "PP-OCRv4 recogniser", "package", f"{PACKAGE}, {file.name}", importlib.metadata.version(PACKAGE), digest
    )


def ppocr_head() -> SoftmaxLayer:
    """The recogniser's last layer: W (6625, 120), b (6625,) and the string of each class.

    Raises
    ------
    ValueError
        When the package is not installed.
    """
    head = read_onnx_head(ppocr_file())
    return SoftmaxLayer(head.W, head.b, head.tokens)


class Recogniser:
    """The network in front of the head: images of text lines in, features x out, so that the head can be exchanged.

    Parameters
    ----------
    threads : int
        Threads of one run of the network.

    Raises
    ------
    ValueError
        When onnxruntime or the package with the model is not installed.
    """

    def __init__(self, threads: int = 1):
        self._session, self._names = _session(threads)

    def features(self, images: Sequence[Image], batch: int = 16) -> list[np.ndarray]:
        """The features that the softmax layer is fed with.

        Parameters
        ----------
        images : sequence of PIL images
            Text lines, dark on light or the reverse, of any size.
        batch : int
            Images a run.

        Returns
        -------
        list of ndarray (T, d)
            One array for each image; T grows with the width of the widest image of its batch.
        """
        return [features for features, _ in self._run(images, batch)]

    def probabilities(self, images: Sequence[Image], batch: int = 16) -> list[np.ndarray]:
        """The network's own softmax, (T, C) for each image: the check that `features` and the head are the whole model."""
        return [probabilities for _, probabilities in self._run(images, batch)]

    def _run(self, images: Sequence[Image], batch: int) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, len(images), batch):
            lines = line_batch(images[start : start + batch])
            yield from zip(*self._session.run(self._names, {self._session.get_inputs()[0].name: lines}), strict=True)


def line_batch(images: Sequence[Image]) -> np.ndarray:
    """The network's input for some images, as the package prepares it.

    Each is resized to height 48 at its own aspect ratio, x -> (x / 255 - 0.5) / 0.5, and padded on the right with zeros to the
    width of the widest, 320 at least.

    Parameters
    ----------
    images : sequence of PIL images
        Text lines.

    Returns
    -------
    ndarray (N, 3, 48, width), float32
    """
    from PIL.Image import Resampling

    widths = [int(np.ceil(HEIGHT * image.width / image.height)) for image in images]
    lines = np.zeros((len(images), 3, HEIGHT, max([MINIMUM_WIDTH, *widths])), dtype=np.float32)
    for line, image, width in zip(lines, images, widths, strict=True):
        pixels = np.asarray(image.convert("RGB").resize((width, HEIGHT), Resampling.BILINEAR), dtype=np.float32)
        line[:, :, :width] = (pixels.transpose(2, 0, 1) / 255 - 0.5) / 0.5
    return lines


def ctc_decode(classes: np.ndarray, tokens: Sequence[str]) -> str:
    """The string of a greedy CTC path: repeats are merged, then blanks (class 0) dropped.

    Parameters
    ----------
    classes : ndarray of int (T,)
        The argmax at each position.
    tokens : sequence of str
        The string of each class.
    """
    changes = np.concatenate([[True], classes[1:] != classes[:-1]])
    return "".join(tokens[index] for index in classes[changes & (classes != 0)])


def read_lines(features: Iterable[np.ndarray], layer: SoftmaxLayer) -> list[str]:
    """What a layer reads in features (T, d): `ctc_decode` of the argmax of W x + b."""
    tokens = layer.tokens or tuple(map(str, range(layer.classes)))
    return [ctc_decode((x @ layer.W.T + layer.bias).argmax(axis=1), tokens) for x in features]


@functools.cache
def _session(threads: int) -> tuple[Any, list[str]]:
    """The session of the model with the last product's input added to its outputs."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ValueError(
            "the recogniser runs in onnxruntime, which is not installed: pip install 'softgeom[ocr]'."
        ) from error
    import onnx

    model = onnx.load(str(ppocr_file()))
    product = [node for node in model.graph.node if node.op_type == "MatMul"][-1]
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(product.input[0]))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry(
        "session.intra_op.allow_spinning", "0"
    )  # waiting threads leave the cores to others
    options.log_severity_level = 3  # the graph's unused constants are the exporter's business
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session, [product.input[0], model.graph.output[0].name]
