"""Every option acts or is refused: what `sg.scan` scans is the layer that the options describe,
built by hand here.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import softgeom as sg
from softgeom.checkpoints import load_head, load_softmax_layer

torch = pytest.importorskip("torch")

CLASSES, OTHER, FEATURES = 6, 4, 3
HEAD, VALUE = "lm_head.weight", "value.weight"
VECTOR = np.linspace(-1, 1, CLASSES).astype(np.float32)


class TwoHeads(torch.nn.Module):
    """Two linear layers and a loose bias; the second layer is registered last."""

    def __init__(self):
        super().__init__()
        self.lm_head = torch.nn.Linear(FEATURES, CLASSES)
        self.value = torch.nn.Linear(FEATURES, OTHER)
        self.register_buffer("spare", torch.from_numpy(VECTOR))


torch.manual_seed(0)
MODULE = TwoHeads()
STATE = {name: tensor.numpy() for name, tensor in MODULE.state_dict().items()}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The same two layers as each kind of model; a matrix and a layer hold one of them."""
    from safetensors.numpy import save_file

    folder = tmp_path_factory.mktemp("models")
    np.savez(folder / "a.npz", **STATE)
    save_file(STATE, folder / "a.safetensors")
    torch.save(MODULE.state_dict(), folder / "a.pt")
    W, b = STATE[HEAD], STATE["lm_head.bias"]
    return {
        "layer": sg.SoftmaxLayer(W, b),
        "array": W,
        "tensor": torch.from_numpy(W),
        "module": MODULE,
        **{suffix: folder / f"a.{suffix}" for suffix in ("npz", "safetensors", "pt")},
    }


def expected(kind, weight, bias, without_bias):
    """(W, b) that the options mean, None where they cannot be meant."""
    if bias is not None and without_bias:
        return None
    if kind in ("layer", "array", "tensor"):
        fits = bias is None or (kind != "layer" and isinstance(bias, np.ndarray))
        if weight is not None or not fits:
            return None
        own = STATE["lm_head.bias"] if kind == "layer" and not without_bias else None
        return STATE[HEAD], own if bias is None else bias
    if isinstance(bias, np.ndarray) or weight == "no.such" or bias == "no.such":
        return None
    chosen = weight or (VALUE if kind == "module" else HEAD)
    b = None if without_bias else STATE[bias or chosen.replace("weight", "bias")]
    return None if b is not None and len(b) != len(STATE[chosen]) else (STATE[chosen], b)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=st.sampled_from(["layer", "array", "tensor", "module", "npz", "safetensors", "pt"]),
    weight=st.sampled_from([None, HEAD, VALUE, "no.such"]),
    bias=st.sampled_from([None, "spare", "value.bias", "no.such", VECTOR]),
    without_bias=st.booleans(),
    revision=st.sampled_from([None, None, "main"]),
)
def test_an_option_acts_or_is_refused(models, kind, weight, bias, without_bias, revision):
    options = {"weight": weight, "bias": bias, "without_bias": without_bias, "revision": revision}
    meant = expected(kind, weight, bias, without_bias)
    if meant is None or revision is not None:
        with pytest.raises(ValueError, match=r"\.$"):
            load_head(models[kind], **options)
        return
    layer = load_softmax_layer(models[kind], **options)
    np.testing.assert_array_equal(layer.W, meant[0])
    assert (layer.b is None) == (meant[1] is None)
    assert layer.b is None or np.array_equal(layer.b, meant[1])


def test_verdicts_with_a_bias_are_those_of_the_layer_with_it():
    rng = np.random.default_rng(0)
    W, b = rng.standard_normal((60, 2)), rng.standard_normal(60)
    verdicts = sg.scan(sg.SoftmaxLayer(W, b)).table["verdict"].tolist()
    assert verdicts != sg.scan(W).table["verdict"].tolist()
    assert verdicts == sg.scan(W, bias=b).table["verdict"].tolist()
    module = torch.nn.Linear(2, 60, dtype=torch.float64)
    module.load_state_dict({"weight": torch.from_numpy(W), "bias": torch.from_numpy(b)})
    assert verdicts == sg.scan(module).table["verdict"].tolist()
    alone = sg.scan(module, without_bias=True).table["verdict"].tolist()
    assert alone == sg.scan(W).table["verdict"].tolist()


def test_a_named_layer_of_a_module_keeps_the_step_before_it():
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 5), torch.nn.Linear(5, 4)
    )
    assert load_head(model, weight="2.weight").feature_set()[0].high == 1
    assert load_head(model).activation is None


@pytest.mark.parametrize("bound", [1.0, 100.0])
def test_a_bound_beside_a_feature_set_is_refused(bound):
    with pytest.raises(ValueError, match="bound has no meaning"):
        sg.scan(np.eye(3), features=sg.Ball(1.0), bound=bound)


@pytest.mark.parametrize("model", [[[1.0, 2.0]], {"W": np.eye(2)}, 3, None])
def test_what_is_no_model_is_one_sentence(model):
    with pytest.raises(ValueError, match=f"a {type(model).__name__} is not a model"):
        sg.scan(model)


def test_hidden_entries_of_a_masked_array_are_not_read():
    hidden = np.ma.masked_array(np.eye(3), mask=np.eye(3))
    with pytest.raises(ValueError, match="W is a masked array"):
        sg.scan(hidden)
    with pytest.raises(ValueError, match="b is a masked array"):
        sg.scan(np.eye(3), bias=np.ma.masked_equal([1.0, 2.0, 3.0], 2))
