"""Tesseract, Kaldi, CTranslate2, TensorFlow.js, fastText and Paddle, written byte by byte."""

import contextlib
import json
import struct

import numpy as np
import pytest
from torture.damaged import damage
from torture.recogniser_writers import ctranslate2, fasttext, kaldi, paddle, traineddata

from softgeom.checkpoints import load_head
from softgeom.layer import Box, Ellipsoid

W, B = np.random.default_rng(3).normal(size=(5, 3)), np.arange(5.0)
# a space, no letter twice, "a" and "b" alone, "c" of two codes
SPELLED = [(0,), (4,), (4,), (1,), (2,), (1, 3)]


@pytest.mark.parametrize("inside", [False, True])
def test_a_traineddata_file_gives_its_softmax_and_letters(tmp_path, inside):
    (tmp_path / "a.traineddata").write_bytes(traineddata(W, B, SPELLED, inside=inside))
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


def test_a_kaldi_model_gives_the_map_before_its_output(tmp_path):
    (tmp_path / "final.mdl").write_bytes(kaldi(W, B))
    head = load_head(tmp_path / "final.mdl")
    np.testing.assert_array_equal(head.layer.W, W.astype("f4"))
    np.testing.assert_array_equal(head.layer.b, B.astype("f4"))
    assert "HMM" in head.notes[0]


CODES = np.arange(-10, 5, dtype=np.int8).reshape(5, 3)
VARIABLES = {
    "decoder/embeddings/weight": CODES,
    "decoder/embeddings/weight_scale": np.arange(1, 6, dtype="f4"),
    "decoder/layer_norm/beta": np.zeros(3, "f4"),
    "decoder/layer_norm/gamma": np.ones(3, "f4"),
    "decoder/projection/bias": np.arange(5, dtype="f2"),
}
ALIAS = [("decoder/projection/weight", "decoder/embeddings/weight")]


def test_a_ctranslate2_model_gives_its_projection(tmp_path):
    (tmp_path / "model.bin").write_bytes(ctranslate2(VARIABLES, ALIAS))
    (tmp_path / "vocabulary.json").write_text('["a", "b", "c", "d", "e"]')
    head = load_head(tmp_path / "model.bin")
    np.testing.assert_allclose(head.layer.W, CODES / np.arange(1, 6)[:, None], rtol=1e-7)
    np.testing.assert_array_equal(head.layer.b, np.arange(5))
    assert head.layer.tokens == tuple("abcde")
    assert head.features == Ellipsoid.layer_norm(np.ones(3))


def entry(name, shape, **more):
    """What a manifest says of an array."""
    return {"name": name, "shape": list(shape), "dtype": "float32"} | more


def written(folder, paths, weights):
    """A model of these files, in which these arrays stand one after the other."""
    content = {"weightsManifest": [{"paths": paths, "weights": weights}]}
    (folder / "model.json").write_text(json.dumps(content))


def manifest(folder, paths, **quantised):
    """A dense layer of three features and five classes."""
    codes = np.arange(15, dtype="u1" if quantised else "<f4").reshape(3, 5)
    (folder / "shard.bin").write_bytes(codes.tobytes() + np.arange(5, dtype="<f4").tobytes())
    more = {"quantization": {"dtype": "uint8", **quantised}} if quantised else {}
    written(folder, paths, [entry("dense/kernel", (3, 5), **more), entry("dense/bias", (5,))])
    return codes


@pytest.mark.parametrize("quantised", [{}, {"scale": 0.5, "min": -3.0}])
def test_a_manifest_of_tensorflowjs_gives_its_dense_layer(tmp_path, quantised):
    codes = manifest(tmp_path, ["shard.bin"], **quantised)
    layer = load_head(tmp_path / "model.json").layer
    real = codes * quantised.get("scale", 1) + quantised.get("min", 0)
    np.testing.assert_array_equal(layer.W, real.T)
    np.testing.assert_array_equal(layer.b, np.arange(5))


@pytest.mark.parametrize("bias", ["biases", "bias"])
def test_a_manifest_may_be_a_file_of_its_own(tmp_path, bias):
    codes = manifest(tmp_path, ["shard.bin"])
    content = json.loads((tmp_path / "model.json").read_text())["weightsManifest"]
    for weight, name in zip(content[0]["weights"], ("fc/weights", f"fc/{bias}"), strict=True):
        weight["name"] = name
    path = tmp_path / "m-weights_manifest.json"
    path.write_text(json.dumps(content))
    layer = load_head(path).layer
    np.testing.assert_array_equal(layer.W, codes.T)
    np.testing.assert_array_equal(layer.b, np.arange(5))
    for other in ('["a", "b"]', "[3]", '"a"', '{"a": 1}', '[{"paths": []}]'):
        path.write_text(other)
        with pytest.raises(ValueError, match=r"only TensorFlow\.js's are read"):
            load_head(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("shape", [2**40, 5]), ("shape", [-3, -5]), ("shape", None),
        ("dtype", "complex64"), ("dtype", 3), ("name", None), ("quantization", "uint8"),
        ("quantization", {"dtype": "uint8"}),
    ],
)  # fmt: skip
def test_a_manifest_that_declares_what_is_not_there_is_refused(tmp_path, key, value):
    manifest(tmp_path, ["shard.bin"])
    kernel = entry("dense/kernel", (3, 5)) | {key: value}
    if key == "name":
        del kernel["name"]
    written(tmp_path, ["shard.bin"], [kernel, entry("dense/bias", (5,))])
    with pytest.raises(ValueError, match="and the files that it names do not fit"):
        load_head(tmp_path / "model.json")


@pytest.mark.parametrize("bias", [True, False])
def test_a_converted_graph_of_tensorflowjs_names_operations(tmp_path, bias):
    stored = {"a/head/MatMul/ReadVariableOp": W.T}
    stored |= {"a/head/BiasAdd/ReadVariableOp": B} if bias else {}
    written(tmp_path, ["w.bin"], [entry(name, values.shape) for name, values in stored.items()])
    (tmp_path / "w.bin").write_bytes(b"".join(v.astype("<f4").tobytes() for v in stored.values()))
    layer = load_head(tmp_path / "model.json", weight="a/head/kernel").layer
    np.testing.assert_array_equal(layer.W, W.astype("f4"))
    assert (layer.b is not None) == bias


@pytest.mark.parametrize("paths", [[], ["absent.bin"], ["../model.json"], [3], "shard.bin"])
def test_a_manifest_whose_files_do_not_fit_is_refused(tmp_path, paths):
    inside = tmp_path / "model"
    inside.mkdir()
    (tmp_path / "model.json").write_text("{}")
    manifest(inside, paths)
    with pytest.raises(ValueError, match="do not fit"):
        load_head(inside / "model.json")
    with pytest.raises(ValueError, match="of JSON files only"):
        load_head(tmp_path / "model.json")


@pytest.mark.parametrize("name", ["a.ftz", "a.bin"])
@pytest.mark.parametrize("quantised", [False, True])
def test_a_fasttext_classifier_gives_its_output_matrix_and_labels(tmp_path, name, quantised):
    rows = np.arange(5.0)[:, None] * [1, 1, 2, 2, 2] if quantised else W
    (tmp_path / name).write_bytes(fasttext(rows, "abcde", quantised=quantised))
    head = load_head(tmp_path / name)
    np.testing.assert_array_equal(head.layer.W, rows.astype("f4"))
    assert (head.layer.b, head.layer.tokens) == (None, tuple("abcde"))
    # texts are means of the first two rows, which are the writer's input matrix, or nothing
    features = head.feature_set()[0]
    low, high = min(rows[:2].min(), 0), max(rows[:2].max(), 0)
    if quantised:  # norm 2, times any of the centroids
        low, high = 0, 2 * 255 / 8
    assert (features.low, features.high) == pytest.approx((low, high), rel=1e-5)
    assert features.low <= low
    assert features.high >= high


LAYER = {"fc.w_0": W.T.astype("f4"), "fc.b_0": B.astype("f4"), "last.w_0": np.ones((9, 4), "f4")}
STEPS = [("swish", [8], 9), ("squeeze", [9], 10), ("matmul", [10, 1], 11), ("add", [11, 2], 12)]


def write_paddle(folder, tensors, *, new, steps=STEPS):
    """Both files of a model."""
    numbers, *programs = paddle(tensors, steps)
    (folder / "m.pdiparams").write_bytes(numbers)
    (folder / ("m.json" if new else "m.pdmodel")).write_bytes(programs[new])


def test_the_new_program_of_paddle_shows_the_layer_and_the_step_before_it(tmp_path):
    write_paddle(tmp_path, LAYER, new=True)
    for given in (tmp_path, tmp_path / "m.pdiparams"):
        head = load_head(given)
        np.testing.assert_array_equal(head.layer.W, W.astype("f4"))
        np.testing.assert_array_equal(head.layer.b, B)
        assert head.activation.name == "Swish"
    assert load_head(tmp_path, weight="last.w_0").layer.classes == 9


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
def test_damaged_programs_of_paddle_end_in_a_layer_or_a_sentence(tmp_path, new):
    rng = np.random.default_rng(5)
    write_paddle(tmp_path, LAYER, new=new)
    path = tmp_path / ("m.json" if new else "m.pdmodel")
    whole = path.read_bytes()
    for _ in range(150):
        path.write_bytes(damage(rng, whole))
        with contextlib.suppress(ValueError):  # anything else would be a traceback
            load_head(tmp_path / "m.pdiparams")
    path.write_bytes(whole)
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


def test_names_of_ctranslate2_that_stand_for_one_another_stand_for_nothing(tmp_path):
    round_ = [("decoder/projection/weight", "a"), ("a", "decoder/projection/weight"), ("b", "b")]
    (tmp_path / "model.bin").write_bytes(ctranslate2({"head/weight": W.astype("f4")}, round_))
    assert load_head(tmp_path / "model.bin").names == {"weight": "head/weight"}


def says(content: bytes, form: str, *values: int, **other: int) -> bytes:
    """The content with other numbers at these places (`_0=5`) of where it has these."""
    told = [other.get(f"_{place}", value) for place, value in enumerate(values)]
    return content.replace(struct.pack(form, *values), struct.pack(form, *told))


SERIES = struct.pack("<bbbiiiiII", 9, 0, 0, 0, 1, 1, 0, 0, 1) * 100  # each within the one before
TESSERACT, KALDI, CT2 = traineddata(W, B), kaldi(W, B), ctranslate2(VARIABLES)
FASTTEXT, QUANTISED = fasttext(W, "abcde"), fasttext(W, "abcde", quantised=True)
BROKEN = {
    "a.traineddata": [
        (struct.pack("<i", -5) + bytes(40), "-5 components"),
        (struct.pack("<iq", 1, -1), "holds no LSTM network"),
        (traineddata(W, B, SPELLED)[:600], "not a whole traineddata file"),
        (says(TESSERACT, "<BII", 128, 5, 4, _1=2**31, _2=2**31), "bytes are declared where"),
        (struct.pack("<i24q", 24, *[-1] * 17, 196, *[-1] * 6) + SERIES, "nested too deeply"),
    ],
    "final.mdl": [
        (b"<Nnet3> ", "binary Kaldi model"),
        (b"\0B<Nnet3> ", "no affine components"),
        (KALDI[:-120], "not a whole Kaldi model"),
        (says(KALDI, "<bibi", 4, 5, 4, 3, _1=-5), "a shape is"),
        (says(KALDI, "<bibi", 4, 5, 4, 3, _1=2**30, _3=2**30), "bytes are declared where"),
    ],
    "model.bin": [
        (ctranslate2(VARIABLES, ALIAS)[:150], "not a whole CTranslate2 model"),
        (ctranslate2(VARIABLES, version=3), "binary version 3"),
        (says(CT2, "<II", 5, 3, _0=2**31, _1=2**31), "bytes are declared where"),
        (np.ones(99, "f4").tobytes(), "shard of TensorFlow.js"),
    ],
    "a.ftz": [
        (fasttext(W, "abcde", loss=1), "hierarchical softmax, a tree"),
        (fasttext(W, "abcd"), "5 rows for 4 classes"),
        (FASTTEXT[:-4], "not a whole fastText model"),
        (says(FASTTEXT, "<qq", 5, 3, _0=2**60, _1=2**60), "declared"),
        (says(FASTTEXT, "<qq", 2, 3, _0=2**60), "declared"),
        (FASTTEXT[:4] + b"\x63" + FASTTEXT[5:], "fastText model of version"),
        (says(QUANTISED, "<qqi", 5, 3, 10, _2=9), "whole fastText model"),
    ],
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_damaged_or_no_layer_ends_in_a_sentence(tmp_path, name):
    for content, said in BROKEN[name]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=said) as caught:
            load_head(tmp_path / name)
        assert "\n" not in str(caught.value)
