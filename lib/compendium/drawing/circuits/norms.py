"""Normalisation (notebook 30): where a norm sends states of three coordinates, and how long the
stream is before, between and after the blocks.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D

from compendium import style


def draw_sphere(cloud: np.ndarray, images: dict[str, np.ndarray]) -> Figure:
    """States in space (n, 3) and their images: LayerNorm's on a circle, where the plane orthogonal
    to (1, 1, 1) cuts the sphere; RMSNorm's all over it.
    """
    fig, axes = style.figure("page", height=5.0, ncols=2, subplot_kw={"projection": "3d"})
    for ax, (title, image) in zip(axes, images.items(), strict=True):
        _draw_globe(ax, plane=title.startswith("LayerNorm"))
        for start, stop in zip(cloud, image, strict=True):
            ax.plot(*zip(start, stop, strict=True), color=style.GREY, lw=0.6, alpha=0.6)
        ax.scatter(*cloud.T, s=14, color="white", edgecolor=style.BLACK, lw=0.8, depthshade=False)
        ax.scatter(*image.T, s=26, color=style.RED, depthshade=False)
        ax.set_title(title, y=1.03)
        ax.text2D(
            0.5,
            -0.1,
            "open: a state     orange: after the norm",
            transform=ax.transAxes,
            ha="center",
            fontsize=10,
        )
    style.headline(
        fig,
        "LayerNorm sends space to one circle; RMSNorm, which does not centre, to the whole sphere",
    )
    return fig


def _draw_globe(ax: Axes3D, plane: bool) -> None:
    """The sphere of radius sqrt(3) as a wire frame; with the plane through the origin orthogonal to
    (1, 1, 1) and their common circle.
    """
    r = np.sqrt(3)
    u, v = np.mgrid[0 : 2 * np.pi : 31j, 0 : np.pi : 16j]
    ax.plot_wireframe(
        r * np.cos(u) * np.sin(v),
        r * np.sin(u) * np.sin(v),
        r * np.cos(v),
        color=style.GREY,
        lw=0.3,
        alpha=0.3,
    )
    if plane:
        a, b = np.array([1, -1, 0]) / np.sqrt(2), np.array([1, 1, -2]) / np.sqrt(6)
        s, t = np.meshgrid([-2.2, 2.2], [-2.2, 2.2])
        ax.plot_surface(*(s * a[i] + t * b[i] for i in range(3)), color=style.SKY, alpha=0.18)
        angle = np.linspace(0, 2 * np.pi, 200)
        ax.plot(
            *(r * (np.cos(angle) * a[i] + np.sin(angle) * b[i]) for i in range(3)),
            color=style.BLUE,
            lw=1.6,
        )
    ax.set_box_aspect((1, 1, 1), zoom=1.1)
    ax.set(xlim=(-2, 2), ylim=(-2, 2), zlim=(-2, 2), xticks=[-1, 1], yticks=[-1, 1], zticks=[-1, 1])
    ax.set(xlabel="$z_1$", ylabel="$z_2$", zlabel="$z_3$")
    ax.tick_params(pad=-3)
    ax.xaxis.labelpad = ax.yaxis.labelpad = ax.zaxis.labelpad = -8
    ax.view_init(elev=22, azim=-22)
