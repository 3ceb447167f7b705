"""The film of a class that dies: its region shrinks, and it says what the hull says."""

import film as dying
import numpy as np
import pytest
from PIL import Image
from scipy.spatial import Delaunay


def test_the_film_says_dead_exactly_where_the_hull_says_so():
    inside = Delaunay(dying.FIXED)
    told = []
    for progress in np.linspace(0, 1, 9):
        W = dying.layer_at(progress)
        share, alive = dying.state_of(W)
        assert alive == (inside.find_simplex(W[3]) < 0)
        assert (share > 0) == alive
        told.append((share, alive))
    shares, alive = zip(*told, strict=True)
    assert alive[0]
    assert not alive[-1]
    assert list(shares) == sorted(shares, reverse=True)


def test_a_short_film_is_written_and_loops_and_another_ending_is_refused(tmp_path):
    path = dying.film(tmp_path / "film.gif", frames=3)
    with Image.open(path) as film:
        assert film.n_frames == 3
        assert film.info["loop"] == 0
    with pytest.raises(ValueError, match=r"ends in \.gif, \.webp or \.mp4"):
        dying.film(tmp_path / "film.avi")
