"""Figures: reproducible bytes, alt text inside, sources printed."""

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
        files = style.save_figure(
            draw(), tmp_path / run / "line", alt="a falling line", note="data: none"
        )
        digests.append([hashlib.sha256(file.read_bytes()).hexdigest() for file in files])
    assert digests[0] == digests[1]
    # two runs within one second would not show it
    assert b"CreationDate" not in files[1].read_bytes()


def test_alt_text_and_facts_are_inside_the_png_or_it_is_refused(draw, tmp_path):
    png, pdf = style.save_figure(
        draw(), tmp_path / "line", alt="a falling line", metadata={"seed": 3}
    )
    with Image.open(png) as image:
        assert image.text["Description"] == "a falling line"
        assert json.loads(image.text["Comment"]) == {"seed": 3}
    assert b"a falling line" in pdf.read_bytes()
    with pytest.raises(ValueError, match="figure line: alternative text is missing"):
        style.save_figure(draw(), tmp_path / "line", alt=" ")


def test_colours_stay_apart_in_grey():
    """Relative luminance of the first five colours differs by a visible step."""

    def luminance(colour):
        channels = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
            for c in mpl.colors.to_rgb(colour)
        ]
        return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]

    values = sorted(luminance(colour) for colour in style.COLOURS[:5])
    assert min(b - a for a, b in itertools.pairwise(values)) > 0.01


def test_a_headline_wraps_inside_the_figure_or_is_set_smaller(draw):
    fig = draw()
    style.headline(
        fig, "Ninety of ninety numbers of the table agree with the paper, whatever route is taken"
    )
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
    red, green, blue = mpl.colors.to_rgb(style.legible(colour))
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
    ]
    contrast = 1.05 / (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05)
    assert contrast >= 4.45  # hexadecimal digits round the channels
    assert contrast < 4.9 or style.legible(colour) == colour.lower()  # and no darker than needed
