"""The braid arrangement in the space of logits, and the plane of features that slices it (notebook
11; 001, Figures 3 and 7).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from compendium import style
from compendium.drawing.bottleneck.polygons import floats, name, ranking_colour
from softgeom.bottleneck.drawing.planar import crossings, ranking_cells
from softgeom.bottleneck.drawing.spatial import (
    Piece,
    Plane,
    braid_normals,
    cut_pieces,
    disc,
    feature_plane,
    paint_order,
    ranking_basis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[Any]
GLASS = (*to_rgb(style.SKY), 0.14)


def draw_slices(three: Array, four: Array) -> Figure:
    """For three classes (top) and four (bottom): the planes on which two logits tie, the plane that
    W reaches, and that plane seen flat.
    """
    fig, axes = style.figure("page", 6.6, nrows=2, ncols=3)
    realised = []
    for row, W in zip(axes, (three, four), strict=True):
        draw_space(row[0], W, None, 1.0, colour=False)
        draw_space(row[1], W, None, 1.0)
        realised.append(_draw_flat(row[2], W, 10 if len(W) == 3 else 9))
        row[0].set_title(
            f"{len(W)} classes: ties $y_i = y_j$\nbound {math.factorial(len(W))} rankings"
        )
        row[1].set_title("the plane of logits\nthat W reaches")
        row[2].set_title(f"seen flat: {realised[-1]} rankings\n(last digit: the winner)")
    style.headline(
        fig,
        f"Two features reach a plane of logits: it meets all {realised[0]} rankings of three "
        f"classes, but {realised[1]} of the {math.factorial(len(four))} of four",
    )
    return fig


def plane_cells(
    W: Array, b: Array | None, radius: float
) -> tuple[Plane, dict[tuple[int, ...], Array]]:
    """The plane of features inside a ball of the space of logits, and its polygons (n, 3) by
    ranking.
    """
    basis = np.eye(3) if len(W) == 3 else ranking_basis(len(W))
    plane, F, g = feature_plane(basis, W, b)
    angles = 2 * np.pi * np.arange(120) / 120
    disc_radius = math.sqrt(radius**2 - (plane.offset / np.linalg.norm(plane.normal)) ** 2)
    circle = disc_radius * np.column_stack([np.cos(angles), np.sin(angles)]) @ F.T + g
    if np.linalg.det(F) < 0:
        circle = circle[::-1]
    in_features = {
        ranking: floats(cell) for ranking, cell in ranking_cells(circle.tolist(), W, b).items()
    }
    return plane, {r: (x @ W.T + (0 if b is None else b)) @ basis.T for r, x in in_features.items()}


def ball_radius(W: Array, b: Array) -> float:
    """Radius of a ball of the space of logits that holds all crossings of the plane of a layer with
    bias, with a margin.
    """
    plane, F, g = feature_plane(ranking_basis(len(W)), W, b)
    u = (floats(sorted(crossings(W, b))) - g) @ np.linalg.inv(F).T
    return math.hypot(1.15 * float(np.linalg.norm(u, axis=1).max()), plane.offset)


def draw_space(ax: Axes, W: Array, b: Array | None, radius: float, colour: bool = True) -> None:
    """Paint the braid arrangement inside a ball, with the plane of a layer in the colours of its
    rankings, back to front.
    """
    basis = np.eye(3) if len(W) == 3 else ranking_basis(len(W))
    braid = [Plane(normal) for normal in braid_normals(basis).values()]
    plane, in_space = plane_cells(W, b, radius)
    eye, screen = _view_of(plane)
    cells = (
        [Piece(corners, ranking_colour(ranking)) for ranking, corners in in_space.items()]
        if colour
        else []
    )
    planes = [*braid, plane]
    pieces = [Piece(disc(p, radius), GLASS) for p in braid] + cells
    ordered = paint_order(cut_pieces(pieces, planes), planes, eye)
    edges = [
        (*to_rgb(style.BLACK), 0.35) if piece.label == GLASS else (1, 1, 1, 1) for piece in ordered
    ]
    faces = [piece.label for piece in ordered]
    polygons = [piece.corners @ screen for piece in ordered]
    ax.add_collection(PolyCollection(polygons, facecolors=faces, edgecolors=edges, linewidths=0.6))
    _bare(ax)


def _draw_flat(ax: Axes, W: Array, fontsize: float) -> int:
    """The sectors of a plane through the origin, seen flat and turned as in `draw_space`; their
    number.
    """
    plane, in_space = plane_cells(W, None, 1.0)
    right = _view_of(plane)[1][:, 0]
    facing = plane.normal if plane.normal @ np.ones(3) >= 0 else -plane.normal
    axes = np.column_stack([right, np.cross(facing, right) / np.linalg.norm(facing)])
    flat = [corners @ axes for corners in in_space.values()]
    faces = [ranking_colour(ranking) for ranking in in_space]
    ax.add_collection(PolyCollection(flat, facecolors=faces, edgecolors="white", linewidths=0.8))
    for ranking, corners in zip(in_space, flat, strict=True):
        middle = corners.mean(axis=0)
        place = 1.05 * middle / np.linalg.norm(middle)  # outside: no sector is too narrow there
        side = "center" if abs(place[0]) < 0.3 else "left" if place[0] > 0 else "right"
        ax.text(
            *place,
            name(ranking),
            ha=side,
            va="center" if side != "center" else "bottom" if place[1] > 0 else "top",
            fontsize=fontsize,
        )
    _bare(ax)
    ax.set(xlim=(-1.45, 1.45), ylim=(-1.45, 1.45))
    return len(in_space)


def _view_of(plane: Plane) -> tuple[Array, Array]:
    """An eye that sees a plane at an angle, whatever its position; and the screen's axes (3, 2) for
    it.
    """
    normal = plane.normal / np.linalg.norm(plane.normal)
    normal = normal if normal @ np.ones(3) >= 0 else -normal
    tangents = np.linalg.svd(normal[None])[2][1:]
    eye = 0.62 * normal + 0.78 * (math.cos(0.5) * tangents[0] + math.sin(0.5) * tangents[1])
    right = np.cross(normal, eye)
    right /= np.linalg.norm(right)
    eye /= np.linalg.norm(eye)
    return eye, np.column_stack([right, np.cross(eye, right)])


def _bare(ax: Axes) -> None:
    ax.set(aspect="equal")
    ax.set_axis_off()
    ax.autoscale_view()
