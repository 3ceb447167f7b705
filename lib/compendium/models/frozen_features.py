"""Features of two trained extractors with their classes, for heads trained anew (notebook 17): a
text recogniser's, labelled by what it reads itself, and a language model's states, labelled by the
token that follows.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from compendium.models import glyphs, ppocr
from compendium.models.subjects import load_known
from compendium.models.withheld import Examples

_PER_LINE = 20  # characters on a drawn line
_SIZES = (40, 36, 32, 28)  # pixels of a character: the last size is held out
_TRAINED = 0.75  # share of a text's positions that are trained on


def recogniser_examples(classes: int, threads: int, seed: int) -> tuple[Examples, Examples]:
    """Features (n, 120) of PP-OCRv4 where it reads one of so many common Chinese characters in
    drawn lines, for training and held out. ValueError when it, or a font, is not to be had.
    """
    fonts = glyphs.chinese_fonts(1)
    if not fonts:
        raise ValueError("no font with Chinese characters can be fetched: the lines need one")
    layer, rng = ppocr.ppocr_head(), np.random.default_rng(seed)
    drawable = fonts[0].characters
    common = [
        k
        for k, token in enumerate(layer.tokens or ())
        if len(token) == 1 and token in drawable and glyphs.rarity(token) == "GB1"
    ]
    chosen = rng.choice(common, classes, replace=False)
    number = np.full(layer.classes, -1)
    number[chosen] = np.arange(classes)
    recogniser, parts = ppocr.Recogniser(threads), []
    for size in _SIZES:
        text = [(layer.tokens or ())[k] for k in rng.permutation(chosen)]
        lines = ["".join(text[i : i + _PER_LINE]) for i in range(0, classes, _PER_LINE)]
        pictures = [glyphs.render_line(line, fonts[0], size) for line in lines]
        x = np.concatenate(recogniser.features(pictures))
        read = number[(x @ layer.W.T + layer.bias).argmax(axis=1)]
        parts.append((x[read >= 0], read[read >= 0]))
    x, y = (np.concatenate(part) for part in zip(*parts[:-1], strict=True))
    return _scaled(x, y, *parts[-1])


def state_examples(
    name: str, text: str, classes: int, widths: Sequence[int], tokens: int
) -> dict[int, tuple[Examples, Examples]]:
    """For each width, states of a released language model in front of its output layer, projected
    on so many principal directions of the training part, where one of the most frequent tokens
    follows. ValueError when the model is not to be had.
    """
    subject, absent = load_known(name)
    if subject is None:
        raise ValueError(f"no states of {name}: {absent}")
    windows = subject.windows(text, 256, tokens // 256)
    with torch.no_grad():
        x = subject.model.embed(windows[:, :-1])
        for block in subject.model.blocks:
            x = block(x)
        states = subject.model.ln_final(x).flatten(0, 1).double().numpy()
    follows = windows[:, 1:].flatten().numpy()
    values, counts = np.unique(follows, return_counts=True)
    frequent = values[np.argsort(-counts, kind="stable")[:classes]]
    number = np.full(int(follows.max()) + 1, -1)
    number[frequent] = np.arange(len(frequent))
    kept = number[follows] >= 0
    x, y = states[kept], number[follows[kept]]
    cut = int(_TRAINED * len(y))
    directions = np.linalg.svd(x[:cut] - x[:cut].mean(axis=0), full_matrices=False)[2]
    projected = {d: x @ directions[:d].T for d in widths}
    return {d: _scaled(z[:cut], y[:cut], z[cut:], y[cut:]) for d, z in projected.items()}


def _scaled(
    x: NDArray[np.floating],
    y: NDArray[np.int_],
    x_new: NDArray[np.floating],
    y_new: NDArray[np.int_],
) -> tuple[Examples, Examples]:
    """Both parts divided by the root mean square of the first: an output layer can undo that."""
    size = np.sqrt(np.mean(np.square(x)))
    return ((x / size).astype(np.float32), y), ((x_new / size).astype(np.float32), y_new)
