"""Objects in memory: the layer of what the caller already has."""

import numpy as np
import pytest

from softgeom.checkpoints import load_head

torch = pytest.importorskip("torch")


def test_narrow_and_tracked_tensors_and_a_transformers_model():
    linear = torch.nn.Linear(3, 7, bias=False, dtype=torch.bfloat16)
    np.testing.assert_array_equal(load_head(linear).layer.W, linear.weight.detach().float().numpy())
    assert load_head(torch.ones(5, 2, requires_grad=True) + torch.eye(5, 2)).layer.classes == 5
    transformers = pytest.importorskip("transformers")
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=11, n_embd=8, n_layer=1, n_head=2)
    )
    np.testing.assert_array_equal(load_head(model).layer.W, model.lm_head.weight.detach().numpy())


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (lambda: torch.eye(4).to_sparse(), "to_dense"),
        (lambda: torch.ones(4, 3).to(torch.float8_e4m3fn), "codes, not weights"),
        (
            lambda: torch.quantize_per_tensor(torch.ones(4, 3), 0.1, 0, torch.qint8),
            "codes, not weights",
        ),
        (lambda: torch.ones(4, 3, device="meta"), "meta device"),
        (lambda: torch.ones(1, 4).expand(2**30, 4), "repeats 16 bytes"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_dense_matrix_of_numbers_is_refused(tensor, message):
    with pytest.raises(ValueError, match=message):
        load_head(tensor())


def test_a_module_without_a_linear_is_told():
    with pytest.raises(ValueError, match="ReLU has no Linear layer"):
        load_head(torch.nn.ReLU())
