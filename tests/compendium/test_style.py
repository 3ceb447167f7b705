"""Figures: reproducible bytes, alt text inside, sources printed."""

import itertools
import json

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from compendium import style


@pytest.fixture
def draw():
    plt.switch_backend("Agg")
    style.use()

    def draw():
        fig, ax = style.figure(height=2.0)
        ax.plot([0, 1], [1, 0])
        return fig

    yield draw
    plt.close("all")


def test_two_runs_give_the_same_bytes_with_alternative_text_and_facts_inside(draw, tmp_path):
    told = {"alt": "a falling line", "note": "data: none", "metadata": {"seed": 3}}
    first, second = (style.save_figure(draw(), tmp_path / n / "line", **told) for n in "ab")
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    png, pdf = second
    with Image.open(png) as image:
        assert image.text["Description"] == "a falling line"
        assert json.loads(image.text["Comment"]) == {"seed": 3}
    assert b"a falling line" in pdf.read_bytes()
    assert b"CreationDate" not in pdf.read_bytes()  # two runs within one second do not show it
    with pytest.raises(ValueError, match="figure line: alternative text is missing"):
        style.save_figure(draw(), tmp_path / "line", alt=" ")


def _luminance(colour):
    """Relative, as the guidelines for accessible pages define it."""
    channels = np.array(mpl.colors.to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_colours_stay_apart_in_grey():
    values = sorted(_luminance(colour) for colour in style.COLOURS[:5])
    assert min(b - a for a, b in itertools.pairwise(values)) > 0.01


def test_a_headline_wraps_inside_the_figure_or_is_set_smaller(draw):
    fig, words = draw(), "Ninety of ninety numbers of the table agree with the paper, whatever "
    style.headline(fig, words + "route is taken")
    fig.canvas.draw()
    (title,) = [text for text in fig.texts if text.get_text()]
    box, frame = title.get_window_extent(), fig.bbox
    assert title.get_text().count("\n") == 1
    assert frame.x0 <= box.x0 < box.x1 <= frame.x1
    assert box.y0 >= fig.axes[0].get_tightbbox().y1 - 1  # constrained layout made room
    short, long = draw(), draw()
    style.headline(short, "A line falls")
    style.headline(long, "word " * 21)
    sizes = [fig.texts[0].get_fontsize() for fig in (short, long)]
    assert sizes[0] > sizes[1]
    assert long.texts[0].get_text().count("\n") == 1
    with pytest.raises(ValueError, match="this one is empty"):
        style.headline(short, " ")


@pytest.mark.parametrize("colour", [*style.COLOURS, style.GREY])
def test_labels_in_every_colour_of_the_palette_can_be_read(colour):
    contrast = 1.05 / (_luminance(style.legible(colour)) + 0.05)
    assert contrast >= 4.45  # hexadecimal digits round the channels
    assert contrast < 4.9 or style.legible(colour) == colour.lower()  # and no darker than needed
