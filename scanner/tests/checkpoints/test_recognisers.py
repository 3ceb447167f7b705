"""Paddle, written byte by byte; kinds that are no longer read."""

import json

import damaged
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recogniser_writers import paddle

from softgeom.checkpoints import load_head

W, B = np.random.default_rng(3).normal(size=(5, 3)), np.arange(5.0)

TENSORS = {"fc.w_0": W.T.astype("f4"), "fc.b_0": B.astype("f4"), "last.w_0": np.ones((9, 4), "f4")}
STEPS = [("swish", [8], 9), ("squeeze", [9], 10), ("matmul", [10, 1], 11), ("add", [11, 2], 12)]
ROUNDS = [("swish", [9], 9), ("squeeze", [9], 9), *STEPS[2:]]
SQUARE = np.arange(9, dtype="f4").reshape(3, 3)
TURNED = {"fc.w_0": SQUARE, "fc.b_0": np.arange(3, dtype="f4")}
HALVES = TENSORS | {"fc.w_0": (W.T.astype("<f4").view("<u4") >> 16).astype("<u2")}  # bfloat16
CUT = (W.astype("<f4").view("<u4") >> 16 << 16).view("<f4")
# tensors and steps, and the W and the step in front that are read from the new program, or the old
PADDLE = {
    "a layer and the step before it": (TENSORS, STEPS, W.astype("f4"), "Swish"),
    "steps in a circle": (TENSORS, ROUNDS, W.astype("f4"), None),
    "as many features as classes": (TURNED, STEPS, SQUARE.T, "Swish"),
    "no addition": (TURNED, STEPS[:-1], SQUARE.T, "Swish"),
    "bfloat16": (HALVES, STEPS, CUT, "Swish"),
}


def write_paddle(folder, tensors, *, new, steps=STEPS):
    """Both files of a model."""
    numbers, *programs = paddle(tensors, steps)
    (folder / "m.pdiparams").write_bytes(numbers)
    program = folder / ("m.json" if new else "m.pdmodel")
    program.write_bytes(programs[new])
    return program


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("name", PADDLE)
def test_a_program_of_paddle_gives_the_layer(tmp_path, name, new):
    tensors, steps, weight, step = PADDLE[name]
    write_paddle(tmp_path, tensors, new=new, steps=steps)
    for place in (tmp_path, tmp_path / "m.pdiparams"):
        head = load_head(place)
        np.testing.assert_array_equal(head.layer.W, weight)
        np.testing.assert_array_equal(head.layer.b, tensors["fc.b_0"])
        assert (head.activation and head.activation.name) == (step if new else None)
    if "last.w_0" in tensors:
        assert load_head(tmp_path, weight="last.w_0").layer.W.shape == (4, 9)


# what a program does behind the layer, and how labels are read, or what is refused
PADDLE_BEHIND = {
    "a softmax": ([("softmax", [12], 13), ("scale", [13, 5], 14), ("fetch", [14], 15)], "argmax"),
    "a softmax in place": ([("reshape_", [12], 12), ("softmax_", [12], 12)], "argmax"),
    "a sigmoid": ([("shape64", [12], 13), ("sigmoid", [12], 14)], "threshold"),
    "a second number for each class": ([("add", [12, 2], 13)], "1.add behind"),
    "a factor": ([("multiply", [12, 2], 13), ("softmax", [13], 14)], "multiply behind"),
    "other places": ([("softmax", [12], 13), ("gather", [13, 2], 14)], "gather behind"),
    "a sigmoid of a softmax": ([("softmax", [12], 13), ("sigmoid", [13], 14)], "sigmoid behind"),
    "a scale and a sigmoid": ([("scale", [12], 13), ("sigmoid", [13], 14)], "scale behind"),
}


@pytest.mark.parametrize("name", PADDLE_BEHIND)
def test_what_a_program_of_paddle_does_behind_the_layer_is_followed_or_refused(tmp_path, name):
    steps, said = PADDLE_BEHIND[name]
    write_paddle(tmp_path, TENSORS, new=True, steps=[*STEPS, *steps])
    if said in ("argmax", "threshold"):
        assert load_head(tmp_path).readout.rule == said
        return
    with pytest.raises(ValueError, match=said.removeprefix("1.")):
        load_head(tmp_path)
    np.testing.assert_array_equal(load_head(tmp_path, weight="fc.w_0").layer.W, W.astype("f4"))


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), new=st.booleans())
def test_damaged_programs_of_paddle_end_in_a_layer_or_a_sentence(tmp_path, data, new):
    program = write_paddle(tmp_path, TENSORS, new=new)
    program.write_bytes(data.draw(damaged.damaged(program.read_bytes())))
    numbers = (tmp_path / "m.pdiparams").read_bytes()
    assert damaged.answer(tmp_path, "m.pdiparams", numbers, beside=False) == ""
    program.unlink()


OPERATIONS = (None, 3, "ops", [], {}, [3], [None], [{"#": "p"}], [{"#": 3, "O": {"%": 1}}])
PROGRAMS = [{"program": {"regions": [{"blocks": [{"ops": ops}]}]}} for ops in OPERATIONS]
PROGRAMS += [{"program": 3}, {"program": {"regions": []}}, {}]
NO_PROGRAM = r"m\.json is not a (program of Paddle|whole Paddle program)"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        *((json.dumps(program), NO_PROGRAM) for program in PROGRAMS),
        ("[" * 100_000, "nested too deeply"),
        (None, r"m\.pdmodel, which is not beside it"),
    ],
)
def test_a_program_of_paddle_that_is_none_ends_in_a_sentence(tmp_path, program, said):
    path = write_paddle(tmp_path, TENSORS, new=True)
    path.unlink() if program is None else path.write_text(program)
    with pytest.raises(ValueError, match=said):
        load_head(tmp_path / "m.pdiparams")


FAST_TEXT = b"\xba\x16O/\x0c\0\0\0"
PAST = "which is no longer read"
BROKEN = [
    ("m.pdiparams", bytes(4) + b"\xff" * 8, "not a whole Paddle file of parameters"),
    ("a.traineddata", b"\x18", f"a Tesseract model, {PAST}"),
    ("final.mdl", b"\0B<TransitionModel> ", f"a Kaldi model, {PAST}"),
    ("model.bin", b"\6\0\0\0\x10\0TransformerSpec\0", f"a CTranslate2 model, {PAST}"),
    ("model.bin", FAST_TEXT, f"a fastText model, {PAST}"),
    ("a.ftz", FAST_TEXT, f"a fastText model, {PAST}"),
    ("model.bin", np.ones(99, "f4").tobytes(), "neither a PyTorch nor a llama2.c file"),
    ("model.json", b'{"weightsManifest": []}', f"a TensorFlow.js model, {PAST}"),
]


@pytest.mark.parametrize(("name", "content", "said"), BROKEN, ids=[row[2] for row in BROKEN])
def test_what_is_damaged_or_no_layer_ends_in_a_sentence(tmp_path, name, content, said):
    write_paddle(tmp_path, TENSORS, new=False)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=said) as caught:
        load_head(tmp_path / name)
    assert "\n" not in str(caught.value)
