"""Features of two trained extractors with their classes, for heads trained anew (notebooks 14 and
17): a text recogniser's, labelled by what it reads itself, and a language model's states, labelled
by the token that follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from compendium.models import glyphs, ppocr
from compendium.models.subjects import Subject, load_known
from compendium.models.withheld import Examples

_PER_LINE = 20  # characters on a drawn line
_SIZES = (40, 36, 32, 28)  # pixels of a character: the last size is held out
_TRAINED = 0.75  # share of a text's positions that are trained on
_WINDOW, _BATCH = 256, 16  # tokens that a language model reads together, windows at a time


@dataclass(frozen=True)
class ReadText:
    """A text as a language model reads it, in N windows. The classes are the tokens that are used
    most in a longer part of the text; the last class stands for all others.
    """

    classes: NDArray[np.int64]  # (N, 257): of 256 tokens and the one that follows
    states: torch.Tensor  # (N, 256, D) before the output layer, root mean square 1
    strings: tuple[str, ...]  # of the classes


def read_text(name: str, text: str, classes: int, tokens: int) -> ReadText:
    """Read so many tokens of a text; the classes are those used most in all of it. ValueError when
    the model is not to be had.
    """
    subject, windows, states = _states(name, text, tokens)
    used = np.bincount(subject.tokenizer.encode(text), minlength=len(subject.tokenizer))
    most = np.argsort(-used, kind="stable")[: classes - 1]
    number = np.full(len(used), classes - 1)
    number[most] = np.arange(classes - 1)
    pieces = subject.tokenizer.strings()
    strings = (*(pieces[token] for token in most), "(any other)")
    scaled = states / states.square().mean().sqrt()
    return ReadText(number[windows.numpy()], scaled.unflatten(0, (len(windows), -1)), strings)


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
    _, windows, found = _states(name, text, tokens)
    states, follows = found.double().numpy(), windows[:, 1:].flatten().numpy()
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


def _states(name: str, text: str, tokens: int) -> tuple[Subject, torch.Tensor, torch.Tensor]:
    """A released language model, windows (N, 257) of the text and its states (N 256, D) on them."""
    subject, absent = load_known(name)
    if subject is None:
        raise ValueError(f"no states of {name}: {absent}")
    windows, states = subject.windows(text, _WINDOW, tokens // _WINDOW), []
    with torch.no_grad():
        for part in windows.split(_BATCH):
            x = subject.model.embed(part[:, :-1])
            for block in subject.model.blocks:
                x = block(x)
            states.append(subject.model.ln_final(x).flatten(0, 1))
    return subject, windows, torch.cat(states)


def _scaled(
    x: NDArray[np.floating],
    y: NDArray[np.int_],
    x_new: NDArray[np.floating],
    y_new: NDArray[np.int_],
) -> tuple[Examples, Examples]:
    """Both parts divided by the root mean square of the first: an output layer can undo that."""
    size = np.sqrt(np.mean(np.square(x)))
    return ((x / size).astype(np.float32), y), ((x_new / size).astype(np.float32), y_new)
