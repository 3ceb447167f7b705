"""Figures: reproducible bytes, alt text inside, sources printed."""

from __future__ import annotations

import hashlib
import json

import matplotlib as mpl
import pytest

mpl.use("Agg")
import itertools

import matplotlib.pyplot as plt
from PIL import Image

from compendium import style


@pytest.fixture
def draw():
    style.use()

    def draw():
        fig, ax = style.figure(height=2.0)
        ax.plot([0, 1], [1, 0])
        return fig

    yield draw
    plt.close("all")


def test_two_runs_give_the_same_bytes(draw, tmp_path):
    digests = []
    for run in ("first", "second"):
        files = style.save_figure(draw(), tmp_path / run / "line", alt="a falling line", note="data: none")
        digests.append([hashlib.sha256(file.read_bytes()).hexdigest() for file in files])
    assert digests[0] == digests[1]
    assert b"CreationDate" not in files[1].read_bytes()  # two runs within one second would not show it


def test_alt_text_and_facts_are_inside_the_png(draw, tmp_path):
    png, pdf = style.save_figure(draw(), tmp_path / "line", alt="a falling line", metadata={"seed": 3})
    with Image.open(png) as image:
        assert image.text["Description"] == "a falling line"
        assert json.loads(image.text["Comment"]) == {"seed": 3}
    assert b"a falling line" in pdf.read_bytes()


def test_a_figure_without_alt_text_is_refused(draw, tmp_path):
    with pytest.raises(ValueError, match="figure line: alternative text is missing"):
        style.save_figure(draw(), tmp_path / "line", alt=" ")


def test_colours_stay_apart_in_grey():
    """Printed in grey, no two of the first five colours coincide (relative luminance differs by a visible step)."""

    def luminance(colour):
        channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in mpl.colors.to_rgb(colour)]
        return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]

    values = sorted(luminance(colour) for colour in style.COLOURS[:5])
    assert min(b - a for a, b in itertools.pairwise(values)) > 0.01
