"""Objects in memory: the layer of what the caller already has."""

import numpy as np
import pytest

from softgeom.checkpoints import load_head
from softgeom.layer import SoftmaxLayer

torch = pytest.importorskip("torch")


def test_a_linear_a_sequential_and_a_matrix():
    linear = torch.nn.Linear(3, 7)
    W, b = linear.weight.detach().numpy(), linear.bias.detach().numpy()
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Dropout(), linear)
    for given in (linear, model):
        head = load_head(given)
        np.testing.assert_array_equal(head.layer.W, W)
        np.testing.assert_array_equal(head.layer.b, b)
    assert load_head(model).feature_set()[0].low == 0
    for given in (linear.weight, W):
        assert load_head(given).layer.b is None
    layer = SoftmaxLayer(W, b)
    assert load_head(layer).layer.W is layer.W
    assert load_head(layer, tokens=list("abcdefg")).layer.tokens == tuple("abcdefg")


def test_narrow_and_tracked_tensors():
    linear = torch.nn.Linear(3, 7, bias=False, dtype=torch.bfloat16)
    np.testing.assert_array_equal(load_head(linear).layer.W, linear.weight.detach().float().numpy())
    assert load_head(torch.ones(5, 2, requires_grad=True) + torch.eye(5, 2)).layer.classes == 5


def test_a_transformers_model_gives_its_output_embeddings():
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
