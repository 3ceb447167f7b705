"""PyTorch state dicts: tensors come out, code does not run."""

from __future__ import annotations

import numpy as np
import pytest

from softgeom.checkpoints import load_softmax_layer

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("wrapper", [None, "state_dict", "model"])
@pytest.mark.parametrize("old_format", [False, True])
def test_wrapped_or_not_new_or_old(tmp_path, layer_arrays, wrapper, old_format):
    W, b = (torch.from_numpy(array) for array in layer_arrays)
    tensors = {"lm_head.weight": W, "lm_head.bias": b}
    content = {wrapper: tensors, "epoch": 3} if wrapper else tensors
    torch.save(content, tmp_path / "m.pt", _use_new_zipfile_serialization=not old_format)
    layer = load_softmax_layer(tmp_path / "m.pt")
    np.testing.assert_array_equal(layer.W, W)
    np.testing.assert_array_equal(layer.b, b)


def test_bfloat16_is_exact(tmp_path):
    W = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    torch.save({"lm_head.weight": W}, tmp_path / "m.pt")
    np.testing.assert_array_equal(load_softmax_layer(tmp_path / "m.pt").W, W.float())


def test_code_in_a_pickle_is_not_executed(tmp_path):
    marker = tmp_path / "executed"
    torch.save({"lm_head.weight": _Trap(str(marker))}, tmp_path / "m.pt")
    with pytest.raises(ValueError, match="nothing of it was executed"):
        load_softmax_layer(tmp_path / "m.pt")
    assert not marker.exists()


def test_a_truncated_file_is_named(tmp_path, layer_arrays):
    torch.save({"lm_head.weight": torch.from_numpy(layer_arrays[0])}, tmp_path / "m.pt")
    (tmp_path / "m.pt").write_bytes((tmp_path / "m.pt").read_bytes()[:300])
    with pytest.raises(
        ValueError, match=r"m\.pt (is not a whole PyTorch file|holds more than tensors)"
    ):
        load_softmax_layer(tmp_path / "m.pt")


def test_unknown_names_are_listed_with_the_likely_ones_first(tmp_path):
    torch.save(
        {"inner": torch.zeros(4, 8), "outer": torch.zeros(9, 4), "v": torch.zeros(4)},
        tmp_path / "m.pt",
    )
    with pytest.raises(ValueError, match=r"outer \(9, 4\), inner \(4, 8\)\."):
        load_softmax_layer(tmp_path / "m.pt")


class _Trap:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))
