import numpy as np
import pytest

from compendium.models import classifiers


@pytest.fixture
def folder(tmp_path, monkeypatch):
    def find(relative):
        path = tmp_path / relative.rsplit("/", 1)[-1]
        return path if path.is_file() else None

    monkeypatch.setattr(classifiers.paths, "find_data", find)
    return tmp_path


ARRAYS = {
    "embedding": np.ones((5, 2)), "alpha": np.array([2.353]),
    "decoder_weight": np.array([[1.0, -1.0]]),
    "decoder_bias": np.array([0.5]), "layers": np.array(8), "temperature": np.array(0.001),
}  # fmt: skip


def write(folder, arrays):
    np.savez(folder / "published_d2.npz", **arrays)
    (folder / "published_histories.csv").write_text("history,dimension,epoch\n2,2,1\n", "utf-8")


def test_absent_is_none_present_a_classifier_and_damaged_named(folder):
    assert classifiers.load_published() is None
    write(folder, ARRAYS)
    found = classifiers.load_published()
    assert found is not None
    model = found.model.model()
    assert model.alpha.item() == pytest.approx(2.353)
    assert model.recipe.layers == 8
    assert model.w.tolist() == [1.0, -1.0]
    assert len(found.histories) == 1
    write(folder, {name: array for name, array in ARRAYS.items() if name != "alpha"})
    with pytest.raises(ValueError, match="lacks alpha"):
        classifiers.load_published()
    write(folder, ARRAYS | {"decoder_weight": np.ones((1, 3))})
    with pytest.raises(ValueError, match="do not fit"):
        classifiers.load_published()
