"""Damaged and hostile files of every kind end in a layer or in a sentence."""

import collections
import datetime
import json
import pickle
import tracemalloc

import damaged
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softgeom.checkpoints import load_head
from softgeom.checkpoints.plain_pickle import read_plain_pickle
from softgeom.checkpoints.safetensors_file import SafetensorsStore

pytest.importorskip("onnx")
torch = pytest.importorskip("torch")
KINDS = damaged.kinds()
WITH_COUNTS = "onnx paddle gguf tflite safetensors pickle".split()


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_file_is_read(kind, tmp_path):
    name, content = KINDS[kind]
    assert damaged.answer(tmp_path, name, content()) == ""


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_ends_in_a_layer_or_a_sentence(kind, tmp_path, data):
    name, content = KINDS[kind]
    broken = data.draw(damaged.damaged(content()))
    assert damaged.answer(tmp_path, name, broken) == ""


@pytest.mark.parametrize("kind", [*WITH_COUNTS, "gguf quantised"])
def test_every_cut_and_every_inflated_number_ends_in_a_sentence(kind, tmp_path):
    """At each place of the header eight bytes say the largest numbers, so that each count, size and
    type does; nothing is allocated for them.
    """
    name, content = KINDS[kind]
    whole = content()
    broken = [whole[: len(whole) * n // 16] for n in range(16)]
    for at in range(0, min(len(whole), 400), 4):
        for large in (b"\xff" * 8, b"\xff\xff\xff\x7f" * 2):
            broken.append(whole[:at] + large + whole[at + 8 :])
    tracemalloc.start()
    try:
        for variant in broken:
            assert damaged.answer(tmp_path, name, variant) == "", variant
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def safetensors(dtype):
    """84 bytes, and a header that says this of the one tensor W."""
    told = {"W": {"dtype": dtype, "shape": [7, 12], "data_offsets": [0, 84]}}
    return headed(json.dumps(told).encode())


def headed(header):
    return len(header).to_bytes(8, "little") + header + bytes(84)


def cut(kind, kept):
    return KINDS[kind][1]()[:kept]


def claiming_tokens():
    """A GGUF file with an array of 2^60 texts."""
    whole, key = KINDS["gguf"][1](), b"tokenizer.ggml.tokens"
    at = whole.index(key) + len(key) + 8  # behind the types of the entry and of its items
    return whole[:at] + (2**60).to_bytes(8, "little") + whole[at + 8 :]


DOUBLED = b"".join(b"]q%c(h%ch%ce" % (n + 1, n, n) for n in range(40))
REFUSED = {
    "npz, cut": ("a.npz", lambda: cut("npz", -20), r"a\.npz cannot be read \(BadZipFile"),
    "npy, cut": ("a.npy", lambda: cut("npy", -20), r"a\.npy of shape .* cannot fill"),
    "npy as npz": ("a.npz", KINDS["npy"][1], r"unnamed array: give it the ending \.npy"),
    "torch, cut": (
        "a.pt", lambda: cut("torch", 300), "is not a whole PyTorch file|holds more than tensors"),
    "safetensors, cut": ("a.safetensors", lambda: cut("safetensors", -10), "not fully covered"),
    "safetensors, cut in the header": (
        "a.safetensors", lambda: cut("safetensors", 20), "not a whole safetensors file"),
    "codes": ("a.safetensors", lambda: safetensors("I8"), "int8 codes, not weights"),
    "booleans": ("a.safetensors", lambda: safetensors("BOOL"), "holds booleans"),
    "floats of 8 bits": ("a.safetensors", lambda: safetensors("F8_E4M3"), "no exact NumPy form"),
    "a GGUF array of 2^60 texts": ("a.gguf", claiming_tokens, "ends inside its header"),
    "a GGUF text that is not UTF-8": (
        "a.gguf", lambda: KINDS["gguf"][1]().replace(b"gpt2", b"gp\xff2"), "cannot be read"),
    "lists in a pickle that double 40 times": (
        "a.pkl", lambda: b"\x80\x04]q\x00" + DOUBLED + b".", "holds no dictionary of named arrays"),
    "a pickle that declares 2^60 bytes": (
        "a.pkl", lambda: b"\x80\x04\x8e" + (2**60).to_bytes(8, "little") + b"x.", "not a whole"),
    "a pickle of 2^31 memory slots": (
        "a.pkl", lambda: b"\x80\x02Nr\xff\xff\xff\x7f.", "memory slot 2147483647 after 1"),
    "a pickled array that does not fill its bytes": (
        "a.pkl", lambda: pickle.dumps({"W": np.zeros((3, 2))}, 2).replace(b"K\x03K\x02", b"K\4K\2"),
        "does not fit its bytes"),
    "a pickled array of negative sizes": (
        "a.pkl",
        lambda: pickle.dumps({"W": np.zeros((3, 2))}, 2).replace(
            b"K\x03K\x02", b"J\xfd\xff\xff\xffJ\xfe\xff\xff\xff"),
        r"of shape \(-3, -2\) and float64 does not fit"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_damaged_file_is_named(tmp_path, case):
    name, content, said = REFUSED[case]
    (tmp_path / name).write_bytes(content())
    with pytest.raises(ValueError, match=said) as caught:
        load_head(tmp_path / name, weight="W" if "safetensors" in name else None)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b'{"W": {"dtype": "F32", "shape": [7, 3], "data_offsets": [0, 84]}', "Expecting"),
        (b'{"W": {"dtype": "F32", "shape": [7, 3], "data_offsets": [84, 0]}}', "outside of the"),
        (b'{"W": {"dtype": "F32", "shape": [7, 3], "data_offsets": [0, 80]}}', "has 80 bytes"),
        (b'{"W": {"dtype": "F32", "shape": [-7, -3], "data_offsets": [0, 84]}}', "has 84 bytes"),
        (b'{"W": {"dtype": "F32", "shape": [7, 3], "data_offsets": [0, Infinity]}}', "infinity"),
        (b"[" * 99_999, "recursion"),
    ],
)
def test_the_header_of_a_remote_file_is_checked_too(header, said):
    content = headed(header)
    with pytest.raises(ValueError, match=f"there is not a safetensors file.*{said}"):
        SafetensorsStore(lambda start, stop: content[start:stop], len(content), "there")
    with pytest.raises(ValueError, match="not the length of a header"):
        SafetensorsStore(lambda start, stop: b"\xff" * (stop - start), 100, "there")


class _Trap:
    """An object whose unpickling would leave a file behind."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize(
    ("name", "write", "said"),
    [
        ("a.npz", lambda p, x: np.savez(p, W=np.array([x], dtype=object)), "holds Python objects"),
        ("a.npy", lambda p, x: np.save(p, np.array([[x]], dtype=object)), "holds Python objects"),
        ("a.pkl", lambda p, x: p.write_bytes(pickle.dumps({"W": np.ones((3, 2)), "x": x})),
         r"asks for the global (io|_io|builtins)\.open.*nothing of it was executed"),
        ("a.pt", lambda p, x: torch.save({"lm_head.weight": x}, p), "nothing of it was executed"),
    ],
)  # fmt: skip
def test_code_in_a_file_is_not_executed(tmp_path, name, write, said):
    marker = tmp_path / "executed"
    write(tmp_path / name, _Trap(str(marker)))
    with pytest.raises(ValueError, match=said):
        load_head(tmp_path / name)
    assert not marker.exists()


@pytest.mark.parametrize("state", [b"N}X\1\0\0\0xK\1s\x86", b"}X\1\0\0\0xK\1s"])
@pytest.mark.parametrize(
    "allowed",
    [
        "_codecs encode", "collections OrderedDict", "numpy dtype", "numpy ndarray",
        "numpy.core.multiarray scalar", "numpy._core.multiarray _reconstruct",
        "numpy._core.numeric _frombuffer",
    ],
)  # fmt: skip
def test_a_pickle_sets_no_attribute_of_what_it_may_call(tmp_path, allowed, state):
    """Instruction ``b`` sets what the dictionary, or the second of a pair, says: here x to 1."""
    named = b"c" + allowed.replace(" ", "\n").encode() + b"\n"
    (tmp_path / "m.pkl").write_bytes(b"\x80\x02" + named + state + b"b.")
    with pytest.raises(ValueError, match="not a whole pickle of plain data"):
        read_plain_pickle(tmp_path / "m.pkl")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_come_out_as_pickle_gives_them(tmp_path, protocol):
    rng = np.random.default_rng(0)
    content = {
        "W": rng.standard_normal((5, 3)).astype(np.float32),
        "columns": np.asfortranarray(rng.standard_normal((4, 6))),
        "codes": np.arange(4, dtype=">i2"),
        "number": np.float64(2.5),
        "nested": [("a", 1, 2.5, None, True), {"b": b"bytes"}],
        "ordered": collections.OrderedDict(x=1),
    }
    path = tmp_path / "m.pkl"
    path.write_bytes(pickle.dumps(content, protocol))
    found = read_plain_pickle(path)
    for name in ("W", "columns", "codes"):
        array = found.pop(name)
        np.testing.assert_array_equal(array, content[name])
        assert (array.dtype.kind, array.ndim) == (content[name].dtype.kind, content.pop(name).ndim)
    assert found == content


@pytest.mark.parametrize(
    "content",
    [
        np.array([[object()]], dtype=object),
        np.array(["text"]),
        np.zeros(2, dtype=[("a", "f4")]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        datetime.date(2020, 1, 1),
    ],
)
def test_a_pickle_of_more_than_plain_data_is_refused(tmp_path, content):
    (tmp_path / "m.pkl").write_bytes(pickle.dumps({"W": content}))
    with pytest.raises(ValueError, match=r"m\.pkl (asks for|is not a whole pickle of plain data)"):
        read_plain_pickle(tmp_path / "m.pkl")


@pytest.mark.parametrize("dtype", "float64 float32 float16 int64 int32 int16".split())
def test_numbers_of_every_type_are_read_exactly(tmp_path, dtype):
    from safetensors.numpy import save_file

    W = np.random.default_rng(0).integers(-100, 100, (3, 2)).astype(dtype)
    save_file({"W": W}, tmp_path / "a.safetensors")
    np.testing.assert_array_equal(load_head(tmp_path / "a.safetensors", weight="W").layer.W, W)


@pytest.mark.parametrize("suffix", ["safetensors", "pt"])
def test_bfloat16_is_exact(tmp_path, suffix):
    from safetensors.torch import save_file

    W = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    (save_file if suffix == "safetensors" else torch.save)({"W": W}, tmp_path / f"a.{suffix}")
    np.testing.assert_array_equal(load_head(tmp_path / f"a.{suffix}").layer.W, W.float())


def test_a_fault_is_seen(tmp_path, monkeypatch):
    """The judge itself: a library's own error, and a sentence with control characters."""
    name, content = KINDS["npz"]
    assert "cannot read" not in damaged.answer(tmp_path, name, b"text")
    monkeypatch.setattr(damaged, "load_head", lambda _: float("x"))
    assert damaged.answer(tmp_path, name, content()).startswith("ValueError: could not convert")
