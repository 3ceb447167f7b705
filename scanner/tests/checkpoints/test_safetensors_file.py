"""The safetensors reader against the format's own writer, and against broken files."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from softgeom.checkpoints import load_softmax_layer
from softgeom.checkpoints.safetensors_file import open_safetensors


def test_all_types_read_back(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        str(dtype): rng.integers(-100, 100, (3, 2)).astype(dtype)
        for dtype in ("float64", "float32", "float16", "int64", "int32", "int16", "int8")
    }
    save_file(arrays, tmp_path / "m.safetensors")
    store = open_safetensors(tmp_path / "m.safetensors")
    assert set(store.names()) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(store.read(name), array)
        assert store.read(name).dtype == array.dtype


def tensor(shape, start=0, stop=84, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"W": tensor([7, 3], stop=80)}, "cannot fill 80 bytes"),
        ({"W": tensor([7, 3], -84, 0)}, "outside the data"),
        ({"W": {"dtype": "F32"}}, "header cannot be read"),
        ({"W": tensor([7, 3.0])}, "3.0 is not a whole number"),
        ({"W": tensor([7, 3], stop=float("inf"))}, "inf is not a whole number"),
        ({"W": tensor([5, 4], 4)}, "leaves a hole"),
        ({"W": tensor([5, 4], stop=80)}, "4 bytes behind its last tensor"),
        ({"W": tensor([7, 3]), "b": tensor([7], 56)}, "overlaps the one before it"),
        ({"W": tensor([7, 12], dtype="I8")}, "int8 codes, not weights"),
        ({"W": tensor([7, 12], dtype="U8")}, "uint8 codes, not weights"),
        ({"W": tensor([7, 12], dtype="BOOL")}, "holds booleans"),
        ({"W": tensor([7, 12], dtype="F8_E4M3")}, "no exact NumPy form"),
    ],
)
def test_impossible_headers_are_refused(tmp_path, header, message):
    text = json.dumps(header).encode()
    (tmp_path / "m.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(84))
    with pytest.raises(ValueError, match=message):
        load_softmax_layer(tmp_path / "m.safetensors", weight="W")


TWICE = b'{"W": {"dtype": "F32", "shape": [7, 3], "data_offsets": [0, 84]}, "W": {}}'


@pytest.mark.parametrize(
    ("length", "text", "said"),
    [
        (2**62, b"", "not a safetensors file"),
        (None, TWICE, "duplicate name"),
        (None, b'{"W": ' + b"[" * 100_000, "header cannot be read"),
    ],
)
def test_hostile_headers_are_refused_and_allocate_nothing(tmp_path, length, text, said):
    length = len(text) if length is None else length
    (tmp_path / "m.safetensors").write_bytes(length.to_bytes(8, "little") + text + bytes(100))
    with pytest.raises(ValueError, match=said):
        load_softmax_layer(tmp_path / "m.safetensors")
