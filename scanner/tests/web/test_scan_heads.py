"""The page's choice of the layer: that of `softgeom.load`, or the visitor is asked."""

import base64

import numpy as np
import pytest
from heads import READ, REFUSED, RNG, C, D, W, graph, header, some
from safetensors.numpy import load

import softgeom as sg
from softgeom.features.ellipsoid import rounded_radius

# what softgeom scan follows or refuses, and the page refuses
UNFOLLOWED = {
    "a detector": (
        "z = Conv (x, K, b) r = Relu (z) s = ConvTranspose (r, T) y = Sigmoid (s)",
        "Sigmoid is not followed"),
    "a log prior": ("z = MatMul (x, W) s = Add (z, b) y = Sub (s, b)", "Sub is not followed"),
    "a second bias": ("z = MatMul (x, W) s = Add (z, b) y = Add (s, b)", "Add is not followed"),
    "a softmax over time": (
        "z = MatMul (x, W) y = Softmax <axis = 1> (z)", "a Softmax along axis 1"),
    "a softmax that once ran over all axes": (
        "z = Conv (x, K, b) y = Softmax (z)", "a Softmax along axis 1"),
    "an operation of somebody's own": (
        "z = MatMul (x, W) y = mine.Softmax (z)", "mine::Softmax is not followed"),
    "a factor": ("y = Gemm <alpha = -1.0> (x, W, b)", "Gemm has the option alpha"),
    "a number for each place": ("z = MatMul (x, W) y = Add (z, places)", "an Add of shape (4, 30)"),
    "another bias on the way": ("z = MatMul (x, W) y = Add (z, x)", "Add is not followed"),
}  # fmt: skip


def shown(opened, path):
    return opened(path.read_bytes(), path.name)


@pytest.mark.parametrize("situation", READ)
def test_the_page_takes_the_layer_that_the_library_takes(opened, tmp_path, situation):
    write, weight, bias = READ[situation]
    path = write(tmp_path)
    found, head = shown(opened, path), sg.load(path)
    assert (found["name"], found.get("bias")) == (weight, bias)
    assert weight in found["said"]
    layer = load(base64.b64decode(found["layer"]))
    np.testing.assert_array_equal(layer["W"], head.layer.W)
    assert "b" not in layer if bias is None else np.array_equal(layer["b"], head.layer.b)


@pytest.mark.parametrize("situation", REFUSED)
def test_what_the_library_refuses_is_not_chosen(opened, tmp_path, situation):
    write, said = REFUSED[situation]
    found = shown(opened, write(tmp_path))
    assert "name" not in found
    assert said in found["said"]


@pytest.mark.parametrize("situation", UNFOLLOWED)
def test_a_graph_is_refused_by_the_operation_that_is_not_followed(opened, tmp_path, situation):
    text, said = UNFOLLOWED[situation]
    opset = 11 if "once" in situation else 13
    held = {"K": W[:, :, None, None], "T": some(C, 1, 2, 2), "places": some(4, C)}
    found = shown(opened, graph(text, opset, **held)(tmp_path))
    assert "name" not in found
    assert said in found["said"]
    assert found["offered"]


def test_scores_that_are_capped_get_the_library_s_sentence_and_no_ceiling(opened, tmp_path):
    inner = {"token_embd.weight": np.vstack([W, W[:3].mean(axis=0)])}
    for kind, facts in {"gemma2": {"gemma2__final_logit_softcapping": 20.0}, "gemma2 ": {},
                        "granite": {"granite__logit_scale": 8.0}, "t5": {
                            "t5__embedding_length": D}}.items():  # fmt: skip
        path = header(kind.strip(), inner, **facts)(tmp_path)
        found = shown(opened, path)
        ending = (
            "probabilities would be those of a softmax of the scores, not of the model's output"
        )
        assert ending in found["behind"]
        assert sg.load(path).behind
        assert (found["ceilings"], found["lost"] > 0) == (0, True)
    plain = shown(opened, header("llama", inner, llama__logit_scale=1.0)(tmp_path))
    assert plain["behind"] == ""
    assert plain["ceilings"] > 0


def test_a_norm_has_the_library_s_room_for_rounding(javascript):
    values = RNG.uniform(0.5, 2, (3, 8))
    formats = {
        "ones": np.ones(8), "bfloat16": np.array([1.5, -0.75, 3, 2.0**-90, 0, 129, 1, 2]),
        "float16": np.array([1.0009765625, 2.0**-24, -65504, 3, 2.0**-16, 0, 1, 2]),
        "float32": values[0].astype(np.float32).astype(float), "float64": values[1],
    }  # fmt: skip
    for gain in formats.values():
        for shift in (np.zeros(8), values[2].astype(np.float16).astype(float)):
            body = "return m.roundedRadius(...argument.map((values) => Float64Array.from(values)));"
            radius = javascript("scan_norm", body, [gain.tolist(), shift.tolist()])
            assert radius == pytest.approx(rounded_radius(gain, shift), rel=1e-14)
