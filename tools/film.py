"""A film of ten seconds: a class is dragged into the hull of the others, its region shrinks, and it
dies (`make film`).
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib import animation
from matplotlib.axes import Axes

from compendium import paths, style
from compendium.drawing.polygons import CLASS_COLOURS, draw_polygons, tint
from softgeom.bottleneck import SoftmaxLayer, Unbounded, scan
from softgeom.bottleneck.drawing.planar import area, argmax_cells, square

FIXED = np.array([[4.0, 1.0], [-3.0, 3.0], [-1.0, -4.0]])  # the triangle of Figure 2 of 001
# of the fourth class: a corner, then inside
START, END = np.array([1.5, 6.0]), np.array([0.0, 0.75])
FRAMES, RATE = 120, 12  # ten seconds
_STILL = 0.15  # of the film at each end, without motion


def layer_at(progress: float) -> np.ndarray:
    """The weights (4, 2) when a share of the way is gone: the fourth row leaves `START` slowly and
    comes to rest at `END`.
    """
    t = float(np.clip((progress - _STILL) / (1 - 2 * _STILL), 0, 1))
    ease = t * t * (3 - 2 * t)
    return np.vstack([FIXED, START + ease * (END - START)])


def state_of(W: np.ndarray) -> tuple[float, bool]:
    """Share of a square of features in which the fourth class wins, and whether it can win at all,
    by the library's proof.
    """
    window = square(Fraction(2))
    cells = argmax_cells(window, W)
    verdict = scan(SoftmaxLayer(W), [len(W) - 1], features=Unbounded()).table["verdict"].iloc[0]
    return float(area(cells[3]) / area(window)) if 3 in cells else 0.0, verdict == "argmaxable"


def draw_frame(left: Axes, right: Axes, progress: float) -> str:
    """One picture: weight vectors with their hull (left), who wins at which features (right).
    Returns its sentence.
    """
    W = layer_at(progress)
    share, alive = state_of(W)
    for ax in (left, right):
        ax.clear()
    left.fill(*FIXED.T, color=style.GREY, alpha=0.25, lw=0)
    left.plot(*np.array([START, END]).T, ":", color=style.PURPLE, lw=1)
    for c, w in enumerate(W):
        left.plot(*w, "o" if c < 3 or alive else "X", color=CLASS_COLOURS[c], ms=13, mec="white")
        left.annotate(
            f"$w_{c + 1}$",
            w,
            (10, 4),
            textcoords="offset points",
            fontsize=13,
            color=style.legible(CLASS_COLOURS[c]),
            path_effects=style.halo(),
        )
    left.set(
        xlim=(-4.2, 5.4),
        ylim=(-5, 7),
        aspect="equal",
        xticks=[],
        yticks=[],
        title="Weight vectors, hull of three",
    )
    cells = argmax_cells(square(Fraction(2)), W)
    draw_polygons(
        right, cells, lambda c: tint(CLASS_COLOURS[c], 0.65), lambda c: f"$c_{{{c + 1}}}$", (14, 9)
    )
    right.set(xticks=[], yticks=[], title="Who wins at which features")
    return (
        f"class 4 wins in {share:.1%} of the square"
        if alive
        else "class 4 can never win again: proven"
    )


def film(path: Path, frames: int = FRAMES) -> Path:
    """Write the film; GIF and WebP come from Pillow, MP4 from ffmpeg where there is one. It loops.

    Parameters
    ----------
    path
        Ends in .gif, .webp or .mp4.
    frames
        Pictures; fewer make a shorter film at the same pace of pictures.

    Raises
    ------
    ValueError
        When the ending is another, or MP4 is asked for without ffmpeg.
    """
    import matplotlib.pyplot as plt

    if path.suffix not in (".gif", ".webp", ".mp4"):
        raise ValueError(f"{path.name}: a film ends in .gif, .webp or .mp4")
    if path.suffix == ".mp4" and not animation.writers.is_available("ffmpeg"):
        raise ValueError("an .mp4 needs ffmpeg (apt-get install ffmpeg); .gif and .webp do without")
    style.use()
    fig, (left, right) = style.figure("page", height=4.9, ncols=2, dpi=80)
    style.headline(
        fig, "How a class dies: pulled inside the triangle of the others, it loses its last feature"
    )
    said = fig.supxlabel(" ", fontsize=12, color=style.legible(style.PURPLE))

    def show(number: int) -> None:
        said.set_text(draw_frame(left, right, number / max(1, frames - 1)))

    path.parent.mkdir(parents=True, exist_ok=True)
    writer = (
        animation.FFMpegWriter(fps=RATE)
        if path.suffix == ".mp4"
        else animation.PillowWriter(fps=RATE)
    )
    animation.FuncAnimation(fig, show, frames=frames).save(path, writer=writer)
    plt.close(fig)
    return path


def main() -> int:
    """`make film`: build/film/a_class_dies.gif, and .mp4 where ffmpeg is."""
    for ending in ("gif", "mp4"):
        try:
            written = film(paths.root() / "build" / "film" / f"a_class_dies.{ending}")
            print(f"{written.relative_to(paths.root())}: {written.stat().st_size / 1e6:.1f} MB")
        except ValueError as missing:
            print(f"left out: {missing}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
