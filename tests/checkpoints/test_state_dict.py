"""PyTorch state dicts: tensors come out, code does not run."""

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
