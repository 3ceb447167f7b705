"""Tesseract and Paddle, written byte by byte; kinds that were read up to version 0.2."""

import contextlib
import json
import struct

import numpy as np
import pytest
from damaged import damaged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recogniser_writers import paddle, traineddata

from softgeom.checkpoints import load_head
from softgeom.layer import Box

W, B = np.random.default_rng(3).normal(size=(5, 3)), np.arange(5.0)
# a space, no letter twice, "a" and "b" alone, "c" of two codes
SPELLED = [(0,), (4,), (4,), (1,), (2,), (1, 3)]


def test_a_traineddata_file_gives_its_softmax_and_letters(tmp_path):
    (tmp_path / "a.traineddata").write_bytes(traineddata(W, B, SPELLED))
    head = load_head(tmp_path / "a.traineddata")
    np.testing.assert_array_equal(head.layer.W, W)
    np.testing.assert_array_equal(head.layer.b, B)
    assert head.layer.tokens == (" ", "a", "b", "part of c", "no letter (4)")
    assert head.feature_set()[0] == Box(1.0)  # an LSTM feeds it
    assert "6 characters, of which 1 take several codes" in head.notes[-1]
    assert load_head(tmp_path / "a.traineddata", without_bias=True).layer.b is None


def test_rows_of_int8_have_their_scales(tmp_path):
    codes = np.arange(-10, 10, dtype=np.int8).reshape(5, 4)
    content = traineddata(codes[:, :3], codes[:, 3], SPELLED)
    (tmp_path / "a.traineddata").write_bytes(content)
    layer = load_head(tmp_path / "a.traineddata").layer
    np.testing.assert_array_equal(layer.W, codes[:, :3] / 4)
    np.testing.assert_array_equal(layer.b, codes[:, 3] / 4)


LAYER = {"fc.w_0": W.T.astype("f4"), "fc.b_0": B.astype("f4"), "last.w_0": np.ones((9, 4), "f4")}
STEPS = [("swish", [8], 9), ("squeeze", [9], 10), ("matmul", [10, 1], 11), ("add", [11, 2], 12)]


def write_paddle(folder, tensors, *, new, steps=STEPS):
    """Both files of a model."""
    numbers, *programs = paddle(tensors, steps)
    (folder / "m.pdiparams").write_bytes(numbers)
    (folder / ("m.json" if new else "m.pdmodel")).write_bytes(programs[new])


def test_the_new_program_of_paddle_shows_the_layer_and_the_step_before_it(tmp_path):
    write_paddle(tmp_path, LAYER, new=True)
    for place in (tmp_path, tmp_path / "m.pdiparams"):
        head = load_head(place)
        np.testing.assert_array_equal(head.layer.W, W.astype("f4"))
        np.testing.assert_array_equal(head.layer.b, B)
        assert head.activation.name == "Swish"
    assert load_head(tmp_path, weight="last.w_0").layer.W.shape == (4, 9)


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("added", ["add", None])
def test_matrices_of_paddle_are_features_by_classes_also_where_both_are_as_many(
    tmp_path, new, added
):
    square = np.arange(9, dtype="f4").reshape(3, 3)
    held = {"fc.w_0": square, "fc.b_0": np.arange(3, dtype="f4")}
    steps = [step for step in STEPS if step[0] != "add" or added]
    write_paddle(tmp_path, held, new=new, steps=steps)
    layer = load_head(tmp_path).layer
    np.testing.assert_array_equal(layer.W, square.T)
    np.testing.assert_array_equal(layer.b, held["fc.b_0"])


def test_the_old_program_of_paddle_gives_names(tmp_path):
    halves = (W.T.astype("<f4").view("<u4") >> 16).astype("<u2")
    write_paddle(tmp_path, {**LAYER, "fc.w_0": halves}, new=False)
    layer = load_head(tmp_path).layer
    np.testing.assert_allclose(layer.W, W, rtol=2**-7)
    np.testing.assert_array_equal(layer.b, B)


def test_parameters_of_paddle_without_their_program_are_told(tmp_path):
    (tmp_path / "m.pdiparams").write_bytes(paddle(LAYER)[0])
    with pytest.raises(ValueError, match=r"m\.pdmodel, which is not beside it"):
        load_head(tmp_path / "m.pdiparams")


@pytest.mark.parametrize("new", [False, True])
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_programs_of_paddle_end_in_a_layer_or_a_sentence(tmp_path, new, data):
    write_paddle(tmp_path, LAYER, new=new)
    path = tmp_path / ("m.json" if new else "m.pdmodel")
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    with contextlib.suppress(ValueError):  # anything else would be a traceback
        load_head(tmp_path / "m.pdiparams")


def test_damaged_numbers_of_paddle_are_refused(tmp_path):
    write_paddle(tmp_path, LAYER, new=True)
    numbers = paddle(LAYER)[0]
    (tmp_path / "m.pdiparams").write_bytes(numbers[:4] + b"\xff" * 8 + numbers[12:])
    with pytest.raises(ValueError, match="not a whole Paddle file of parameters"):
        load_head(tmp_path / "m.pdiparams")


def test_a_program_of_paddle_in_circles_or_of_other_types_ends_in_a_sentence(tmp_path):
    rounds = [("swish", [9], 9), ("squeeze", [9], 9), *STEPS[2:]]
    write_paddle(tmp_path, LAYER, new=True, steps=rounds)
    assert load_head(tmp_path / "m.pdiparams").layer.classes == 5
    nothing = (None, 3, "ops", [], {}, [3], [None], [{"#": "p"}], [{"#": 3, "O": {"%": 1}}])
    wrong = [{"program": {"regions": [{"blocks": [{"ops": ops}]}]}} for ops in nothing]
    said = r"m\.json is not a (program of Paddle|whole Paddle program)"
    for program in (*wrong, {"program": 3}, {"program": {"regions": []}}, {}):
        (tmp_path / "m.json").write_text(json.dumps(program))
        with pytest.raises(ValueError, match=said):
            load_head(tmp_path / "m.pdiparams")
    (tmp_path / "m.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        load_head(tmp_path / "m.pdiparams")


def says(content: bytes, form: str, *values: int, **other: int) -> bytes:
    """The content with other numbers at these places (`_0=5`) of where it has these."""
    told = [other.get(f"_{place}", value) for place, value in enumerate(values)]
    return content.replace(struct.pack(form, *values), struct.pack(form, *told))


SERIES = struct.pack("<bbbiiiiII", 9, 0, 0, 0, 1, 1, 0, 0, 1) * 100  # each within the one before
TESSERACT = traineddata(W, B)
BROKEN = {
    "a.traineddata": [
        (struct.pack("<i", -5) + bytes(40), "-5 components"),
        (struct.pack("<iq", 1, -1), "holds no LSTM network"),
        (traineddata(W, B, SPELLED)[:600], "not a whole traineddata file"),
        (says(TESSERACT, "<BII", 128, 5, 4, _1=2**31, _2=2**31), "bytes are declared where"),
        (struct.pack("<i24q", 24, *[-1] * 17, 196, *[-1] * 6) + SERIES, "nested too deeply"),
    ],
    "final.mdl": [(b"\0B<TransitionModel> ", "a Kaldi model, which was read up to version 0.2")],
    "model.bin": [
        (
            b"\6\0\0\0\x10\0TransformerSpec\0",
            "a CTranslate2 model, which was read up to version 0.2",
        ),
        (b"\xba\x16O/\x0c\0\0\0", "a fastText model, which was read up to version 0.2"),
        (np.ones(99, "f4").tobytes(), "neither a PyTorch nor a llama2.c file"),
    ],
    "a.ftz": [(b"\xba\x16O/\x0c\0\0\0", "a fastText model, which was read up to version 0.2")],
    "model.json": [(b'{"weightsManifest": []}', "a TensorFlow.js model, which was read up to")],
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_damaged_or_no_layer_ends_in_a_sentence(tmp_path, name):
    for content, said in BROKEN[name]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=said) as caught:
            load_head(tmp_path / name)
        assert "\n" not in str(caught.value)
