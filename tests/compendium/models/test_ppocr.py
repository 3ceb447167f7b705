"""The PP-OCRv4 recogniser: its head is the whole of what follows its features."""

import numpy as np
import pytest
from scipy.special import softmax

from compendium.models import ppocr


@pytest.fixture(scope="module")
def head():
    pytest.importorskip("onnxruntime")
    try:
        return ppocr.ppocr_head()
    except ValueError as error:
        pytest.skip(str(error))


def test_features_and_head_give_the_networks_own_probabilities(head):
    from PIL import Image

    rng = np.random.default_rng(0)
    noise = (rng.integers(0, 256, (48, width), dtype=np.uint8) for width in (48, 400))
    images, recogniser = list(map(Image.fromarray, noise)), ppocr.Recogniser()
    features, probabilities = recogniser.features(images), recogniser.probabilities(images)
    for x, found in zip(features, probabilities, strict=True):
        np.testing.assert_allclose(found, softmax(head.logits(x), axis=1), atol=1e-4)
        assert x.min() >= ppocr.SWISH_FLOOR
        assert x.min() < -0.27  # the bound is reached, so it is not slack


def test_lines_are_prepared_as_the_package_prepares_them():
    from PIL import Image

    images = [Image.new("L", (24, 24), 255), Image.new("RGB", (100, 10), (0, 0, 0))]
    lines = ppocr.line_batch(images)
    assert lines.shape == (2, 3, 48, 480)
    assert (lines[0, :, :, :48] == 1).all()
    assert (lines[0, :, :, 48:] == 0).all()
    assert (lines[1] == -1).all()


def test_the_swish_floor_is_close_below_and_ctc_merges_repeats_before_blanks():
    z = np.linspace(-2, 0, 200_001)
    minimum = (z / (1 + np.exp(-z))).min()
    assert ppocr.SWISH_FLOOR < minimum < ppocr.SWISH_FLOOR + 1e-4
    tokens = ["<blank>", "a", "b"]
    assert ppocr.ctc_decode(np.array([0, 1, 1, 0, 1, 2, 2, 0]), tokens) == "aab"
    assert ppocr.ctc_decode(np.array([0, 0]), tokens) == ""
