"""Tesseract's and Kaldi's own files, written here byte by byte."""

import struct

import numpy as np
import pytest
from torture.recogniser_writers import kaldi, traineddata

from softgeom.checkpoints import load_head
from softgeom.layer import Box

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
