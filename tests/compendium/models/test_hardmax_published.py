import numpy as np
import pytest

from compendium.models import hardmax_published


@pytest.fixture
def folder(tmp_path, monkeypatch):
    def find(relative):
        path = tmp_path / relative.rsplit("/", 1)[-1]
        return path if path.is_file() else None

    monkeypatch.setattr(hardmax_published.paths, "find_data", find)
    return tmp_path


def write(folder, **changes):
    arrays = {
        "embedding": np.ones((5, 2)), "alpha": np.array([2.353]),
        "decoder_weight": np.array([[1.0, -1.0]]),
        "decoder_bias": np.array([0.5]), "layers": np.array(8), "temperature": np.array(0.001),
    } | changes  # fmt: skip
    np.savez(
        folder / "published_d2.npz",
        **{name: value for name, value in arrays.items() if value is not None},
    )
    (folder / "published_histories.csv").write_text(
        "history,dimension,epoch\n2,2,1\n", encoding="utf-8"
    )


def test_absent_is_none_present_a_classifier_and_damaged_named(folder):
    assert hardmax_published.load_published() is None
    write(folder)
    found = hardmax_published.load_published()
    assert found is not None
    model = found.model.model()
    assert model.alpha.item() == pytest.approx(2.353)
    assert model.recipe.layers == 8
    assert model.w.tolist() == [1.0, -1.0]
    assert len(found.histories) == 1
    write(folder, alpha=None)
    with pytest.raises(ValueError, match="lacks alpha"):
        hardmax_published.load_published()
    write(folder, decoder_weight=np.ones((1, 3)))
    with pytest.raises(ValueError, match="do not fit"):
        hardmax_published.load_published()
