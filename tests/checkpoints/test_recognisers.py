"""Files of Tesseract, Kaldi, CTranslate2 and TensorFlow.js, written here byte by byte."""

import json
import struct

import numpy as np
import pytest
from torture.recogniser_writers import kaldi, traineddata

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


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.traineddata", struct.pack("<i", -5) + bytes(40), "-5 components"),
        ("a.traineddata", struct.pack("<iq", 1, -1), "holds no LSTM network"),
        ("a.traineddata", traineddata(W, B, SPELLED)[:600], "not a whole traineddata file"),
        (
            "a.traineddata",
            traineddata(W, B).replace(
                struct.pack("<BII", 128, 5, 4), struct.pack("<BII", 128, 2**31, 2**31)
            ),
            "bytes are declared where",
        ),
        (
            "a.traineddata",  # a hundred series, each within the one before
            struct.pack("<i24q", 24, *[-1] * 17, 196, *[-1] * 6)
            + (struct.pack("<bbbiiiiII", 9, 0, 0, 0, 1, 1, 0, 0, 1)) * 100,
            "nested too deeply",
        ),
        ("final.mdl", b"<Nnet3> ", "is no binary Kaldi model"),
        ("final.mdl", b"\0B<Nnet3> ", "no affine components"),
        ("final.mdl", kaldi(W, B)[:-120], "not a whole Kaldi model"),
        (
            "final.mdl",
            kaldi(W, B).replace(
                struct.pack("<bibi", 4, 5, 4, 3), struct.pack("<bibi", 4, -5, 4, 3)
            ),
            "a shape is",
        ),
    ],
)
def test_damaged_files_end_in_a_sentence(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=said) as caught:
        load_head(tmp_path / name)
    assert "\n" not in str(caught.value)


def ctranslate2(variables, aliases=(), version=6):
    """A `model.bin`, as the converter writes it."""

    def text(name):
        return struct.pack("<H", len(name) + 1) + name.encode() + b"\0"

    types = ["float32", "int8", "int16", "int32", "float16"]
    out = struct.pack("<I", version) + text("TransformerSpec")
    out += struct.pack("<II", 7, len(variables))
    for name, values in variables.items():
        out += (
            text(name)
            + struct.pack("<B", values.ndim)
            + struct.pack(f"<{values.ndim}I", *values.shape)
        )
        out += struct.pack("<BI", types.index(values.dtype.name), values.nbytes) + values.tobytes()
    return out + struct.pack("<I", len(aliases)) + b"".join(text(a) + text(b) for a, b in aliases)


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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (ctranslate2(VARIABLES, ALIAS)[:150], "not a whole CTranslate2 model"),
        (ctranslate2(VARIABLES, version=3), "binary version 3"),
        (
            ctranslate2(VARIABLES).replace(
                struct.pack("<II", 5, 3), struct.pack("<II", 2**31, 2**31)
            ),
            "bytes are declared where",
        ),
        (np.ones(99, "f4").tobytes(), "shard of TensorFlow.js"),
    ],
)
def test_a_bin_file_is_named_by_what_it_holds(tmp_path, content, said):
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(ValueError, match=said):
        load_head(tmp_path / "model.bin")


def manifest(folder, paths, **quantised):
    """A dense layer of three features and five classes."""
    codes = np.arange(15, dtype="u1" if quantised else "<f4").reshape(3, 5)
    (folder / "shard.bin").write_bytes(codes.tobytes() + np.arange(5, dtype="<f4").tobytes())
    kernel = {"name": "dense/kernel", "shape": [3, 5], "dtype": "float32"}
    kernel |= {"quantization": {"dtype": "uint8", **quantised}} if quantised else {}
    weights = [kernel, {"name": "dense/bias", "shape": [5], "dtype": "float32"}]
    content = {"weightsManifest": [{"paths": paths, "weights": weights}]}
    (folder / "model.json").write_text(json.dumps(content))
    return codes


@pytest.mark.parametrize("quantised", [{}, {"scale": 0.5, "min": -3.0}])
def test_a_manifest_of_tensorflowjs_gives_its_dense_layer(tmp_path, quantised):
    codes = manifest(tmp_path, ["shard.bin"], **quantised)
    layer = load_head(tmp_path / "model.json").layer
    real = codes * quantised.get("scale", 1) + quantised.get("min", 0)
    np.testing.assert_array_equal(layer.W, real.T)
    np.testing.assert_array_equal(layer.b, np.arange(5))


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
